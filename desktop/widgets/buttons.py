"""Buttons, from one factory each, so that none is without an accessible name."""

from typing import Literal

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QPushButton, QToolButton, QWidget

from octavo.desktop.theme.icons import icon

# what Qt puts between icon and text (4) and this make the 8 pixels of the tokens
ICON_GAP = 4

Kind = Literal["main", "normal", "large", "text", "small", "pill"]


class IconButton(QToolButton):
    """A button that shows only an icon; its name is spoken, and shown as its tooltip."""

    def __init__(self, name: str, *, side: int = 32, drawing: int = 16, role: str = "secondary") -> None:
        super().__init__()
        self.setIcon(icon(name, role))
        self.setIconSize(QSize(drawing, drawing))
        self.setFixedSize(side, side)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)

    def describe(self, name: str, keys: str = "") -> None:
        """Set the name that is spoken and shown, with the keys that do the same."""
        self.setAccessibleName(name)
        self.setToolTip(f"{name} ({keys})" if keys else name)


def caption_button(name: str) -> IconButton:
    """Make a small icon button for the line under an answer."""
    made = IconButton(name, side=24, drawing=14, role="muted")
    made.setProperty("kind", "caption")
    return made


def edged_button(name: str) -> IconButton:
    """Make an icon button with an edge, to stand beside an input."""
    made = IconButton(name)
    made.setProperty("kind", "edged")
    return made


def button(kind: Kind = "normal", icon_name: str = "", parent: QWidget | None = None) -> QPushButton:
    """Make a push button; its text is its accessible name."""
    made = QPushButton(parent)
    made.setProperty("kind", kind)
    if icon_name:
        role = "on_accent" if kind in ("main", "large") else "accent_text" if kind == "text" else "secondary"
        made.setIcon(icon(icon_name, role))
        side = 14 if kind in ("small", "pill") else 16
        made.setIconSize(QSize(side + ICON_GAP, side))
    return made
