"""The header of a GGUF file: what it describes, and whether the file holds it. No tensor is read.

The layout is that of https://github.com/ggml-org/ggml/blob/master/docs/gguf.md, versions 2 and 3. Counts and lengths
come from the file, so each is held against what the file has before anything of that size is made.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, BinaryIO

from steerboard_contracts.errors import BadModel
from steerboard_contracts.files.base_sources import UnsupportedGguf

_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_MOST_KEYS, _MOST_TENSORS, _MOST_DIMENSIONS = 10_000, 100_000, 4
_MOST_VALUES = 1 << 23  # tokens and merges of the largest vocabularies are below 1 << 20
_LONGEST_NAME, _LONGEST_TEXT = 1 << 10, 1 << 24
_KEPT_VALUES = 4096
_ALIGNMENT = 32
_STRING, _ARRAY = 8, 9
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
# Number, name, elements of a block, bytes of a block.
_KNOWN_TYPES = (
    *((0, "F32", 1, 4), (1, "F16", 1, 2), (2, "Q4_0", 32, 18), (3, "Q4_1", 32, 20)),
    *((6, "Q5_0", 32, 22), (7, "Q5_1", 32, 24), (8, "Q8_0", 32, 34), (9, "Q8_1", 32, 40)),
    *((10, "Q2_K", 256, 84), (11, "Q3_K", 256, 110), (12, "Q4_K", 256, 144), (13, "Q5_K", 256, 176)),
    *((14, "Q6_K", 256, 210), (15, "Q8_K", 256, 292), (16, "IQ2_XXS", 256, 66), (17, "IQ2_XS", 256, 74)),
    *((18, "IQ3_XXS", 256, 98), (19, "IQ1_S", 256, 50), (20, "IQ4_NL", 32, 18), (21, "IQ3_S", 256, 110)),
    *((22, "IQ2_S", 256, 82), (23, "IQ4_XS", 256, 136), (24, "I8", 1, 1), (25, "I16", 1, 2)),
    *((26, "I32", 1, 4), (27, "I64", 1, 8), (28, "F64", 1, 8), (29, "IQ1_M", 256, 56)),
    *((30, "BF16", 1, 2), (34, "TQ1_0", 256, 54), (35, "TQ2_0", 256, 66), (39, "MXFP4", 32, 17)),
)
_TYPES = {number: (name, block, length) for number, name, block, length in _KNOWN_TYPES}
PLAIN_TYPES = frozenset({"F32", "F16", "BF16", "F64", "I8", "I16", "I32", "I64"})


@dataclass(frozen=True)
class GgufTensor:
    """`shape` is in the file's order, the fastest dimension first; `type` is one such as Q4_1."""

    name: str
    shape: tuple[int, ...]
    type: str

    @property
    def elements(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True)
class GgufHeader:
    """`metadata` has plain values and short lists; of longer lists, such as the vocabulary, `lengths` has the sizes."""

    metadata: dict[str, Any]
    lengths: dict[str, int]
    tensors: tuple[GgufTensor, ...]

    @property
    def architecture(self) -> str:
        return str(self.metadata["general.architecture"])

    @property
    def parameters(self) -> int:
        return sum(tensor.elements for tensor in self.tensors)

    @property
    def types(self) -> list[str]:
        """The types of the tensors, the one with the most parameters first."""
        sizes: dict[str, int] = {}
        for tensor in self.tensors:
            sizes[tensor.type] = sizes.get(tensor.type, 0) + tensor.elements
        return sorted(sizes, key=lambda name: -sizes[name])

    @property
    def quantised(self) -> list[str]:
        """`types` without those that hold plain numbers."""
        return [name for name in self.types if name not in PLAIN_TYPES]

    def own(self, key: str) -> Any:
        """Metadata of the architecture, such as `block_count`; None where it is not given."""
        return self.metadata.get(f"{self.architecture}.{key}")


