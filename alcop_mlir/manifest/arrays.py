"""Arrays of a function: what a caller passes, and what calls use besides."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Annotated, Literal

from alcop_mlir import extents
from alcop_mlir.codec_forms import Matches, OneOf
from alcop_mlir.element_types import ARRAY_TYPES, element_bytes
from alcop_mlir.extents import Extent
from alcop_mlir.frozen import frozen
from alcop_mlir.manifest.ranges import Count, FileName, Positive, Rank
from alcop_mlir.reference.steps import Size

DTYPES = ARRAY_TYPES  # MLIR's names; integers are signed
Role = Literal["in", "out", "inout"]
DTYPE_PATTERN = r"(bf|f|i)[1-9]\d{0,2}|index"


@frozen
class Parameter:
    """One array argument; `shape` in elements, C order.

    role:          "inout" where what kernels do with it is unknown
    strides:       in elements; None for a contiguous array
    row_alignment: bytes that the length and the stride of rows are a multiple of
    alignment:     bytes that the address of the first element is a multiple of
    source_name:   what the source calls it, where that is known
    """

    name: str
    dtype: Annotated[str, OneOf(DTYPES)]
    shape: Annotated[tuple[Size, ...], Rank]
    role: Role = "inout"
    strides: tuple[Size, ...] | None = None
    row_alignment: Positive = 1
    alignment: Positive = 16
    source_name: str = ""

    @property
    def bytes(self) -> int:
        """From the first element to the last; all sizes have to be numbers."""
        elements = product(self.shape, {})
        if self.strides is not None and elements:
            sizes = zip(self.shape, self.strides, strict=True)
            elements = 1 + sum((int(size) - 1) * int(stride) for size, stride in sizes)
        return element_bytes(self.dtype) * elements


@frozen
class Intermediate:
    """An array that kernels use and no caller sees; C order.

    dtype: by MLIR's name; may be one that arguments cannot have
    """

    name: str
    dtype: Annotated[str, Matches(DTYPE_PATTERN)]
    shape: Annotated[tuple[Extent, ...], Rank]

    def bytes(self, sizes: Mapping[str, int]) -> int:
        """Its size in bytes, given the named sizes."""
        return element_bytes(self.dtype) * product(self.shape, sizes)


@frozen
class Constant:
    """An array whose contents the bundle holds: bytes [offset, offset + bytes).

    file:  one of the manifest's `data`
    bytes: of the array; elements in C order, little-endian
    """

    name: str
    dtype: Annotated[str, Matches(DTYPE_PATTERN)]
    shape: Annotated[tuple[Count, ...], Rank]
    file: FileName
    offset: Count
    bytes: Count


def product(factors: Iterable[Extent], sizes: Mapping[str, int]) -> int:
    """The product of numbers and named sizes."""
    return math.prod(extents.number(one, sizes) for one in factors)


def named_sizes(parameters: Iterable[Parameter]) -> set[str]:
    """Names of the sizes and strides that the arrays of a call give."""
    return {
        size
        for parameter in parameters
        for size in (*parameter.shape, *(parameter.strides or ()))
        if isinstance(size, str)
    }
