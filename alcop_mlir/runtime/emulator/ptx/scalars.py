"""The scalar types of PTX: size, kind, and the NumPy type that carries their bits.

PTX ISA "Fundamental Types" and "Packed Data Types". 16-bit floats have no NumPy type
of their own here: their bits travel as `uint16` (packed pairs as `uint32`) and
`numerics` decodes them where arithmetic is done.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

BOOL = np.dtype(np.bool_)
U8, U16 = np.dtype(np.uint8), np.dtype(np.uint16)
U32, U64 = np.dtype(np.uint32), np.dtype(np.uint64)
S8, S16 = np.dtype(np.int8), np.dtype(np.int16)
S32, S64 = np.dtype(np.int32), np.dtype(np.int64)
F16, F32, F64 = np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.float64)

UNSIGNED = {1: U8, 2: U16, 4: U32, 8: U64}
SIGNED = {1: S8, 2: S16, 4: S32, 8: S64}
# Sixteen bytes are moved as one complex number: NumPy copies it bit by bit with the
# alignment of a float, which is faster than an opaque 16-byte record.
MOVED_AS = {**UNSIGNED, 16: np.dtype(np.complex128)}


@dataclass(frozen=True)
class Scalar:
    """One PTX type: `size` in bytes, `kind` of pred, b, u, s, f, and its carrier."""

    name: str
    size: int
    kind: str
    dtype: np.dtype

    @property
    def bits(self) -> int:
        """The size in bits."""
        return 8 * self.size

    @property
    def is_integer(self) -> bool:
        """Whether it holds an integer, or bits without a type."""
        return self.kind in "bus"

    @property
    def unsigned(self) -> np.dtype:
        """The unsigned NumPy type of the same size."""
        return UNSIGNED[self.size]

    @property
    def signed(self) -> np.dtype:
        """The signed NumPy type of the same size."""
        return SIGNED[self.size]


def _table() -> dict[str, Scalar]:
    rows = [Scalar("pred", 1, "pred", BOOL), Scalar("b128", 16, "b", U64)]
    for size in (1, 2, 4, 8):
        rows.append(Scalar(f"b{8 * size}", size, "b", UNSIGNED[size]))
        rows.append(Scalar(f"u{8 * size}", size, "u", UNSIGNED[size]))
        rows.append(Scalar(f"s{8 * size}", size, "s", SIGNED[size]))
    rows.append(Scalar("f32", 4, "f", F32))
    rows.append(Scalar("f64", 8, "f", F64))
    rows += [Scalar(name, 2, "f", U16) for name in ("f16", "bf16")]
    rows += [Scalar(name, 4, "f", U32) for name in ("f16x2", "bf16x2", "tf32")]
    rows += [Scalar(name, 4, "b", U32) for name in ("u16x2", "s16x2")]
    return {row.name: row for row in rows}


SCALARS = _table()
PRED, B32, B64 = SCALARS["pred"], SCALARS["b32"], SCALARS["b64"]
U32T, S32T, U64T = SCALARS["u32"], SCALARS["s32"], SCALARS["u64"]
