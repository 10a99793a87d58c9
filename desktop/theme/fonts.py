"""Fonts: the platform's own, with fallbacks for Hangul and for code."""

from functools import cache
from typing import Literal

from PySide6.QtGui import QFont, QFontDatabase

Size = Literal["caption", "body", "reading", "title", "code", "code_small"]

PIXELS: dict[Size, int] = {
    "caption": 12,
    "body": 13,
    "reading": 15,
    "title": 20,
    "code": 13,
    "code_small": 12,
}

HANGUL = ("Pretendard", "Noto Sans KR", "Noto Sans CJK KR", "Malgun Gothic", "Apple SD Gothic Neo")
MONO = (
    "JetBrains Mono",
    "Cascadia Code",
    "SF Mono",
    "Menlo",
    "Consolas",
    "Noto Sans Mono",
    "DejaVu Sans Mono",
)

# where the desktop names no font, Qt says "Sans Serif"; these read better than fontconfig's own choice
_INSTEAD_OF_NONE = ("Inter", "Cantarell", "Ubuntu", "Noto Sans", "Noto Sans CJK KR")
_NO_CHOICE = ("Sans Serif", "Sans", "sans-serif", "")


def ui_font(size: Size = "body", weight: int = 400) -> QFont:
    """Give the interface font at one of the token sizes, with figures of equal width."""
    font = QFont(list(_ui_families()))
    return _finished(font, size, weight)


def mono_font(size: Size = "code", weight: int = 400) -> QFont:
    """Give the font for code; Hangul in it falls back to the interface's."""
    font = QFont(list(_mono_families()))
    font.setStyleHint(QFont.StyleHint.Monospace)
    return _finished(font, size, weight)


def css_families(families: tuple[str, ...]) -> str:
    """Write font families for a style sheet."""
    return ", ".join(f'"{family}"' for family in families)


@cache
def _ui_families() -> tuple[str, ...]:
    named = QFontDatabase.systemFont(QFontDatabase.SystemFont.GeneralFont).family()
    installed = set(QFontDatabase.families())
    first: tuple[str, ...] = (named,)
    if named in _NO_CHOICE:
        first = tuple(family for family in _INSTEAD_OF_NONE if family in installed)[:1] or (named,)
    return (*first, *(family for family in HANGUL if family in installed and family not in first))


@cache
def _mono_families() -> tuple[str, ...]:
    installed = set(QFontDatabase.families())
    known = tuple(family for family in MONO if family in installed)[:1]
    fixed = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont).family()
    return (*(known or (fixed,)), *(family for family in HANGUL if family in installed))


def ui_css() -> str:
    """Give the interface families as a style sheet writes them."""
    return css_families(_ui_families())


def mono_css() -> str:
    """Give the code families as a style sheet writes them."""
    return css_families(_mono_families())


def _finished(font: QFont, size: Size, weight: int) -> QFont:
    font.setPixelSize(PIXELS[size])
    font.setWeight(QFont.Weight(weight))
    font.setFeature(QFont.Tag("tnum"), 1)
    return font
