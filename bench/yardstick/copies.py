"""Instructions, cache lines and sectors of the copies of a tile.

A thread copies as many bytes at once as the beginnings of rows allow. Lanes that copy
neighbours share a cache line; each line is one look-up of L1. What is not aligned to
sectors of L2 moves one more of them in each row.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from yardstick.kernel import LANES, Kernel

_LINE = 128  # bytes of a line of L1; arXiv 1804.06826, table 3.1
_SECTOR = 32  # bytes that L2 moves at least; the same
_LEAST = 4  # bytes of the least cp.async; PTX ISA


@dataclass(frozen=True)
class Copies:
    """Of one K step of a block, A and B together.

    instructions: of all warps; those by elements are a load and a store each
    lines: look-ups of L1
    moved: bytes between L2 and the SM
    stored: bytes written to shared memory, with conflicts of banks
    """

    instructions: float
    lines: float
    moved: float
    stored: float


def of_step(kernel: Kernel) -> Copies:
    """The copies of a K step."""
    m, n, k = kernel.block
    used = (
        kernel.m / (kernel.rows * m),  # rows beyond the edge are not read
        kernel.n / (kernel.columns * n),
    )
    total = Copies(0.0, 0.0, 0.0, 0.0)
    sides = zip((m, n), kernel.along_k, kernel.aligned, used, strict=True)
    for side, along_k, aligned, part in sides:
        rows, length = (side, k) if along_k else (k, side)
        one = _tile(rows, length * kernel.size, max(aligned, kernel.size), part)
        total = Copies(
            total.instructions + one.instructions,
            total.lines + one.lines,
            total.moved + one.moved,
            total.stored + one.stored,
        )
    return total


def _tile(rows: int, length: int, aligned: int, used: float) -> Copies:
    """Of `rows` rows of `length` bytes.

    used: the part that is not beyond an edge
    """
    width = min(16, aligned)
    by_elements = width < _LEAST
    lanes = rows * length / width
    instructions = lanes / LANES * (2 if by_elements else 1)
    # A row that begins anywhere crosses into one more line now and then.
    crossed = 0.0 if aligned >= 16 else min(1.0, length / _LINE)
    lines = rows * (max(1.0, length / _LINE) + crossed) * used
    # Lanes of one instruction that copy from one line look it up once.
    lines = max(lines, instructions * min(1.0, used))
    sectors = ceil(length / _SECTOR) + (0 if aligned >= 16 else 1)
    stored = rows * length * (1.0 if width == 16 else 2.0 if by_elements else 1.25)
    return Copies(instructions, lines, rows * sectors * _SECTOR * used, stored)
