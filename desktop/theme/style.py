"""The one style sheet of the app, generated from the roles of a theme.

Widgets say what they are by dynamic properties: ``kind`` (a button's or frame's part in the page), ``tone``
(the role of a text), ``text_size`` (its size from the tokens) and ``ground`` (what lies behind it).
"""

from collections.abc import Iterator

from octavo.desktop.theme.fonts import PIXELS, mono_css, ui_css
from octavo.desktop.theme.palette import Theme

TONES = ("text", "secondary", "muted", "accent_text", "good", "warn", "bad")
GROUNDS = ("bg", "surface", "raised")


def style_sheet(theme: Theme) -> str:
    """Give the whole style sheet in the colours of ``theme``."""
    makers = (_buttons, _tool_buttons, _inputs, _sliders, _lists, _frames, _scroll_bars, _menus)
    return "\n".join((*_texts(theme), *_grounds(theme), *(make(theme) for make in makers)))


def _texts(theme: Theme) -> Iterator[str]:
    yield f"QWidget {{ font-family: {ui_css()}; }}"
    for tone in TONES:
        yield f'QLabel[tone="{tone}"] {{ color: {theme.hex(tone)}; }}'
    for size, pixels in PIXELS.items():
        family = f" font-family: {mono_css()};" if size.startswith("code") else ""
        yield f'*[text_size="{size}"] {{ font-size: {pixels}px;{family} }}'
    for weight in (400, 500, 600):
        yield f'QLabel[weight="{weight}"] {{ font-weight: {weight}; }}'


def _grounds(theme: Theme) -> Iterator[str]:
    for ground in GROUNDS:
        yield f'QWidget[ground="{ground}"] {{ background: {theme.hex(ground)}; }}'
    yield f"QMainWindow, QDialog {{ background: {theme.hex('bg')}; }}"
    yield "QScrollArea, QScrollArea > QWidget > QWidget { background: transparent; border: none; }"


def _buttons(theme: Theme) -> str:
    colours = theme.hex
    return f"""
QPushButton {{ min-height: 30px; padding: 0 11px; border-radius: 8px; font-weight: 500;
  background: {colours("raised")}; color: {colours("text")}; border: 1px solid {colours("control")}; }}
QPushButton:hover {{ background: {colours("hover")}; }}
QPushButton:pressed {{ background: {colours("bg")}; }}
QPushButton:focus {{ border: 2px solid {colours("focus_ring")}; padding: 0 10px; min-height: 28px; }}
QPushButton:disabled {{ color: {colours("muted")}; border-color: {colours("outline")}; }}
QPushButton[kind="main"] {{ background: {colours("fill")}; color: {colours("on_accent")}; border: none;
  min-height: 32px; padding: 0 12px; }}
QPushButton[kind="main"]:hover {{ background: {colours("fill_hover")}; }}
QPushButton[kind="main"]:pressed {{ background: {colours("fill_pressed")}; }}
QPushButton[kind="main"]:focus {{ border: 2px solid {colours("text")}; min-height: 28px; padding: 0 10px; }}
QPushButton[kind="main"]:disabled {{ background: {colours("hover")}; color: {colours("muted")}; }}
QPushButton[kind="large"] {{ background: {colours("fill")}; color: {colours("on_accent")}; border: none;
  min-height: 40px; padding: 0 16px; }}
QPushButton[kind="large"]:hover {{ background: {colours("fill_hover")}; }}
QPushButton[kind="large"]:pressed {{ background: {colours("fill_pressed")}; }}
QPushButton[kind="large"]:focus {{ border: 2px solid {colours("text")}; min-height: 36px; padding: 0 14px; }}
QPushButton[kind="text"] {{ background: transparent; color: {colours("accent_text")}; border: none;
  padding: 0 8px; min-height: 24px; }}
QPushButton[kind="text"]:hover {{ background: {colours("hover")}; }}
QPushButton[kind="text"]:focus {{ border: 2px solid {colours("focus_ring")}; padding: 0 6px;
  min-height: 20px; }}
QPushButton[kind="small"] {{ background: transparent; color: {colours("secondary")}; border: none;
  font-size: 12px;
  padding: 0 6px; min-height: 24px; border-radius: 4px; }}
QPushButton[kind="small"]:hover {{ background: {colours("hover")}; }}
QPushButton[kind="small"]:focus {{ border: 2px solid {colours("focus_ring")}; padding: 0 4px;
  min-height: 20px; }}
QPushButton[kind="pill"] {{ border-radius: 14px; min-height: 26px; padding: 0 12px; font-size: 12px; }}
QPushButton[kind="field"] {{ background: {colours("surface")}; border-color: {colours("outline")};
  text-align: left;
  color: {colours("muted")}; font-weight: 400; padding: 0 10px; }}
QPushButton[kind="field"]:hover {{ background: {colours("hover")}; }}
QPushButton[kind="field"]:focus {{ border: 2px solid {colours("focus_ring")}; padding: 0 9px; }}
QPushButton[kind="segment"] {{ background: transparent; color: {colours("secondary")}; border: none;
  border-radius: 6px; padding: 0 12px; min-height: 26px; }}
QPushButton[kind="segment"]:hover {{ background: {colours("hover")}; }}
QPushButton[kind="segment"]:checked {{ background: {colours("selected")}; color: {colours("accent_text")}; }}
QPushButton[kind="segment"]:focus {{ border: 2px solid {colours("focus_ring")}; padding: 0 10px;
  min-height: 22px; }}"""


