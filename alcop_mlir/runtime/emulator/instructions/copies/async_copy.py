"""cp.async: copies from global to shared memory that land later.

PTX ISA "Data Movement and Conversion Instructions: Non-bulk copy". A copy belongs to
the commit group that its thread commits next; `wait_group N` completes all but the N
newest groups of the thread. Until then its destination must not be touched.

Visibility "late": the destination reads as 0xFF bytes from the issue on, and the
source is read when the wait completes the copy, the last moment that PTX allows.
Visibility "early": all of the copy happens at its issue, the first moment.
"""

from __future__ import annotations

import numpy as np

from alcop_mlir.runtime.emulator.arithmetic.storage import MOVED_AS, S64, Array
from alcop_mlir.runtime.emulator.instructions import access, bounds
from alcop_mlir.runtime.emulator.instructions.access import Access
from alcop_mlir.runtime.emulator.instructions.translator import Op, Translator
from alcop_mlir.runtime.emulator.machine.cohort import Cohort
from alcop_mlir.runtime.emulator.machine.faults import lane_fault
from alcop_mlir.runtime.emulator.machine.lanes import Lanes
from alcop_mlir.runtime.emulator.machine.loaded_kernel import Read
from alcop_mlir.runtime.emulator.machine.memory import POISON
from alcop_mlir.runtime.emulator.machine.pending_copy import PendingCopy
from alcop_mlir.runtime.emulator.machine.warps import LANES, Mask
from alcop_mlir.runtime.emulator.ptx.scalars import PRED, U32T
from alcop_mlir.runtime.emulator.ptx.syntax import (
    Instruction,
    Integer,
    groups_left,
    unsupported,
)

SIZES = {"ca": (4, 8, 16), "cg": (16,)}  # PTX ISA, cp.async: cp-size by cache operator


def copied_bytes(ins: Instruction) -> int:
    """What one lane copies."""
    size = ins.operands[2] if len(ins.operands) > 2 else None
    return max(size.value, 1) if isinstance(size, Integer) else 16


def issue_copy(t: Translator, ins: Instruction) -> Op:
    operands = ins.operands
    size = operands[2].value if isinstance(operands[2], Integer) else 0
    if size not in SIZES[ins.parts[2]] or "global" not in ins.parts:
        raise unsupported(ins)
    destination, _ = t.base_address(operands[0], ins)
    source, _ = t.base_address(operands[1], ins)
    wanted = _wanted_bytes(t, ins, size)

    def run(cohort: Cohort, mask: Mask) -> None:
        R = cohort.R
        lanes = access.shared_lanes(
            Access(cohort, mask, destination(R), "shared", size, ins)
        )
        _issue(cohort, lanes, source(R), None if wanted is None else wanted(R))

    return run


def _wanted_bytes(t: Translator, ins: Instruction, size: int) -> Read | None:
    """The optional operand, src-size or ignore-src: how many bytes are copied."""
    has_policy = "L2::cache_hint" in ins.parts  # the last one; it changes no result
    if len(ins.operands) - has_policy < 4:
        return None
    operand = ins.operands[3]
    name = getattr(operand, "name", "")
    if t.is_register(name) and t.type_of(name, ins) is PRED:
        ignore = t.read(operand, PRED, ins)
        return lambda R: np.where(ignore(R), 0, size)
    count = t.read(operand, U32T, ins)
    return lambda R: count(R).astype(S64)


def _issue(cohort: Cohort, lanes: Lanes, address: Array, wanted: Array | None) -> None:
    """Copies to `lanes` from `address`; `wanted`: how many bytes, None for all."""
    batch, size = cohort.batch, lanes.size
    if batch.shadow is not None:
        overlap = batch.shadow.on_write(lanes, in_flight=True)
        if overlap is not None:
            batch.shadow.report_overlap(lanes, int(np.flatnonzero(overlap)[0]))
    copy = _plan(cohort, lanes, address, wanted)
    access.note_shared(cohort, lanes)
    for observer in cohort.observers:
        observer.on_copy(cohort, copy)
    if batch.early:
        land(cohort, copy)
    else:
        poison = np.full(size, POISON, np.uint8).view(MOVED_AS[size])[0]
        shape = lanes.offset.shape
        if not lanes.per_block:
            shape = (cohort.blocks, *shape)
        access.write_shared(cohort, lanes, np.broadcast_to(poison, shape))
    cohort.copies.append(copy)


def _plan(
    cohort: Cohort, lanes: Lanes, address: Array, wanted: Array | None
) -> PendingCopy:
    """Checks the source of every lane and sorts out which bytes will be read."""
    size = lanes.size
    where = lanes.pick_blocks(bounds.global_offset(address)).reshape(-1)
    source = lanes.widened().at(where)
    filled: Array | None = None
    read_bytes: Array | None = None
    if wanted is not None:
        count = lanes.pick_blocks(wanted).reshape(-1)
        if (count != size).any():
            _check_count(source, count)
            filled = np.flatnonzero(count)
            read_bytes, source = count[filled], source.only(filled)
            if (read_bytes == size).all():
                read_bytes = None
    bounds.check_global(cohort, source, read_bytes)
    shadow = cohort.batch.global_shadow
    if where.size and shadow is not None and read_bytes is None:
        shadow.on_read(source)
    access.note_global(cohort, source)
    return PendingCopy(lanes, source.offset, filled, read_bytes, cohort.committed)


