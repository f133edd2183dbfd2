"""cp.async.bulk: copies of the copy engine that end at an mbarrier or in a bulk group.

PTX ISA "Data Movement and Conversion Instructions: Bulk copy". A copy to shared memory
counts its bytes at an mbarrier when it lands; one to global memory belongs to the group
that its thread commits next. Visibility "late": the source is read, and the destination
written, at the last moment: when no thread can go on without it, at the wait for the
group, or at the end of the kernel; "early": at the issue.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from alcop_mlir.runtime.emulator.arithmetic.storage import MOVED_AS, UNSIGNED, Array
from alcop_mlir.runtime.emulator.instructions import access
from alcop_mlir.runtime.emulator.instructions.access import Access
from alcop_mlir.runtime.emulator.instructions.mbarrier import (
    Objects,
    objects,
    use,
    widen_of,
)
from alcop_mlir.runtime.emulator.instructions.memory import UPDATES, decoded_update
from alcop_mlir.runtime.emulator.instructions.translator import Op, Translator
from alcop_mlir.runtime.emulator.machine.cohort import Cohort
from alcop_mlir.runtime.emulator.machine.faults import lane_fault
from alcop_mlir.runtime.emulator.machine.lanes import Lanes
from alcop_mlir.runtime.emulator.machine.memory import POISON
from alcop_mlir.runtime.emulator.machine.pending_copy import Flight, PendingStore
from alcop_mlir.runtime.emulator.machine.warps import LANES, Mask
from alcop_mlir.runtime.emulator.ptx.scalars import U32T, Scalar
from alcop_mlir.runtime.emulator.ptx.syntax import (
    Instruction,
    Integer,
    Operand,
    unsupported,
)

CHUNK = 16  # bytes: PTX ISA, alignment and size of a bulk copy
Combine = Callable[[Array, Array], Array]  # of old and new elements, as bits


def chunk_bytes(ins: Instruction) -> int:
    """What one piece of a copy has."""
    return CHUNK


@dataclass(frozen=True)
class Pieces:
    """Where the pieces of a copy are: `size` bytes each.

    issuers: one entry for each copy; here: the shared side, in pieces of 16 bytes,
    whose blocks are not told apart where they agree; shared: the shared side in pieces
    of `size`; other: the global side, of the same number of pieces, or shared memory
    read by a copy within it; inside: which pieces of the other side there are, None
    for all
    """

    issuers: Lanes
    here: Lanes
    shared: Lanes
    other: Lanes
    inside: Array | None
    size: int


def pieces(
    issuers: Lanes,
    shared: Array,
    other: Array,
    inside: Array | None = None,
    size: int = CHUNK,
) -> Pieces:
    """Those of copies whose 16-byte pieces are at `shared`, (entries, pieces).

    issuers: may stand for all blocks; other: offsets of pieces of `size` bytes for
    each block, (blocks * entries, pieces)
    """
    every = issuers.widened()
    here = issuers.spread(shared, CHUNK)
    small = shared[:, :, None] + np.arange(0, CHUNK, size)
    small = small.reshape(len(shared), -1)
    small = np.tile(small, (every.offset.size // len(shared), 1))
    flat = None if inside is None or inside.all() else inside.reshape(-1)
    return Pieces(
        every, here, every.spread(small, size), every.spread(other, size), flat, size
    )


def at_shared(t: Translator, operand: Operand, ins: Instruction) -> Objects:
    """How to find the 16-byte pieces at which copies begin in shared memory."""
    address, _ = t.base_address(operand, ins)

    def find(cohort: Cohort, mask: Mask) -> Lanes:
        where = Access(cohort, mask, address(cohort.R), "shared", CHUNK, ins)
        return access.shared_lanes(where)

    return find


def check_shared(cohort: Cohort, lanes: Lanes, count: int) -> None:
    """Faults unless `count` bytes from each entry on are in shared memory."""
    size = cohort.batch.shared.size
    beyond = np.flatnonzero(lanes.offset + count > size)
    if beyond.size:
        entry = int(beyond[0])
        start = int(lanes.offset[entry])
        raise lane_fault(
            lanes,
            entry,
            f"a copy of {count} bytes from shared byte {start} on runs past the end of "
            f"shared memory, {size} bytes,",
        )


# --- to shared memory ----------------------------------------------------------------


@dataclass(eq=False)
class Load(Flight):
    """Copies to shared memory that count their bytes at mbarriers when they land."""

    cohort: Cohort
    pieces: Pieces
    objects: Lanes  # one entry for each copy
    read: Callable[[], Array]
    count: int

    def finish(self) -> None:
        """All of the copies land."""
        batch, cohort = self.cohort.batch, self.cohort
        batch.flights.remove(self)
        mbarriers = batch.mbarriers
        cells = mbarriers.cells(self.objects)
        access.write_shared(cohort, self.pieces.shared, self.read())
        if batch.shadow is not None:
            columns, epochs = mbarriers.stamps(cells)
            here = self.pieces.here
            if batch.clocks.copies > 1:
                here = here.widened()
            each = self.count // CHUNK
            copies = here.offset.size // each
            who, when = (np.repeat(x[:copies], each) for x in (columns, epochs))
            batch.shadow.on_async_landing(here, who, when)
        bytes_each = np.full(cells.size, -self.count, np.int64)
        mbarriers.expect(self.objects, bytes_each)
        mbarriers.settle(cells, widen_of(cohort))

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
    cohort, batch = load.cohort, load.cohort.batch
    if batch.shadow is not None:
        batch.shadow.on_write(load.pieces.here, in_flight=True)
    batch.flights.append(load)
    if batch.early:
        load.finish()
        return
    poison = np.full(CHUNK, POISON, np.uint8).view(MOVED_AS[CHUNK])[0]
    every = load.pieces.here.widened()
    access.write_shared(cohort, every, np.full(every.offset.size, poison))


def read_global(cohort: Cohort, given: Pieces, outside: int = 0) -> Callable[[], Array]:
    """Checks the global side of a load; returns how to read it later.

    outside: what a piece that there is not reads as
    """
    batch = cohort.batch
    lanes = given.other
    if given.inside is not None:
        lanes = lanes.only(np.flatnonzero(given.inside))
    access.check_global(cohort, lanes)
    if batch.global_shadow is not None and lanes.offset.size:
        batch.global_shadow.on_read(lanes)
    access.note_global(cohort, lanes)
    view = batch.memory.views[given.size]

    def read() -> Array:
        data = view.take(lanes.offset // given.size)
        if given.inside is None:
            return data
        out = np.full(given.inside.size, outside, data.dtype)
        out[given.inside] = data
        return out

    return read


# --- to global memory ----------------------------------------------------------------


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
        access.check_written(cohort, lanes)
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
    if not isinstance(ins.operands[0], Integer):
        raise unsupported(ins, "expected an immediate count")
    newest = ins.operands[0].value

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


# --- bulk copies of so many bytes ----------------------------------------------------


def _sizes(
    t: Translator, ins: Instruction, operand: Operand
) -> Callable[[Cohort, Lanes], Array]:
    """The bytes of each entry, checked."""
    read = t.read(operand, U32T, ins)

    def sizes(cohort: Cohort, lanes: Lanes) -> Array:
        count = lanes.pick(read(cohort.R)).astype(np.int64)
        odd = np.flatnonzero(count % CHUNK)
        if odd.size:
            entry = int(odd[0])
            why = f"a bulk copy of {int(count[entry])} bytes, no multiple of 16,"
            raise lane_fault(lanes, entry, why)
        return count

    return sizes


def copy_in(t: Translator, ins: Instruction) -> Op:
    """cp.async.bulk from global to shared memory."""
    return _bulk(t, ins, loads=True)


def copy_out(t: Translator, ins: Instruction) -> Op:
    """cp.async.bulk, cp.reduce.async.bulk from shared to global memory."""
    return _bulk(t, ins, loads=False)


def _bulk(t: Translator, ins: Instruction, loads: bool) -> Op:
    refuse_others(ins)
    to, source, size, *more = ins.operands
    find = at_shared(t, to if loads else source, ins)
    address, _ = t.base_address(source if loads else to, ins)
    sizes = _sizes(t, ins, size)
    bar = objects(t, more[0], ins) if loads else None
    combine = None if loads or ins.parts[1] != "reduce" else combiner(ins, ins.type)
    unit = CHUNK if combine is None else ins.type.size

    def one(cohort: Cohort, issuers: Lanes, mask: Array, count: int) -> None:
        check_shared(cohort, issuers, count)
        step = np.arange(0, count, CHUNK)
        every = issuers.widened()
        start = every.pick(access.global_offset(address(cohort.R)))
        odd = np.flatnonzero(start % CHUNK)
        if odd.size:
            why = "the global address of a bulk copy is no multiple of 16,"
            raise lane_fault(every, int(odd[0]), why)
        other = start[:, None] + np.arange(0, count, unit)
        given = pieces(issuers, issuers.offset[:, None] + step, other, None, unit)
        if bar is None:
            start_store(cohort, given, combine)
            return
        targets = use(cohort, bar(cohort, mask)).widened()
        read = read_global(cohort, given)
        start_load(Load(cohort, given, targets, read, count))

    def run(cohort: Cohort, mask: Mask) -> None:
        lanes = find(cohort, mask)
        if not lanes.offset.size:
            return
        count = sizes(cohort, lanes.widened())
        if (count == count[0]).all():
            if count[0]:
                one(cohort, lanes, _on(cohort, lanes), int(count[0]))
            return
        lanes = lanes.widened()
        for each in np.unique(count[count > 0]).tolist():
            part = lanes.only(np.flatnonzero(count == each))
            one(cohort, part, _on(cohort, part), each)

    return run


def _on(cohort: Cohort, lanes: Lanes) -> Array:
    """The mask of these lanes."""
    return lanes.place(np.ones(lanes.offset.size, bool))


def refuse_others(ins: Instruction) -> None:
    """What needs clusters is not there."""
    if any("multicast" in part for part in ins.parts):
        raise unsupported(ins, "thread block clusters")
    if "cp_mask" in ins.parts:
        raise unsupported(ins)


def combiner(ins: Instruction, scalar: Scalar) -> Combine:
    """How a reduction combines two elements of a type, given as bits."""
    name = next((p for p in ins.parts if p in UPDATES), "")
    if not name:
        raise unsupported(ins)
    if scalar.is_decoded:
        update = decoded_update(name, scalar)
    else:
        update = UPDATES[name]

    def combine(old: Array, new: Array) -> Array:
        a, b = old.view(scalar.dtype), new.view(scalar.dtype)
        return update(a, b, b).view(UNSIGNED[scalar.size])

    return combine
