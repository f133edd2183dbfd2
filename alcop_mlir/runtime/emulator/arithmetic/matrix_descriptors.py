"""Matrix descriptors of wgmma: where an operand lies in shared memory.

PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions", "Matrix Descriptor Format",
"Strides", "Swizzling Modes". A descriptor holds, in units of 16 bytes where it says so:
  bits 0-13   the start address / 16
  bits 16-29  the leading dimension byte offset / 16 (L below)
  bits 32-45  the stride dimension byte offset / 16 (S below)
  bits 49-51  the base offset: which 128 bytes of a pattern of the swizzle come first
  bits 62-63  the swizzle: 0 none, 1 of 128 bytes, 2 of 64, 3 of 32

An operand consists of chunks of 16 bytes, T elements each; w is 1, 2, 4 or 8 chunks for
no swizzle, 32, 64 and 128 bytes. The chunks lie, from the start on,
  K-major:   row r, chunk c (of two) at (r % 8) 16 w + (r / 8) S + c 16, where without a
             swizzle c counts L instead of 16
  MN-major:  chunk j along M or N, row k at (j % w) 16 + (j / w) L + (k % 8) 16 w +
             (k / 8) S; without a swizzle S and L change places
Of these addresses bits 4 to 6 are turned over where bits 7 to 9, less the base offset,
are set; of 64 and 32 bytes the lower two, and one, of these bits.
"""

from __future__ import annotations

import numpy as np

from alcop_mlir.runtime.emulator.arithmetic.storage import S64, Array

CHUNK = 16  # bytes
_WIDTHS = np.array([1, 8, 4, 2])  # chunks of a row of the pattern, by the swizzle field
_ROWS = 8  # of a core matrix


def _field(descriptor: Array, low: int, bits: int) -> Array:
    return (descriptor >> np.uint64(low)).astype(S64) & ((1 << bits) - 1)


def chunk_addresses(descriptor: Array, rows: Array, is_k_major: bool) -> Array:
    """The address of each chunk of an operand, in bytes.

    descriptor: uint64 (...)
    rows: those of M (columns of N) that are wanted, (n,) or (..., n), whole eights; of
    K-major operands each has two chunks, of MN-major ones eight have one in each of 16
    rows of K
    Returns int64 (..., n, 2), or (..., 16, n / 8) of an MN-major operand.
    """
    start = _field(descriptor, 0, 14)[..., None, None] * CHUNK
    leading = _field(descriptor, 16, 14)[..., None, None] * CHUNK
    stride = _field(descriptor, 32, 14)[..., None, None] * CHUNK
    base = _field(descriptor, 49, 3)[..., None, None]
    width = _WIDTHS[_field(descriptor, 62, 2)][..., None, None]
    pitch = CHUNK * width
    if is_k_major:
        row, chunk = rows[..., None], np.arange(2)
        step = np.where(width == 1, leading, CHUNK)
        offset = row % _ROWS * pitch + row // _ROWS * stride + chunk * step
    else:
        row, chunk = np.arange(2 * _ROWS)[:, None], rows[..., None, ::_ROWS] // _ROWS
        along = np.where(width == 1, stride, leading)
        down = np.where(width == 1, leading, stride)
        offset = chunk % width * CHUNK + chunk // width * along
        offset = offset + row % _ROWS * pitch + row // _ROWS * down
    address = start + offset
    return address ^ ((((address >> 7) - base) & (width - 1)) << 4)
