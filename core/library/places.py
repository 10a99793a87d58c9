"""Where an imported file goes: names proposed from its header, and names checked before a folder is made.

A name must work as a folder or file on Linux, macOS and Windows alike, since people copy and share these
folders: no separators, no reserved names, no leading dot (a scan passes over hidden files), composed Unicode.
"""

import os
import re
import unicodedata
from collections.abc import Callable
from pathlib import Path

from octavo.core.errors import InvalidRequest, TargetExists
from octavo.core.gguf import Description, printable, split_name

UNKNOWN_PUBLISHER = "imported"
"""Publisher of a file whose header names nobody."""

_LONGEST_NAME = 240
_NUMBER_LENGTH = len("-00001-of-00002.gguf")
_RESERVED = re.compile(r"(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(\..*)?", re.IGNORECASE)
_FORBIDDEN = re.compile(r'[/\\<>:"|?*\x00-\x1f\x7f\ufffd]')
_QUANT = r"(UD[-_.])?(I?Q\d\w*|TQ\d\w*|BF16|F16|F32|MXFP4\w*|NVFP4)"
_QUANT_ENDING = re.compile(rf"[-_. ]+{_QUANT}$", re.IGNORECASE)
_HUB_PLACE = re.compile(r"models--([^/]+?)--(.+)")


def checked_name(name: str, what: str) -> str:
    """Give ``name`` composed (NFC), or raise ``InvalidRequest`` that says why it can't be a file's name."""
    composed = unicodedata.normalize("NFC", name)
    if reason := _objection(composed):
        raise InvalidRequest(
            f"{printable(name)!r} can't be the {what}: {reason}.", hint="Choose another name."
        )
    return composed


def split_place(place: str) -> tuple[str, str]:
    """Split and check ``publisher/model`` as a person wrote it; raises ``InvalidRequest``."""
    parts = place.split("/")
    if len(parts) != 2:
        raise InvalidRequest(
            f"{printable(place)!r} is not of the form publisher/model.",
            hint="Write it with exactly one slash.",
        )
    return checked_name(parts[0], "publisher"), checked_name(parts[1], "model")


def proposed_place(
    source: Path,
    description: Description,
    propose_from_hub: Callable[[str], tuple[str, str] | None] | None = None,
) -> tuple[str, str]:
    """Propose (publisher, model) from the source's place in a Hub cache, the Hub, its header, or its name."""
    for folder in source.parts:
        if found := _HUB_PLACE.fullmatch(folder):
            return _mended(found[1]) or UNKNOWN_PUBLISHER, _mended(found[2]) or "model"
    if propose_from_hub and (told := propose_from_hub(source.name)):
        publisher, model = (_mended(name) for name in told)
        if publisher and model:
            return publisher, model
    named = (description.organization, description.author, description.quantized_by)
    publisher = next((mended for name in named if name and (mended := _mended(name))), UNKNOWN_PUBLISHER)
    return publisher, _proposed_model(source, description)


def proposed_file_name(source: Path, model: str, description: Description) -> str:
    """Keep the file's own name where it ends in ``.gguf``; a bare blob is named after model and quant.

    The number of a part of a split model is kept as it is, since the engine looks for it.
    """
    if split_name(source.name):
        stem, number = source.name[:-_NUMBER_LENGTH], source.name[-_NUMBER_LENGTH:]
        return (_mended(stem, _NUMBER_LENGTH) or "model") + number
    if source.name.lower().endswith(".gguf"):
        return (_mended(source.name[: -len(".gguf")]) or "model") + ".gguf"
    quant = f".{description.quant}" if description.quant else ""
    return f"{_mended(model)}{quant}.gguf"


def folder_below(root: Path, publisher: str, model: str) -> Path:
    """Give the model's folder; one that differs by case only and is there is used."""
    return _spelled(_spelled(root, publisher), model)


def is_below(path: Path, folder: Path) -> bool:
    """Tell whether the entry ``path`` really lies at any depth in ``folder``, whatever links lead to either.

    Where ``path`` is a link itself, it is the link's own place that counts.
    """
    return Path(os.path.realpath(path.parent)).is_relative_to(os.path.realpath(folder))


def taken_by(target: Path) -> Path | None:
    """Give what has the name of ``target`` already: a file, folder or dangling link, in whatever case."""
    taken = (name for name in _names(target.parent) if folded(name) == folded(target.name))
    return next((target.with_name(name) for name in taken), None)


def target_exists(path: Path) -> TargetExists:
    """Make the error for a target that is there already."""
    return TargetExists(
        f"There is already a file {printable(path)}.",
        hint="Remove it first, or import under another publisher/model.",
        path=printable(path),
    )


def folded(name: str) -> str:
    """Give the form in which two names are one on a file system that knows no case."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def _proposed_model(source: Path, description: Description) -> str:
    """Prefer the file's own name where it carries the model's: people know it, and it is spelled better."""
    stem = ""
    if source.name.lower().endswith(".gguf"):
        stem = _QUANT_ENDING.sub("", (split_name(source.name) or (source.name[: -len(".gguf")],))[0])
    told = [name for name in (description.basename, description.name) if name]
    if stem and any(_letters(name) in _letters(stem) for name in told):
        told = [stem]
    elif description.name:
        told = [description.name, stem]
    return next((mended for name in (*told, stem, source.name) if (mended := _mended(name))), "model")


def _letters(name: str) -> str:
    return re.sub(r"[\W_]+", "", name).casefold()


def _mended(name: str, ending: int = len(".gguf")) -> str:
    """Turn any text into a sound name that ``ending`` bytes may follow; empty where nothing is left of it."""
    text = unicodedata.normalize("NFC", printable(name))
    text = re.sub(r"-{2,}", "-", re.sub(r"\s+", "-", _FORBIDDEN.sub("-", text)))
    text = _shortened(text.strip("-. "), ending).strip("-. ")
    return f"model-{text}" if _RESERVED.fullmatch(text) else text


def _shortened(text: str, ending: int) -> str:
    return text.encode()[: _LONGEST_NAME - len("model-") - ending].decode("utf-8", "ignore")


def _objection(name: str) -> str | None:
    if not name or name in (".", ".."):
        return "it is empty or means a folder"
    if _FORBIDDEN.search(name) or not all(c.isprintable() or c == "\u200d" for c in name):
        return r'it holds one of / \ < > : " | ? * or a control character'
    if name[0] in ". " or name[-1] in ". ":
        return "it begins or ends with a dot or a space"
    if _RESERVED.fullmatch(name):
        return "the name is reserved on Windows"
    if len(name.encode()) > _LONGEST_NAME:
        return f"it is longer than {_LONGEST_NAME} bytes"
    return None


def _spelled(parent: Path, name: str) -> Path:
    for there in _names(parent):
        if there == name:
            break
        if folded(there) == folded(name) and (parent / there).is_dir():
            return parent / there
    return parent / name


def _names(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []
