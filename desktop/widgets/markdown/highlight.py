"""Colours for code: Pygments reads the text, roles of the theme colour it."""

import time
from functools import lru_cache
from typing import TYPE_CHECKING

from PySide6.QtCore import QTimer, Slot
from PySide6.QtGui import QSyntaxHighlighter, QTextCharFormat, QTextDocument

from octavo.desktop.theme.look import colour

if TYPE_CHECKING:  # imported with the first code block, so that the window opens sooner
    from pygments.lexer import Lexer
    from pygments.token import _TokenType

_ROLES = {
    "Comment": "muted",
    "Keyword": "syntax_keyword",
    "Name.Tag": "syntax_keyword",
    "Operator.Word": "syntax_keyword",
    "Literal.Number": "syntax_number",
    "Literal.String": "syntax_string",
    "Generic.Inserted": "good",
    "Generic.Deleted": "bad",
}

# beyond this a colouring costs more than it shows
LIMIT_CHARACTERS = 200_000

# how long colouring may hold the window up in one go
TURN_S = 0.008

_Span = tuple[int, int, str]


class CodeHighlighter(QSyntaxHighlighter):
    """Colours a code block; while the text grows it spends at most a tenth of the time on reading it."""

    def __init__(self, document: QTextDocument) -> None:
        super().__init__(document)
        self._lexer: Lexer | None = None
        self._spans: dict[int, list[_Span]] = {}
        self._waiting: set[int] = set()
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(0)
        self._timer.timeout.connect(self._recolour)
        self._cost_s = 0.0
        self._read_at = 0.0

    def set_language(self, language: str) -> None:
        """Choose the lexer by the name behind the fence."""
        self._lexer = _lexer(language.lower())

    def read(self, text: str, final: bool) -> None:
        """Colour ``text``, the whole document; unless it is final, skip that while it costs too much."""
        began = time.perf_counter()
        if self._lexer is None or len(text) > LIMIT_CHARACTERS:
            return
        if not final and began - self._read_at < 10 * self._cost_s:
            return
        known = self._spans
        self._spans = _spans(self._lexer, text)
        self._waiting |= {line for line, spans in self._spans.items() if spans != known.get(line)}
        self._recolour()
        self._read_at = time.perf_counter()
        self._cost_s = self._read_at - began

    def highlightBlock(self, text: str) -> None:
        """Colour one line from the spans that were read last."""
        for start, length, role in self._spans.get(self.currentBlock().blockNumber(), ()):
            form = QTextCharFormat()
            form.setForeground(colour(role))
            self.setFormat(start, length, form)

    @Slot()
    def _recolour(self) -> None:
        """Colour the lines that wait, some at a time, so that a long block holds nothing up."""
        end = time.perf_counter() + TURN_S
        while self._waiting and time.perf_counter() < end:
            line = self._waiting.pop()
            self.rehighlightBlock(self.document().findBlockByNumber(line))
        if self._waiting:
            self._timer.start()


def _spans(lexer: "Lexer", text: str) -> dict[int, list[_Span]]:
    found: dict[int, list[_Span]] = {}
    line = column = 0
    for kind, value in lexer.get_tokens(text):
        role = _role(kind)
        for at, piece in enumerate(value.split("\n")):
            line, column = (line + 1, 0) if at else (line, column)
            if role and piece:
                found.setdefault(line, []).append((column, len(piece), role))
            column += len(piece)
    return found


@lru_cache(maxsize=512)
def _role(kind: "_TokenType") -> str:
    parts = [str(part) for part in kind]
    names = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    return next((_ROLES[name] for name in names if name in _ROLES), "")


@lru_cache(maxsize=64)
def _lexer(language: str) -> "Lexer | None":
    from pygments.lexers import get_lexer_by_name
    from pygments.util import ClassNotFound

    try:
        return get_lexer_by_name(language, stripnl=False, ensurenl=False) if language else None
    except ClassNotFound:
        return None
