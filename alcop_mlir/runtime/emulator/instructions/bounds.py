"""Where accesses may go: in bounds, aligned, and to which block of a cluster.

PTX ISA "Addresses as Operands" (natural alignment). What is wrong is a fault, which
stops the run.
"""

from __future__ import annotations

import numpy as np

from alcop_mlir.runtime.emulator.arithmetic.storage import S64, U64, Array
from alcop_mlir.runtime.emulator.machine.cohort import Cohort
from alcop_mlir.runtime.emulator.machine.faults import lane_fault
from alcop_mlir.runtime.emulator.machine.lanes import Lanes
from alcop_mlir.runtime.emulator.machine.memory import GLOBAL_WINDOW, RANK_STEP


def check_bounds(cohort: Cohort, lanes: Lanes, limit: int, space: str) -> None:
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


def in_cluster(cohort: Cohort, lanes: Lanes, reaches: bool) -> Lanes:
    """Lanes at offsets of shared addresses, checked, as offsets in that of a cluster.

    reaches: whether they may be those of another block of the cluster
    """
    batch = cohort.batch
    if batch.ranks == 1:
        check_bounds(cohort, lanes, batch.shared_size, "shared")
        return lanes
    own = lanes.warp() // batch.block_warps
    rank = lanes.offset // RANK_STEP - 1
    is_named = rank >= 0
    rank = np.where(is_named, rank, own)
    local = lanes.at(np.where(is_named, lanes.offset % RANK_STEP, lanes.offset))
    far = rank != own
    if far.any():
        _check_far(lanes, rank, far, reaches)
    check_bounds(cohort, local, batch.shared_size, "shared")
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
    check_bounds(cohort, lanes, cohort.batch.shared_size, "shared")


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
