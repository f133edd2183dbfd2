"""setmaxnreg: who gives registers back and who waits for them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from alcop_mlir.runtime.emulator.arithmetic.storage import Array
from alcop_mlir.runtime.emulator.machine.cohort import Cohort
from alcop_mlir.runtime.emulator.machine.faults import (
    fault,
    location_of_mask,
    warp_name,
)
from alcop_mlir.runtime.emulator.machine.waiting import Waited
from alcop_mlir.runtime.emulator.machine.warps import LANES, Mask
from alcop_mlir.runtime.emulator.ptx.syntax import Instruction


@dataclass(frozen=True)
class RegisterCall(Waited):
    """A decoded setmaxnreg: `count` registers for each thread from here on.

    slot: -1, as it writes no predicate; may_fail: no lane goes on without them
    """

    ins: Instruction
    increases: bool
    count: int
    slot: int = -1
    may_fail: bool = False

    def test(self, cohort: Cohort, mask: Mask) -> Array:
        """The lanes of whole warps that have their registers."""
        pool = cohort.batch.registers
        shape = (cohort.blocks, cohort.warps, LANES)
        on = np.broadcast_to(np.ones((1, 1, 1), bool) if mask is None else mask, shape)
        alive = np.ones((1, 1, 1), bool) if cohort.alive is None else cohort.alive
        whole = _are_whole(on, alive)
        self._require_all_lanes(cohort, whole[:, :, None] & ~on)
        warps = np.zeros(pool.of_thread.shape, bool)
        warps[:, cohort.span] = whole
        is_watched = cohort.batch.shadow is not None
        if self.increases:
            got = pool.ask(warps, self.count)
            pool.note(cohort, got, self.ins, is_watched)
            return on & got[:, cohort.span][:, :, None]
        pool.note(cohort, warps, self.ins, is_watched)
        wrong = pool.give_back(warps, self.count)
        if wrong.any():
            block, warp = (int(i) for i in np.argwhere(wrong)[0])
            raise fault(
                self.ins,
                f"setmaxnreg.dec to {self.count} registers of threads that have fewer",
                warp_name(cohort, block, warp),
            )
        return on & whole[:, :, None]

    def _require_all_lanes(self, cohort: Cohort, missing: Array) -> None:
        """PTX ISA: all lanes execute an .aligned instruction; some have ended."""
        if missing.any():
            raise fault(
                self.ins,
                "setmaxnreg is executed by only a part of a warp; missing is",
                location_of_mask(cohort, missing),
            )

    def cells(self, cohort: Cohort, mask: Array) -> set[int]:
        """The mbarriers that it waits for: none."""
        return set()

    def describe(self, cohort: Cohort, mask: Array) -> str:
        """Who waits for what, for the message of a deadlock."""
        pool = cohort.batch.registers
        alive = np.ones((1, 1, 1), bool) if cohort.alive is None else cohort.alive
        split = mask.any(axis=2) & ~_are_whole(mask, alive)
        if split.any():
            block, warp = (int(i) for i in np.argwhere(split)[0])
            return (
                f"a part of {warp_name(cohort, block, cohort.first_warp + warp)} waits "
                f"for the rest of the warp, PTX line {self.ins.line}: {self.ins.text}"
            )
        block = int(np.argwhere(mask)[0][0])
        warps = np.flatnonzero(mask[block].any(axis=1)) + cohort.first_warp
        rank = warps[0] // cohort.block_set.block_warps
        warps = warps[warps // cohort.block_set.block_warps == rank]
        have, free = int(pool.of_thread[block, warps[0]]), int(pool.free[block, rank])
        return (
            f"{cohort.block_set.names.listed(block, warps.tolist())} have {have} "
            f"registers a thread and wait for {self.count}, {free} are in the "
            f"pool of the block, PTX line {self.ins.line}: {self.ins.text}"
        )


def _are_whole(on: Array, alive: Array) -> Array:
    """Which warps have all lanes there that have not ended, and some."""
    whole: Array = np.any(on, axis=2) & np.all(on | ~alive, axis=2)
    return whole
