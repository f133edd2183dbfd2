"""One load, store or atomic by a cohort: address checks, data, race checks, counters.

PTX ISA "State Spaces" and "Addresses as Operands" (natural alignment), "Generic
Addressing". A fault stops the run; a race is reported and the run goes on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from alcop_mlir.errors import EmulationError
from alcop_mlir.runtime.emulator.arithmetic.storage import S64, U64, Array
from alcop_mlir.runtime.emulator.instructions import flags
from alcop_mlir.runtime.emulator.instructions.bounds import (
    check_bounds,
    check_global,
    check_written,
    global_offset,
    in_cluster,
)
from alcop_mlir.runtime.emulator.machine.cohort import Cohort
from alcop_mlir.runtime.emulator.machine.faults import fault
from alcop_mlir.runtime.emulator.machine.lanes import Lanes, spread
from alcop_mlir.runtime.emulator.machine.memory import (
    SHARED_START,
    WINDOW_SIZE,
    WINDOWS,
)
from alcop_mlir.runtime.emulator.machine.releases import Order
from alcop_mlir.runtime.emulator.machine.warps import LANES, Mask
from alcop_mlir.runtime.emulator.ptx.syntax import Instruction

Parts = tuple[tuple[int, int], ...]  # of an access: offset and size, in bytes


class Access(NamedTuple):
    """An access of `size` bytes by the lanes `mask`, each at its `address`.

    collective: what is read belongs to the whole warp, whichever lane gives the address
    reaches: whether it may be the shared memory of another block of the cluster
    order: of a strong access; None: it is weak
    """

    cohort: Cohort
    mask: Mask
    address: Array
    space: str
    size: int
    ins: Instruction
    collective: bool = False
    reaches: bool = False
    order: Order | None = None

    def for_each(self, offset: Array) -> Array:
        """An offset with an entry for every lane of every block."""
        return spread(offset, (self.cohort.blocks, self.cohort.warps, LANES))


def load(access: Access, used: Parts = ()) -> Array:
    """The bytes at each lane's address, as a register of MOVED_AS[size].

    used: parts of them that anything depends on, as offsets and sizes; () is all.
    What nothing depends on is no conflict: compilers widen loads over gaps.
    """
    cohort, mask, address, space, size, ins, collective, _, order = access
    batch = cohort.batch
    if space == "generic":
        return _load_generic(access, used)
    if space == "shared":
        lanes = shared_lanes(access)
        check_read(cohort, lanes, collective, order)
        note_shared(cohort, lanes)
        return lanes.place(read_shared(cohort, lanes))
    if space == "local":
        lanes, thread = _local_lanes(access)
        return lanes.place(cohort.local_memory().gather(size, thread, lanes.offset))
    if space == "param":
        lanes = Lanes.compact(cohort, address.astype(S64), mask, size, ins)
        check_bounds(cohort, lanes, batch.parameters.size, "parameter")
        copy = np.zeros(1, np.int64)
        return lanes.place(batch.parameters.gather(size, copy, lanes.offset))
    lanes = Lanes.compact(cohort, global_offset(address), mask, size, ins)
    check_global(cohort, lanes)
    if order is not None:
        every = Lanes.of(
            cohort, access.for_each(global_offset(address)), mask, size, ins
        )
        flags.on_order(cohort, mask, order)
        if batch.global_shadow is not None:
            batch.global_shadow.on_strong(every, writes=False)
        flags.on_read(cohort, every, space, order)
    elif batch.global_shadow is not None:
        for start, length in used or ((0, size),):
            batch.global_shadow.on_read(lanes.at(lanes.offset + start, length))
    note_global(cohort, lanes)
    return lanes.place(batch.memory.views[size].take(lanes.offset // size))


def _load_generic(access: Access, used: Parts) -> Array:
    out: Array | None = None
    for part in split_generic(access):
        x = load(part, used)
        out = x if out is None or part.mask is None else np.where(part.mask, x, out)
    assert out is not None
    return out


def store(access: Access, value: Array) -> None:
    """Writes a register of MOVED_AS[size] to each lane's address."""
    space, storing = access.space, access.cohort.storing
    if storing is not None and space not in ("generic", "shared"):
        how = "reaches memory"
        access.cohort.report_used(storing, access.mask, access.ins, how)
    if space == "generic":
        for part in split_generic(access):
            store(part, value)
    elif space == "shared":
        store_shared(access.cohort, shared_lanes(access), value, access.order)
    elif space == "local":
        lanes, thread = _local_lanes(access)
        memory = access.cohort.local_memory()
        memory.scatter(lanes.size, thread, lanes.offset, lanes.pick(value))
    elif space == "global":
        _store_global(access, value)
    else:
        raise fault(access.ins, f"the {space} space cannot be written")


