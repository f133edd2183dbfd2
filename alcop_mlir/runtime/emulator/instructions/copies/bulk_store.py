"""Bulk copies and reductions from shared to global memory, and their bulk groups.

PTX ISA "cp.async.bulk", "cp.async.bulk.commit_group", "cp.async.bulk.wait_group".
Visibility "late": shared memory is read at the wait for the group, and global memory
written at that without .read, or at the end of the kernel; "early": at the issue.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from alcop_mlir.runtime.emulator.arithmetic.storage import Array
from alcop_mlir.runtime.emulator.instructions import access, bounds
from alcop_mlir.runtime.emulator.instructions.copies.bulk_pieces import Combine, Pieces
from alcop_mlir.runtime.emulator.instructions.translator import Op, Translator
from alcop_mlir.runtime.emulator.machine.cohort import Cohort
from alcop_mlir.runtime.emulator.machine.lanes import Lanes
from alcop_mlir.runtime.emulator.machine.pending_copy import PendingStore
from alcop_mlir.runtime.emulator.machine.warps import LANES, Mask
from alcop_mlir.runtime.emulator.ptx.syntax import (
    Instruction,
    groups_left,
)


@dataclass(eq=False, kw_only=True)
class Store(PendingStore):
    """Copies to global memory: they read shared memory until a wait covers that.

    combine: of a reduction; number: that of the checks; data: what has been read;
    is_done: whether it has been written
    """

    cohort: Cohort
    pieces: Pieces
    combine: Combine | None
    number: int = 0
    data: Array | None = None
    is_done: bool = False

    def there(self) -> tuple[Lanes, Array | None]:
        """Where they write, and which of the pieces those are, None for all."""
        given = self.pieces
        if given.inside is None:
            return given.other, None
        chosen = np.flatnonzero(given.inside)
        return given.other.only(chosen), chosen

    def read(self) -> None:
        """Reads shared memory, if that has not been done."""
        if self.data is None and not self.is_done:
            given = self.pieces
            self.data = access.read_shared(self.cohort, given.shared).reshape(-1)

    def write(self) -> None:
        """Writes global memory, if that has not been done."""
        if self.is_done:
            return
        cohort, data = self.cohort, self.data
        assert data is not None
        self.is_done, self.data = True, None
        lanes, chosen = self.there()
        data = data if chosen is None else data[chosen]
        if self.combine is None:
            access.put_global(cohort, lanes, data, by_engine=True)
            return
        memory, at = cohort.batch.memory.views[lanes.size], lanes.offset // lanes.size
        access.note_global(cohort, lanes)
        # Several blocks may add to the same place: one after the other.
        total, count = self.pieces.other.offset.size, self.pieces.issuers.offset.size
        copy = np.repeat(np.arange(count), total // count)
        copy = copy if chosen is None else copy[chosen]
        for number in range(count):
            part = copy == number
            memory[at[part]] = self.combine(memory[at[part]], data[part])

    def report(self) -> None:
        """The kernel has ended before a wait."""
        shadow = self.cohort.batch.shadow
        if shadow is not None:
            what = (
                "this copy may still read its shared memory (no wait_group covers it)"
            )
            shadow.report_exit(self.pieces.here, what)

    def only(self, chosen: Array) -> Store:
        """The copies of these issuers."""
        given, count = self.pieces, self.pieces.issuers.offset.size

        def entries(lanes: Lanes) -> Array:
            each = lanes.offset.size // count
            return (chosen[:, None] * each + np.arange(each)).reshape(-1)

        part, small = entries(given.other), entries(given.shared)
        here = given.here.widened()
        fewer = Pieces(
            given.issuers.only(chosen),
            here.only(entries(here)),
            given.shared.only(small),
            given.other.only(part),
            None if given.inside is None else given.inside[part],
            given.size,
        )
        data = None if self.data is None else self.data[small]
        return replace(self, pieces=fewer, data=data)


def start_store(cohort: Cohort, given: Pieces, combine: Combine | None) -> None:
    """The issue of copies to global memory."""
    batch = cohort.batch
    store = Store(
        group=cohort.bulk_committed, cohort=cohort, pieces=given, combine=combine
    )
    lanes, _ = store.there()
    bounds.check_written(cohort, lanes)
    if batch.shadow is not None:
        batch.shadow.on_async_read(store.pieces.here)
    if batch.global_shadow is not None:
        store.number = batch.global_shadow.on_engine_write(lanes, combine is not None)
    cohort.stores.append(store)
    each = given.shared.offset.size * given.size // given.issuers.offset.size
    for observer in cohort.observers:
        observer.on_store(cohort, given.issuers, each)
    if batch.early:
        store.read()
        store.write()


def commit_group(t: Translator, ins: Instruction) -> Op:
    """cp.async.bulk.commit_group."""

    def run(cohort: Cohort, mask: Mask) -> None:
        one = np.ones((1, 1, 1), np.int64)
        step = one if mask is None else mask.astype(np.int64)
        cohort.bulk_committed = cohort.bulk_committed + step

    return run


def wait_group(t: Translator, ins: Instruction) -> Op:
    """cp.async.bulk.wait_group; with .read, of what the copies read alone."""
    newest, reads = groups_left(ins), "read" in ins.parts

    def run(cohort: Cohort, mask: Mask) -> None:
        limit = cohort.bulk_committed - newest
        if not reads:
            ready, cohort.stores_read = _split(cohort, cohort.stores_read, limit, mask)
            for store in ready:
                _end_write(store)
        ready, cohort.stores = _split(cohort, cohort.stores, limit, mask)
        for store in ready:
            _end_read(store)
            if not reads:
                _end_write(store)
        if reads:
            cohort.stores_read.extend(ready)

    return run


def _split(
    cohort: Cohort, stores: list[PendingStore], limit: Array, mask: Mask
) -> tuple[list[Store], list[PendingStore]]:
    """The copies of groups before `limit` of these lanes, and the others."""
    ready: list[Store] = []
    left: list[PendingStore] = []
    for store in stores:
        assert isinstance(store, Store)
        done = store.group < limit
        shape = (cohort.blocks, cohort.warps, LANES)
        done = np.broadcast_to(done if mask is None else done & mask, shape)
        on = store.pieces.issuers.pick(done)
        if on.all():
            ready.append(store)
        elif not on.any():
            left.append(store)
        else:
            ready.append(store.only(np.flatnonzero(on)))
            left.append(store.only(np.flatnonzero(~on)))
    return ready, left


def _end_read(store: Store) -> None:
    store.read()
    shadow = store.cohort.batch.shadow
    if shadow is not None:
        shadow.on_async_read_end(store.pieces.here)


def _end_write(store: Store) -> None:
    store.write()
    shadow = store.cohort.batch.global_shadow
    if shadow is not None:
        lanes, _ = store.there()
        shadow.on_engine_landing(lanes, store.number, store.combine is not None)
