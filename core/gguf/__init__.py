"""The GGUF file format: read headers of any provenance, describe what they tell."""

from octavo.core.gguf.capabilities import Capabilities, Projector
from octavo.core.gguf.cursor import ByteSource, printable
from octavo.core.gguf.describe import Description, PerLayer, describe
from octavo.core.gguf.header import (
    BytesSource,
    FileSource,
    Header,
    Part,
    open_source,
    read_header,
    read_skipped,
)
from octavo.core.gguf.metadata import ArraySkipped, Scalar, StringSkipped, Value, ValueType, read_array
from octavo.core.gguf.quants import FILE_TYPES, TENSOR_TYPES, TensorType
from octavo.core.gguf.remote import RangedSource
from octavo.core.gguf.shards import joined, member_names, members, read_model, split_name
from octavo.core.gguf.tensors import Tensor

__all__ = [
    "FILE_TYPES",
    "TENSOR_TYPES",
    "ArraySkipped",
    "ByteSource",
    "BytesSource",
    "Capabilities",
    "Description",
    "FileSource",
    "Header",
    "Part",
    "PerLayer",
    "Projector",
    "RangedSource",
    "Scalar",
    "StringSkipped",
    "Tensor",
    "TensorType",
    "Value",
    "ValueType",
    "describe",
    "joined",
    "member_names",
    "members",
    "open_source",
    "printable",
    "read_array",
    "read_header",
    "read_model",
    "read_skipped",
    "split_name",
]
