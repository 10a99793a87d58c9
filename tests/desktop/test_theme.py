"""The tokens are what they claim to be, and no colour comes from anywhere else."""

import re
from pathlib import Path

import pytest
from PySide6.QtGui import QPalette

import octavo.desktop
from octavo.desktop.theme.icons import icon, picture
from octavo.desktop.theme.look import Look, colour
from octavo.desktop.theme.palette import GROUNDS, THEMES, contrast, qt_palette, theme, tokens

TEXT_ROLES = ("text", "secondary", "muted", "accent_text", "good", "warn", "bad")
SYNTAX_ROLES = ("syntax_keyword", "syntax_number", "syntax_string")
COLOUR_LITERAL = re.compile(
    r"#[0-9a-fA-F]{3,8}\b|rgba?\(|hsla?\(|GlobalColor\.(?!transparent)|QColor\(\s*[\d\"']"
)


@pytest.mark.parametrize("name", THEMES)
@pytest.mark.parametrize("ground", GROUNDS)
@pytest.mark.parametrize("role", TEXT_ROLES)
def test_text_is_readable_on_every_ground(name: str, ground: str, role: str) -> None:
    roles = theme(name)
    assert contrast(roles.hex(role), roles.hex(ground)) >= 4.5


@pytest.mark.parametrize("name", THEMES)
@pytest.mark.parametrize("ground", ("bg", "surface", "raised"))
@pytest.mark.parametrize("role", SYNTAX_ROLES)
def test_code_is_readable_where_it_stands(name: str, ground: str, role: str) -> None:
    roles = theme(name)
    assert contrast(roles.hex(role), roles.hex(ground)) >= 4.5


@pytest.mark.parametrize("name", THEMES)
@pytest.mark.parametrize("ground", GROUNDS)
def test_edges_of_controls_are_seen_on_every_ground(name: str, ground: str) -> None:
    roles = theme(name)
    assert contrast(roles.hex("control"), roles.hex(ground)) >= 3
    assert contrast(roles.hex("focus_ring"), roles.hex(ground)) >= 3


@pytest.mark.parametrize("name", THEMES)
@pytest.mark.parametrize("fill", ("fill", "fill_hover", "fill_pressed"))
def test_text_on_the_accent_is_readable(name: str, fill: str) -> None:
    roles = theme(name)
    assert contrast(roles.hex("on_accent"), roles.hex(fill)) >= 4.5


@pytest.mark.parametrize("name", THEMES)
@pytest.mark.parametrize("role", ("weights_resident", "kv", "compute", "other"))
@pytest.mark.parametrize("ground", ("surface", "raised"))
def test_solid_data_colours_are_seen(name: str, role: str, ground: str) -> None:
    roles = theme(name)
    assert contrast(roles.hex(role), roles.hex(ground)) >= 3


@pytest.mark.parametrize("name", THEMES)
def test_contrasts_that_the_tokens_state_are_true(name: str) -> None:
    roles, source = theme(name), tokens()[name]
    assert isinstance(source, dict)
    for kind in ("text", "line"):
        for role, entry in source[kind].items():
            for ground, stated in entry["contrast"].items():
                assert contrast(roles.hex(role), roles.hex(ground)) == pytest.approx(stated, abs=0.011)


def test_no_colour_is_written_outside_the_tokens() -> None:
    folder = Path(octavo.desktop.__file__).parent
    found = [
        f"{path.relative_to(folder)}: {line.strip()}"
        for path in sorted(folder.rglob("*.py"))
        for line in path.read_text("utf-8").splitlines()
        if COLOUR_LITERAL.search(line)
    ]
    assert found == []


def test_disabled_text_is_muted() -> None:
    palette = qt_palette(theme("dark"))
    disabled = palette.color(QPalette.ColorGroup.Disabled, QPalette.ColorRole.ButtonText)
    assert disabled.name() == theme("dark").hex("muted").lower()


def test_icons_take_the_colour_of_the_theme_that_is_on(look: Look) -> None:
    drawn = icon("copy", "text")

    def strongest() -> str:
        image = drawn.pixmap(32, 32).toImage()
        pixels = [image.pixelColor(x, y) for x in range(32) for y in range(32)]
        return max(pixels, key=lambda pixel: pixel.alpha()).name()

    assert strongest() == theme("dark").hex("text").lower()
    look.choose("light")
    assert strongest() == theme("light").hex("text").lower()
    assert colour("text").name() == theme("light").hex("text").lower()


def test_every_icon_that_the_code_names_is_there() -> None:
    folder = Path(octavo.desktop.__file__).parent
    quoted = re.compile(
        r'(?:icon|picture|paint_icon|IconButton|caption_button|edged_button)\((?:painter, )?"([a-z0-9-]+)"'
    )
    names = {name for path in folder.rglob("*.py") for name in quoted.findall(path.read_text("utf-8"))}
    assert len(names) >= 10
    for name in names:
        assert not picture(name, "text", 16).isNull()
