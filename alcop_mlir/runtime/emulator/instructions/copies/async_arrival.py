"""cp.async.mbarrier.arrive: an arrival when the earlier copies of the thread land.

PTX ISA "cp.async.mbarrier.arrive". Without .noinc the phase waits for one arrival more.
Visibility "late": the copies land, and the arrival comes, when no thread can go on;
"early": at once. Who waits for the phase may read what they brought.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from alcop_mlir.runtime.emulator.arithmetic.storage import Array
from alcop_mlir.runtime.emulator.instructions.copies.async_copy import land, split_copy
from alcop_mlir.runtime.emulator.instructions.mbarrier import (
    new_epochs,
    objects,
    use,
    widen_of,
)
from alcop_mlir.runtime.emulator.instructions.translator import Op, Translator
from alcop_mlir.runtime.emulator.machine.cohort import Cohort
from alcop_mlir.runtime.emulator.machine.lanes import Lanes
from alcop_mlir.runtime.emulator.machine.mbarriers import Arrival
from alcop_mlir.runtime.emulator.machine.pending_copy import Flight, PendingCopy
from alcop_mlir.runtime.emulator.machine.warps import LANES, Mask
from alcop_mlir.runtime.emulator.ptx.syntax import Instruction

_ARRIVAL = Arrival(orders=False)  # what comes before it was released at its issue


@dataclass(eq=False)
class CopyArrival(Flight):
    """The arrivals of one instruction: `lanes`, one entry for each block and lane."""

    cohort: Cohort
    lanes: Lanes
    stamps: tuple[Array, Array] | None = None  # of what has landed

    def finish(self) -> None:
        """Lands the copies and arrives."""
        batch = self.cohort.batch
        batch.flights.remove(self)
        mbarriers, shadow = batch.mbarriers, batch.shadow
        cells = mbarriers.cells(self.lanes)
        copies = [c for c in self.cohort.copies if self in c.arrivals]
        self.cohort.copies = [c for c in self.cohort.copies if self not in c.arrivals]
        for copy in copies:
            if not batch.early:
                land(self.cohort, copy)
        if shadow is not None and copies:
            columns, epochs = mbarriers.stamps(cells)
            self.stamps = columns, epochs
            self.cohort.arrived[frozenset(cells.tolist())] = self
            writers = self.lanes.place(columns), self.lanes.place(epochs)
            for copy in copies:
                lanes = copy.lanes.widened() if batch.clocks.copies > 1 else copy.lanes
                who, when = (x[: lanes.shape[0]] for x in writers)
                shadow.on_async_landing(lanes, lanes.pick(who), lanes.pick(when))
        ones = np.ones(self.lanes.offset.size, np.int64)
        mbarriers.arrive(self.lanes, _ARRIVAL, ones, widen_of(self.cohort))

    def cells(self) -> set[int]:
        """The objects that it arrives at."""
        return set(self.cohort.batch.mbarriers.cells(self.lanes).tolist())

    def learn(self) -> None:
        """Its threads know of the landing without the mbarrier: by a wait_group.

        They then know of all that lands in that phase.
        """
        if self.stamps is not None:
            self.cohort.batch.mbarriers.learn(self.lanes, *self.stamps)


def issue(t: Translator, ins: Instruction) -> Op:
    find = objects(t, ins.operands[0], ins)
    holds = "noinc" not in ins.parts

    def run(cohort: Cohort, mask: Mask) -> None:
        batch, lanes = cohort.batch, use(cohort, find(cohort, mask)).widened()
        batch.mbarriers.cells(lanes)  # they are there by now, not only at the arrival
        if holds:
            batch.mbarriers.hold(lanes)
        flight = CopyArrival(cohort, lanes)
        batch.flights.append(flight)
        _attach(cohort, mask, flight)
        if batch.shadow is not None:
            batch.mbarriers.release(lanes, batch.shadow.widen)
            new_epochs(cohort, lanes)
        if batch.early:
            flight.finish()

    return run


def _attach(cohort: Cohort, mask: Mask, flight: CopyArrival) -> None:
    """The copies in flight of these lanes belong to the arrival."""
    shape = (cohort.blocks, cohort.warps, LANES)
    on = np.broadcast_to(np.ones((1, 1, 1), bool) if mask is None else mask, shape)
    copies: list[PendingCopy] = []
    for copy in cohort.copies:
        mine, others = split_copy(cohort, copy, on)
        if mine is not None:
            copies.append(replace(mine, arrivals=(*mine.arrivals, flight)))
        if others is not None:
            copies.append(others)
    cohort.copies = copies
