"""What the installed engine is; asked in a child process, because a wrong build may die at once."""

from octavo.core.engine.bindings import load_bindings


def system_info() -> str:
    """Give llama.cpp's own line on the instructions that its build uses."""
    return str(load_bindings().llama_print_system_info().decode()).strip()
