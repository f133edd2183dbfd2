"""Where the elements of a matrix lie in the registers of a warp, and what they are.

PTX ISA "Warp Level Matrix Multiply-Accumulate Instructions". A `Placement` has, for
each lane and each of its elements, the matrix, row and column. In `mma` lane l belongs
to group g = l / 4 and has place t = l % 4; with e elements in a 32-bit register:
  A: register q holds row g + 8 (q % h), columns 4e (q / h) + t e + 0..e-1, where h is
     1 for 8 rows and 2 for 16
  B: register q holds column g, rows 4e q + t e + 0..e-1
  C, D: element i is row g + 8 (i / 2), column 2 t + i % 2
The fragments of `wmma` are left open by the PTX ISA; here lane after lane takes the
next elements in memory order, several times over where there are too few.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from alcop_mlir.runtime.emulator.arithmetic import floats as num
from alcop_mlir.runtime.emulator.arithmetic.storage import (
    F32,
    F64,
    S8,
    S32,
    S64,
    U8,
    U16,
    U32,
    Array,
    pack,
    parts,
)

_LANE = np.arange(32)[:, None]
_GROUP, _PLACE = _LANE // 4, _LANE % 4


@dataclass(frozen=True)
class Element:
    """The type of a fragment's elements, of `bits` each.

    decode: registers (...) to numbers (..., elements of a register), int64 or float64
    encode: the opposite; None for a type that only operands have
    """

    bits: int
    decode: Callable[[Array], Array]
    encode: Callable[[Array], Array] | None = None

    @property
    def register_bits(self) -> int:
        """Of the registers that hold it."""
        return max(self.bits, 32)

    @property
    def per_register(self) -> int:
        """How many a register holds."""
        return self.register_bits // self.bits


def _floats(dtype: np.dtype, decode: Callable[[Array], Array]) -> Element:
    bits = 8 * dtype.itemsize
    return Element(bits, lambda x: decode(parts(x, dtype)).astype(F64))


def _fields(bits: int, signed: bool) -> Element:
    shifts = np.arange(0, 32, bits, dtype=U32)
    top = 1 << (bits - 1) if signed else 0

    def decode(x: Array) -> Array:
        field = (x.view(U32)[..., None] >> shifts) & U32.type((1 << bits) - 1)
        return (field.astype(S64) ^ top) - top

    return Element(bits, decode)


def _encode_f16(x: Array) -> Array:
    return pack([num.encode_f16(x[..., 0]), num.encode_f16(x[..., 1])], U32)


ELEMENTS = {
    "f16": Element(
        16, lambda x: num.decode_f16(parts(x, U16)).astype(F64), _encode_f16
    ),
    "bf16": _floats(U16, num.decode_bf16),
    "tf32": _floats(U32, num.decode_tf32),
    "e4m3": _floats(U8, num.decode_e4m3),
    "e5m2": _floats(U8, num.decode_e5m2),
    "f32": Element(
        32, lambda x: parts(x, F32).astype(F64), lambda x: x[..., 0].astype(F32)
    ),
    "f64": Element(64, lambda x: parts(x, F64), lambda x: x[..., 0]),
    "s32": Element(
        32, lambda x: parts(x, S32).astype(S64), lambda x: x[..., 0].astype(S32)
    ),
    "s8": Element(8, lambda x: parts(x, S8).astype(S64)),
    "u8": Element(8, lambda x: parts(x, U8).astype(S64)),
    "s4": _fields(4, signed=True),
    "u4": _fields(4, signed=False),
    "b1": _fields(1, signed=False),
}


class Placement(NamedTuple):
    """The matrices, rows and columns of a fragment, and those of each element.

    matrix, row, column: (32, elements of a lane), or what broadcasts to it
    """

    shape: tuple[int, int, int]
    matrix: Array
    row: Array
    column: Array

    @property
    def elements(self) -> int:
        """How many a lane has."""
        return self.row.shape[1]

    def gather(self, values: Array) -> Array:
        """(..., 32, elements) to (..., matrices, rows, columns)."""
        out = np.zeros((*values.shape[:-2], *self.shape), values.dtype)
        out[..., self.matrix, self.row, self.column] = values
        return out

    def spread(self, matrices: Array) -> Array:
        """The opposite of `gather`."""
        return matrices[..., self.matrix, self.row, self.column]


def _placed(
    shape: tuple[int, int, int], row: Array, column: Array, matrix: Array | None = None
) -> Placement:
    if matrix is None:
        matrix = np.zeros((32, 1), np.intp)
    row, column, matrix = np.broadcast_arrays(row, column, matrix)
    return Placement(shape, matrix, row, column)


def operand_a(rows: int, depth: int, per: int) -> Placement:
    """A of `mma`, with `per` elements in a register."""
    i, halves = np.arange(rows * depth // 32)[None], rows // 8
    q, j = i // per, i % per
    column = q // halves * 4 * per + _PLACE * per + j
    return _placed((1, rows, depth), _GROUP + 8 * (q % halves), column)


def operand_b(depth: int, per: int) -> Placement:
    """B of `mma`, with 8 columns."""
    i = np.arange(8 * depth // 32)[None]
    row = i // per * 4 * per + _PLACE * per + i % per
    return _placed((1, depth, 8), row, _GROUP)


def accumulator(rows: int) -> Placement:
    """C and D of `mma`, with 8 columns."""
    i = np.arange(rows // 4)[None]
    return _placed((1, rows, 8), _GROUP + 8 * (i // 2), 2 * _PLACE + i % 2)


# `mma.m8n8k4` of f16 multiplies four pairs: lanes 4p..4p+3 and 16 more hold pair p.
_PRODUCT, _UPPER = _LANE % 16 // 4, 4 * (_LANE // 16)


def quad_pair_operand(is_a: bool, layout: str) -> Placement:
    """A or B of `mma.m8n8k4` of f16."""
    i = np.arange(4)[None]
    along = _PLACE + _UPPER if is_a == (layout == "row") else _PLACE
    across = i if is_a == (layout == "row") else i + _UPPER
    if is_a == (layout == "row"):
        outer, inner = along, across
    else:
        outer, inner = across, along
    if is_a:
        return _placed((4, 8, 4), outer, inner, _PRODUCT)
    return _placed((4, 4, 8), inner, outer, _PRODUCT)


def quad_pair_accumulator(type_name: str) -> Placement:
    """C or D of `mma.m8n8k4` of f16, as f16 or f32."""
    i = np.arange(8)[None]
    if type_name == "f16":
        row, column = _PLACE + _UPPER, i
    else:
        row = (_LANE & 1) + (i & 2) + _UPPER
        column = (i & 4) + (_LANE & 2) + (i & 1)
    return _placed((4, 8, 8), row, column, _PRODUCT)


def in_memory_order(rows: int, columns: int, count: int, by_row: bool) -> Placement:
    """A fragment of `wmma` with `count` elements in each lane."""
    flat = (_LANE * count + np.arange(count)) % (rows * columns)
    if by_row:
        return _placed((1, rows, columns), flat // columns, flat % columns)
    return _placed((1, rows, columns), flat % rows, flat // rows)


# --- sparse operands -----------------------------------------------------------------

# Elements of A in a quarter of what a group of metadata, of four bits, covers: its two
# fields of two bits name the quarters that are stored.
_QUARTER = {"s4": 2.0, "u4": 2.0, "tf32": 0.5}


def metadata_lanes(type_name: str, depth: int) -> int:
    """How many of four neighbouring lanes give the metadata of `mma.sp`."""
    bits = int(depth / _QUARTER.get(type_name, 1.0))  # of a row; there are 16 rows
    return 16 * bits // (8 * 32)


def expand(
    stored: Array, metadata: Array, type_name: str, depth: int, selector: int
) -> Array:
    """A of `mma.sp` with its zeros: (..., 16, depth / 2) to (..., 16, depth).

    metadata: (..., 32); selector: which of the lanes that may give it do
    """
    quarter = _QUARTER.get(type_name, 1.0)
    groups = _groups(metadata, type_name, depth, selector)
    first, second = groups & 3, groups >> 2
    start = np.arange(groups.shape[-1]) * int(4 * quarter)
    if quarter < 1:  # one number of two: its two quarters
        places = (start + first // 2)[..., None]
    else:
        within = np.arange(int(quarter))
        fields = np.stack([first, second], axis=-1)[..., None] * int(quarter)
        places = start[:, None, None] + fields + within
    column = places.reshape(*groups.shape[:-1], depth // 2)
    out = np.zeros((*stored.shape[:-1], depth), stored.dtype)
    column = np.broadcast_to(column, stored.shape)
    np.put_along_axis(out, column, stored, axis=-1)
    return out


def _groups(metadata: Array, type_name: str, depth: int, selector: int) -> Array:
    """The groups of four bits of each row, int64 (..., 16, groups)."""
    used = metadata_lanes(type_name, depth)
    words = metadata.astype(S64).reshape(*metadata.shape[:-1], 8, 4)
    words = words[..., selector * used : (selector + 1) * used]
    if ELEMENTS[type_name].bits >= 16:
        # Each lane has 16 bits of row g and of row g + 8, for some of the columns.
        halves = [words & 0xFFFF, words >> 16]
        rows = np.concatenate(halves, axis=-2)
        shifts = np.arange(0, 16, 4)
    else:
        # Lanes take turns with row g and row g + 8.
        rows = np.concatenate([words[..., 0::2], words[..., 1::2]], axis=-2)
        shifts = np.arange(0, 32, 4)
    fields = rows[..., None] >> shifts & 15
    return fields.reshape(*fields.shape[:-2], -1)
