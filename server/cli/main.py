"""``octavo``: the command line."""

import multiprocessing
import os
import sys
from collections.abc import Callable
from typing import Annotated

import typer
from typer._click.exceptions import ClickException

from octavo.server.cli import (
    app,
    chat,
    doctor,
    estimate,
    get,
    import_,
    load,
    login,
    ls,
    memory,
    ps,
    quants,
    rm,
    search,
    serve,
    server,
    show,
    unload,
    verify,
)
from octavo.server.cli.console import INTERRUPTED, print_json, say

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
    "estimate": estimate.estimate,
    "get": get.get,
    "import": import_.import_,
    "load": load.load,
    "login": login.login,
    "logout": login.logout,
    "ls": ls.ls,
    "memory": memory.memory,
    "ps": ps.ps,
    "quants": quants.quants,
    "search": search.search,
    "rm": rm.rm,
    "serve": serve.serve,
    "show": show.show,
    "unload": unload.unload,
    "verify": verify.verify,
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


def run() -> int:
    """Run a verb and give its exit code; what goes wrong is said in words."""
    try:
        code = octavo(standalone_mode=False)
        sys.stdout.flush()
    except ClickException as fault:
        return _misused(fault)
    except typer.Abort:
        return INTERRUPTED
    except OSError as fault:
        return _unwritten(fault)
    return int(code or 0)


def main() -> None:
    """Run the command line."""
    multiprocessing.freeze_support()
    sys.exit(run())


def _misused(fault: ClickException) -> int:
    fault.show()
    if "--json" in sys.argv:
        message = fault.format_message().encode("utf-8", "backslashreplace").decode()
        hint = "octavo VERB --help tells how."
        print_json({"error": {"code": "usage", "message": message, "hint": hint, "details": {}}})
    return fault.exit_code


def _unwritten(fault: OSError) -> int:
    """End quietly when the reader of a pipe is gone; say what else keeps the output from its place."""
    if not isinstance(fault, BrokenPipeError):
        what = fault.filename or "The output"
        say(f"octavo: {what} can't be written or read: {fault.strerror or fault}.")
    # what is left in the buffer would fail once more at the end
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return 1


if __name__ == "__main__":
    main()
