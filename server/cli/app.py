"""``octavo app``: open the desktop app."""

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from octavo.server.cli.console import Json, fail

if TYPE_CHECKING:
    from octavo.core.errors import OctavoError

PROGRAM = "octavo-desktop"


def app(
    file: Annotated[Path | None, typer.Argument(help="A GGUF file to open.")] = None, json: Json = False
) -> None:
    """Open the desktop app."""
    beside = shutil.which(PROGRAM, path=str(Path(sys.executable).parent))
    program = beside or shutil.which(PROGRAM)
    if program is None:
        fail(_missing(), json)
    arguments = [program] + ([str(file.absolute())] if file else [])
    sys.stdout.flush()
    os.execv(program, arguments)


def _missing() -> "OctavoError":
    from octavo.core.errors import NotFound

    return NotFound(
        f"{PROGRAM} is not installed beside this program.",
        hint="octavo chat and octavo serve work without it.",
    )
