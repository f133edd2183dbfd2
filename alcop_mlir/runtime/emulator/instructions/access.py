"""One load, store or atomic by a cohort: address checks, data, race checks, counters.

PTX ISA "State Spaces" and "Addresses as Operands" (natural alignment), "Generic
Addressing". A fault stops the run; a race is reported and the run goes on.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from alcop_mlir.errors import EmulationError
from alcop_mlir.runtime.emulator.arithmetic.storage import S64, U64
from alcop_mlir.runtime.emulator.machine.cohort import Cohort
from alcop_mlir.runtime.emulator.machine.faults import fault, location_of
from alcop_mlir.runtime.emulator.machine.lanes import Lanes
from alcop_mlir.runtime.emulator.machine.memory import (
    GLOBAL_WINDOW,
    LOCAL_WINDOW,
    PARAM_WINDOW,
    SHARED_START,
    SHARED_WINDOW,
    WINDOW_SIZE,
)
from alcop_mlir.runtime.emulator.machine.warps import Mask
from alcop_mlir.runtime.emulator.ptx.syntax import Instruction

Array = np.ndarray
Parts = tuple[tuple[int, int], ...]  # of an access: offset and size, in bytes
_WINDOWS = (
    ("shared", SHARED_WINDOW),
    ("local", LOCAL_WINDOW),
    ("param", PARAM_WINDOW),
)


def load(
    cohort: Cohort,
    mask: Mask,
    address: Array,
    space: str,
    size: int,
    ins: Instruction,
    used: Parts = (),
) -> Array:
    """The `size` bytes at each lane's address, as a register of MOVED_AS[size].

    used: parts of them that anything depends on, as offsets and sizes; () is all
    """
    if space == "generic":
        return _load_generic(cohort, mask, address, size, ins, used)
    if space == "shared":
        lanes = shared_lanes(cohort, address, mask, size, ins)
        if cohort.batch.shadow is not None:
            cohort.batch.shadow.on_read(lanes, size, ins)
        if cohort.counters is not None:
            cohort.counters.on_shared(lanes, size, ins)
        return lanes.place(read_shared(cohort, lanes, size))
    if space == "local":
        lanes, thread = _local_lanes(cohort, address, mask, size, ins)
        return lanes.place(cohort.local_memory().gather(size, thread, lanes.offset))
    if space == "param":
        lanes = Lanes.compact(cohort, address.astype(S64), mask)
        memory = cohort.batch.parameters
        _check(cohort, lanes, size, memory.size, "parameter", ins)
        copy = np.zeros(1, np.int64)
        return lanes.place(memory.gather(size, copy, lanes.offset))
    lanes = global_lanes(cohort, address, mask, size, ins)
    note_global_read(cohort, lanes, lanes.offset, size, ins, used)
    return lanes.place(cohort.batch.memory.views[size].take(lanes.offset // size))


def store(
    cohort: Cohort,
    mask: Mask,
    address: Array,
    space: str,
    size: int,
    value: Array,
    ins: Instruction,
) -> None:
    """Writes a register of MOVED_AS[size] to each lane's address."""
    if space == "generic":
        for name, part, rebased in split_generic(cohort, mask, address):
            store(cohort, part, rebased, name, size, value, ins)
    elif space == "shared":
        lanes = shared_lanes(cohort, address, mask, size, ins)
        store_shared(cohort, lanes, size, value, ins)
    elif space == "local":
        lanes, thread = _local_lanes(cohort, address, mask, size, ins)
        cohort.local_memory().scatter(size, thread, lanes.offset, lanes.pick(value))
    elif space == "global":
        _store_global(cohort, mask, address, size, value, ins)
    else:
        raise fault(ins, f"the {space} space cannot be written")


def _load_generic(
    cohort: Cohort,
    mask: Mask,
    address: Array,
    size: int,
    ins: Instruction,
    used: Parts,
) -> Array:
    out: Array | None = None
    for name, part, rebased in split_generic(cohort, mask, address):
        x = load(cohort, part, rebased, name, size, ins, used)
        out = x if out is None or part is None else np.where(part, x, out)
    assert out is not None
    return out


def split_generic(
    cohort: Cohort, mask: Mask, address: Array
) -> Iterator[tuple[str, Mask, Array]]:
    """The state spaces behind generic addresses: (space, lanes, own addresses)."""
    address = address.astype(U64)
    rest = np.ones((1, 1, 1), bool) if mask is None else mask
    for name, start in _WINDOWS:
        base = U64.type(start)
        inside = (address - base) < U64.type(WINDOW_SIZE)
        if not inside.any():
            continue
        part = inside & rest
        if part.any():
            every = mask is None and inside.all()
            yield name, None if every else _full(cohort, part), address - base
        rest = rest & ~inside
    if rest.any():
        every = mask is None and rest.all()
        yield "global", None if every else _full(cohort, rest), address