def _tool_buttons(theme: Theme) -> str:
    colours = theme.hex
    return f"""
QToolButton {{ background: transparent; border: none; border-radius: 8px; }}
QToolButton:hover {{ background: {colours("hover")}; }}
QToolButton:pressed {{ background: {colours("selected")}; }}
QToolButton:checked {{ background: {colours("selected")}; }}
QToolButton:focus {{ border: 2px solid {colours("focus_ring")}; }}
QToolButton[kind="caption"] {{ border-radius: 4px; }}
QToolButton[kind="edged"] {{ border: 1px solid {colours("control")}; background: {colours("raised")}; }}
QToolButton[kind="edged"]:hover {{ background: {colours("hover")}; }}
QToolButton[kind="edged"]:focus {{ border: 2px solid {colours("focus_ring")}; }}"""


def _inputs(theme: Theme) -> str:
    colours = theme.hex
    return f"""
QLineEdit, QPlainTextEdit, QTextEdit {{ color: {colours("text")};
  selection-background-color: {colours("fill")}; selection-color: {colours("on_accent")}; }}
QLineEdit {{ background: {colours("raised")}; border: 1px solid {colours("control")}; border-radius: 8px;
  padding: 0 7px; min-height: 30px; }}
QLineEdit[kind="search"] {{ background: {colours("surface")}; border-color: {colours("outline")}; }}
QLineEdit[kind="number"] {{ border-radius: 4px; min-height: 22px; padding: 0 6px; }}
QLineEdit[kind="rename"] {{ border-radius: 4px; min-height: 24px; padding: 0 5px; }}
QLineEdit:focus {{ border-color: {colours("focus_ring")}; }}
QPlainTextEdit {{ background: transparent; border: none; }}
QPlainTextEdit[kind="field"] {{ background: {colours("raised")}; border: 1px solid {colours("control")};
  border-radius: 8px; padding: 6px; }}
QPlainTextEdit[kind="field"]:focus {{ border-color: {colours("focus_ring")}; }}
QTextBrowser, QTextEdit {{ background: transparent; border: none; }}"""


def _sliders(theme: Theme) -> str:
    colours = theme.hex
    return f"""
QSlider {{ min-height: 20px; }}
QSlider::groove:horizontal {{ height: 4px; border-radius: 2px; background: {colours("control")}; }}
QSlider::sub-page:horizontal {{ height: 4px; border-radius: 2px; background: {colours("fill")}; }}
QSlider::handle:horizontal {{ width: 12px; height: 12px; margin: -6px 0; border-radius: 8px;
  background: {colours("raised")}; border: 2px solid {colours("fill")}; }}
QSlider::handle:horizontal:hover {{ background: {colours("hover")}; }}
QSlider::handle:horizontal:focus {{ background: {colours("fill")}; }}"""


