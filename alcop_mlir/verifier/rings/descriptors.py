"""Which bytes wgmma reads, by its descriptors.

PTX ISA, "Asynchronous warpgroup-level matrix shared memory layout" and "Matrix
descriptor format". This file does not depend on MLIR.
"""

from __future__ import annotations

from dataclasses import dataclass

# Bytes after which the pattern of a swizzle repeats, by bits 62 and 63.
_WIDTHS = {1: 128, 2: 64, 3: 32}
_FIELD, _UNIT_BITS = 0x3FFF, 4  # of an address or a distance, in units of 16 bytes
_LEADING, _STRIDE, _MODE = 16, 32, 62  # first bits of the other fields
_WORD = (1 << 64) - 1
_ROWS = 8  # of a pattern
_K_BYTES = 32  # of one wgmma along K, of any type


@dataclass(frozen=True)
class Matrix:
    """An operand in memory.

    length:  rows of A, or columns of B
    size:    bytes of an element
    along_k: whether neighbours along K are neighbours in memory
    """

    length: int
    size: int
    along_k: bool


def extent(descriptor: int, matrix: Matrix) -> tuple[int, int] | None:
    """The first byte that is read, and one behind the last; None without a swizzle."""
    word = descriptor & _WORD
    start, leading, stride = (
        (word >> bits & _FIELD) << _UNIT_BITS for bits in (0, _LEADING, _STRIDE)
    )
    width = _WIDTHS.get(word >> _MODE)
    if width is None:
        return None
    if matrix.along_k:
        groups = matrix.length // _ROWS
        last = (groups - 1) * stride + (_ROWS - 1) * width + _K_BYTES
        return start, start + last
    row = matrix.length * matrix.size
    beside, groups = -(-row // width), _K_BYTES // matrix.size // _ROWS
    last = (beside - 1) * leading + (groups - 1) * stride + (_ROWS - 1) * width
    return start, start + last + min(row, width)
