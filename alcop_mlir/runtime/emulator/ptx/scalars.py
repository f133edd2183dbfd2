"""The scalar types of PTX, one row each: size, kind, storage, and what bits stand for.

PTX ISA "Fundamental Types", "Alternate Floating-Point Data Formats", "Packed Data
Types". NumPy computes with integers, f32 and f64 as they are stored. The other types
are decoded where arithmetic is done, and encoded, rounded once, where it ends.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from alcop_mlir.runtime.emulator.arithmetic import floats as num
from alcop_mlir.runtime.emulator.arithmetic.storage import (
    BOOL,
    F32,
    F64,
    MOVED_AS,
    SIGNED,
    U8,
    U16,
    U32,
    UNSIGNED,
)

Decode = Callable[[np.ndarray], np.ndarray]
Encode = Callable[[np.ndarray, str], np.ndarray]


def _as_stored(x: np.ndarray) -> np.ndarray:
    return x


def _as_computed(x: np.ndarray, mode: str) -> np.ndarray:
    return x


@dataclass(frozen=True)
class Scalar:
    """One PTX type.

    size:    in bytes
    kind:    pred, b (bits), u, s, or f
    dtype:   the NumPy type of registers and memory that hold it
    decode:  what is stored to numbers that NumPy computes with
    encode:  such numbers to what is stored, with a rounding; of a float, from float32
             or from float64 rounded to odd
    largest: the largest finite value, as bits, of a type that has .satfinite; else 0
    half:    the type of which it packs two values; `decode` and `encode` are for those
    accumulators: the types of C and D of mma.sync, where A has this one
    """

    name: str
    size: int
    kind: str
    dtype: np.dtype
    decode: Decode = _as_stored
    encode: Encode = _as_computed
    largest: int = 0
    half: Scalar | None = None
    accumulators: tuple[str, ...] = ()

    @property
    def bits(self) -> int:
        """The size in bits."""
        return 8 * self.size

    @property
    def is_integer(self) -> bool:
        """Whether it holds an integer, or bits without a type."""
        return self.kind in "bus"

    @property
    def is_decoded(self) -> bool:
        """Whether NumPy does not compute with what is stored."""
        return self.decode is not _as_stored

    @property
    def unsigned(self) -> np.dtype:
        """The unsigned NumPy type of the same size; what 16 bytes are moved as."""
        return MOVED_AS[self.size]

    @property
    def signed(self) -> np.dtype:
        """The signed NumPy type of the same size."""
        return SIGNED[self.size]


def _packed(half: Scalar, kind: str) -> Scalar:
    name, size = f"{half.name}x2", 2 * half.size
    return Scalar(name, size, kind, UNSIGNED[size], half.decode, half.encode, half=half)


def _integers() -> list[Scalar]:
    rows = []
    for size in (1, 2, 4, 8):
        sums = ("s32",) if size == 1 else ()
        rows += [
            Scalar(f"b{8 * size}", size, "b", UNSIGNED[size]),
            Scalar(f"u{8 * size}", size, "u", UNSIGNED[size], accumulators=sums),
            Scalar(f"s{8 * size}", size, "s", SIGNED[size], accumulators=sums),
        ]
    return rows


_FLOATS = (
    Scalar(
        name="f16",
        size=2,
        kind="f",
        dtype=U16,
        decode=num.decode_f16,
        encode=num.encode_f16,
        largest=0x7BFF,
        accumulators=("f16", "f32"),
    ),
    Scalar(
        name="bf16",
        size=2,
        kind="f",
        dtype=U16,
        decode=num.decode_bf16,
        encode=num.encode_bf16,
        largest=0x7F7F,
        accumulators=("f32",),
    ),
    Scalar(
        name="tf32",
        size=4,
        kind="f",
        dtype=U32,
        decode=num.decode_tf32,
        encode=num.encode_tf32,
        largest=0x7F7FE000,
        accumulators=("f32",),
    ),
    Scalar(
        name="e4m3",
        size=1,
        kind="f",
        dtype=U8,
        decode=num.decode_e4m3,
        encode=num.encode_e4m3,
        largest=0x7E,
        accumulators=("f16", "f32"),
    ),
    Scalar(
        name="e5m2",
        size=1,
        kind="f",
        dtype=U8,
        decode=num.decode_e5m2,
        encode=num.encode_e5m2,
        largest=0x7B,
        accumulators=("f16", "f32"),
    ),
    Scalar("f32", 4, "f", F32, encode=num.encode_f32),
    Scalar("f64", 8, "f", F64, encode=num.encode_f64),
)


def _table() -> dict[str, Scalar]:
    rows = [Scalar("pred", 1, "pred", BOOL), Scalar("b128", 16, "b", MOVED_AS[16])]
    rows += [*_integers(), *_FLOATS]
    rows += [_packed(r, "f") for r in _FLOATS if r.size <= 2]
    rows += [_packed(r, "b") for r in rows if r.name in ("u16", "s16")]
    return {row.name: row for row in rows}


SCALARS = _table()
PRED, B32, B64 = SCALARS["pred"], SCALARS["b32"], SCALARS["b64"]
U32T, U64T = SCALARS["u32"], SCALARS["u64"]