def split_generic(access: Access) -> Iterator[Access]:
    """The accesses of the state spaces behind generic addresses."""
    mask, address = access.mask, access.address.astype(U64)
    rest = np.ones((1, 1, 1), bool) if mask is None else mask

    def part(space: str, inside: Array, start: int) -> Access:
        on = None
        if mask is not None or not inside.all():
            on = np.broadcast_to(inside, (len(inside), access.cohort.warps, LANES))
        own = address - U64.type(start)
        return access._replace(space=space, mask=on, address=own, reaches=True)

    for space, start in WINDOWS.items():
        inside = (address - U64.type(start)) < U64.type(WINDOW_SIZE)
        if (inside & rest).any():
            yield part(space, inside & rest, start)
        rest = rest & ~inside
    if rest.any():
        yield part("global", rest, 0)


# --- shared and local memory ---------------------------------------------------------


def shared_lanes(access: Access, width: int = LANES) -> Lanes:
    """The lanes of a shared access, with checked offsets into shared memory."""
    cohort, mask, address, _, size, ins, _, reaches, _ = access
    offset = address.astype(S64) - SHARED_START
    lanes = Lanes.of(cohort, offset, mask, size, ins, width)
    return in_cluster(cohort, lanes, reaches)


def check_read(
    cohort: Cohort, lanes: Lanes, collective: bool = False, order: Order | None = None
) -> None:
    """Looks for races of a read, and notes which of its bytes nothing has written."""
    shadow = cohort.batch.shadow
    if shadow is None:
        return
    if order is None:
        origins = shadow.on_read(lanes, collective)
    else:
        origins = shadow.on_strong_read(lanes, order.is_wide)
        flags.on_read(cohort, lanes, "shared", order)
    if origins is None:
        return
    if len(origins) != lanes.offset.size:
        lanes = lanes.widened()
    for i in range(origins.shape[1]):
        part = (i * shadow.granule, shadow.granule, lanes.place(origins[:, i]))
        cohort.unwritten.append(part)


def note_shared(cohort: Cohort, lanes: Lanes) -> None:
    """Tells the observers of a shared access."""
    for observer in cohort.observers:
        observer.on_shared(lanes)


def read_shared(cohort: Cohort, lanes: Lanes) -> Array:
    """(entries,) if the lanes differ by block, else (blocks, entries)."""
    copy = lanes.block() if lanes.per_block else None
    return cohort.batch.shared.gather(lanes.size, copy, lanes.offset)


def write_shared(cohort: Cohort, lanes: Lanes, entries: Array) -> None:
    """The opposite of `read_shared`."""
    copy = lanes.block() if lanes.per_block else None
    cohort.batch.shared.scatter(lanes.size, copy, lanes.offset, entries)


def store_shared(
    cohort: Cohort, lanes: Lanes, value: Array, order: Order | None = None
) -> None:
    """A store with its race checks and counters."""
    shadow = cohort.batch.shadow
    entries = lanes.pick_blocks(value)

    def changes() -> Array:
        return _bits(read_shared(cohort, lanes)) != _bits(entries)

    overlaps: Array | None = None
    if shadow is not None and order is not None:
        shadow.on_strong_write(lanes, order.is_wide)
    elif shadow is not None:
        overlaps = shadow.on_write(lanes, changes=changes)
    flags.on_write(cohort, lanes, "shared", order)
    note_shared(cohort, lanes)
    write_shared(cohort, lanes, entries)
    if shadow is not None and cohort.storing is not None:
        by_block = len(cohort.storing) > 1
        each = lanes.widened() if by_block else lanes
        shadow.taint(each, each.pick(cohort.storing))
    if shadow is not None and overlaps is not None:
        differs = _bits(read_shared(cohort, lanes)) != _bits(entries)
        clash = np.flatnonzero(differs)  # counted through the blocks, if by block
        if clash.size:
            shadow.report_overlap(lanes, int(clash[0]))
        else:
            shadow.report_overlap(lanes, int(overlaps.argmax()), differ=False)


