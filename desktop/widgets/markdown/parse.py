"""The Markdown parser: text in, blocks with the lines they begin at out. HTML in a text stays text."""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import OptionsDict

from octavo.desktop.widgets.markdown.blocks import Block, Code, Prose, Table, host_of, is_allowed


def parsed(text: str) -> Iterator[tuple[Block, int]]:
    """Cut a text into blocks, each with the number of its first line."""
    environment: dict[str, Any] = {}
    parser = _parser()
    for group in _top_level(parser.parse(text, environment)):
        first = group[0]
        line = first.map[0] if first.map else 0
        yield _block(parser, group, environment), line


def _block(parser: MarkdownIt, group: list[Token], environment: dict[str, Any]) -> Block:
    first = group[0]
    if first.type in ("fence", "code_block"):
        return Code(_language(first.info), first.content.removesuffix("\n"))
    if first.type == "table_open":
        return _table(parser, group, environment)
    return Prose(str(parser.renderer.render(group, parser.options, environment)))


def _language(info: str) -> str:
    return info.strip().split()[0] if info.strip() else ""


def _table(parser: MarkdownIt, group: list[Token], environment: dict[str, Any]) -> Table:
    rows: list[list[str]] = []
    alignments: list[str] = []
    for at, token in enumerate(group):
        if token.type == "tr_open":
            rows.append([])
        elif token.type in ("th_open", "td_open"):
            rows[-1].append(_inline(parser, group[at + 1], environment))
            if token.type == "th_open":
                alignments.append(str(token.attrs.get("style", "")).removeprefix("text-align:"))
    head, *body = rows or [[]]
    return Table(tuple(head), tuple(tuple(row) for row in body), tuple(alignments))


def _inline(parser: MarkdownIt, token: Token, environment: dict[str, Any]) -> str:
    return str(parser.renderer.render([token], parser.options, environment))


def _top_level(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    group: list[Token] = []
    for token in tokens:
        group.append(token)
        if token.level == 0 and token.nesting <= 0:
            yield group
            group = []


class _Html(RendererHTML):
    """HTML for Qt's rich text: no images, links with their host, code in a span."""

    def image(self, tokens: Sequence[Token], at: int, options: OptionsDict, environment: Any) -> str:
        alternative = self.renderInlineAsText(tokens[at].children or [], options, environment)
        return f'<span class="muted">[{escapeHtml(alternative or "image")}]</span>'

    def link_open(self, tokens: Sequence[Token], at: int, options: OptionsDict, environment: Any) -> str:
        address = str(tokens[at].attrs.get("href", ""))
        environment.setdefault("links", []).append(address)
        return f'<a href="{escapeHtml(address)}">' if is_allowed(address) else "<span>"

    def link_close(self, tokens: Sequence[Token], at: int, options: OptionsDict, environment: Any) -> str:
        address = environment["links"].pop()
        if not is_allowed(address):
            return "</span>"
        return f'</a> <span class="muted">({escapeHtml(host_of(address))})</span>'

    def code_inline(self, tokens: Sequence[Token], at: int, options: OptionsDict, environment: Any) -> str:
        return f'<span class="code">&nbsp;{escapeHtml(tokens[at].content)}&nbsp;</span>'

    def fence(self, tokens: Sequence[Token], at: int, options: OptionsDict, environment: Any) -> str:
        return f"<pre>{escapeHtml(tokens[at].content)}</pre>"

    def code_block(self, tokens: Sequence[Token], at: int, options: OptionsDict, environment: Any) -> str:
        return self.fence(tokens, at, options, environment)


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}, renderer_cls=_Html)
    return parser.enable(["table", "strikethrough"])
