"""setmaxnreg: the registers of a block, which its warps give back and ask for.

PTX ISA "setmaxnreg". A block begins with the same number for each thread, and an empty
pool: `.dec` gives registers to it, `.inc` waits until it has enough.
"""

from __future__ import annotations

import numpy as np

from alcop_mlir.runtime.emulator.arithmetic.storage import Array
from alcop_mlir.runtime.emulator.machine.faults import fault
from alcop_mlir.runtime.emulator.machine.warps import (
    LANES,
    WARPGROUP,
    BlockSet,
    WarpRange,
)
from alcop_mlir.runtime.emulator.ptx.syntax import Instruction

# CUDA C++ Programming Guide, "Technical Specifications per Compute Capability": 32-bit
# registers of a block, and the most of a thread; they are given out eight at a time.
BLOCK_REGISTERS, MOST, UNIT = 2**16, 255, 8


class RegisterPool:
    """Those of all blocks of a batch.

    of_thread: int64 (blocks, warps); free: those of the pools, int64 (blocks, ranks)
    moved: whether some were given back since it was last reset
    done: how often each warp has executed a setmaxnreg, int64 (blocks, warps)
    """

    def __init__(self, block_set: BlockSet, at_entry: int | None):
        """`at_entry`: what `.maxnreg` says; without it as many as fit are assumed."""
        block_warps = -(-block_set.launch.threads // LANES)
        fit = BLOCK_REGISTERS // (block_warps * LANES) // UNIT * UNIT
        count = at_entry or min(fit, MOST // UNIT * UNIT)
        self.of_thread = np.full((block_set.blocks, block_set.warps), count, np.int64)
        self.free = np.zeros((block_set.blocks, block_set.ranks), np.int64)
        self._shape = (block_set.blocks, block_set.ranks, block_set.block_warps)
        self.moved = False
        self.done = np.zeros_like(self.of_thread)
        self._last: Instruction | None = None

    def note(self, warps: Array, ins: Instruction) -> None:
        """These warps, bool (blocks, warps), have executed `ins`."""
        if warps.any():
            self.done += warps
            self._last = ins

    def check_end(self, owner: WarpRange) -> None:
        """Raises `EmulationError` where warps of a warpgroup differ in setmaxnreg.

        PTX ISA "setmaxnreg": all threads of a warpgroup execute the same one.
        """
        if self._last is None:
            return
        real = -(-owner.block_set.launch.threads // LANES)
        for first in range(0, self.done.shape[1], WARPGROUP):
            inside = first % self._shape[2]
            group = slice(first, first + min(WARPGROUP, real - inside))
            for what in (self.done[:, group], self.of_thread[:, group]):
                differ = (what != what[:, :1]).any(axis=1)
                if differ.any():
                    self._differ(owner, int(np.argmax(differ)), group)

    def _differ(self, owner: WarpRange, block: int, group: slice) -> None:
        names, last = owner.block_set.names, self._last
        assert last is not None
        counts = [
            f"{int(count)} by warp {names.warp(group.start + i)}"
            for i, count in enumerate(self.done[block, group])
        ]
        raise fault(
            last,
            "the warps of a warpgroup have to execute the same setmaxnreg; executed: "
            + ", ".join(counts),
            f"block {names.block(block, group.start)}",
        )

    def give_back(self, warps: Array, count: int) -> Array:
        """.dec by warps, bool (blocks, warps); those that have fewer than that."""
        given = np.where(warps, self.of_thread - count, 0) * LANES
        self.free += given.reshape(self._shape).sum(axis=2)
        wrong = warps & (self.of_thread < count)
        self.of_thread = np.where(warps, count, self.of_thread)
        self.moved = True
        return wrong

    def ask(self, warps: Array, count: int) -> Array:
        """.inc by warps: which of them have got what they ask for."""
        missing = np.where(warps, np.maximum(count - self.of_thread, 0) * LANES, 0)
        missing = missing.reshape(self._shape)
        fits = np.cumsum(missing, axis=2) <= self.free[:, :, None]
        self.free -= np.where(fits, missing, 0).sum(axis=2)
        got = warps & fits.reshape(warps.shape)
        self.of_thread = np.where(got, count, self.of_thread)
        return got
