"""Tensor maps: what a copy engine needs to know of an array in global memory.

CUDA Driver API "Tensor Map Object Management", PTX ISA "Tensors". The 128 bytes of
a map are opaque, and those of the driver are not documented: here they are the
emulator's own. Dimensions are counted from the innermost one.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from alcop_mlir.runtime.emulator.arithmetic.storage import Array

SIZE = 128  # bytes of a map
CHUNK = 16  # bytes that stay together in shared memory
# CUtensorMapDataType, as types of PTX.
TYPES = ("u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f64", "bf16", "tf32")
_MAGIC = b"tmap"
_FORM = struct.Struct("<Q4s7Bx5I4Q5H5Bx6hH")
# Bytes of a swizzled span: how many of the bits from 7 on change those from 4 on.
SWIZZLES = {0: 0, 32: 1, 64: 2, 128: 3}
_SWIZZLE_CODES = list(SWIZZLES)
# CUtensorMapInterleave: bytes of a slice of channels.
INTERLEAVES = (0, 16, 32)


class Field(NamedTuple):
    """Where a field is in the 128 bytes; `dimensions`: how many there are of it."""

    start: int
    size: int
    dimensions: int = 1

    def of(self, order: int) -> Field:
        """That of one dimension."""
        return Field(self.start + order * self.size, self.size)

    def put(self, raw: Array, values: Array) -> None:
        """Sets it in maps (maps, 128), to the lower bytes of int64 values."""
        low = np.ascontiguousarray(values, "<i8").view(np.uint8).reshape(-1, 8)
        raw[:, self.start : self.start + self.size] = low[:, : self.size]


# Of `_FORM`, by their names in "tensormap.replace"; sizes are kept as one less.
FIELDS = {
    "global_address": Field(0, 8),
    "elemtype": Field(12, 1),
    "item": Field(13, 1),
    "rank": Field(14, 1),
    "swizzle_mode": Field(15, 1),
    "fill_mode": Field(16, 1),
    "interleave_layout": Field(18, 1),
    "global_dim": Field(20, 4, 5),
    "global_stride": Field(40, 8, 4),
    "box_dim": Field(72, 2, 5),
    "element_stride": Field(82, 1, 5),
}


@dataclass(frozen=True)
class Window:
    """What im2col mode adds: where the pixels of a copy may begin, and how many it has.

    PTX ISA "Im2col mode": along W, H and D, as many of them as there are, pixels begin
    from `lower` to `upper` behind the last element.
    """

    lower: tuple[int, ...]
    upper: tuple[int, ...]
    pixels: int


@dataclass(frozen=True)
class Layout:
    """An array of `rank` dimensions and the box of it that one copy moves.

    address: of its first element; dtype: name of a `Scalar`; sizes, box, steps: in
    elements; strides: in bytes, of all dimensions but the innermost; swizzle: bytes of
    a swizzled span, 0 without; nan_fill: what lies outside reads as NaN, not as 0;
    window: of im2col mode, whose `box` is the channels of a pixel alone; interleave:
    bytes of a slice of channels, which is the innermost dimension, 0 without
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
    window: Window | None = None
    interleave: int = 0

    @property
    def rank(self) -> int:
        """How many dimensions there are."""
        return len(self.sizes)

    @property
    def counts(self) -> tuple[int, ...]:
        """How many elements of each dimension a box has in shared memory."""
        if self.window is not None:
            return self.box[0], self.window.pixels
        rest = (-(-n // s) for n, s in zip(self.box[1:], self.steps[1:], strict=True))
        return (self.box[0], *rest)

    @property
    def bytes(self) -> int:
        """Those of a box, with what lies outside of the array."""
        return math.prod(self.counts) * self.item

    def pack(self) -> bytes:
        """The 128 bytes."""
        fill = [1] * (5 - self.rank)
        window = self.window or Window((), (), 0)
        corners = [(*corner, 0, 0, 0)[:3] for corner in (window.lower, window.upper)]
        raw = _FORM.pack(
            self.address,
            _MAGIC,
            TYPES.index(self.dtype),
            self.item,
            self.rank,
            _SWIZZLE_CODES.index(self.swizzle),
            self.nan_fill,
            self.window is not None,
            INTERLEAVES.index(self.interleave),
            *(n - 1 for n in (*self.sizes, *fill)),
            *(self.strides + (0,) * (5 - self.rank)),
            *(*self.box, 1, 1, 1, 1)[:5],
            *self.steps,
            *fill,
            *corners[0],
            *corners[1],
            window.pixels,
        )
        return raw.ljust(SIZE, b"\0")

    def outside(self, size: int) -> bytes:
        """What a piece of `size` bytes outside of the array reads as."""
        if not self.nan_fill:
            return bytes(size)
        one = {2: 0x7FFF, 4: 0x7FFFFFFF, 8: 0x7FFFFFFFFFFFFFFF}[self.item]
        return one.to_bytes(self.item, "little") * (size // self.item)

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

    def columns(self, starts: Array, offsets: Array, chunk: int) -> tuple[Array, Array]:
        """The same in im2col mode: as many pixels, with their channels.

        PTX ISA "Im2col mode": the pixels of a copy begin at `starts` and go on along W,
        then H, then D, each from `lower` to `upper` by its step, and then to the next
        image; `offsets` (boxes, W to D) are added to where each begins.
        """
        window = self.window
        assert window is not None
        inner = starts[:, :1] + np.arange(0, self.box[0], chunk // self.item)
        address = np.full((len(starts), window.pixels), self.address)
        inside = np.ones(address.shape, bool)
        turn = np.arange(window.pixels)[None]  # how often a dimension has moved on
        for d, (low, high) in enumerate(self.corners(), start=1):
            start, step = starts[:, d : d + 1], self.steps[d]
            past = turn - ((high - start) // step + 1)
            count = (high - low) // step + 1
            at = np.where(past < 0, start + turn * step, low + past % count * step)
            at = at + offsets[:, d - 1 : d]
            turn = np.where(past < 0, 0, 1 + past // count)
            address = address + at * self.strides[d - 1]
            inside &= (at >= 0) & (at < self.sizes[d])
        image = starts[:, -1:] + turn
        address = address + image * self.strides[-1]
        inside &= (image >= 0) & (image < self.sizes[-1])
        there = (inner >= 0) & (inner < self.sizes[0])
        address = address[:, :, None] + (inner * self.item)[:, None, :]
        inside = inside[:, :, None] & there[:, None, :]
        return address.reshape(len(starts), -1), inside.reshape(len(starts), -1)

    def corners(self) -> list[tuple[int, int]]:
        """Of im2col mode: where pixels begin along W, H and D, first and last."""
        assert self.window is not None
        sizes = self.sizes[1:-1]
        uppers = zip(sizes, self.window.upper, strict=True)
        last = [size - 1 + upper for size, upper in uppers]
        return list(zip(self.window.lower, last, strict=True))

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
    address, magic, dtype, item, rank, swizzle, nan, mode, slices, *rest = _FORM.unpack(
        raw[: _FORM.size]
    )
    if magic != _MAGIC:
        return None
    sizes, strides, box, steps = rest[:5], rest[5:9], rest[9:14], rest[14:19]
    window = None
    if mode:
        lower, upper = rest[19 : 17 + rank], rest[22 : 20 + rank]
        window = Window(tuple(lower), tuple(upper), rest[25])
    return Layout(
        address,
        TYPES[dtype],
        item,
        tuple(n + 1 for n in sizes[:rank]),
        tuple(strides[: rank - 1]),
        tuple(box[: 1 if mode else rank]),
        tuple(steps[:rank]),
        _SWIZZLE_CODES[swizzle],
        bool(nan),
        window,
        INTERLEAVES[slices],
    )


def swizzled(address: Array, span: int) -> Array:
    """Shared addresses after the XOR of a swizzle of `span` bytes.

    PTX ISA "Swizzling modes": the 16-byte pieces of 128-byte rows change places.
    """
    mask = (1 << SWIZZLES[span]) - 1
    return address ^ ((address >> 7 & mask) << 4)
