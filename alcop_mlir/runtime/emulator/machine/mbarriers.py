"""The mbarrier objects in the shared memory of a batch: arrivals, bytes and phases.

PTX ISA "mbarrier": an object counts the pending arrivals of its phase, and the bytes of
copies that it still expects. When both are zero the phase is complete and the next one
begins. All that was done before an arrival is ordered before what follows a successful
wait for that phase. An object is told by its offset in shared memory, which is that of
the same object in every block; numbers are given in the order of their `init`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from alcop_mlir.runtime.emulator.arithmetic.storage import U64, Array
from alcop_mlir.runtime.emulator.machine.clocks import EPOCH, Clocks
from alcop_mlir.runtime.emulator.machine.faults import lane_fault
from alcop_mlir.runtime.emulator.machine.lanes import Lanes
from alcop_mlir.runtime.emulator.machine.releases import CLUSTER, CTA, Releases
from alcop_mlir.runtime.emulator.machine.warps import BlockSet

SIZE = 8  # bytes, PTX ISA "Size and alignment of mbarrier object"
# PTX ISA "Contents of the mbarrier object": the most arrivals, and bytes either way.
MOST = 2**20 - 1
_COUNT_BITS = 20  # of an opaque state; above them, the phase
Widen = Callable[[int], None]


@dataclass(frozen=True)
class Arrival:
    """What kind: may it end the phase, does it leave later ones, does it release?

    is_wide: whether it does so for all of the cluster, by scope .cluster
    """

    ends: bool = True
    drops: bool = False
    orders: bool = True
    is_wide: bool = False


class Mbarriers:
    """Those of all blocks of a batch, as arrays (objects, blocks).

    moved: whether a phase has ended, or an object is gone, since it was last reset
    """

    def __init__(self, block_set: BlockSet, clocks: Clocks, step: int):
        """`step`: bytes from the memory of a block of a cluster to the next one's."""
        self.blocks, self.clocks = block_set.blocks, clocks
        self.block_set, self.step = block_set, step
        self.numbers: dict[int, int] = {}  # by offset
        self.offsets: list[int] = []
        shape = (0, self.blocks)
        self.live = np.zeros(shape, bool)
        self.expected = np.zeros(shape, np.int64)
        self.pending = np.zeros(shape, np.int64)
        self.bytes = np.zeros(shape, np.int64)
        self.phase = np.zeros(shape, np.int64)
        # Of each: its column in the clocks; what the arrivals so far have seen, and
        # what those of ended phases had, as epochs (copies, columns).
        self.columns: list[int] = []
        self.released: list[Array] = []
        self.known: list[Array] = []
        # The same of what other blocks have released with scope .cluster, in a cluster.
        self.far_released: list[Array] = []
        self.far_known: list[Array] = []
        self.moved = False
        self._counted: dict[int, Lanes] = {}  # who counted bytes last

    def begin(self, lanes: Lanes, counts: Array, widen: Widen | None) -> None:
        """mbarrier.init: `lanes`, one entry for each block, expect `counts` each."""
        wrong = np.flatnonzero((counts < 1) | (counts > MOST))
        if wrong.size:
            entry = int(wrong[0])
            why = f"an mbarrier expects 1 to {MOST} arrivals, not {int(counts[entry])}"
            raise lane_fault(lanes, entry, why)
        for offset in np.unique(lanes.offset).tolist():
            if offset not in self.numbers:
                self._add(offset, widen is not None)
        cells = self._cells(lanes)
        self.flat("live")[cells] = True
        self.flat("expected")[cells] = counts
        self.flat("pending")[cells] = counts
        self.flat("bytes")[cells] = 0
        # Phases go on where an object was before, so that no epoch comes twice.
        phase = self.flat("phase")
        phase[cells] += phase[cells] & 1

    def end(self, lanes: Lanes) -> None:
        """mbarrier.inval."""
        self.flat("live")[self.cells(lanes)] = False
        self.moved = True

    def _add(self, offset: int, is_watched: bool) -> None:
        self.numbers[offset] = len(self.offsets)
        self.offsets.append(offset)
        for name in ("live", "expected", "pending", "bytes", "phase"):
            old = getattr(self, name)
            fresh = np.zeros((1, self.blocks), old.dtype)
            setattr(self, name, np.concatenate([old, fresh]))
        self.columns.append(self.clocks.add_columns(1) if is_watched else -1)
        empty = np.zeros((self.clocks.copies, self.clocks.columns), np.int64)
        self.released.append(empty)
        self.known.append(empty)
        self.far_released.append(empty)
        self.far_known.append(empty)

    def flat(self, name: str) -> Array:
        """One of the arrays, by cells: `number * blocks + block`."""
        return getattr(self, name).reshape(-1)

    def _numbers(self, lanes: Lanes) -> Array:
        """The number of each entry's object, -1 where there never was one."""
        offsets, inverse = np.unique(lanes.offset, return_inverse=True)
        found = [self.numbers.get(offset, -1) for offset in offsets.tolist()]
        return np.array(found, np.int64)[inverse]

    def _cells(self, lanes: Lanes) -> Array:
        return self._numbers(lanes) * self.blocks + lanes.block()

    def cells(self, lanes: Lanes) -> Array:
        """The cell of each entry; faults unless there is an object in each."""
        cells = self._cells(lanes)
        lost = cells < 0
        if not lost.any():
            lost = ~self.flat("live")[cells]
        if lost.any():
            entry = int(np.flatnonzero(lost)[0])
            at = self._place(int(lanes.block()[entry]), int(lanes.offset[entry]))
            raise lane_fault(lanes, entry, f"there is no mbarrier at {at}")
        return cells

    def is_odd(self, cells: Array) -> Array:
        """The parity of the phases that these cells are in."""
        return (self.flat("phase")[cells] & 1) != 0

    # --- bytes ------------------------------------------------------------------------

    def expect(self, lanes: Lanes, amounts: Array) -> None:
        """expect_tx, or complete_tx where the amounts are negative; ends no phase."""
        cells = self.cells(lanes)
        total = self.flat("bytes")
        np.add.at(total, cells, amounts)
        for number in np.unique(cells // self.blocks).tolist():
            self._counted[number] = lanes
        beyond = np.flatnonzero(np.abs(total[cells]) > MOST)
        if beyond.size:
            entry = int(beyond[0])
            count = int(total[cells[entry]])
            why = f"an mbarrier counts at most {MOST} bytes, this one would {count}"
            raise lane_fault(lanes, entry, why)

    def left(self) -> list[tuple[Lanes, str]]:
        """Objects with bytes to come: who has counted them last, and a description."""
        cells = np.flatnonzero((self.flat("bytes") != 0) & self.flat("live"))
        found = {cell // self.blocks: cell for cell in cells.tolist()[::-1]}
        return [
            (self._counted[number], self.describe(cell))
            for number, cell in found.items()
        ]

    def settle(self, cells: Array, widen: Widen | None) -> None:
        """Ends the phases of these cells that have all arrivals and bytes."""
        cells = np.unique(cells)
        done = (self.flat("pending")[cells] == 0) & (self.flat("bytes")[cells] == 0)
        if not done.any():
            return
        cells = cells[done]
        self.flat("phase")[cells] += 1
        self.flat("pending")[cells] = self.flat("expected")[cells]
        self.moved = True
        if widen is None:
            return
        numbers, blocks = cells // self.blocks, cells % self.blocks
        for number in np.unique(numbers).tolist():
            self._publish(number, blocks[numbers == number], widen)

    def _publish(self, number: int, blocks: Array, widen: Widen) -> None:
        """What was released for the phase that has ended is known to who waits."""
        phases = self.phase[number]
        if blocks.size < self.blocks or (phases != phases[0]).any():
            widen(self.blocks)
        rows = np.zeros(self.blocks, bool)
        rows[blocks] = True
        rows = rows[: self.clocks.copies]
        fresh = self._fit(self.released[number]).copy()
        fresh[:, self.columns[number]] = phases[: self.clocks.copies]
        known = self._fit(self.known[number])
        self.known[number] = np.where(rows[:, None], fresh, known)
        if self.clocks.scoped >= 0:
            far, known = self._fit(self.far_released[number]), self.far_known[number]
            self.far_known[number] = np.where(rows[:, None], far, self._fit(known))

    def _fit(self, epochs: Array) -> Array:
        """As many copies and columns as the clocks have by now."""
        epochs = self.clocks.padded(epochs)
        shape = (self.clocks.copies, self.clocks.columns)
        return np.broadcast_to(epochs, shape)

    # --- arrivals ---------------------------------------------------------------------

    def arrive(
        self,
        lanes: Lanes,
        arrival: Arrival,
        counts: Array,
        widen: Widen | None,
        releases: Releases | None = None,
    ) -> Array:
        """Arrivals of the entries, in their order, `counts` each: opaque states.

        An entry that brings more than what is pending is a fault, and so is one while
        bytes are outstanding and no arrival is pending. Those after the end of a phase
        count for the next one.
        """
        states = np.zeros(counts.size, U64)
        rest = np.arange(counts.size)
        while rest.size:
            part, each = lanes.only(rest), counts[rest]
            cells = self.cells(part)
            before = self.flat("pending")[cells] - _taken(cells, each)
            now = before > 0
            self._check(part, cells, each, before, arrival)
            states[rest] = np.where(now, self.states(cells, before), states[rest])
            np.subtract.at(self.flat("pending"), cells[now], each[now])
            if arrival.drops:
                np.subtract.at(self.flat("expected"), cells[now], each[now])
            if widen is not None and (arrival.orders or releases is not None):
                fences = None if arrival.orders else releases
                self._release(part, now, arrival.is_wide, widen, fences)
            self.settle(cells[now], widen)
            rest = rest[~now]
        return states

    def _check(
        self,
        lanes: Lanes,
        cells: Array,
        counts: Array,
        before: Array,
        arrival: Arrival,
    ) -> None:
        wrong = (before > 0) & (before < counts)
        wrong |= self.flat("pending")[cells] == 0
        why = "more arrivals than the phase of the mbarrier expects"
        if not wrong.any() and not arrival.ends:
            wrong = before <= counts
            why = "an arrival with .noComplete ends the phase of the mbarrier"
        if wrong.any():
            entry = int(np.flatnonzero(wrong)[0])
            text = self.describe(int(cells[entry]))
            raise lane_fault(lanes, entry, f"{why} ({text}),")

    def hold(self, lanes: Lanes) -> None:
        """One pending arrival more for each entry: cp.async.mbarrier.arrive."""
        cells = self.cells(lanes)
        pending = self.flat("pending")
        np.add.at(pending, cells, 1)
        if (pending[cells] > MOST).any():
            entry = int(np.argmax(pending[cells]))
            raise lane_fault(
                lanes, entry, f"an mbarrier counts at most {MOST} arrivals"
            )

    def _release(
        self,
        lanes: Lanes,
        chosen: Array,
        is_wide: bool,
        widen: Widen,
        fences: Releases | None = None,
    ) -> None:
        """What the warps of the chosen entries have done and seen is released.

        fences: it is what was before the last one of these
        """
        by_number = self._warps(lanes, chosen, widen)
        scope = CLUSTER if is_wide else CTA
        seen = self.clocks.seen() if fences is None else fences.fenced(scope)
        for number, on in by_number:
            each = np.where(on[:, :, None], seen, 0)
            if self.clocks.scoped >= 0:
                each = self._without_far(number, each, is_wide)
            fresh = each.max(axis=1)
            self.released[number] = np.maximum(self._fit(self.released[number]), fresh)

    def _without_far(self, number: int, each: Array, is_wide: bool) -> Array:
        """What warps release, (copies, warps, columns), to waits of scope .cta.

        Those of the object's own block release to its threads; what others do with
        scope .cluster is kept for waits with that scope.
        """
        warps = np.arange(self.clocks.warps) // self.block_set.block_warps
        is_near = warps == self.offsets[number] // self.step
        near, far = self.clocks.split_scoped(each)
        if is_wide:
            old = self._fit(self.far_released[number])
            fresh = np.where(is_near[:, None], 0, far).max(axis=1)
            self.far_released[number] = np.maximum(old, fresh)
        return np.where(is_near[:, None], each, near)

    def _warps(
        self, lanes: Lanes, chosen: Array, widen: Widen
    ) -> list[tuple[int, Array]]:
        """By number: which warps have a chosen entry, bool (1|copies, warps)."""
        numbers, warp, block = self._numbers(lanes), lanes.warp(), lanes.block()
        out: list[tuple[int, Array]] = []
        for number in np.unique(numbers[chosen]).tolist():
            on = np.zeros((self.blocks, self.clocks.warps), bool)
            mine = chosen & (numbers == number)
            on[block[mine], warp[mine]] = True
            out.append((number, on))
        if any((on != on[:1]).any() for _, on in out):
            widen(self.blocks)
        return [(number, on[: self.clocks.copies]) for number, on in out]

    def release(self, lanes: Lanes, widen: Widen) -> None:
        """What the warps of all entries have done is released, before they arrive."""
        self._release(lanes, np.ones(lanes.offset.size, bool), False, widen)

    def stamps(self, cells: Array) -> tuple[Array, Array]:
        """The columns of these cells, and the epochs that end with their phases."""
        columns = np.array(self.columns, np.int64)[cells // self.blocks]
        return columns, self.flat("phase")[cells] + 1

    def learn(self, lanes: Lanes, columns: Array, epochs: Array) -> None:
        """The warps of the entries know what has landed with these stamps."""
        clocks = self.clocks
        copy = lanes.block() if clocks.copies > 1 else 0 * lanes.block()
        at = (copy, lanes.warp(), columns)
        known = (epochs + 1) * EPOCH
        clocks.horizon[at] = np.maximum(clocks.horizon[at], known)

    # --- waits ------------------------------------------------------------------------

    def acquire(
        self,
        lanes: Lanes,
        ready: Array,
        is_wide: bool,
        widen: Widen,
        fences: Releases | None = None,
    ) -> None:
        """The warps of the entries that are `ready` learn what was released.

        fences: they do so behind the next one of these
        """
        for number, on in self._warps(lanes, ready, widen):
            known = self._fit(self.known[number])
            if is_wide and self.clocks.scoped >= 0:
                known = np.maximum(known, self._fit(self.far_known[number]))
            if fences is None:
                self.clocks.acquire(on, known)
            else:
                scope = CLUSTER if is_wide else CTA
                fences.wait_for_fence(scope, on, known[:, None, :])

    def states(self, cells: Array, before: Array) -> Array:
        """Opaque states: the phase and the pending count before an arrival."""
        return ((self.flat("phase")[cells] << _COUNT_BITS) | before).astype(U64)

    def describe(self, cell: int) -> str:
        """`mbarrier at shared byte 64, phase 3: 1 of 4 arrivals pending`."""
        number, block = divmod(cell, self.blocks)
        text = (
            f"mbarrier at {self._place(block, self.offsets[number])}, phase "
            f"{int(self.flat('phase')[cell])}: {int(self.flat('pending')[cell])} of "
            f"{int(self.flat('expected')[cell])} arrivals pending"
        )
        count = int(self.flat("bytes")[cell])
        return text if not count else f"{text}, {count} bytes to come"

    def _place(self, block: int, offset: int) -> str:
        """`shared byte 64`, in a cluster with the block of it."""
        if self.block_set.ranks == 1:
            return f"shared byte {offset}"
        rank, byte = divmod(offset, self.step)
        warp = rank * self.block_set.block_warps
        return f"shared byte {byte} of block {self.block_set.names.block(block, warp)}"


def phase_of(states: Array) -> Array:
    """The phases of opaque states."""
    return (states >> U64.type(_COUNT_BITS)).astype(np.int64)


def count_of(states: Array) -> Array:
    """The pending counts of opaque states."""
    return states & U64.type(MOST)


def _taken(cells: Array, counts: Array) -> Array:
    """How many arrivals the entries before each one bring to its cell."""
    order = np.argsort(cells, kind="stable")
    starts = np.cumsum(counts[order]) - counts[order]
    heads = np.diff(cells[order], prepend=-1) != 0
    first = np.maximum.accumulate(np.where(heads, np.arange(cells.size), 0))
    out = np.empty(cells.size, np.int64)
    out[order] = starts - starts[first]
    return out
