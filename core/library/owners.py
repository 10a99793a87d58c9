"""Which other program a file belongs to, so that an import doesn't take it away from there."""

import os
from collections.abc import Iterator
from pathlib import Path

from octavo.core.config.paths import Home
from octavo.core.config.settings import Library
from octavo.core.library.roots import PROGRAMS, library_roots


def owner_of(path: Path) -> str | None:
    """Name the program in whose folder or cache ``path``, or what it links to, lies; else None."""
    places = _spellings(path)
    for name, folder in _folders():
        if any(place.is_relative_to(root) for place in places for root in _spellings(folder)):
            return name
    return None


def _spellings(path: Path) -> set[Path]:
    return {Path(os.path.abspath(path)), Path(os.path.realpath(path))}


def _folders() -> Iterator[tuple[str, Path]]:
    # where those that we can read keep their models, also by their own settings
    for root in library_roots(Home(Path(os.sep)), Library()):
        if not root.is_ours:
            yield PROGRAMS[root.source], root.path
    home = Path.home()
    environment = os.environ
    cache = Path(environment.get("XDG_CACHE_HOME") or home / ".cache")
    yield "LM Studio", home / ".lmstudio"
    yield "LM Studio", home / ".cache" / "lm-studio"
    yield "the Hugging Face cache", cache / "huggingface"
    for variable in ("HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        if named := environment.get(variable):
            yield "the Hugging Face cache", Path(os.path.expanduser(named))
    yield "Ollama", home / ".ollama"
    yield "Ollama", Path("/usr/share/ollama/.ollama")
    if named := environment.get("OLLAMA_MODELS"):
        yield "Ollama", Path(os.path.expanduser(named))
    yield "llama.cpp", cache / "llama.cpp"
    yield "Jan", home / "jan"
    yield "Jan", home / ".local" / "share" / "Jan"
    yield "GPT4All", home / ".local" / "share" / "nomic.ai"
