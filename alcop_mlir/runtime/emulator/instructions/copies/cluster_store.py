"""st.async and red.async: they write to a block of the cluster, and end at an mbarrier.

PTX ISA "st.async", "red.async". The mbarrier lies in the same block, and counts the
bytes when they are there. Visibility "late": that is when no thread can go on without
them; "early": at the issue.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from alcop_mlir.runtime.emulator.arithmetic.collisions import reduce_in_order
from alcop_mlir.runtime.emulator.arithmetic.storage import MOVED_AS, pack
from alcop_mlir.runtime.emulator.instructions import access
from alcop_mlir.runtime.emulator.instructions.access import Access
from alcop_mlir.runtime.emulator.instructions.atomics import UPDATES
from alcop_mlir.runtime.emulator.instructions.mbarrier import objects, use, widen_of
from alcop_mlir.runtime.emulator.instructions.translator import Op, Translator
from alcop_mlir.runtime.emulator.machine.cohort import Cohort
from alcop_mlir.runtime.emulator.machine.faults import lane_fault
from alcop_mlir.runtime.emulator.machine.lanes import Lanes
from alcop_mlir.runtime.emulator.machine.memory import POISON, SHARED_WINDOW
from alcop_mlir.runtime.emulator.machine.pending_copy import Flight
from alcop_mlir.runtime.emulator.machine.warps import Mask
from alcop_mlir.runtime.emulator.ptx.scalars import SCALARS
from alcop_mlir.runtime.emulator.ptx.syntax import (
    Instruction,
    elements,
    space_of,
    unsupported,
)

Put = Callable[[], None]


@dataclass(eq=False)
class AsyncStore(Flight):
    """The stores of one instruction: `lanes` say where, one entry for each of them.

    objects: the mbarrier of each; put: writes the values; updates: whether it combines
    them with what is there
    """

    cohort: Cohort
    lanes: Lanes
    objects: Lanes
    put: Put
    updates: bool

    def finish(self) -> None:
        """The values are there."""
        batch = self.cohort.batch
        batch.flights.remove(self)
        cells = batch.mbarriers.cells(self.objects)
        self.put()
        if batch.shadow is not None:
            columns, epochs = batch.mbarriers.stamps(cells)
            land = batch.shadow.on_async_landing
            if self.updates:
                land = batch.shadow.on_async_update
            land(self.lanes, columns, epochs)
        batch.mbarriers.expect(
            self.objects, np.full(cells.size, -self.lanes.size, np.int64)
        )
        batch.mbarriers.settle(cells, widen_of(self.cohort))

    def cells(self) -> set[int]:
        """The objects that count the bytes."""
        return set(self.cohort.batch.mbarriers.cells(self.objects).tolist())

    def report(self) -> None:
        """The kernel has ended before it."""
        shadow = self.cohort.batch.shadow
        if shadow is not None:
            shadow.report_exit(self.lanes, "this store is in flight")


def _check_form(ins: Instruction) -> None:
    if space_of(ins.parts) not in (None, "shared") or "mmio" in ins.parts:
        raise unsupported(ins)
    if "mbarrier::complete_tx::bytes" not in ins.parts:
        raise unsupported(ins)


def _find(
    t: Translator, ins: Instruction, size: int
) -> Callable[[Cohort, Mask], tuple[Lanes, Lanes]]:
    """How to find where the values go, and the mbarriers."""
    address, _ = t.base_address(ins.operands[0], ins)
    bars = objects(t, ins.operands[2], ins)
    window = 0 if space_of(ins.parts) == "shared" else SHARED_WINDOW

    def find(cohort: Cohort, mask: Mask) -> tuple[Lanes, Lanes]:
        own = address(cohort.R).astype(np.int64) - window
        where = Access(cohort, mask, own, "shared", size, ins, reaches=True)
        lanes = access.shared_lanes(where).widened()
        found = use(cohort, bars(cohort, mask), by_engine=True).widened()
        step = cohort.batch.shared_step
        if cohort.batch.ranks > 1:
            other = lanes.offset // step != found.offset // step
            if other.any():
                why = "the mbarrier of a store is in another block than its target,"
                raise lane_fault(found, int(other.argmax()), why)
        access.note_shared(cohort, lanes)
        return lanes, found

    return find


def _start(store: AsyncStore) -> None:
    batch = store.cohort.batch
    batch.flights.append(store)
    if batch.early:
        store.finish()


def store_async(t: Translator, ins: Instruction) -> Op:
    """st.async."""
    _check_form(ins)
    items = elements(ins.operands[1])
    size = ins.type.size * len(items)
    raw = SCALARS[f"b{ins.type.bits}"]
    reads, whole = [t.read(item, raw, ins) for item in items], MOVED_AS[size]
    find = _find(t, ins, size)

    def run(cohort: Cohort, mask: Mask) -> None:
        batch = cohort.batch
        lanes, bars = find(cohort, mask)
        if not lanes.offset.size:
            return
        values = [read(cohort.R) for read in reads]
        value = values[0] if len(values) == 1 else pack(values, whole)
        entries = lanes.pick(value)

        def put() -> None:
            access.write_shared(cohort, lanes, entries)

        if batch.shadow is not None:
            overlap = batch.shadow.on_write(lanes, in_flight=True)
            if overlap is not None:
                batch.shadow.report_overlap(lanes, int(overlap.argmax()))
        if not batch.early:
            poison = np.full(size, POISON, np.uint8).view(whole)[0]
            access.write_shared(cohort, lanes, np.full(entries.size, poison))
        _start(AsyncStore(cohort, lanes, bars, put, updates=False))

    return run


def reduce_async(t: Translator, ins: Instruction) -> Op:
    """red.async."""
    _check_form(ins)
    scalar = ins.type
    name = next((part for part in ins.parts[1:] if part in UPDATES), "")
    if scalar.is_decoded or scalar.kind == "f" or name in ("", "exch", "cas"):
        raise unsupported(ins)
    value = t.read(ins.operands[1], scalar, ins)
    find = _find(t, ins, scalar.size)

    def run(cohort: Cohort, mask: Mask) -> None:
        batch = cohort.batch
        lanes, bars = find(cohort, mask)
        if not lanes.offset.size:
            return
        given = lanes.pick(value(cohort.R).view(scalar.dtype))[None]
        memory = batch.shared.flat[scalar.size][None].view(scalar.dtype)
        step = batch.shared.views[scalar.size].shape[1]
        at = lanes.block() * step + lanes.offset // scalar.size

        def put() -> None:
            reduce_in_order(memory, at, name, UPDATES[name], given, given)

        if batch.shadow is not None:
            cells = batch.mbarriers.cells(bars)
            columns, epochs = batch.mbarriers.stamps(cells)
            batch.shadow.on_async_update(lanes, columns, epochs, at_issue=True)
        _start(AsyncStore(cohort, lanes, bars, put, updates=True))

    return run
