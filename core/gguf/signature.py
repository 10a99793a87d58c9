"""The first eight bytes of a file: is it a GGUF that can be read here, and if not, what is it?"""

import re
import string

from octavo.core.gguf.cursor import Cursor

_OLD_MAGICS = {b"lmgg": "GGML", b"fmgg": "GGMF", b"tjgg": "GGJT", b"algg": "GGLA (LoRA)"}
_CONVERT = "Convert it with a current llama.cpp, or download the model as GGUF."
_DOWNLOAD = "The download went wrong, or the page asks for a login. Download the file again."


def check_signature(cursor: Cursor) -> int:
    """Give the version (2 or 3) of a GGUF file; for another file raise an error that says what it is."""
    if cursor.file_size == 0:
        raise cursor.fault(
            "empty_file", "the file is empty", "The download or copy did not start. Do it again."
        )
    if cursor.peek(4) != b"GGUF":
        _name_stranger(cursor, cursor.peek(512))
    cursor.skip(4, "the magic")
    return _check_version(cursor, cursor.u32("the version"))


def _name_stranger(cursor: Cursor, start: bytes) -> None:
    magic = start[:4]
    if len(magic) < 4:
        raise cursor.fault("too_short", f"the file has only {len(magic)} bytes")
    if old := _OLD_MAGICS.get(magic):
        raise cursor.fault("old_ggml", f"it is in the old {old} format from before GGUF", _CONVERT)
    if re.match(rb"\s*(<!--.*?-->\s*)?<(!doctype\s+html|html|head|\?xml)", start, re.IGNORECASE | re.DOTALL):
        raise cursor.fault("html_page", "it is a web page (HTML), not a model", _DOWNLOAD)
    if start.startswith(b"version https://git-lfs"):
        raise cursor.fault(
            "lfs_pointer",
            "it is a Git LFS pointer, not the model itself",
            "Run `git lfs pull` in its repository.",
        )
    if re.match(rb'\s*\{\s*"', start):
        raise cursor.fault("json_text", "it is JSON text, not a model", _DOWNLOAD)
    if magic[:2] == b"PK" or start[8:10] == b'{"':
        raise cursor.fault(
            "other_format", "it holds weights in another format (PyTorch or safetensors)", _CONVERT
        )
    raise cursor.fault(
        "wrong_magic", f"it is not a GGUF file: it starts with {_shown(magic)}", "Choose a .gguf file."
    )


def _check_version(cursor: Cursor, version: int) -> int:
    if version in (2, 3):
        return version
    if version and version & 0xFFFF == 0:
        raise cursor.fault(
            "big_endian",
            "it is a big-endian file, made for another kind of processor",
            "Get the ordinary (little-endian) file.",
        )
    if version == 1:
        raise cursor.fault("version_1", "GGUF v1 is no longer supported", _CONVERT)
    if version == 0:
        raise cursor.fault("bad_version", "it names the GGUF version 0, which doesn't exist")
    raise cursor.fault(
        "newer_version", f"it is made by a newer tool (GGUF v{version})", "Look for a newer Octavo."
    )


def _shown(magic: bytes) -> str:
    letters = "".join(
        chr(b) if chr(b) in string.ascii_letters + string.digits + string.punctuation else "?" for b in magic
    )
    return f"{letters!r} ({magic.hex(' ')})"
