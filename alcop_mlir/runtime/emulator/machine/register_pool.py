"""setmaxnreg: the registers of a block, which its warps give back and ask for.

PTX ISA "setmaxnreg". A block begins with the same number for each thread, and an empty
pool: `.dec` gives registers to it, `.inc` waits until it has enough.
"""

from __future__ import annotations

import numpy as np

from alcop_mlir.runtime.emulator.arithmetic.storage import Array
from alcop_mlir.runtime.emulator.machine.clocks import EPOCH, Clocks
from alcop_mlir.runtime.emulator.machine.faults import fault, warp_name
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

    def __init__(self, block_set: BlockSet, clocks: Clocks, at_entry: int | None):
        """`at_entry`: what `.maxnreg` says; without it as many as fit are assumed."""
        block_warps = -(-block_set.launch.threads // LANES)
        fit = BLOCK_REGISTERS // (block_warps * LANES) // UNIT * UNIT
        count = at_entry or min(fit, MOST // UNIT * UNIT)
        self.of_thread = np.full((block_set.blocks, block_set.warps), count, np.int64)
        self.free = np.zeros((block_set.blocks, block_set.ranks), np.int64)
        self._shape = (block_set.blocks, block_set.ranks, block_set.block_warps)
        self.moved = False
        self.done = np.zeros_like(self.of_thread)
        self._clocks = clocks
        # The epochs in which each warp executed its last one, and the one before.
        self._at = np.zeros((2, *self.done.shape), np.int64)
        self._last: Instruction | None = None

    def note(
        self, owner: WarpRange, warps: Array, ins: Instruction, is_watched: bool
    ) -> None:
        """These warps, bool (blocks, warps), have executed `ins`.

        is_watched: whether races are looked for, without which nobody keeps the clocks
        """
        if not warps.any():
            return
        if is_watched and (warps & (self.done > 0)).any():
            self._check_order(owner, warps, ins)
        epochs = self._clocks.start // EPOCH
        self._at[1] = np.where(warps, self._at[0], self._at[1])
        self._at[0] = np.where(warps, epochs, self._at[0])
        self.done += warps
        self._last = ins

    def _check_order(self, owner: WarpRange, warps: Array, ins: Instruction) -> None:
        """Raises `EmulationError` where warps have not met since the one before.

        PTX ISA "setmaxnreg": after one all warps of the warpgroup synchronise before
        they execute the next. What a warp executes as its nth comes after the one
        before of each other warp, which may have executed its nth already.
        """
        count = self._clocks.warps
        seen = self._clocks.seen()[:, :, :count]
        own, real = np.arange(count), -(-owner.block_set.launch.threads // LANES)
        inside = own % self._shape[2]
        group = own // self._shape[2] * self._shape[2] + inside // WARPGROUP * WARPGROUP
        peers = (group[:, None] == group) & (own[:, None] != own) & (inside < real)
        ahead = self.done[:, None, :] - self.done[:, :, None]
        before = np.where(ahead > 0, self._at[1][:, None, :], self._at[0][:, None, :])
        unknown = (ahead < 0) | (seen < before)
        wrong = unknown & peers & (warps & (self.done > 0))[:, :, None]
        if wrong.any():
            block, warp, other = (int(i) for i in np.argwhere(wrong)[0])
            names = owner.block_set.names
            why = (
                f"nothing orders it behind the setmaxnreg of warp {names.warp(other)}: "
                "the warps of a warpgroup have to synchronise between two of them"
            )
            raise fault(ins, why, warp_name(owner, block, warp))

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
        self.moved |= bool(warps.any())
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