def _full(cohort: Cohort, mask: Array) -> Array:
    return np.broadcast_to(mask, (mask.shape[0], cohort.warps, 32))


def shared_lanes(
    cohort: Cohort,
    address: Array,
    mask: Mask,
    size: int,
    ins: Instruction,
    width: int = 32,
) -> Lanes:
    """The lanes of a shared access, with checked offsets into shared memory."""
    lanes = Lanes.of(cohort, address, mask, width)
    lanes.offset = lanes.offset.astype(S64) - SHARED_START
    _check(cohort, lanes, size, cohort.batch.shared.size, "shared", ins)
    return lanes


def _check(
    cohort: Cohort, lanes: Lanes, size: int, limit: int, space: str, ins: Instruction
) -> None:
    offset = lanes.offset
    if not offset.size:
        return
    if int(offset.min()) < 0 or int(offset.max()) + size > limit:
        entry = int(np.flatnonzero((offset < 0) | (offset + size > limit))[0])
        owner = "thread" if space == "local" else "block"
        at = int(offset[entry])
        memory_map = cohort.batch.kernel.memory_map
        raise fault(
            ins,
            f"out-of-bounds {size}-byte {space} access: byte {at} of {limit} ({space} "
            f"memory of a {owner}), {memory_map.nearest(space, at)},",
            location_of(lanes, entry),
        )
    check_alignment(cohort, lanes, offset, size, space, ins)


def check_alignment(
    cohort: Cohort,
    lanes: Lanes,
    offset: Array,
    size: int,
    space: str,
    ins: Instruction,
) -> None:
    """PTX ISA: an access is aligned to its size, or the behaviour is undefined."""
    if size == 1:
        return
    odd = offset & (size - 1)
    if odd.any():
        entry = int(np.flatnonzero(odd)[0])
        where = _location_name(cohort, space, int(offset[entry]))
        raise fault(
            ins,
            f"misaligned {size}-byte {space} access at {where},",
            location_of(lanes, entry),
        )


def _location_name(cohort: Cohort, space: str, offset: int) -> str:
    batch = cohort.batch
    if space == "global":
        address = GLOBAL_WINDOW + offset
        return f"address 0x{address:x}, {batch.memory.nearest(address)}"
    nearest = batch.kernel.memory_map.nearest(space, offset)
    return f"byte {offset}, {nearest}"


def read_shared(cohort: Cohort, lanes: Lanes, size: int) -> Array:
    """(entries,) if the lanes differ by block, else (blocks, entries)."""
    copy = lanes.block() if lanes.per_block else None
    return cohort.batch.shared.gather(size, copy, lanes.offset)


def write_shared(cohort: Cohort, lanes: Lanes, size: int, entries: Array) -> None:
    """The opposite of `read_shared`."""
    copy = lanes.block() if lanes.per_block else None
    cohort.batch.shared.scatter(size, copy, lanes.offset, entries)


def store_shared(
    cohort: Cohort, lanes: Lanes, size: int, value: Array, ins: Instruction
) -> None:
    """A store with its race checks and counters."""
    batch = cohort.batch
    shared: Array | None = None
    if batch.shadow is not None:
        shared = batch.shadow.on_write(lanes, size, ins)
    if cohort.counters is not None:
        cohort.counters.on_shared(lanes, size, ins)
    entries = lanes.pick_blocks(value)
    write_shared(cohort, lanes, size, entries)
    if shared is not None and batch.shadow is not None:
        differs = _bits(read_shared(cohort, lanes, size)) != _bits(entries)
        clash = np.flatnonzero(differs)  # counted through the blocks, if by block
        if clash.size:
            batch.shadow.report_overlap(lanes, int(clash[0]), ins)


def _bits(x: Array) -> Array:
    """Comparable bits: 16-byte elements are carried as complex numbers."""
    if x.dtype.itemsize != 16:
        return x
    pairs = np.ascontiguousarray(x)[..., None].view(U64)
    return pairs[..., 0] ^ (pairs[..., 1] * U64.type(0x9E3779B97F4A7C15))


def _local_lanes(
    cohort: Cohort, address: Array, mask: Mask, size: int, ins: Instruction
) -> tuple[Lanes, Array]:
    shape = (cohort.blocks, cohort.warps, 32)
    lanes = Lanes.of(cohort, np.broadcast_to(address, shape), mask)
    lanes.offset = lanes.offset.astype(S64)
    _check(cohort, lanes, size, cohort.local_memory().size, "local", ins)
    thread = lanes.index
    if thread is None:
        thread = np.arange(lanes.offset.size)
    return lanes, thread


# --- global memory -----------------------------------------------------------------


def global_lanes(
    cohort: Cohort,
    address: Array,
    mask: Mask,
    size: int,
    ins: Instruction,
) -> Lanes:
    """The lanes of a global read; offsets are from the start of the global window."""
    lanes = Lanes.compact(cohort, address.astype(U64), mask)
    _check_global(cohort, lanes, size, ins)
    return lanes


