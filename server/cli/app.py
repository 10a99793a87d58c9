"""``octavo app``: open the desktop app."""

import os
import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

PROGRAM = "octavo-desktop"


def app(file: Annotated[Path | None, typer.Argument(help="A GGUF file to open.")] = None) -> None:
    """Open the desktop app."""
    from octavo.server.cli.console import say

    beside = shutil.which(PROGRAM, path=str(Path(sys.executable).parent))
    program = beside or shutil.which(PROGRAM)
    if program is None:
        say(f"octavo: {PROGRAM} is not installed beside this program.")
        raise typer.Exit(1)
    arguments = [program] + ([str(file.absolute())] if file else [])
    sys.stdout.flush()
    os.execv(program, arguments)
