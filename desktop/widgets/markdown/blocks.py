"""Markdown cut into blocks: plain values, no Qt. The text of a reply may still be growing."""

from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

LINK_SCHEMES = ("http", "https", "mailto")


@dataclass(frozen=True, slots=True)
class Prose:
    """Paragraphs, headings, lists and quotes, as the subset of HTML that Qt's rich text knows."""

    html: str


@dataclass(frozen=True, slots=True)
class Code:
    """A code block; ``language`` is what stands behind its opening fence."""

    language: str
    text: str


@dataclass(frozen=True, slots=True)
class Table:
    """A table of cells in HTML; ``alignments`` are left, right, center or nothing, one per column."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    alignments: tuple[str, ...]


Block = Prose | Code | Table


class GrowingText:
    """A Markdown text that grows at its end: only the last block is parsed and shown again."""

    def __init__(self) -> None:
        self.text = ""
        self.blocks: list[Block] = []
        self._tail = ""
        self._settled = 0

    def append(self, text: str) -> int:
        """Add text; gives the index of the first block that changed."""
        text = text.replace("\r", "")
        self.text += text
        self._tail += text
        changed = self._settled
        parts = list(_parsed(self._tail))
        self.blocks[changed:] = [block for block, _ in parts]
        if len(parts) > 1:
            self._settled += len(parts) - 1
            self._tail = _from_line(self._tail, parts[-1][1])
        return changed

    def finish(self) -> int:
        """Parse the whole text once, as if it had never grown; gives the first index that differs."""
        whole = blocks_of(self.text)
        pairs = zip(whole, self.blocks, strict=False)
        same = next(
            (at for at, (new, old) in enumerate(pairs) if new != old), min(len(whole), len(self.blocks))
        )
        self.blocks = whole
        self._settled, self._tail = len(whole), ""
        return same


def blocks_of(text: str) -> list[Block]:
    """Cut a whole text into blocks."""
    return [block for block, _ in _parsed(text.replace("\r", ""))]


def is_allowed(address: str) -> bool:
    """Say whether a link may be offered at all: web pages and mail only."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return False
    return parts.scheme in LINK_SCHEMES and bool(parts.netloc or parts.scheme == "mailto")


def host_of(address: str) -> str:
    """Give what a link leads to: the host, or the mail address."""
    parts = urlsplit(address)
    return parts.path if parts.scheme == "mailto" else (parts.hostname or "")


def _from_line(text: str, line: int) -> str:
    return "\n".join(text.split("\n")[line:])


def _parsed(text: str) -> "Iterable[tuple[Block, int]]":
    """Cut a text; the parser is imported with the first one, so that the window opens sooner."""
    from octavo.desktop.widgets.markdown.parse import parsed

    return parsed(text)