def _check_count(lanes: Lanes, count: Array) -> None:
    over = count > lanes.size
    if over.any():
        entry = int(np.flatnonzero(over)[0])
        raise lane_fault(
            lanes,
            entry,
            f"cp.async src-size {int(count[entry])} is larger than its cp-size "
            f"{lanes.size}",
        )


def _read_source(cohort: Cohort, copy: PendingCopy) -> Array:
    """The bytes that arrive, one element per (block and) lane, zero-filled."""
    memory = cohort.batch.memory
    size = copy.lanes.size
    full = memory.views[size]
    if copy.filled is None:
        return full.take(copy.source // size)
    total = copy.lanes.offset.size
    if not copy.lanes.per_block:
        total *= cohort.blocks
    out = np.zeros(total, MOVED_AS[size])
    if copy.read_bytes is None:
        out[copy.filled] = full.take(copy.source // size)
        return out
    cells = np.zeros((copy.source.size, size), np.uint8)
    step = np.arange(size)
    reads = step < copy.read_bytes[:, None]
    at = np.where(reads, copy.source[:, None] + step, 0)
    cells[reads] = memory.data.take(at)[reads]
    out[copy.filled] = cells.view(MOVED_AS[size])[:, 0]
    return out


def land(cohort: Cohort, copy: PendingCopy) -> None:
    """Writes what has arrived to shared memory."""
    data = _read_source(cohort, copy)
    if not copy.lanes.per_block:
        data = data.reshape(cohort.blocks, -1)
    access.write_shared(cohort, copy.lanes, data)


def commit_group(t: Translator, ins: Instruction) -> Op:
    return lambda cohort, mask: _commit(cohort, mask, ins)


def _commit(cohort: Cohort, mask: Mask, ins: Instruction) -> None:
    """Everything issued and not committed becomes one group of its thread."""
    step = np.ones((1, 1, 1), np.int64) if mask is None else mask.astype(np.int64)
    for observer in cohort.observers:
        observer.on_commit(cohort, mask, ins)
    cohort.committed = cohort.committed + step


def wait_group(t: Translator, ins: Instruction) -> Op:
    newest = groups_left(ins)
    return lambda cohort, mask: _wait(cohort, mask, newest, ins)


def wait_all(t: Translator, ins: Instruction) -> Op:
    """wait_all also covers copies that were never committed."""

    def run(cohort: Cohort, mask: Mask) -> None:
        _commit(cohort, mask, ins)
        _wait(cohort, mask, 0, ins)

    return run


def _wait(cohort: Cohort, mask: Mask, newest: int, ins: Instruction) -> None:
    """Completes every copy but those of each thread's `newest` last groups."""
    limit = cohort.committed - newest
    _finish_arrivals(cohort, limit, mask)
    left: list[PendingCopy] = []
    for copy in cohort.copies:
        done = copy.group < limit
        if mask is not None:
            done = done & mask
        ready, rest = split_copy(cohort, copy, done)
        if ready is not None:
            _complete(cohort, ready, ins)
        if rest is not None:
            left.append(rest)
    for observer in cohort.observers:
        observer.on_wait(cohort, limit, mask, ins)
    cohort.copies = left


def _finish_arrivals(cohort: Cohort, limit: Array, mask: Mask) -> None:
    """The copies that a wait completes have arrived where they were to."""
    for copy in list(cohort.copies):
        on = copy.group < limit
        on = on if mask is None else on & mask
        if not copy.arrivals or split_copy(cohort, copy, on)[0] is None:
            continue
        for flight in copy.arrivals:
            if flight in cohort.batch.flights:
                flight.finish()
    for flight in cohort.arrived.values():
        flight.learn()


def split_copy(
    cohort: Cohort, copy: PendingCopy, done: Array
) -> tuple[PendingCopy | None, PendingCopy | None]:
    """The copies of the lanes that are done, and those of the others."""
    if done.all():
        return copy, None
    if not done.any():
        return None, copy
    shape = (max(len(done), copy.lanes.shape[0]), cohort.warps, LANES)
    done = np.broadcast_to(done, shape)
    return copy.only(done), copy.only(~done)


def _complete(cohort: Cohort, copy: PendingCopy, ins: Instruction) -> None:
    batch = cohort.batch
    if not batch.early:
        land(cohort, copy)
    if batch.shadow is not None:
        batch.shadow.on_landing(copy.lanes)
    for observer in cohort.observers:
        observer.on_landing(cohort, copy, ins)
