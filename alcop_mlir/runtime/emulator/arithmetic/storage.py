"""The NumPy types that carry the bits of registers and memory."""

from __future__ import annotations

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
