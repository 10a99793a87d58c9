"""What the name of a GGUF file tells of it: the quant, the model, and whether it is a part of another one.

Names are all there is before a header was read. ``UD-Q4_K_XL`` (Unsloth's dynamic quants) stays whole.
"""

import re
from pathlib import PurePosixPath
from typing import Literal

from octavo.core.gguf import split_name

FileKind = Literal["model", "projector", "imatrix", "adapter"]

_QUANT = re.compile(
    r"(?<![A-Za-z0-9])((?:UD[-_.])?(?:I?Q\d+(?:_(?:K|XXS|XS|S|M|L|XL|NL|P|\d))*|TQ\d_\d|BF16|FP?16|FP?32"
    r"|MXFP4(?:_MOE)?|NVFP4))(?![A-Za-z0-9])",
    re.IGNORECASE,
)
_PROJECTOR = re.compile(r"mm[-_]?proj", re.IGNORECASE)
_IMATRIX = re.compile(r"(?<![a-z])imatrix", re.IGNORECASE)
# "x-lora-f16" is an adapter; "alpaca-lora-65b.Q4_K_M" is a model that one was merged into
_ADAPTER = re.compile(r"(^|[-_.])(lora|adapter)s?([-_.](b?f16|fp16|f32|q8_0))?$", re.IGNORECASE)


def file_stem(path: PurePosixPath) -> str:
    """Give a file's name without ``.gguf`` and, of a part of a split model, without its number."""
    parts = split_name(path.name)
    if parts:
        return parts[0]
    return path.name[: -len(".gguf")] if path.name.lower().endswith(".gguf") else path.name


def quant_of(path: PurePosixPath) -> str | None:
    """Give the quant that the file's name ends with, else that of its folder; in capitals."""
    for name in (file_stem(path), *reversed(path.parts[:-1])):
        if found := _QUANT.findall(name):
            return _spelled(found[-1])
    return None


def model_of(path: PurePosixPath) -> str:
    """Give the model, in small letters: the name without the quant and the mark of a projector."""
    bare = _PROJECTOR.sub(" ", _QUANT.sub(" ", file_stem(path)))
    return "-".join(re.findall(r"[^\W_]+", bare.casefold()))


def kind_of(path: PurePosixPath) -> FileKind:
    """Tell what a GGUF file is, by its name."""
    stem = file_stem(path)
    if _PROJECTOR.search(stem):
        return "projector"
    if _IMATRIX.search(stem) and quant_of(PurePosixPath(path.name)) is None:
        return "imatrix"
    return "adapter" if _ADAPTER.search(stem) else "model"


def _spelled(quant: str) -> str:
    upper = quant.upper().replace("FP16", "F16").replace("FP32", "F32")
    return re.sub(r"^UD[-_.]", "UD-", upper)