def read_header(file: BinaryIO, size: int, name: str) -> GgufHeader:
    """The header of a file with `size` bytes, read in order from its beginning.

    Raises `BadModel` for a file that is not GGUF, is cut off, or describes more than it holds, and `UnsupportedGguf`.
    """
    reader = _Reader(file, size, name)
    if reader.take(4) != _MAGIC:
        raise BadModel(f"{name} is not a GGUF file", hint="Give a file that llama.cpp can load.")
    version = reader.number("I")
    if version not in _VERSIONS:
        swapped = int.from_bytes(version.to_bytes(4, "little"), "big") in _VERSIONS
        what = "written for big-endian machines" if swapped else f"of GGUF version {version}"
        raise UnsupportedGguf(f"{name} is {what}", hint="Convert it again with a current llama.cpp.")
    tensors = reader.count("Q", _MOST_TENSORS, "tensors")
    keys = reader.count("Q", _MOST_KEYS, "entries of metadata")
    metadata: dict[str, Any] = {}
    lengths: dict[str, int] = {}
    for _ in range(keys):
        key = reader.text(_LONGEST_NAME)
        value, length = reader.value(reader.number("I"))
        if length is not None:
            lengths[key] = length
        if value is not None:
            metadata[key] = value
    if not isinstance(metadata.get("general.architecture"), str):
        raise BadModel(f"{name} does not name its architecture")
    if int(_whole(metadata.get("split.count"))) > 1:
        raise UnsupportedGguf(
            f"{name} is one of {metadata['split.count']} parts of a model",
            hint=f"Join them first: llama-gguf-split --merge {name} model.gguf",
        )
    headers, sizes = [], []
    for _ in range(tensors):
        tensor, place, length = reader.tensor()
        headers.append(tensor)
        sizes.append((place, length))
    alignment = _whole(metadata.get("general.alignment")) or _ALIGNMENT
    start = -(-reader.at // alignment) * alignment
    needed = start + max([sum(length for _, length in sizes), *(place + length for place, length in sizes)])
    if not headers or needed > size:
        raise BadModel(
            f"{name} is cut off or damaged: its tensors need {needed:,} bytes, and it has {size:,}",
            hint="Download or copy it again.",
        )
    return GgufHeader(metadata, lengths, tuple(headers))


def _whole(value: Any) -> int:
    return value if isinstance(value, int) and 0 < value < 1 << 16 else 0


class _Reader:
    """Takes a file's bytes in order. Whatever is beyond its end raises `BadModel`."""

    def __init__(self, file: BinaryIO, size: int, name: str) -> None:
        self._file, self._size, self._name = file, size, name
        self.at = 0

    def take(self, length: int) -> bytes:
        if length > self._size - self.at:
            raise self._damaged("ends within its header")
        data = self._file.read(length)
        if len(data) < length:
            raise self._damaged("ends within its header")
        self.at += length
        return data

    def number(self, form: str) -> int:
        number: int = struct.unpack(f"<{form}", self.take(struct.calcsize(f"<{form}")))[0]
        return number

    def count(self, form: str, most: int, what: str) -> int:
        count = self.number(form)
        if count > most:
            raise self._damaged(f"declares {count:,} {what}; at most {most:,} are read")
        return count

    def text(self, most: int) -> str:
        length = self.count("Q", most, "bytes of one text")
        return self.take(length).decode("utf-8", "replace")

    def value(self, kind: int) -> tuple[Any, int | None]:
        """A value, None where it is a list that is too long to keep; and the length of a list."""
        if kind == _STRING:
            return self.text(_LONGEST_TEXT), None
        if kind != _ARRAY:
            return self._scalar(kind)(), None
        kind, count = self.number("I"), self.count("Q", _MOST_VALUES, "values of one list")
        if kind == _STRING:
            read: Callable[[], Any] = lambda: self.text(_LONGEST_TEXT)  # noqa: E731
        else:
            read = self._scalar(kind)
            if count > _KEPT_VALUES:
                self.take(count * struct.calcsize(f"<{_SCALARS[kind]}"))
                return None, count
        if count <= _KEPT_VALUES:
            return [read() for _ in range(count)], count
        for _ in range(count):
            read()
        return None, count

    def tensor(self) -> tuple[GgufTensor, int, int]:
        """A tensor, where its data begins after the header, and the bytes of them."""
        name = self.text(_LONGEST_NAME)
        dimensions = self.count("I", _MOST_DIMENSIONS, "dimensions of a tensor")
        shape = tuple(self.number("Q") for _ in range(dimensions))
        number, place = self.number("I"), self.number("Q")
        if number not in _TYPES:
            raise UnsupportedGguf(
                f"{self._name} has tensors of the unknown type {number}, such as {name[:100]}",
                hint="Give a file of a common quantisation, such as Q4_K_M or Q8_0.",
            )
        kind, block, length = _TYPES[number]
        if not all(shape) or math.prod(shape) % block or (shape and shape[0] % block):
            raise self._damaged(f"declares {name[:100]} as {kind} in a shape that this type does not have")
        return GgufTensor(name, shape, kind), place, math.prod(shape) // block * length

    def _scalar(self, kind: int) -> Callable[[], Any]:
        if kind not in _SCALARS:
            raise self._damaged(f"has metadata of the unknown type {kind}")
        form = f"<{_SCALARS[kind]}"
        length = struct.calcsize(form)
        return lambda: struct.unpack(form, self.take(length))[0]

    def _damaged(self, why: str) -> BadModel:
        return BadModel(f"{self._name} is cut off or damaged: it {why}", hint="Download or copy it again.")
