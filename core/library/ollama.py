"""Read Ollama's store: its manifests name which blobs are a model and which its projector.

A manifest lies at ``manifests/<registry>/<namespace>/<model>/<tag>``; each of its layers has a media type
and a digest, and the data is ``blobs/sha256-<hex>``. (Layout: github.com/ollama/ollama, server/manifest.go)
"""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import msgspec

from octavo.core.library.found import Found, look_at_file

PUBLISHER = "ollama"

_MODEL = "application/vnd.ollama.image.model"
_PROJECTOR = "application/vnd.ollama.image.projector"
_LIBRARY = ("registry.ollama.ai", "library")
_LARGEST_MANIFEST = 1 << 20


class _Layer(msgspec.Struct):
    mediaType: str = ""  # the manifest's own name
    digest: str = ""


class _Manifest(msgspec.Struct):
    layers: list[_Layer] | None = None


def find_ollama_files(root: Path) -> Iterator[Found]:
    """Give the models that the manifests below ``root`` name, and their projectors, each blob once.

    Of two names of one model ``latest`` gives way, for it says least. What is no manifest is passed over.
    """
    seen = set[Path]()
    named = sorted(_manifests(root / "manifests"), key=lambda pair: (pair[1].endswith(":latest"), pair[1]))
    for path, name in named:
        model, projector = _blobs(root, path)
        if model is None or model in seen:
            continue
        seen.add(model)
        if found := look_at_file(model):
            yield replace(found, place=(PUBLISHER, name), projector=projector)
        if projector is not None and projector not in seen and (found := look_at_file(projector)):
            seen.add(projector)
            yield replace(found, place=(PUBLISHER, name))


def _manifests(folder: Path) -> Iterator[tuple[Path, str]]:
    """Give each manifest and its model's name, such as ``llama3.2:3b`` or ``hf.co/org/name:Q4_K_M``."""
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        parts = Path(place).relative_to(folder).parts
        if len(parts) < 2:
            continue
        shown = parts[2:] if parts[:2] == _LIBRARY else parts[1:] if parts[0] == _LIBRARY[0] else parts
        for file in sorted(files):
            if not file.startswith(".") and shown:
                yield Path(place, file), f"{'/'.join(shown)}:{file}"


def _blobs(root: Path, manifest: Path) -> tuple[Path | None, Path | None]:
    try:
        if manifest.stat().st_size > _LARGEST_MANIFEST:
            return None, None
        layers = msgspec.json.decode(manifest.read_bytes(), type=_Manifest).layers or []
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None, None
    return _first(root, layers, _MODEL), _first(root, layers, _PROJECTOR)


def _first(root: Path, layers: list[_Layer], media_type: str) -> Path | None:
    for layer in layers:
        kind, _, digits = layer.digest.partition(":")
        # the digest becomes a file's name: nothing but a hash may
        if layer.mediaType == media_type and kind == "sha256" and _is_hash(digits):
            return root / "blobs" / f"sha256-{digits}"
    return None


def _is_hash(digits: str) -> bool:
    return len(digits) == 64 and all(digit in "0123456789abcdef" for digit in digits)
