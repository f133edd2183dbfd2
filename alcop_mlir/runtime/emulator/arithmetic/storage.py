"""The NumPy types that carry the bits of registers and memory, split and joined."""

from __future__ import annotations

from collections.abc import Callable, Sequence

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

Array = np.ndarray


def parts(x: Array, dtype: np.dtype) -> Array:
    """The elements of a narrower `dtype` in each of x, lowest first, as a last axis."""
    return np.ascontiguousarray(x)[..., None].view(dtype)


def same_bits(x: Array, y: Array) -> Array:
    """Where elements are equal as bits, those of sixteen bytes too, and no floats."""
    if x.dtype.itemsize != 16:
        return x == y
    return (parts(x, U64) == parts(y, U64)).all(axis=-1)


def joined(x: Array, dtype: np.dtype) -> Array:
    """The opposite of `parts`: elements of a wider `dtype` from the last axis."""
    return np.ascontiguousarray(x).view(dtype)[..., 0]


def pack(values: Sequence[Array], dtype: np.dtype) -> Array:
    """Several values side by side in one wider register, the first one lowest."""
    return joined(np.stack(np.broadcast_arrays(*values), axis=-1), dtype)


def on_halves(fn: Callable[..., Array], dtype: np.dtype = U16) -> Callable[..., Array]:
    """`fn` of 16-bit arrays, applied to both halves of 32-bit ones."""
    return lambda *values: joined(fn(*(parts(v, dtype) for v in values)), U32)
