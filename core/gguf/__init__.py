"""The GGUF file format: read headers of any provenance, describe what they tell."""

from octavo.core.gguf.cursor import ByteSource, printable
from octavo.core.gguf.describe import Description, describe
from octavo.core.gguf.header import BytesSource, FileSource, Header, open_source, read_header, read_skipped
from octavo.core.gguf.metadata import ArraySkipped, Scalar, StringSkipped, Value, ValueType, read_array
from octavo.core.gguf.quants import FILE_TYPES, TENSOR_TYPES, TensorType
from octavo.core.gguf.tensors import Tensor

__all__ = [
    "FILE_TYPES",
    "TENSOR_TYPES",
    "ArraySkipped",
    "ByteSource",
    "BytesSource",
    "Description",
    "FileSource",
    "Header",
    "Scalar",
    "StringSkipped",
    "Tensor",
    "TensorType",
    "Value",
    "ValueType",
    "describe",
    "open_source",
    "printable",
    "read_array",
    "read_header",
    "read_skipped",
]
