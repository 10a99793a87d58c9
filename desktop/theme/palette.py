"""Design tokens as named roles: every colour of the app comes from here."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from PySide6.QtGui import QColor, QPalette

GROUNDS = ("bg", "surface", "raised", "hover", "selected")
THEMES = ("dark", "light")

_Table = dict[str, dict[str, object]]

_PALETTE_ROLES: tuple[tuple[QPalette.ColorRole, str], ...] = (
    (QPalette.ColorRole.Window, "bg"),
    (QPalette.ColorRole.WindowText, "text"),
    (QPalette.ColorRole.Base, "raised"),
    (QPalette.ColorRole.AlternateBase, "surface"),
    (QPalette.ColorRole.Text, "text"),
    (QPalette.ColorRole.PlaceholderText, "muted"),
    (QPalette.ColorRole.Button, "raised"),
    (QPalette.ColorRole.ButtonText, "text"),
    (QPalette.ColorRole.BrightText, "text"),
    (QPalette.ColorRole.ToolTipBase, "raised"),
    (QPalette.ColorRole.ToolTipText, "text"),
    (QPalette.ColorRole.Highlight, "fill"),
    (QPalette.ColorRole.HighlightedText, "on_accent"),
    (QPalette.ColorRole.Accent, "fill"),
    (QPalette.ColorRole.Link, "accent_text"),
    (QPalette.ColorRole.LinkVisited, "accent_text"),
    (QPalette.ColorRole.Light, "hover"),
    (QPalette.ColorRole.Midlight, "outline"),
    (QPalette.ColorRole.Mid, "outline"),
    (QPalette.ColorRole.Dark, "control"),
    (QPalette.ColorRole.Shadow, "bg"),
)


@dataclass(frozen=True)
class Theme:
    """One set of colours; ``roles`` maps a role's name to an sRGB hex colour."""

    name: str
    roles: Mapping[str, str]
    scrim_alpha: float

    def hex(self, role: str) -> str:
        """Give a role's colour as ``#RRGGBB``; an unknown role is a ``KeyError``."""
        return self.roles[role]

    def colour(self, role: str) -> QColor:
        """Give a role's colour to paint with."""
        return QColor(self.roles[role])

    def scrim(self) -> QColor:
        """Give the flat colour laid over the window under a dialog."""
        colour = self.colour("scrim")
        colour.setAlphaF(self.scrim_alpha)
        return colour


@cache
def tokens() -> dict[str, object]:
    """Read the design tokens that ship with the app."""
    text = files("octavo.resources").joinpath("themes/tokens.toml").read_text("utf-8")
    return tomllib.loads(text)


@cache
def theme(name: str) -> Theme:
    """Give the theme called ``dark`` or ``light``."""
    source = tokens()[name]
    assert isinstance(source, dict)
    roles = {**_coloured(source["ground"]), **_coloured(source["line"]), **_coloured(source["text"])}
    roles |= {role: value for role, value in source["accent"].items() if isinstance(value, str)}
    roles |= _coloured(source["data"])
    roles["hatch"] = source["data"]["weights_on_disk"]["hatch"]
    roles["scrim"] = source["scrim"]["colour"]
    return Theme(name, roles, float(source["scrim"]["alpha"]))


def qt_palette(chosen: Theme) -> QPalette:
    """Turn the roles into the palette that Fusion paints with; disabled text is the muted role."""
    palette = QPalette()
    for role, name in _PALETTE_ROLES:
        palette.setColor(role, chosen.colour(name))
    for role in (QPalette.ColorRole.WindowText, QPalette.ColorRole.Text, QPalette.ColorRole.ButtonText):
        palette.setColor(QPalette.ColorGroup.Disabled, role, chosen.colour("muted"))
    return palette


def contrast(first: str, second: str) -> float:
    """Give the contrast of two hex colours, from 1 to 21 (WCAG 2.2, relative luminance)."""
    lighter, darker = sorted((_luminance(first), _luminance(second)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: str) -> float:
    parts = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _coloured(table: _Table) -> dict[str, str]:
    return {role: str(entry["colour"]) for role, entry in table.items() if "colour" in entry}
