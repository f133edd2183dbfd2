"""A cohort: warps that share program counters and registers, and who follows them.

A cohort is a set of warps, the same in every block of a batch: all warps of a block in
the lockstep schedule, one warp in the others. Warps with roles of their own are lanes
that diverge. Counters and traces follow a run as an `Observer`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from alcop_mlir import limits
from alcop_mlir.errors import EmulationError
from alcop_mlir.runtime.emulator.arithmetic.storage import Array
from alcop_mlir.runtime.emulator.machine.batch import Batch
from alcop_mlir.runtime.emulator.machine.lanes import Lanes
from alcop_mlir.runtime.emulator.machine.loaded_kernel import Registers, merge
from alcop_mlir.runtime.emulator.machine.memory import POISON, BlockMemory
from alcop_mlir.runtime.emulator.machine.pending_copy import (
    Flight,
    OpenGroup,
    PendingCopy,
    PendingStore,
)
from alcop_mlir.runtime.emulator.machine.special_registers import special_register
from alcop_mlir.runtime.emulator.machine.warpgroups import WarpgroupState
from alcop_mlir.runtime.emulator.machine.warps import LANE_BIT, LANES, Mask, WarpRange
from alcop_mlir.runtime.emulator.ptx.syntax import Instruction

# Of what a load reads: first byte, size, the origins of its lanes (see `unwritten`).
Unwritten = tuple[int, int, Array]


class Observer:
    """Follows what the cohorts of a launch do; here, without doing anything."""

    def on_span(
        self, cohort: Cohort, start: int, count: int, mask: Mask, warps: int
    ) -> None:
        """`warps` warps are about to issue instructions [start, start + count)."""

    def on_shared(self, lanes: Lanes) -> None:
        """An access to shared memory."""

    def on_global(self, lanes: Lanes) -> None:
        """An access to global memory."""

    def on_copy(self, cohort: Cohort, copy: PendingCopy) -> None:
        """A copy is issued."""

    def on_landing(self, cohort: Cohort, copy: PendingCopy, wait: Instruction) -> None:
        """The wait completes the copy."""

    def on_commit(self, cohort: Cohort, mask: Mask, ins: Instruction) -> None:
        """Before the commit of a group of copies."""

    def on_wait(
        self, cohort: Cohort, limit: Array, mask: Mask, ins: Instruction
    ) -> None:
        """A wait for all groups before `limit`, a register."""

    def on_load(self, cohort: Cohort, objects: Lanes, count: int) -> None:
        """Bulk copies of `count` bytes each begin, which end at these mbarriers."""

    def on_load_end(self, cohort: Cohort, objects: Lanes, count: int) -> None:
        """They are over."""

    def on_store(self, cohort: Cohort, issuers: Lanes, count: int) -> None:
        """Bulk copies of `count` bytes each to global memory are issued."""

    def on_arrive(self, cohort: Cohort, objects: Lanes) -> None:
        """Before arrivals at these mbarriers."""

    def on_phase(self, cohort: Cohort, objects: Lanes, ready: Array) -> None:
        """Before a wait for mbarriers ends, of the entries that are `ready`."""

    def on_multiply_commit(
        self, cohort: Cohort, active: Array, ins: Instruction
    ) -> None:
        """Before warps `active`, bool (1|blocks, warps), commit a wgmma-group."""

    def on_multiply_wait(
        self, cohort: Cohort, limit: Array, active: Array, ins: Instruction
    ) -> None:
        """A wait of these warps for all wgmma-groups before `limit`."""

    def on_barrier(
        self, cohorts: Sequence[Cohort], waiting: Array, ins: Instruction
    ) -> None:
        """The warps `waiting`, bool (1|blocks, warps), leave a barrier together."""

    def on_end(self, cohort: Cohort) -> None:
        """All lanes of the cohort have ended."""


class Cohort(WarpRange):
    """Warps [first_warp, first_warp + warps) of every block of a batch."""

    def __init__(
        self,
        batch: Batch,
        first_warp: int,
        warps: int,
        observers: Sequence[Observer],
    ):
        super().__init__(batch, first_warp, warps)
        self.batch = batch
        self.observers = observers
        self.R: Registers = []
        self.accumulators: dict[int, tuple[Array, list[Array]]] = {}
        self.copies: list[PendingCopy] = []
        # Bulk copies that no wait covers, those of which the reads are waited for, and
        # how many of their groups there were.
        self.stores: list[PendingStore] = []
        self.stores_read: list[PendingStore] = []
        self.bulk_committed = np.zeros((1, 1, 1), np.int64)
        # The last arrival of copies that have landed, by the mbarriers it arrived at.
        self.arrived: dict[frozenset[int], Flight] = {}
        self.wgmma = WarpgroupState()
        self.peers: list[Cohort] = []  # all of the batch
        self.committed = np.zeros((1, 1, 1), np.int64)
        self.fronts: dict[int, Mask] = {}
        self.parked: dict[int, Array] = {}
        self.alive: Mask = self.lanes_in_block()
        self.done = self.alive is not None and not self.alive.any()
        self.issued = 0
        # Instructions (mma) that each warp has issued before the running span; only
        # kept for counters and traces. `pending` is the running span itself.
        self.clock = np.zeros((1, 1), np.int64)
        self.multiplies = np.zeros((1, 1), np.int64)
        self.open_groups: list[OpenGroup] = []
        self.open_multiplies: list[OpenGroup] = []  # of wgmma
        self.span_start = 0
        self.pending: tuple[Mask, int, int] | None = None
        self._local: BlockMemory | None = None
        # Values of bytes that nothing has written, see `unwritten`: by slot, the origin
        # of each lane; of the load that runs, (byte, size, origins) of each part; of
        # the value that a store writes.
        self.origins: dict[int, Array] = {}
        self.unwritten: list[Unwritten] = []
        self.storing: Array | None = None
        # What functions that call themselves have set aside, by the depth of calls.
        self.saved: list[dict[int, Array]] = []

    def start(self, pc: int) -> None:
        """Begins at instruction `pc`."""
        self.fronts = {pc: self.alive}

    def grow(self) -> None:
        """Adds the registers that translation, which is lazy, has met since."""
        table = self.batch.kernel.registers
        known = len(self.R)
        if len(table.initial) == known:
            return
        self.R.extend(table.initial[known:])
        for name, slot in table.specials.items():
            if slot >= known:
                self.R[slot] = special_register(self, self.batch.kernel, name)

    def local_memory(self) -> BlockMemory:
        """`.local` memory, one copy per thread, made when first used."""
        if self._local is None:
            size = self.batch.kernel.memory_map.local_size
            copies = self.blocks * self.warps * LANES
            self._local = BlockMemory(copies, size, POISON)
        return self._local

    def report_used(
        self, origin: Array, mask: Mask, ins: Instruction, how: str
    ) -> None:
        """Reports the loads of unwritten bytes whose values `ins` uses."""
        shadow = self.batch.shadow
        if shadow is None:
            return
        on = origin if mask is None else np.where(mask, origin, 0)
        for number in np.unique(on).tolist():
            if number:
                shadow.report_unwritten(number, how, ins)

    def grow_local(self, size: int) -> None:
        """Makes `.local` memory of at least so many bytes for each thread."""
        old = self.local_memory()
        if size <= old.size:
            return
        size = max(size, 2 * old.size)
        limits.MEMORY.check(
            size * old.copies, "local memory of all threads", EmulationError
        )
        self._local = BlockMemory(old.copies, size, POISON)
        self._local.data[:, : old.data.shape[1]] = old.data

    def warp_sync(self, mask: Mask) -> None:
        """The lanes of each active warp have met: a new epoch for it."""
        batch = self.batch
        if batch.shadow is None:
            return
        active = None
        if mask is not None:
            active = np.asarray(mask.any(axis=2))
            if active.shape[0] > 1:
                batch.shadow.widen(self.blocks)
            active = np.broadcast_to(active, (active.shape[0], self.warps))
        batch.clocks.advance(self.first_warp, self.warps, active)

    def warp_barrier(self, mask: Mask, member_mask: Array) -> None:
        """bar.warp.sync: orders the lanes that name each other in their masks."""
        batch = self.batch
        if batch.shadow is None:
            return
        every = np.ones((1, 1, LANES), bool)
        alive = every if self.alive is None else self.alive & every
        on = every if mask is None else mask & every
        named = (member_mask[..., None] & LANE_BIT) != 0  # [l, m]: m in the mask of l
        met = on[..., :, None] & on[..., None, :] & named
        wanted = alive & on.any(axis=2, keepdims=True)
        if (met | ~(wanted[..., :, None] & wanted[..., None, :])).all():
            self.warp_sync(mask)
            return
        if met.shape[0] > 1:
            batch.shadow.widen(self.blocks)
        met = np.broadcast_to(met, (met.shape[0], self.warps, LANES, LANES))
        batch.clocks.advance_pairs(self.first_warp, self.warps, met)

    def fence(self, mask: Mask) -> None:
        """A fence of gpu or sys scope by the active lanes."""
        shadow = self.batch.global_shadow
        if shadow is not None:
            shadow.on_fence(self._active_blocks(mask))

    def fence_proxy(self, mask: Mask) -> None:
        """A fence.proxy.async of global memory by the active lanes."""
        shadow = self.batch.global_shadow
        if shadow is not None:
            shadow.on_proxy_fence(self._active_blocks(mask))

    def _active_blocks(self, mask: Mask) -> Array:
        """The blocks in the grid that have active lanes."""
        numbers = self.batch.numbers
        if mask is None:
            return numbers
        on = mask.any(axis=(1, 2))
        return numbers[np.broadcast_to(on, numbers.shape)]

    def positions(self, ins: Instruction) -> tuple[Array, Array]:
        """Instructions and mma of each warp before `ins`, each (1|blocks, 1|warps)."""
        listing = self.batch.kernel.listing
        index, before = listing.index_of[ins.line], listing.multiplies_before
        multiplies = before[index] - before[self.span_start]
        return self.clock + (index - self.span_start), self.multiplies + multiplies

    def settle(self) -> None:
        """Adds the last span (mask, instructions, mma) to the clocks of its warps."""
        if self.pending is None:
            return
        mask, count, multiplies = self.pending
        self.pending = None
        active = 1 if mask is None else mask.any(axis=2).astype(np.int64)
        self.clock = self.clock + count * active
        self.multiplies = self.multiplies + multiplies * active

    def put(self, slot: int, value: Array, mask: Mask) -> None:
        """Writes one register, of a value that has its size."""
        R = self.R
        R[slot] = value if mask is None else merge(mask, value, R[slot])

    def push(self, pc: int, mask: Mask) -> None:
        """Lanes `mask` go on at instruction `pc`."""
        waiting = self.parked.pop(pc, None)
        if waiting is not None and mask is not None:
            mask = mask | waiting
        if pc in self.fronts:
            old = self.fronts[pc]
            mask = None if old is None or mask is None else old | mask
        self.fronts[pc] = mask

    def exit(self, mask: Mask) -> None:
        """Lanes `mask` have ended; those parked may have waited for them."""
        if mask is None:
            self.alive = np.zeros((1, 1, 1), bool)
            self.done = True
            return
        alive = np.ones((1, 1, 1), bool) if self.alive is None else self.alive
        self.alive = alive & ~mask
        self.done = not self.alive.any()
        for pc in list(self.parked):
            self.push(pc, self.parked.pop(pc))
