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
from alcop_mlir.runtime.emulator.machine.cohort import Cohort
from alcop_mlir.runtime.emulator.machine.faults import fault, lane_fault
from alcop_mlir.runtime.emulator.machine.lanes import Lanes, spread
from alcop_mlir.runtime.emulator.machine.memory import (
    GLOBAL_WINDOW,
    RANK_STEP,
    SHARED_START,
    WINDOW_SIZE,
    WINDOWS,
)
from alcop_mlir.runtime.emulator.machine.warps import LANES, Mask
from alcop_mlir.runtime.emulator.ptx.syntax import Instruction

Parts = tuple[tuple[int, int], ...]  # of an access: offset and size, in bytes


class Access(NamedTuple):
    """An access of `size` bytes by the lanes `mask`, each at its `address`.

    collective: what is read belongs to the whole warp, whichever lane gives the address
    reaches: whether it may be the shared memory of another block of the cluster
    """

    cohort: Cohort
    mask: Mask
    address: Array
    space: str
    size: int
    ins: Instruction
    collective: bool = False
    reaches: bool = False

    def for_each(self, offset: Array) -> Array:
        """An offset with an entry for every lane of every block."""
        return spread(offset, (self.cohort.blocks, self.cohort.warps, LANES))


def load(access: Access, used: Parts = ()) -> Array:
    """The bytes at each lane's address, as a register of MOVED_AS[size].

    used: parts of them that anything depends on, as offsets and sizes; () is all.
    What nothing depends on is no conflict: compilers widen loads over gaps.
    """
    cohort, mask, address, space, size, ins, collective, _ = access
    batch = cohort.batch
    if space == "generic":
        return _load_generic(access, used)
    if space == "shared":
        lanes = shared_lanes(access)
        check_read(cohort, lanes, collective)
        note_shared(cohort, lanes)
        return lanes.place(read_shared(cohort, lanes))
    if space == "local":
        lanes, thread = _local_lanes(access)
        return lanes.place(cohort.local_memory().gather(size, thread, lanes.offset))
    if space == "param":
        lanes = Lanes.compact(cohort, address.astype(S64), mask, size, ins)
        _check(cohort, lanes, batch.parameters.size, "parameter")
        copy = np.zeros(1, np.int64)
        return lanes.place(batch.parameters.gather(size, copy, lanes.offset))
    lanes = Lanes.compact(cohort, global_offset(address), mask, size, ins)
    check_global(cohort, lanes)
    if batch.global_shadow is not None:
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
        store_shared(access.cohort, shared_lanes(access), value)
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


def _check(cohort: Cohort, lanes: Lanes, limit: int, space: str) -> None:
    """Checks that the offsets lie in a memory of `limit` bytes, and are aligned."""
    offset, size = lanes.offset, lanes.size
    if not offset.size:
        return
    if int(offset.min()) < 0 or int(offset.max()) + size > limit:
        entry = int(np.flatnonzero((offset < 0) | (offset + size > limit))[0])
        owner = "thread" if space == "local" else "block"
        at = int(offset[entry])
        nearest = cohort.batch.kernel.memory_map.nearest(space, at)
        raise lane_fault(
            lanes,
            entry,
            f"out-of-bounds {size}-byte {space} access: byte {at} of {limit} ({space} "
            f"memory of a {owner}), {nearest},",
        )
    _check_alignment(cohort, lanes, space)


def _check_alignment(cohort: Cohort, lanes: Lanes, space: str) -> None:
    """PTX ISA: an access is aligned to its size, or the behaviour is undefined."""
    if lanes.size == 1:
        return
    odd = lanes.size - 1
    if int(np.bitwise_or.reduce(lanes.offset)) & odd:
        entry = int(np.flatnonzero(lanes.offset & odd)[0])
        offset = int(lanes.offset[entry])
        if space == "global":
            address = GLOBAL_WINDOW + offset
            nearest = cohort.batch.memory.nearest(address)
            where = f"address 0x{address:x}, {nearest}"
        else:
            nearest = cohort.batch.kernel.memory_map.nearest(space, offset)
            where = f"byte {offset}, {nearest}"
        raise lane_fault(
            lanes, entry, f"misaligned {lanes.size}-byte {space} access at {where},"
        )


# --- shared and local memory ---------------------------------------------------------


def shared_lanes(access: Access, width: int = LANES) -> Lanes:
    """The lanes of a shared access, with checked offsets into shared memory."""
    cohort, mask, address, _, size, ins, _, reaches = access
    offset = address.astype(S64) - SHARED_START
    lanes = Lanes.of(cohort, offset, mask, size, ins, width)
    return in_cluster(cohort, lanes, reaches)


def in_cluster(cohort: Cohort, lanes: Lanes, reaches: bool) -> Lanes:
    """Lanes at offsets of shared addresses, checked, as offsets in that of a cluster.

    reaches: whether they may be those of another block of the cluster
    """
    batch = cohort.batch
    if batch.ranks == 1:
        _check(cohort, lanes, batch.shared_size, "shared")
        return lanes
    own = lanes.warp() // batch.block_warps
    rank = lanes.offset // RANK_STEP - 1
    is_named = rank >= 0
    rank = np.where(is_named, rank, own)
    local = lanes.at(np.where(is_named, lanes.offset % RANK_STEP, lanes.offset))
    far = rank != own
    if far.any():
        _check_far(lanes, rank, far, reaches)
    _check(cohort, local, batch.shared_size, "shared")
    found = lanes.at(local.offset + rank * batch.shared_step)
    if far.any() and batch.shadow is not None:
        batch.shadow.on_far_access(found)
    return found


