"""bar.sync, bar.arrive, bar.red, barrier: who waits, when a barrier completes.

PTX ISA "bar, barrier". A barrier resource (0..15) completes for a block when the
expected number of threads has arrived; threads that have ended count as arrived where
no number is given, as hardware does. Completion orders all earlier accesses of the
participants before all later ones of those that waited.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from alcop_mlir.errors import EmulationError
from alcop_mlir.runtime.emulator.arithmetic.storage import U32, Array
from alcop_mlir.runtime.emulator.machine.batch import Batch
from alcop_mlir.runtime.emulator.machine.cohort import Cohort
from alcop_mlir.runtime.emulator.machine.faults import fault, warp_name
from alcop_mlir.runtime.emulator.machine.loaded_kernel import Read
from alcop_mlir.runtime.emulator.machine.warps import LANES, Mask
from alcop_mlir.runtime.emulator.ptx.syntax import Instruction

BARRIERS = 16  # PTX ISA: barriers of a block


@dataclass(frozen=True)
class BarrierCall:
    """A decoded barrier instruction; `count` None means all threads of the block."""

    ins: Instruction
    kind: str  # sync, arrive or red
    aligned: bool
    resource: Read
    count: Read | None
    reduction: str | None = None  # popc, and, or
    predicate: Read | None = None
    result: int = -1


@dataclass
class _Waiting:
    """Lanes of a cohort that wait at one instruction; mask (blocks, warps, 32)."""

    cohort: Cohort
    pc: int
    call: BarrierCall
    mask: Array
    value: Array | None


@dataclass
class _Barrier:
    """One barrier resource of all blocks of the batch.

    Those of a cluster count for themselves: see `BlockSet.by_block`.
    """

    waiting: list[_Waiting] = field(default_factory=list)
    arrived: Array | None = None  # (blocks, warps): how often by bar.arrive
    expected: Array | None = None  # of each real block, -1 where all threads are
    released: Array | None = None  # epochs (blocks, columns) of bar.arrive
    line: int = 0


class BarrierUnit:
    """The barriers of a batch."""

    def __init__(self, batch: Batch, cohorts: list[Cohort]):
        self.batch = batch
        self.cohorts = cohorts
        self.barriers: dict[int, _Barrier] = {}

    def arrive(self, cohort: Cohort, pc: int, call: BarrierCall, mask: Mask) -> None:
        """Lanes `mask` execute the barrier instruction at `pc`."""
        resources = np.unique(self._picked(cohort, call.resource, mask))
        if int(resources[-1]) >= BARRIERS:
            raise fault(call.ins, f"barrier {int(resources[-1])} does not exist")
        if resources.size == 1:
            self._arrive_at(int(resources[0]), cohort, pc, call, mask)
            return
        for resource in resources.tolist():
            part = call.resource(cohort.R) == resource
            part = part if mask is None else part & mask
            self._arrive_at(resource, cohort, pc, call, part)

    def _picked(self, cohort: Cohort, read: Read, mask: Mask) -> Array:
        value = read(cohort.R)
        if mask is None or value.size == 1:
            return value
        value, on = np.broadcast_arrays(value, mask)
        return value[on]

    def _arrive_at(
        self, resource: int, cohort: Cohort, pc: int, call: BarrierCall, mask: Mask
    ) -> None:
        if self._passes_at_once(resource, cohort, call, mask):
            every = np.ones((1, self.batch.warps), bool)
            self._join(every, None, None)
            self._align_time(cohort, every, call.ins)
            cohort.push(pc + 1, None)
            return
        shape = (cohort.blocks, cohort.warps, LANES)
        full = np.broadcast_to(
            np.ones((1, 1, 1), bool) if mask is None else mask, shape
        )
        barrier = self.barriers.setdefault(resource, _Barrier())
        barrier.line = call.ins.line
        self._expect(barrier, cohort, call, full)
        if call.kind == "arrive":
            self._note_arrival(barrier, cohort, full)
            cohort.push(pc + 1, mask)
        else:
            self._note_waiting(barrier, cohort, pc, call, full)
        self.release_ready()

    def _passes_at_once(
        self, resource: int, cohort: Cohort, call: BarrierCall, mask: Mask
    ) -> bool:
        """Every warp of every block is here: the common case."""
        if mask is not None or len(self.cohorts) > 1 or call.kind != "sync":
            return False
        if resource in self.barriers:
            return False
        if call.count is None:
            return True
        return bool((call.count(cohort.R) == self.batch.warps * LANES).all())

    def _expect(
        self, barrier: _Barrier, cohort: Cohort, call: BarrierCall, full: Array
    ) -> None:
        blocks = self._by_block(cohort, full).any(axis=(1, 2))
        if barrier.expected is None:
            barrier.expected = np.full(blocks.size, -2, np.int64)
        count = np.full(blocks.size, -1, np.int64)
        if call.count is not None:
            value = np.broadcast_to(call.count(cohort.R), full.shape)
            value = self._by_block(cohort, np.where(full, value, 0))
            count = value.max(axis=(1, 2)).astype(np.int64)
            if (count[blocks] % LANES).any() or (count[blocks] == 0).any():
                raise fault(
                    call.ins,
                    f"barrier count {int(count[blocks][0])} is not a positive "
                    f"multiple of {LANES}",
                )
        known = barrier.expected
        if (blocks & (known != -2) & (known != count)).any():
            raise fault(call.ins, "threads give different counts for one barrier")
        barrier.expected = np.where(blocks, count, known)

    def _by_block(self, cohort: Cohort, x: Array) -> Array:
        """(blocks, warps of the cohort, 32) as an array of those of whole blocks."""
        batch = self.batch
        if batch.ranks == 1:
            return x
        whole = np.zeros((batch.blocks, batch.warps, LANES), x.dtype)
        whole[:, cohort.span] = x
        return batch.by_block(whole)

    def _note_arrival(self, barrier: _Barrier, cohort: Cohort, full: Array) -> None:
        batch = self.batch
        if barrier.arrived is None:
            barrier.arrived = np.zeros((batch.blocks, batch.warps), np.int64)
        here: Array = np.any(full, axis=2)
        barrier.arrived[:, cohort.span] += here
        if batch.shadow is None:
            return
        if not here.all(axis=0).all() or batch.clocks.copies > 1:
            batch.shadow.widen(batch.blocks)
        part = np.zeros((batch.clocks.copies, batch.warps), bool)
        part[:, cohort.span] = here[: batch.clocks.copies]
        seen = batch.by_block(np.where(part[:, :, None], batch.clocks.seen(), 0))
        fresh = seen.max(axis=1)
        old = barrier.released
        if old is not None:
            fresh = np.maximum(self._fit(old, len(fresh)), fresh)
        barrier.released = fresh
        cohort.warp_sync(full)

    def _note_waiting(
        self, barrier: _Barrier, cohort: Cohort, pc: int, call: BarrierCall, full: Array
    ) -> None:
        value = None
        if call.predicate is not None:
            value = np.broadcast_to(call.predicate(cohort.R), full.shape) & full
        for known in barrier.waiting:
            if known.cohort is cohort and known.pc == pc:
                known.mask = known.mask | full
                if value is not None and known.value is not None:
                    known.value = known.value | value
                return
        barrier.waiting.append(_Waiting(cohort, pc, call, full.copy(), value))

    def release_ready(self) -> None:
        """Lets go of every block whose barrier is complete."""
        for resource, barrier in list(self.barriers.items()):
            ready = self._complete_blocks(barrier)
            if ready.any():
                self._release(resource, barrier, ready)

    def _complete_blocks(self, barrier: _Barrier) -> Array:
        """Which real blocks have all arrivals at this barrier, bool."""
        expected = barrier.expected
        assert expected is not None
        lanes = self._there(barrier)
        count = self._count(barrier, lanes)
        if ((expected > 0) & (count > expected)).any():
            raise EmulationError(
                f"more threads arrive at a barrier than it expects (PTX line "
                f"{barrier.line})"
            )
        if barrier.arrived is not None:
            lanes = lanes | (barrier.arrived > 0)[:, :, None]
        every = self.batch.by_block(lanes | ~self._alive()).all(axis=(1, 2))
        return np.where(expected == -1, every, count == expected) & (expected != -2)

    def _there(self, barrier: _Barrier) -> Array:
        """The lanes that wait at this barrier, bool (blocks, warps, 32)."""
        lanes = np.zeros((self.batch.blocks, self.batch.warps, LANES), bool)
        for w in barrier.waiting:
            lanes[:, w.cohort.span] |= w.mask
        return lanes

    def _count(self, barrier: _Barrier, lanes: Array) -> Array:
        """The threads of each real block that arrived; those of a warp do together."""
        warps: Array = np.any(lanes, axis=2).astype(np.int64)
        if barrier.arrived is not None:
            warps += barrier.arrived
        count: Array = self.batch.by_block(warps).sum(axis=1) * LANES
        return count

    def _alive(self) -> Array:
        """The lanes that have not ended, bool (blocks, warps, 32)."""
        alive = np.ones((self.batch.blocks, self.batch.warps, LANES), bool)
        for cohort in self.cohorts:
            if cohort.alive is not None:
                alive[:, cohort.span] = cohort.alive
        return alive

    def _release(self, resource: int, barrier: _Barrier, ready: Array) -> None:
        batch = self.batch
        waiting = np.zeros((batch.blocks, batch.warps), bool)
        by_warp = batch.by_warp(ready)
        totals = self._reductions(barrier)
        released: Instruction | None = None
        for w in list(barrier.waiting):
            gate = by_warp if batch.ranks == 1 else by_warp[:, w.cohort.span]
            gate = gate[:, :, None]
            free = w.mask & gate
            if not free.any():
                continue
            self._check_whole_warps(w, free)
            released = w.call.ins
            waiting[:, w.cohort.span] |= free.any(axis=2)
            if w.call.kind == "red" and w.call.result >= 0:
                w.cohort.grow()
                total = totals[w.call.reduction or ""]
                if total.shape[1] > 1:
                    total = total[:, w.cohort.span]
                w.cohort.put(w.call.result, total, free)
            w.cohort.push(w.pc + 1, None if free.all() else free)
            w.mask = w.mask & ~gate
            if not w.mask.any():
                barrier.waiting.remove(w)
        self._join(waiting, ready, barrier)
        if released is not None:
            self._align_time(self.cohorts[0], waiting, released)
        assert barrier.expected is not None
        barrier.expected = np.where(ready, -2, barrier.expected)
        if barrier.arrived is not None:
            barrier.arrived = np.where(by_warp, 0, barrier.arrived)
        if (barrier.expected == -2).all():
            del self.barriers[resource]

    def _reductions(self, barrier: _Barrier) -> dict[str, Array]:
        """The results of bar.red for every block, (blocks, 1|warps, 1)."""
        batch = self.batch
        count = np.zeros(batch.blocks * batch.ranks, np.int64)
        lanes = np.zeros(batch.blocks * batch.ranks, np.int64)
        for w in barrier.waiting:
            if w.value is not None:
                count += self._by_block(w.cohort, w.value).sum(axis=(1, 2))
                lanes += self._by_block(w.cohort, w.mask).sum(axis=(1, 2))

        def register(x: Array) -> Array:
            return batch.by_warp(x)[:, :, None]

        return {
            "popc": register(count.astype(U32)),
            "and": register(count == lanes),
            "or": register(count > 0),
        }

    def _check_whole_warps(self, w: _Waiting, free: Array) -> None:
        """PTX ISA: all threads of a warp execute the same aligned barrier."""
        if not w.call.aligned:
            return
        alive = w.cohort.alive
        others = ~free if alive is None else alive & ~free
        split = free.any(axis=2) & others.any(axis=2)
        if split.any():
            block, warp = (int(i) for i in np.argwhere(split)[0])
            raise fault(
                w.call.ins,
                "an aligned barrier is executed by only a part of a warp",
                warp_name(w.cohort, block, w.cohort.first_warp + warp),
            )

    def _join(
        self, waiting: Array, ready: Array | None, barrier: _Barrier | None
    ) -> None:
        """Happens-before: the waiting warps learn what all participants have done."""
        batch = self.batch
        if batch.shadow is None:
            return
        if ready is not None:
            by_cluster = ready.reshape(batch.blocks, -1)
            if (by_cluster != by_cluster[:1]).any() or (waiting != waiting[:1]).any():
                batch.shadow.widen(batch.blocks)
        if batch.clocks.copies == 1:
            waiting = waiting[:1]
        seen = batch.by_block(np.where(waiting[:, :, None], batch.clocks.seen(), 0))
        learned = seen.max(axis=1)
        if barrier is not None and barrier.released is not None:
            extra = self._fit(barrier.released, len(learned))
            if ready is not None:
                extra = np.where(ready[: len(learned), None], extra, 0)
            learned = np.maximum(learned, extra)
        if batch.ranks > 1:
            learned = learned.reshape(-1, batch.ranks, learned.shape[1])
            learned = learned.repeat(batch.block_warps, axis=1)
        batch.clocks.join(waiting, learned)

    def _fit(self, released: Array, rows: int) -> Array:
        """What was released, as many blocks and columns as there are by now."""
        return np.tile(self.batch.clocks.padded(released), (rows // len(released), 1))

    def _align_time(self, cohort: Cohort, waiting: Array, ins: Instruction) -> None:
        for observer in cohort.observers:
            observer.on_barrier(self.cohorts, waiting, ins)

    def describe(self) -> list[str]:
        """What every barrier waits for, for the message of a deadlock."""
        out: list[str] = []
        for resource, barrier in self.barriers.items():
            for w in barrier.waiting:
                block, warp, _ = (int(i) for i in np.argwhere(w.mask)[0])
                warps = np.flatnonzero(w.mask[block].any(axis=1)) + w.cohort.first_warp
                who = self.batch.names.listed(block, warps.tolist())
                rank = (warp + w.cohort.first_warp) // self.batch.block_warps
                out.append(
                    f"{who} wait at barrier {resource}, at which "
                    f"{self._arrivals(barrier, block * self.batch.ranks + rank)}, PTX "
                    f"line {w.call.ins.line}: {w.call.ins.text}"
                )
        return out

    def _arrivals(self, barrier: _Barrier, block: int) -> str:
        """`32 of 128 threads have arrived`, of a real block."""
        assert barrier.expected is not None
        count = int(self._count(barrier, self._there(barrier))[block])
        expected = int(barrier.expected[block])
        if expected == -1:
            expected = int(self.batch.by_block(self._alive())[block].sum())
        return f"{count} of {expected} threads have arrived"