def _bits(x: Array) -> Array:
    """Comparable bits: 16-byte elements are carried as complex numbers."""
    if x.dtype.itemsize != 16:
        return x
    pairs = np.ascontiguousarray(x)[..., None].view(U64)
    return pairs[..., 0] ^ (pairs[..., 1] * U64.type(0x9E3779B97F4A7C15))


def _local_lanes(access: Access) -> tuple[Lanes, Array]:
    """The lanes of a local access, and the number of each one's thread."""
    cohort = access.cohort
    offset = access.for_each(access.address.astype(S64))
    lanes = Lanes.of(cohort, offset, access.mask, access.size, access.ins)
    check_bounds(cohort, lanes, cohort.local_memory().size, "local")
    thread = np.arange(lanes.offset.size) if lanes.index is None else lanes.index
    return lanes, thread


# --- global memory -------------------------------------------------------------------


def note_global(cohort: Cohort, lanes: Lanes) -> None:
    """Tells the observers of a global access."""
    for observer in cohort.observers:
        observer.on_global(lanes)


def _written_lanes(access: Access) -> Lanes:
    """The lanes of a global access that writes, checked."""
    cohort, mask, size, ins = access.cohort, access.mask, access.size, access.ins
    offset = global_offset(access.address)
    # Once where lanes share an address, as those of all blocks do.
    check_written(cohort, Lanes.compact(cohort, offset, mask, size, ins))
    return Lanes.of(cohort, access.for_each(offset), mask, size, ins)


def _store_global(access: Access, value: Array) -> None:
    lanes, order = _written_lanes(access), access.order
    if order is not None:
        flags.on_order(access.cohort, access.mask, order)
    put_global(access.cohort, lanes, lanes.pick(value), order)


def put_global(
    cohort: Cohort,
    lanes: Lanes,
    entries: Array,
    order: Order | None = None,
    by_engine: bool = False,
) -> None:
    """Writes (entries,) of MOVED_AS[size] to checked offsets."""
    batch = cohort.batch
    view, at = batch.memory.views[lanes.size], lanes.offset // lanes.size
    shadow = batch.global_shadow
    clash: Array | None = None
    if shadow is not None and order is not None:
        shadow.on_strong(lanes, writes=True)
    elif shadow is not None:
        differs = _bits(view.take(at)) != _bits(entries)
        write = shadow.on_engine_change if by_engine else shadow.on_write
        clash = write(lanes, differs)
    flags.on_write(cohort, lanes, "global", order)
    note_global(cohort, lanes)
    view[at] = entries
    if shadow is not None and clash is not None:
        lost = np.flatnonzero(clash & (_bits(view.take(at)) != _bits(entries)))
        if lost.size:
            shadow.report_clash(lanes, int(lost[0]))


# --- atomics -------------------------------------------------------------------------


class Targets(NamedTuple):
    """Where atomics go: elements `at` of `memory`, one for each entry of `lanes`.

    memory: (copies, elements); copies are the blocks whose entries go to the same
    elements of their own memory, or 1
    """

    lanes: Lanes
    memory: Array
    at: Array

    def pick(self, value: Array) -> Array:
        """The entries of a register, (copies, entries), once if all have the same."""
        if len(self.memory) > 1 and len(value) > 1:
            return self.lanes.pick_blocks(value)
        return self.lanes.pick(value)[None]

    def place(self, entries: Array) -> Array:
        """A register of entries (copies, entries)."""
        return self.lanes.place(entries if len(self.memory) > 1 else entries[0])


def atomic_targets(access: Access) -> Targets:
    """The targets of an atomic, after its checks."""
    cohort, size = access.cohort, access.size
    batch = cohort.batch
    if access.space == "shared":
        lanes = shared_lanes(access)
        if batch.shadow is not None:
            is_wide = access.order is None or access.order.is_wide
            batch.shadow.on_strong_write(lanes, is_wide, updates=True)
        note_shared(cohort, lanes)
        memory, at = batch.shared.views[size], lanes.offset // size
        if not lanes.per_block:
            return Targets(lanes, memory, at)
        at = lanes.block() * memory.shape[1] + at
        return Targets(lanes, batch.shared.flat[size][None], at)
    if access.space != "global":
        line = access.ins.line
        raise EmulationError(f"PTX line {line}: atomic on {access.space} memory")
    lanes = _written_lanes(access)
    if batch.global_shadow is not None:
        batch.global_shadow.on_strong(lanes, writes=True, updates=True)
    note_global(cohort, lanes)
    at = lanes.offset >> (size.bit_length() - 1)
    return Targets(lanes, batch.memory.views[size][None], at)
