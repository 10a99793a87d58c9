"""Where models are looked for: Octavo's own folder, what the person names, and other programs' folders."""

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from octavo.core.config.paths import Home
from octavo.core.config.settings import Library

Source = Literal["octavo", "folder", "lm_studio", "hugging_face", "ollama"]

PROGRAMS: dict[Source, str] = {
    "lm_studio": "LM Studio",
    "hugging_face": "the Hugging Face cache",
    "ollama": "Ollama",
}
"""Other programs' folders, which are read and never written, by what people call them."""


@dataclass(frozen=True, slots=True)
class Root:
    """A folder that models are looked for in, and whose it is."""

    path: Path
    source: Source = "folder"

    @property
    def is_ours(self) -> bool:
        """Whether files in it may be deleted on request: Octavo's folder, or one that the person named."""
        return self.source not in PROGRAMS


def library_roots(home: Home, chosen: Library, environment: Mapping[str, str] | None = None) -> list[Root]:
    """List all folders, Octavo's own first; each once, though two settings may name it.

    A folder that the person named is listed though it isn't there now, and so is another program's that is
    known of; what is there is for the scan to find out. Touches no disk but for small settings files.
    """
    environ = os.environ if environment is None else environment
    roots = [Root(home.models, "octavo")]
    roots += [Root(_absolute(name)) for name in chosen.folders if name.strip()]
    if chosen.lm_studio:
        roots += [Root(path, "lm_studio") for path in _lm_studio(environ)]
    if chosen.hugging_face:
        roots += [Root(_hugging_face(environ), "hugging_face")]
    if chosen.ollama:
        roots += [Root(path, "ollama") for path in _ollama(environ)]
    once: dict[Path, Root] = {}
    for root in roots:
        once.setdefault(root.path, root)
    return list(once.values())


def _absolute(name: str | Path) -> Path:
    return Path(os.path.abspath(os.path.expanduser(name)))


def _user_home(environ: Mapping[str, str]) -> Path:
    return Path(environ.get("HOME") or os.path.expanduser("~"))


def _cache(environ: Mapping[str, str]) -> Path:
    return Path(environ.get("XDG_CACHE_HOME") or _user_home(environ) / ".cache")


def _lm_studio(environ: Mapping[str, str]) -> Iterator[Path]:
    home = _user_home(environ)
    own = _text(home / ".lmstudio-home-pointer")
    folder = _absolute(own) if own else home / ".lmstudio"
    yield _downloads_folder(folder / "settings.json") or folder / "models"
    yield home / ".cache" / "lm-studio" / "models"


def _downloads_folder(settings: Path) -> Path | None:
    try:
        named = json.loads(_text(settings) or "{}").get("downloadsFolder")
    except (ValueError, AttributeError):
        return None
    return _absolute(named) if isinstance(named, str) and os.path.isabs(os.path.expanduser(named)) else None


def _hugging_face(environ: Mapping[str, str]) -> Path:
    for variable in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        if named := environ.get(variable):
            return _absolute(named)
    home = environ.get("HF_HOME")
    return (_absolute(home) if home else _cache(environ) / "huggingface") / "hub"


def _ollama(environ: Mapping[str, str]) -> Iterator[Path]:
    if named := environ.get("OLLAMA_MODELS"):
        yield _absolute(named)
        return
    yield _user_home(environ) / ".ollama" / "models"
    # where the Linux service of Ollama keeps its models
    yield Path("/usr/share/ollama/.ollama/models")


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace").strip()
    except OSError:
        return ""