def _lists(theme: Theme) -> str:
    return f"""
QListView {{ background: transparent; border: none; outline: none; color: {theme.hex("text")}; }}
QListView::item {{ border: none; }}"""


def _frames(theme: Theme) -> str:
    colours = theme.hex
    edges = "\n".join(
        f'QFrame[line="{side}"] {{ border: none; border-{side}: 1px solid {colours("outline")}; }}'
        for side in ("top", "bottom", "left", "right")
    )
    return f"""{edges}
QFrame[kind="hairline"] {{ background: {colours("outline")}; border: none; }}
QFrame[kind="card"] {{ background: {colours("raised")}; border: 1px solid {colours("outline")};
  border-radius: 8px; }}
QFrame[kind="code"] {{ background: {colours("bg")}; border: 1px solid {colours("outline")};
  border-radius: 8px; }}
QFrame[kind="table"] {{ background: {colours("bg")}; border: 1px solid {colours("outline")};
  border-radius: 8px; }}
QFrame[kind="composer"] {{ background: {colours("raised")}; border: 1px solid {colours("control")};
  border-radius: 8px; }}
QFrame[kind="composer"][focused="true"] {{ border-color: {colours("focus_ring")}; }}
QFrame[kind="popup"] {{ background: {colours("raised")}; border: 1px solid {colours("control")};
  border-radius: 8px; }}
QFrame[kind="segments"] {{ border: 1px solid {colours("control")}; border-radius: 8px;
  background: {colours("raised")}; }}
QLabel[kind="chip"] {{ background: {colours("hover")}; color: {colours("secondary")}; border-radius: 4px;
  padding: 0 6px; min-height: 20px; max-height: 20px; font-size: 12px; font-weight: 500; }}
QLabel[kind="key"] {{ color: {colours("secondary")}; border: 1px solid {colours("outline")};
  border-radius: 4px;
  padding: 0 5px; min-height: 18px; max-height: 18px; font-size: 12px; }}
QFrame[kind="notice"] {{ background: {colours("raised")}; border: none;
  border-bottom: 1px solid {colours("outline")}; }}"""


def _scroll_bars(theme: Theme) -> str:
    return f"""
QScrollBar:vertical {{ width: 12px; background: transparent; margin: 0; }}
QScrollBar:horizontal {{ height: 12px; background: transparent; margin: 0; }}
QScrollBar::handle {{ background: {theme.hex("outline")}; border-radius: 3px; margin: 3px; }}
QScrollBar::handle:vertical {{ min-height: 32px; }}
QScrollBar::handle:horizontal {{ min-width: 32px; }}
QScrollBar::handle:hover {{ background: {theme.hex("control")}; }}
QScrollBar::add-line, QScrollBar::sub-line {{ width: 0; height: 0; }}
QScrollBar::add-page, QScrollBar::sub-page {{ background: transparent; }}
QSplitter::handle {{ background: {theme.hex("outline")}; }}"""


def _menus(theme: Theme) -> str:
    colours = theme.hex
    return f"""
QMenu {{ background: {colours("raised")}; border: 1px solid {colours("control")}; padding: 4px; }}
QMenu::item {{ padding: 6px 24px 6px 12px; border-radius: 4px; color: {colours("text")}; }}
QMenu::item:selected {{ background: {colours("selected")}; }}
QMenu::item:disabled {{ color: {colours("muted")}; }}
QMenu::separator {{ height: 1px; background: {colours("outline")}; margin: 4px 8px; }}
QToolTip {{ background: {colours("raised")}; color: {colours("text")}; border: 1px solid {colours("control")};
  padding: 4px 6px; font-size: 12px; }}"""
