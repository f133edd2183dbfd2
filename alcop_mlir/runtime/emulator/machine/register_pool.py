"""setmaxnreg: the registers of a block, which its warps give back and ask for.

PTX ISA "setmaxnreg". A block begins with the same number for each thread, and an empty
pool: `.dec` gives registers to it, `.inc` waits until it has enough.
"""

from __future__ import annotations

import numpy as np

from alcop_mlir.runtime.emulator.arithmetic.storage import Array
from alcop_mlir.runtime.emulator.machine.warps import LANES

# CUDA C++ Programming Guide, "Technical Specifications per Compute Capability": 32-bit
# registers of a block, and the most of a thread; they are given out eight at a time.
BLOCK_REGISTERS, MOST, UNIT = 2**16, 255, 8


class RegisterPool:
    """Those of all blocks of a batch.

    of_thread: int64 (blocks, warps); free: those of the pool, int64 (blocks,)
    moved: whether some were given back since it was last reset
    """

    def __init__(self, blocks: int, warps: int, at_entry: int | None):
        """`at_entry`: what `.maxnreg` says; without it as many as fit are assumed."""
        fit = BLOCK_REGISTERS // (warps * LANES) // UNIT * UNIT
        count = at_entry or min(fit, MOST // UNIT * UNIT)
        self.of_thread = np.full((blocks, warps), count, np.int64)
        self.free = np.zeros(blocks, np.int64)
        self.moved = False

    def give_back(self, warps: Array, count: int) -> Array:
        """.dec by warps, bool (blocks, warps); those that have fewer than that."""
        self.free += (np.where(warps, self.of_thread - count, 0) * LANES).sum(axis=1)
        wrong = warps & (self.of_thread < count)
        self.of_thread = np.where(warps, count, self.of_thread)
        self.moved = True
        return wrong

    def ask(self, warps: Array, count: int) -> Array:
        """.inc by warps: which of them have got what they ask for."""
        missing = np.where(warps, np.maximum(count - self.of_thread, 0) * LANES, 0)
        got = warps & (np.cumsum(missing, axis=1) <= self.free[:, None])
        self.free -= np.where(got, missing, 0).sum(axis=1)
        self.of_thread = np.where(got, count, self.of_thread)
        return got
