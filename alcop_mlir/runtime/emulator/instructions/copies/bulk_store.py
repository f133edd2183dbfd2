"""Bulk copies and reductions from shared to global memory, and their bulk groups.

PTX ISA "cp.async.bulk", "cp.async.bulk.commit_group", "cp.async.bulk.wait_group".
Visibility "late": shared memory is read, and global memory written, at the wait for the
group, or at the end of the kernel; "early": at the issue.
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
    """Copies to global memory: they read shared memory until a wait covers them.

    group: of bulk groups, a register; combine: of a reduction
    """

    cohort: Cohort
    pieces: Pieces
    combine: Combine | None

    def move(self) -> None:
        """Reads shared memory and writes global memory."""
        self.moved = True
        cohort, given = self.cohort, self.pieces
        data = access.read_shared(cohort, given.shared).reshape(-1)
        lanes, count = given.other, given.issuers.offset.size
        copy = np.repeat(np.arange(count), lanes.offset.size // count)
        if given.inside is not None:
            chosen = np.flatnonzero(given.inside)
            lanes, data, copy = lanes.only(chosen), data[chosen], copy[chosen]
        bounds.check_written(cohort, lanes)
        if self.combine is None:
            access.put_global(cohort, lanes, data)
            return
        memory, at = cohort.batch.memory.views[lanes.size], lanes.offset // lanes.size
        access.note_global(cohort, lanes)
        # Several blocks may add to the same place: one after the other.
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

        part = entries(given.other)
        here = given.here.widened()
        fewer = Pieces(
            given.issuers.only(chosen),
            here.only(entries(here)),
            given.shared.only(entries(given.shared)),
            given.other.only(part),
            None if given.inside is None else given.inside[part],
            given.size,
        )
        return replace(self, pieces=fewer)


def start_store(cohort: Cohort, given: Pieces, combine: Combine | None) -> None:
    """The issue of copies to global memory."""
    batch = cohort.batch
    store = Store(
        group=cohort.bulk_committed, cohort=cohort, pieces=given, combine=combine
    )
    if batch.shadow is not None:
        batch.shadow.on_async_read(store.pieces.here)
    cohort.stores.append(store)
    each = given.shared.offset.size * given.size // given.issuers.offset.size
    for observer in cohort.observers:
        observer.on_store(cohort, given.issuers, each)
    if batch.early:
        store.move()


def _end(store: Store) -> None:
    if not store.moved:
        store.move()
    shadow = store.cohort.batch.shadow
    if shadow is not None:
        shadow.on_async_read_end(store.pieces.here)


def commit_group(t: Translator, ins: Instruction) -> Op:
    """cp.async.bulk.commit_group."""

    def run(cohort: Cohort, mask: Mask) -> None:
        one = np.ones((1, 1, 1), np.int64)
        step = one if mask is None else mask.astype(np.int64)
        cohort.bulk_committed = cohort.bulk_committed + step

    return run


def wait_group(t: Translator, ins: Instruction) -> Op:
    """cp.async.bulk.wait_group, with or without .read."""
    newest = groups_left(ins)

    def run(cohort: Cohort, mask: Mask) -> None:
        limit = cohort.bulk_committed - newest
        left: list[PendingStore] = []
        for store in cohort.stores:
            assert isinstance(store, Store)
            done = store.group < limit
            done = np.broadcast_to(
                done if mask is None else done & mask,
                (cohort.blocks, cohort.warps, LANES),
            )
            on = store.pieces.issuers.pick(done)
            if on.all():
                _end(store)
                continue
            if on.any():
                _end(store.only(np.flatnonzero(on)))
                store = store.only(np.flatnonzero(~on))
            left.append(store)
        cohort.stores = left

    return run
