"""barrier.cluster: who has arrived at the barrier of each cluster, and who has waited.

PTX ISA "barrier.cluster". Each thread arrives, and waits for the end of the phase in
which it did; a phase ends when all threads of the cluster have arrived that have not
ended. With `.relaxed` an arrival orders nothing, but for objects whose `mbarrier.init`
a `fence.mbarrier_init` has followed.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from alcop_mlir.runtime.emulator.arithmetic.storage import Array
from alcop_mlir.runtime.emulator.machine.clocks import Clocks
from alcop_mlir.runtime.emulator.machine.faults import fault, location_of_mask
from alcop_mlir.runtime.emulator.machine.releases import CLUSTER, Releases
from alcop_mlir.runtime.emulator.machine.warps import (
    LANES,
    BlockSet,
    Mask,
    WarpRange,
)
from alcop_mlir.runtime.emulator.ptx.syntax import Instruction

Widen = Callable[[int], None]
_NEVER = -1


class ClusterBarrier:
    """Those of all clusters of a batch; lanes are bool (blocks, warps, 32).

    alive: who has not ended; moved: whether a phase has ended since it was last reset
    """

    def __init__(self, block_set: BlockSet, clocks: Clocks):
        self.block_set, self.clocks = block_set, clocks
        shape = (block_set.blocks, block_set.warps, LANES)
        lanes = WarpRange(block_set, 0, block_set.warps).lanes_in_block()
        self.alive = (
            np.ones(shape, bool) if lanes is None else lanes & np.ones(shape, bool)
        )
        self.arrived = np.zeros(shape, bool)
        self.phase = np.zeros(block_set.blocks, np.int64)
        # The phase whose end each lane has to wait for, after its arrival.
        self.due = np.full(shape, _NEVER, np.int64)
        # What arrivals of this phase have released, and those of the last one had, as
        # epochs (copies, columns); whether all of them released.
        self.released = np.zeros((1, clocks.columns), np.int64)
        self.known = self.released
        # Whether no arrival of this phase, of the last one, was .relaxed.
        self.orders = np.ones(block_set.blocks, bool)
        self.ordered = self.orders
        self.moved = False
        self._widen: Widen | None = None

    def arrive(
        self,
        owner: WarpRange,
        mask: Mask,
        ins: Instruction,
        releases: bool,
        widen: Widen | None,
        fences: Releases | None = None,
    ) -> None:
        """barrier.cluster.arrive by the lanes `mask`; `widen`: see `mbarriers`.

        fences: of these an arrival with .relaxed releases what was before
        """
        on = self._lanes(owner, mask)
        again = on & (self.due[:, owner.span] != _NEVER)
        if again.any():
            raise fault(
                ins,
                "a second arrival at barrier.cluster, with no wait between,",
                location_of_mask(owner, again),
            )
        phase = np.broadcast_to(self.phase[:, None, None], on.shape)
        self.due[:, owner.span][on] = phase[on]
        self.arrived[:, owner.span] |= on
        self._widen = widen
        if widen is not None:
            self._release(owner, on, releases, widen, fences)
        self.settle()

    def _release(
        self,
        owner: WarpRange,
        on: Array,
        releases: bool,
        widen: Widen,
        fences: Releases | None,
    ) -> None:
        active = self._warps(owner, on, widen)
        fresh = np.where(active[:, :, None], self.clocks.seen(), 0).max(axis=1)
        if not releases:
            fresh = self.clocks.inits_of(fresh)
            if fences is not None:
                known = np.where(active[:, :, None], fences.fenced(CLUSTER), 0)
                fresh = np.maximum(fresh, known.max(axis=1))
            self.orders = self.orders & ~on.any(axis=(1, 2))
        self.released = np.maximum(self._fit(self.released), fresh)
        self.clocks.step(active)

    def _warps(self, owner: WarpRange, on: Array, widen: Widen) -> Array:
        """The warps of these lanes, bool (copies, warps)."""
        active = np.zeros(self.alive.shape[:2], bool)
        active[:, owner.span] = on.any(axis=2)
        if (active != active[:1]).any():
            widen(self.block_set.blocks)
        return active[: self.clocks.copies]

    def _lanes(self, owner: WarpRange, mask: Mask) -> Array:
        shape = (self.block_set.blocks, owner.warps, LANES)
        on = np.broadcast_to(np.ones((1, 1, 1), bool) if mask is None else mask, shape)
        return on & self.alive[:, owner.span]

    def _fit(self, epochs: Array) -> Array:
        epochs = self.clocks.padded(epochs)
        return np.broadcast_to(epochs, (self.clocks.copies, self.clocks.columns))

    def leave(self, owner: WarpRange, mask: Mask) -> None:
        """The lanes `mask` have ended."""
        self.alive[:, owner.span] &= ~self._lanes(owner, mask)
        if self.arrived.any():
            self.settle()

    def settle(self) -> None:
        """Ends the phase of each cluster of which all threads have arrived."""
        done: Array = np.all(self.arrived | ~self.alive, axis=(1, 2))
        done &= self.arrived.any(axis=(1, 2))
        if not done.any():
            return
        self.phase[done] += 1
        self.arrived[done] = False
        self.moved = True
        self.ordered = np.where(done, self.orders, self.ordered)
        self.orders = self.orders | done
        if self._widen is not None and not done.all():
            self._widen(self.block_set.blocks)
        rows = done[: self.clocks.copies, None]
        released = self._fit(self.released)
        self.known = np.where(rows, released, self._fit(self.known))
        self.released = np.where(rows, 0, released)

    def wait(
        self, owner: WarpRange, mask: Mask, ins: Instruction, widen: Widen | None
    ) -> Array:
        """barrier.cluster.wait: whose phase has ended, bool (blocks, warps, 32)."""
        on = self._lanes(owner, mask)
        due = self.due[:, owner.span]
        lost = on & (due == _NEVER)
        if lost.any():
            raise fault(
                ins,
                "a wait at barrier.cluster with no arrival before it,",
                location_of_mask(owner, lost),
            )
        ready = on & (self.phase[:, None, None] > due)
        due[ready] = _NEVER
        if widen is not None and ready.any():
            active = self._warps(owner, ready, widen)
            self.clocks.acquire(active, self._fit(self.known))
            # What its lanes did before they arrived is known to all of them.
            whole = (ready | ~self.alive[:, owner.span]).all(axis=2)
            whole &= self.ordered[:, None]
            met = self._warps(owner, ready & whole[:, :, None], widen)
            self.clocks.advance(0, self.clocks.warps, met)
        return ready

    def ended(self) -> Array:
        """Which blocks of each cluster have ended, bool (blocks, ranks)."""
        block_set = self.block_set
        lanes = self.alive.reshape(block_set.blocks, block_set.ranks, -1)
        return ~np.any(lanes, axis=2, keepdims=True)[:, :, 0]

    def describe(self, block: int) -> str:
        """`barrier.cluster, at which 3 of 64 threads of the cluster have arrived`."""
        there, all_of = int(self.arrived[block].sum()), int(self.alive[block].sum())
        return (
            f"barrier.cluster, at which {there} of {all_of} threads of the cluster "
            f"have arrived"
        )
