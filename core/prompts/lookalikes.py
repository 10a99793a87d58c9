"""Keep control tokens that a person typed apart from those that a template writes.

Each look-alike in people's text is put between two private-use characters before rendering; the rendered text
is split there, so that only the template's own control tokens count as such. Templates still see the
look-alike itself, so ``trim``, ``split``, ``startswith`` and ``in`` work on it.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from octavo.core.prompts.jobs import Json
from octavo.core.prompts.messages import Segment

_PRIVATE_USE = re.compile("[\ue000-\uf8ff\U000f0000-\U000ffffd]")

_Tree = dict[str, "_Tree"]


@dataclass(frozen=True, slots=True)
class Marks:
    """The two characters around a look-alike; neither occurs in the template or in people's text."""

    start: str
    end: str

    def remove(self, text: str) -> str:
        """Give the text as the person wrote it."""
        return text.replace(self.start, "").replace(self.end, "")

    def mend(self, piece: str) -> str:
        """Take a mark that lost its partner in a split off the edge of a piece."""
        return piece.removeprefix(self.end).removesuffix(self.start)


@dataclass(frozen=True, slots=True)
class ControlTokens:
    """A vocabulary's control tokens, ready to be looked for."""

    pattern: re.Pattern[str]
    beginnings: frozenset[str]
    longest: int

    def protect(self, text: str, marks: Marks) -> str:
        """Put marks around each look-alike, and around the beginning of one that ends the text."""
        marked = self.pattern.sub(rf"{marks.start}\g<0>{marks.end}", text)
        return self._protect_ending(marked, marks)

    def _protect_ending(self, text: str, marks: Marks) -> str:
        # half a control token here and half in the next turn must not make a whole one
        body = text.rstrip()
        for length in range(min(self.longest, len(body)), 0, -1):
            if body[-length:] in self.beginnings:
                return f"{body[:-length]}{marks.start}{body[-length:]}{marks.end}{text[len(body) :]}"
        return text


def control_tokens(tokens: Iterable[str]) -> ControlTokens:
    """Prepare tokens for ``protect``: one pattern of shared prefixes, so 6,000 cost what one does."""
    known = {token for token in tokens if token.strip()}
    beginnings = frozenset(token[:length] for token in known for length in range(1, len(token)))
    pattern = re.compile(_expression(_trie(known)) if known else r"(?!)")
    return ControlTokens(pattern, beginnings, max(map(len, known), default=1) - 1)


def _trie(words: Iterable[str]) -> _Tree:
    root: _Tree = {}
    for word in words:
        node = root
        for letter in word:
            node = node.setdefault(letter, {})
        node[""] = {}
    return root


def _expression(node: _Tree) -> str:
    branches = [re.escape(letter) + _expression(child) for letter, child in node.items() if letter]
    if not branches:
        return ""
    if len(branches) == 1 and "" not in node:
        return branches[0]
    return f"(?:{'|'.join(branches)})" + ("?" if "" in node else "")


def choose_marks(texts: Iterable[str]) -> Marks:
    """Choose two private-use characters that none of the texts holds."""
    used = {letter for text in texts for letter in _PRIVATE_USE.findall(text)}
    free = (chr(code) for code in (*range(0xE000, 0xF900), *range(0xF0000, 0xFFFFE)) if chr(code) not in used)
    return Marks(next(free), next(free))


def strings(value: Json) -> Iterator[str]:
    """Give every string in a JSON value, keys too."""
    match value:
        case str():
            yield value
        case list():
            for item in value:
                yield from strings(item)
        case dict():
            for key, item in value.items():
                yield key
                yield from strings(item)


def protect_all(value: Json, tokens: ControlTokens, marks: Marks) -> Json:
    """Give a JSON value with every string in it protected, keys too."""
    match value:
        case str():
            return tokens.protect(value, marks)
        case list():
            return [protect_all(item, tokens, marks) for item in value]
        case dict():
            return {
                tokens.protect(key, marks): protect_all(item, tokens, marks) for key, item in value.items()
            }
    return value


def split_segments(text: str, marks: Marks) -> list[Segment]:
    """Split rendered text at the marks; a mark whose partner the template cut off is dropped."""
    whole = re.compile(f"{marks.start}([^{marks.start}{marks.end}]*){marks.end}")
    pieces: list[Segment] = []
    for index, piece in enumerate(whole.split(text)):
        pieces.append(Segment(marks.remove(piece), special=index % 2 == 0))
    return joined(pieces)


def joined(segments: Sequence[Segment]) -> list[Segment]:
    """Give the same text in as few segments as possible."""
    groups = groupby((segment for segment in segments if segment.text), key=lambda segment: segment.special)
    return [Segment("".join(piece.text for piece in pieces), special) for special, pieces in groups]