def _check_global(cohort: Cohort, lanes: Lanes, size: int, ins: Instruction) -> None:
    """Checks bounds and alignment and turns addresses into offsets."""
    address = lanes.offset
    if address.size:
        require_mapped(cohort, lanes, address, size, ins)
    lanes.offset = (address - U64.type(GLOBAL_WINDOW)).view(S64)
    check_alignment(cohort, lanes, lanes.offset, size, "global", ins)


def require_mapped(
    cohort: Cohort, lanes: Lanes, address: Array, size: Array | int, ins: Instruction
) -> None:
    """Faults unless every [address, address + size) lies in one buffer."""
    memory = cohort.batch.memory
    if isinstance(size, int):
        low, high = int(address.min()), int(address.max())
        at = memory.buffer_at(low)
        if at >= 0 and high + size <= memory.buffers[at].stop:
            return
    outside = memory.outside(address, size)
    if not outside.any():
        return
    entry = int(np.flatnonzero(outside)[0])
    where = int(address[entry])
    count = size if isinstance(size, int) else int(size[entry])
    raise fault(
        ins,
        f"out-of-bounds {count}-byte global access to address 0x{where:x}, "
        f"{memory.nearest(where)},",
        location_of(lanes, entry),
    )


def note_global_read(
    cohort: Cohort,
    lanes: Lanes,
    offset: Array,
    size: int,
    ins: Instruction,
    used: Parts = (),
) -> None:
    """Conflicts between blocks, and counters, of a global read.

    What nothing depends on is no conflict: compilers widen loads over gaps.
    """
    if cohort.batch.global_shadow is not None:
        for start, length in used or ((0, size),):
            cohort.batch.global_shadow.on_read(lanes, offset + start, length, ins)
    if cohort.counters is not None:
        cohort.counters.on_global(lanes, offset, size, ins)


def _store_global(
    cohort: Cohort,
    mask: Mask,
    address: Array,
    size: int,
    value: Array,
    ins: Instruction,
) -> None:
    shape = (cohort.blocks, cohort.warps, 32)
    lanes = Lanes.of(cohort, np.broadcast_to(address, shape).astype(U64), mask)
    _check_global(cohort, lanes, size, ins)
    _require_writable(cohort, lanes, ins)
    view = cohort.batch.memory.views[size]
    at = lanes.offset // size
    entries = lanes.pick(value)
    shadow = cohort.batch.global_shadow
    clash: Array | None = None
    if shadow is not None:
        differs = _bits(view.take(at)) != _bits(entries)
        clash = shadow.on_write(lanes, lanes.offset, size, ins, differs)
    if cohort.counters is not None:
        cohort.counters.on_global(lanes, lanes.offset, size, ins)
    view[at] = entries
    if shadow is not None and clash is not None:
        lost = np.flatnonzero(clash & (_bits(view.take(at)) != _bits(entries)))
        if lost.size:
            shadow.report_clash(lanes, int(lost[0]), ins)


def _require_writable(cohort: Cohort, lanes: Lanes, ins: Instruction) -> None:
    memory = cohort.batch.memory
    if memory.all_writable or not lanes.offset.size:
        return
    address = lanes.offset.view(U64) + U64.type(GLOBAL_WINDOW)
    at = np.searchsorted(memory.starts, address, side="right") - 1
    locked = ~memory.writable[at]
    if locked.any():
        entry = int(np.flatnonzero(locked)[0])
        name = memory.buffers[int(at[entry])].name
        raise fault(ins, f"write to read-only {name}", location_of(lanes, entry))


# --- atomics -----------------------------------------------------------------------


def atomic_targets(
    cohort: Cohort, mask: Mask, address: Array, space: str, size: int, ins: Instruction
) -> tuple[Lanes, Array, Array]:
    """The lanes, the flat memory view and each entry's element in it."""
    shape = (cohort.blocks, cohort.warps, 32)
    wide = np.broadcast_to(address, shape)
    if space == "shared":
        lanes = shared_lanes(cohort, wide, mask, size, ins)
        if cohort.batch.shadow is not None:
            cohort.batch.shadow.on_atomic(lanes, size, ins)
        if cohort.counters is not None:
            cohort.counters.on_shared(lanes, size, ins)
        shared = cohort.batch.shared
        row = shared.views[size].shape[1]
        return lanes, shared.flat[size], lanes.block() * row + lanes.offset // size
    if space != "global":
        raise EmulationError(f"PTX line {ins.line}: atomic on {space} memory")
    lanes = Lanes.of(cohort, wide.astype(U64), mask)
    _check_global(cohort, lanes, size, ins)
    _require_writable(cohort, lanes, ins)
    if cohort.counters is not None:
        cohort.counters.on_global(lanes, lanes.offset, size, ins)
    return lanes, cohort.batch.memory.views[size], lanes.offset // size
