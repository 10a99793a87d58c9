"""``octavo``: the command line."""

import multiprocessing
from collections.abc import Callable
from typing import Annotated

import typer

from octavo.server.cli import (
    app,
    chat,
    doctor,
    import_,
    load,
    ls,
    ps,
    serve,
    server,
    show,
    unload,
)

octavo = typer.Typer(
    name="octavo",
    help="A studio for GGUF language models: library, chat, and an OpenAI-compatible server.",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

VERBS: dict[str, Callable[..., None]] = {
    "app": app.app,
    "chat": chat.chat,
    "doctor": doctor.doctor,
    "import": import_.import_,
    "load": load.load,
    "ls": ls.ls,
    "ps": ps.ps,
    "serve": serve.serve,
    "show": show.show,
    "unload": unload.unload,
}
for name, verb in VERBS.items():
    octavo.command(name)(verb)
octavo.command("serve-hidden", hidden=True)(serve.serve_hidden)
octavo.add_typer(server.server, name="server")


@octavo.callback(invoke_without_command=True)
def begin(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Print help or the version where no verb is given."""
    if version:
        from octavo.core import __version__

        print(__version__)
        raise typer.Exit
    if context.invoked_subcommand is None:
        print(context.get_help())


def main() -> None:
    """Run the command line."""
    multiprocessing.freeze_support()
    octavo()


if __name__ == "__main__":
    main()
