"""Bulk copies and reductions to shared memory, which end at mbarriers.

PTX ISA "cp.async.bulk", "cp.reduce.async.bulk". Visibility "late": the source is read,
and the destination written, at the last moment: when no thread can go on without it;
"early": at the issue.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from alcop_mlir.runtime.emulator.arithmetic.storage import MOVED_AS, Array
from alcop_mlir.runtime.emulator.instructions import access, bounds
from alcop_mlir.runtime.emulator.instructions.copies.bulk_pieces import (
    CHUNK,
    Combine,
    Pieces,
)
from alcop_mlir.runtime.emulator.instructions.mbarrier import Objects, use, widen_of
from alcop_mlir.runtime.emulator.machine.cohort import Cohort
from alcop_mlir.runtime.emulator.machine.faults import lane_fault
from alcop_mlir.runtime.emulator.machine.lanes import Lanes
from alcop_mlir.runtime.emulator.machine.loaded_kernel import Read
from alcop_mlir.runtime.emulator.machine.memory import POISON
from alcop_mlir.runtime.emulator.machine.pending_copy import Flight


@dataclass(eq=False)
class Load(Flight):
    """Copies to shared memory that count their bytes at mbarriers when they land.

    objects: one entry for each copy; count: bytes of each; combine: of a reduction;
    source: the pieces that are read of shared memory, with `here` of them, if they are
    """

    cohort: Cohort
    pieces: Pieces
    objects: Lanes
    read: Callable[[], Array]
    count: int
    combine: Combine | None = None
    source: Lanes | None = None

    def finish(self) -> None:
        """All of the copies land."""
        batch, cohort = self.cohort.batch, self.cohort
        batch.flights.remove(self)
        for observer in cohort.observers:
            observer.on_load_end(cohort, self.objects, self.count)
        mbarriers = batch.mbarriers
        cells = mbarriers.cells(self.objects)
        self._write(self.read())
        if batch.shadow is not None:
            if self.combine is None:
                batch.shadow.on_async_landing(*self.stamped(self.pieces.here))
            else:
                batch.shadow.on_async_update(*self.stamped(self.pieces.here))
            if self.source is not None:
                batch.shadow.on_engine_read_end(*self.stamped(self.source))
        bytes_each = np.full(cells.size, -self.count, np.int64)
        mbarriers.expect(self.objects, bytes_each)
        mbarriers.settle(cells, widen_of(cohort))

    def _write(self, data: Array) -> None:
        cohort, lanes = self.cohort, self.pieces.shared
        if self.combine is None:
            access.write_shared(cohort, lanes, data)
            return
        # Several copies may add to the same place: one after the other.
        data, copies = data.reshape(-1), self.objects.offset.size
        for part in np.arange(lanes.offset.size).reshape(copies, -1):
            each = lanes.only(part)
            old = access.read_shared(cohort, each).reshape(-1)
            access.write_shared(cohort, each, self.combine(old, data[part]))

    def stamped(self, lanes: Lanes) -> tuple[Lanes, Array, Array]:
        """These pieces, with the column and epoch of the phase that ends each copy."""
        batch = self.cohort.batch
        columns, epochs = batch.mbarriers.stamps(batch.mbarriers.cells(self.objects))
        if batch.clocks.copies > 1:
            lanes = lanes.widened()
        each = self.count // lanes.size
        copies = lanes.offset.size // each
        columns, epochs = columns[:copies].repeat(each), epochs[:copies].repeat(each)
        return lanes, columns, epochs

    def stamped_source(self) -> tuple[Lanes, Array, Array]:
        """The same of the pieces that are read of global memory."""
        lanes, columns, epochs = self.stamped(self.pieces.other)
        if self.pieces.inside is None:
            return lanes, columns, epochs
        there = np.flatnonzero(self.pieces.inside)
        return lanes.only(there), columns[there], epochs[there]

    def report(self) -> None:
        """The kernel has ended before it."""
        shadow = self.cohort.batch.shadow
        if shadow is not None:
            what = "this copy to its shared memory is in flight"
            shadow.report_exit(self.pieces.here, what)

    def cells(self) -> set[int]:
        """The objects that count the bytes."""
        return set(self.cohort.batch.mbarriers.cells(self.objects).tolist())


def start_load(load: Load) -> None:
    """The issue: the destination is not to be touched until the landing."""
    cohort, batch, here = load.cohort, load.cohort.batch, load.pieces.here
    for observer in cohort.observers:
        observer.on_load(cohort, load.objects, load.count)
    if batch.shadow is not None:
        if load.source is not None:
            batch.shadow.on_async_read(load.source)
        elif batch.global_shadow is not None:
            batch.global_shadow.on_engine_read(*load.stamped_source())
        if load.combine is not None:
            batch.shadow.on_async_update(*load.stamped(here), at_issue=True)
        elif (overlap := batch.shadow.on_write(here, in_flight=True)) is not None:
            batch.shadow.report_overlap(here, int(overlap.argmax()))
    batch.flights.append(load)
    if batch.early:
        load.finish()
        return
    if load.combine is not None:
        return
    poison = np.full(CHUNK, POISON, np.uint8).view(MOVED_AS[CHUNK])[0]
    every = here.widened()
    access.write_shared(cohort, every, np.full(every.offset.size, poison))


def read_global(
    cohort: Cohort, given: Pieces, outside: bytes = b""
) -> Callable[[], Array]:
    """Checks the global side of a load; returns how to read it later.

    outside: what a piece that there is not reads as, if some are not
    """
    batch = cohort.batch
    lanes = given.other
    if given.inside is not None:
        lanes = lanes.only(np.flatnonzero(given.inside))
    bounds.check_global(cohort, lanes)
    access.note_global(cohort, lanes)
    view = batch.memory.views[given.size]

    def read() -> Array:
        data = view.take(lanes.offset // given.size)
        if given.inside is None:
            return data
        # A piece of 16 bytes is moved as a complex number, which no integer stands for.
        out = np.repeat(np.frombuffer(outside, data.dtype), given.inside.size)
        out[given.inside] = data
        return out

    return read


def read_shared(cohort: Cohort, source: Lanes) -> Callable[[], Array]:
    """How to read pieces of shared memory, later."""
    return lambda: access.read_shared(cohort, source).reshape(-1)


# --- where it goes in a cluster ------------------------------------------------------


@dataclass(frozen=True)
class Destinations:
    """The mbarriers of copies, and for `.multicast::cluster` a mask of blocks."""

    objects: Objects
    blocks: Read | None

    def each(
        self, cohort: Cohort, issuers: Lanes
    ) -> Iterator[tuple[Lanes, Lanes, Array]]:
        """Copies, their mbarriers, and which of the issuers (of all blocks) they have.

        A multicast writes, and signals, at the same offsets in each block of its mask.
        """
        batch, step = cohort.batch, cohort.batch.shared_step
        if self.blocks is None:
            objects = self._targets(cohort, issuers)
            yield issuers, objects, np.arange(objects.offset.size)
            return
        every = issuers.widened()
        masks = every.pick(self.blocks(cohort.R)).astype(np.int64)
        if (masks >> batch.ranks).any() or not masks.all():
            entry = int(((masks >> batch.ranks != 0) | (masks == 0)).argmax())
            why = f"a multicast to blocks 0b{int(masks[entry]):b} of {batch.ranks},"
            raise lane_fault(every, entry, why)
        values = np.unique(masks).tolist()
        for value in values:
            chosen = np.flatnonzero(masks == value)
            part = issuers if len(values) == 1 else every.only(chosen)
            for rank in range(batch.ranks):
                if not value >> rank & 1:
                    continue
                near = self._found(cohort, part)
                there = part.at(part.offset % step + rank * step) if step else part
                objects = near.at(near.offset % step + rank * step) if step else near
                if batch.shadow is not None and batch.ranks > 1:
                    batch.shadow.on_far_access(there)
                yield there, use(cohort, objects, by_engine=True).widened(), chosen

    def _found(self, cohort: Cohort, issuers: Lanes) -> Lanes:
        mask = issuers.place(np.ones(issuers.offset.size, bool))
        return self.objects(cohort, mask)

    def _targets(self, cohort: Cohort, issuers: Lanes) -> Lanes:
        """The mbarriers of copies; PTX ISA: in the same block as the destination."""
        found = self._found(cohort, issuers)
        found = use(cohort, found, by_engine=True).widened()
        step = cohort.batch.shared_step
        if cohort.batch.ranks > 1:
            other = issuers.widened().offset // step != found.offset // step
            if other.any():
                why = "the mbarrier of a copy is in another block than its destination,"
                raise lane_fault(found, int(other.argmax()), why)
        return found
