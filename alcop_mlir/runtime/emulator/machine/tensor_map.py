"""Tensor maps: what a copy engine needs to know of an array in global memory.

CUDA Driver API "Tensor Map Object Management", PTX ISA "Tensors". The 128 bytes of
a map are opaque, and those of the driver are not documented: here they are the
emulator's own. Dimensions are counted from the innermost one.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass

import numpy as np

from alcop_mlir.runtime.emulator.arithmetic.storage import Array

SIZE = 128  # bytes of a map
CHUNK = 16  # bytes that stay together in shared memory
# CUtensorMapDataType, as types of PTX.
TYPES = ("u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f64", "bf16", "tf32")
_MAGIC = b"tmap"
_FORM = struct.Struct("<Q4s6B2x5I4x4Q5H5B")
# Bytes of a swizzled span: how many of the bits from 7 on change those from 4 on.
SWIZZLES = {0: 0, 32: 1, 64: 2, 128: 3}
_SWIZZLE_CODES = list(SWIZZLES)


@dataclass(frozen=True)
class Layout:
    """An array of `rank` dimensions and the box of it that one copy moves.

    address: of its first element; dtype: name of a `Scalar`; sizes, box, steps: in
    elements; strides: in bytes, of all dimensions but the innermost; swizzle: bytes of
    a swizzled span, 0 without; nan_fill: what lies outside reads as NaN, not as 0
    """

    address: int
    dtype: str
    item: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    steps: tuple[int, ...]
    swizzle: int
    nan_fill: bool = False

    @property
    def rank(self) -> int:
        """How many dimensions there are."""
        return len(self.sizes)

    @property
    def counts(self) -> tuple[int, ...]:
        """How many elements of each dimension a box has in shared memory."""
        rest = (-(-n // s) for n, s in zip(self.box[1:], self.steps[1:], strict=True))
        return (self.box[0], *rest)

    @property
    def bytes(self) -> int:
        """Those of a box, with what lies outside of the array."""
        return math.prod(self.counts) * self.item

    def problem(self) -> str:
        """Why cuTensorMapEncodeTiled would not take it, or ""."""
        item, box = self.item, self.box
        if self.address % 16:
            return "its address is not a multiple of 16"
        if any(not 1 <= n <= 2**32 for n in self.sizes):
            return f"sizes {self.sizes} are not from 1 to 2^32"
        if any(s % 16 or not 0 <= s < 2**40 for s in self.strides):
            return f"strides {self.strides} are not multiples of 16 below 2^40"
        if any(not 1 <= n <= 256 for n in box):
            return f"the box {box} is not from 1 to 256"
        if any(not 1 <= n <= 8 for n in self.steps):
            return f"element strides {self.steps} are not from 1 to 8"
        if box[0] * item % CHUNK:
            return f"a row of the box has {box[0] * item} bytes, no multiple of 16"
        if self.swizzle and box[0] * item > self.swizzle:
            return (
                f"a row of the box has {box[0] * item} bytes, more than the swizzle "
                f"of {self.swizzle}"
            )
        return ""

    def pack(self) -> bytes:
        """The 128 bytes."""
        fill = [1] * (5 - self.rank)
        raw = _FORM.pack(
            self.address,
            _MAGIC,
            TYPES.index(self.dtype),
            self.item,
            self.rank,
            _SWIZZLE_CODES.index(self.swizzle),
            self.nan_fill,
            0,
            *(n - 1 for n in (*self.sizes, *fill)),
            *(self.strides + (0,) * (5 - self.rank)),
            *self.box,
            *fill,
            *self.steps,
            *fill,
        )
        return raw.ljust(SIZE, b"\0")

    def outside(self, size: int) -> int:
        """What a piece of `size` bytes outside of the array reads as."""
        if not self.nan_fill:
            return 0
        one = {2: 0x7FFF, 4: 0x7FFFFFFF, 8: 0x7FFFFFFFFFFFFFFF}.get(self.item, 0)
        return int.from_bytes(
            one.to_bytes(self.item, "little") * (size // self.item), "little"
        )

    def boxes(self, starts: Array, chunk: int) -> tuple[Array, Array]:
        """Where the pieces of `chunk` bytes of boxes are in global memory.

        starts: signed (boxes, rank); returns addresses int64 (boxes, pieces), in the
        order of shared memory, and which of them lie inside of the array.
        """
        counts, per = self.counts, chunk // self.item
        inner = starts[:, :1] + np.arange(0, counts[0], per)
        address = self.address + inner * self.item
        inside = (inner >= 0) & (inner < self.sizes[0])
        for d in range(1, self.rank):
            at = starts[:, d : d + 1] + np.arange(counts[d]) * self.steps[d]
            stride = self.strides[d - 1]
            address = (address[:, None, :] + (at * stride)[:, :, None]).reshape(
                len(starts), -1
            )
            valid = (at >= 0) & (at < self.sizes[d])
            inside = (inside[:, None, :] & valid[:, :, None]).reshape(len(starts), -1)
        return address, inside

    def chunk(self, starts: Array) -> int:
        """The largest pieces of which each is inside of the array or outside."""
        inner = starts[:, 0] * self.item
        ends_well = self.sizes[0] * self.item % CHUNK == 0
        is_inside = (starts[:, 0] >= 0) & (starts[:, 0] + self.box[0] <= self.sizes[0])
        if (inner % CHUNK == 0).all() and (ends_well or is_inside.all()):
            return CHUNK
        return self.item


def unpack(raw: bytes) -> Layout | None:
    """The layout in 128 bytes, None if these are no map of the emulator."""
    address, magic, dtype, item, rank, swizzle, nan, _, *rest = _FORM.unpack(
        raw[: _FORM.size]
    )
    if magic != _MAGIC:
        return None
    sizes, strides, box, steps = rest[:5], rest[5:9], rest[9:14], rest[14:19]
    return Layout(
        address,
        TYPES[dtype],
        item,
        tuple(n + 1 for n in sizes[:rank]),
        tuple(strides[: rank - 1]),
        tuple(box[:rank]),
        tuple(steps[:rank]),
        _SWIZZLE_CODES[swizzle],
        bool(nan),
    )


def swizzled(address: Array, span: int) -> Array:
    """Shared addresses after the XOR of a swizzle of `span` bytes.

    PTX ISA "Swizzling modes": the 16-byte pieces of 128-byte rows change places.
    """
    mask = (1 << SWIZZLES[span]) - 1
    return address ^ ((address >> 7 & mask) << 4)