def _check_far(lanes: Lanes, rank: Array, far: Array, reaches: bool) -> None:
    ranks = lanes.owner.block_set.ranks
    lost = np.flatnonzero(rank >= ranks)
    if lost.size:
        entry = int(lost[0])
        why = f"there is no block of rank {int(rank[entry])} in a cluster of {ranks}"
        raise lane_fault(lanes, entry, why)
    if not reaches:
        entry = int(far.argmax())
        why = (
            f"the address is in the shared memory of the block of rank "
            f"{int(rank[entry])}, which this instruction cannot reach,"
        )
        raise lane_fault(lanes, entry, why)


def check_shared(cohort: Cohort, lanes: Lanes) -> None:
    """Faults unless every access lies in shared memory, and is aligned."""
    _check(cohort, lanes, cohort.batch.shared_size, "shared")


def check_read(cohort: Cohort, lanes: Lanes, collective: bool = False) -> None:
    """Looks for races of a read, and notes which of its bytes nothing has written."""
    shadow = cohort.batch.shadow
    if shadow is None:
        return
    origins = shadow.on_read(lanes, collective)
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


def store_shared(cohort: Cohort, lanes: Lanes, value: Array) -> None:
    """A store with its race checks and counters."""
    shadow = cohort.batch.shadow
    entries = lanes.pick_blocks(value)

    def changes() -> Array:
        return _bits(read_shared(cohort, lanes)) != _bits(entries)

    overlaps = None if shadow is None else shadow.on_write(lanes, changes=changes)
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
    _check(cohort, lanes, cohort.local_memory().size, "local")
    thread = np.arange(lanes.offset.size) if lanes.index is None else lanes.index
    return lanes, thread


# --- global memory -------------------------------------------------------------------


def global_offset(address: Array) -> Array:
    """Addresses as offsets from the start of the global window."""
    return (address.astype(U64, copy=False) - U64.type(GLOBAL_WINDOW)).view(S64)


def _global_address(offset: Array) -> Array:
    return offset.view(U64) + U64.type(GLOBAL_WINDOW)


def check_global(cohort: Cohort, lanes: Lanes, sizes: Array | None = None) -> None:
    """Faults unless every access lies in one buffer, and is aligned.

    sizes: the bytes that each entry accesses, if that is not `lanes.size`
    """
    if lanes.offset.size:
        _require_mapped(cohort, lanes, sizes)
    _check_alignment(cohort, lanes, "global")


def _require_mapped(cohort: Cohort, lanes: Lanes, sizes: Array | None) -> None:
    memory = cohort.batch.memory
    if sizes is None:
        low, high = int(lanes.offset.min()), int(lanes.offset.max())
        at = memory.buffer_at(GLOBAL_WINDOW + low) if low >= 0 else -1
        if at >= 0 and GLOBAL_WINDOW + high + lanes.size <= memory.buffers[at].stop:
            return
    address = _global_address(lanes.offset)
    outside = memory.outside(address, lanes.size if sizes is None else sizes)
    if not outside.any():
        return
    entry = int(np.flatnonzero(outside)[0])
    where = int(address[entry])
    count = lanes.size if sizes is None else int(sizes[entry])
    raise lane_fault(
        lanes,
        entry,
        f"out-of-bounds {count}-byte global access to address 0x{where:x}, "
        f"{memory.nearest(where)},",
    )


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


def check_written(cohort: Cohort, lanes: Lanes) -> None:
    """Faults unless every access lies in one buffer that may be written."""
    check_global(cohort, lanes)
    memory = cohort.batch.memory
    if memory.all_writable or not lanes.offset.size:
        return
    at = memory.buffers_at(_global_address(lanes.offset))
    locked = ~memory.writable[at]
    if locked.any():
        entry = int(np.flatnonzero(locked)[0])
        name = memory.buffers[int(at[entry])].name
        raise lane_fault(lanes, entry, f"write to read-only {name}")


def _store_global(access: Access, value: Array) -> None:
    lanes = _written_lanes(access)
    put_global(access.cohort, lanes, lanes.pick(value))


def put_global(cohort: Cohort, lanes: Lanes, entries: Array) -> None:
    """Writes (entries,) of MOVED_AS[size] to checked offsets."""
    batch = cohort.batch
    view, at = batch.memory.views[lanes.size], lanes.offset // lanes.size
    shadow = batch.global_shadow
    clash: Array | None = None
    if shadow is not None:
        clash = shadow.on_write(lanes, _bits(view.take(at)) != _bits(entries))
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
            batch.shadow.on_atomic(lanes)
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
    note_global(cohort, lanes)
    at = lanes.offset >> (size.bit_length() - 1)
    return Targets(lanes, batch.memory.views[size][None], at)
