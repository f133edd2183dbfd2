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

from alcop_mlir.runtime.emulator.arithmetic.storage import MOVED_AS, S64, U64
from alcop_mlir.runtime.emulator.instructions import access
from alcop_mlir.runtime.emulator.instructions.translator import Op, Translator
from alcop_mlir.runtime.emulator.machine.cohort import Cohort
from alcop_mlir.runtime.emulator.machine.faults import fault, location_of
from alcop_mlir.runtime.emulator.machine.lanes import Lanes
from alcop_mlir.runtime.emulator.machine.memory import GLOBAL_WINDOW, POISON
from alcop_mlir.runtime.emulator.machine.pending_copy import PendingCopy
from alcop_mlir.runtime.emulator.machine.registers import Read
from alcop_mlir.runtime.emulator.machine.warps import Mask
from alcop_mlir.runtime.emulator.ptx.scalars import PRED, U32T
from alcop_mlir.runtime.emulator.ptx.syntax import Instruction, Integer, unsupported

Array = np.ndarray
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
    count: Read | None = None
    ignore: Read | None = None
    if len(operands) > 3:
        count, ignore = _fourth(t, ins)

    def run(cohort: Cohort, mask: Mask) -> None:
        R = cohort.R
        lanes = access.shared_lanes(cohort, destination(R), mask, size, ins)
        wanted = None
        if count is not None:
            wanted = count(R).astype(S64)
        elif ignore is not None:
            wanted = np.where(ignore(R), 0, size).astype(S64)
        _issue(cohort, lanes, source(R), wanted, size, ins)

    return run


def _fourth(t: Translator, ins: Instruction) -> tuple[Read | None, Read | None]:
    """The optional operand: src-size, or the ignore-src predicate."""
    operand = ins.operands[3]
    name = getattr(operand, "name", None)
    if name is not None and t.is_register(name) and t.type_of(name, ins) is PRED:
        return None, t.read(operand, PRED, ins)
    return t.read(operand, U32T, ins), None


def _issue(
    cohort: Cohort,
    lanes: Lanes,
    address: Array,
    wanted: Array | None,
    size: int,
    ins: Instruction,
) -> None:
    batch = cohort.batch
    if batch.shadow is not None:
        overlap = batch.shadow.on_write(lanes, size, ins, in_flight=True)
        if overlap is not None:
            entry = int(np.flatnonzero(overlap)[0])
            batch.shadow.report_overlap(lanes, entry, ins)
    copy = _plan(cohort, lanes, address, wanted, size, ins)
    if cohort.counters is not None:
        cohort.counters.on_shared(lanes, size, ins)
        read = copy.source.size * size
        if copy.read_bytes is not None:
            read = int(copy.read_bytes.sum())
        cohort.counters.copy_bytes += read
    if cohort.trace is not None:
        cohort.trace.on_copy(cohort, copy)
    if batch.early:
        _land(cohort, copy)
    else:
        poison = np.full(size, POISON, np.uint8).view(MOVED_AS[size])[0]
        shape = lanes.offset.shape
        if not lanes.per_block:
            shape = (cohort.blocks, *shape)
        access.write_shared(cohort, lanes, size, np.broadcast_to(poison, shape))
    cohort.copies.append(copy)


def _plan(
    cohort: Cohort,
    lanes: Lanes,
    address: Array,
    wanted: Array | None,
    size: int,
    ins: Instruction,
) -> PendingCopy:
    """Checks the source of every lane and sorts out which bytes will be read."""
    where = lanes.pick_blocks(address.astype(U64)).reshape(-1)
    source_lanes = lanes if lanes.per_block else lanes.widened()
    filled: Array | None = None
    read_bytes: Array | None = None
    if wanted is not None:
        count = lanes.pick_blocks(wanted).reshape(-1)
        if (count != size).any():
            _check_count(source_lanes, count, size, ins)
            filled = np.flatnonzero(count)
            where, read_bytes = where[filled], count[filled]
            source_lanes = source_lanes.only(filled)
            if (read_bytes == size).all():
                read_bytes = None
    if where.size:
        need: Array | int = size
        if read_bytes is not None:
            need = read_bytes.astype(U64)
        access.require_mapped(cohort, source_lanes, where, need, ins)
    source = (where - U64.type(GLOBAL_WINDOW)).view(S64)
    access.check_alignment(cohort, source_lanes, source, size, "global", ins)
    if where.size and cohort.batch.global_shadow is not None and read_bytes is None:
        cohort.batch.global_shadow.on_read(source_lanes, source, size, ins)
    if cohort.counters is not None:
        cohort.counters.on_global(source_lanes, source, size, ins)
    group = cohort.committed
    return PendingCopy(lanes, source, filled, read_bytes, size, group, ins)


def _check_count(lanes: Lanes, count: Array, size: int, ins: Instruction) -> None:
    over = count > size
    if over.any():
        entry = int(np.flatnonzero(over)[0])
        raise fault(
            ins,
            f"cp.async src-size {int(count[entry])} is larger than its cp-size {size}",
            location_of(lanes, entry),
        )


def _read_source(cohort: Cohort, copy: PendingCopy) -> Array:
    """The bytes that arrive, one element per (block and) lane, zero-filled."""
    memory = cohort.batch.memory
    size = copy.size
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


def _land(cohort: Cohort, copy: PendingCopy) -> None:
    """Writes what has arrived to shared memory."""
    data = _read_source(cohort, copy)
    lanes = copy.lanes
    if not lanes.per_block:
        data = data.reshape(cohort.blocks, -1)
    access.write_shared(cohort, lanes, copy.size, data)


def commit_group(t: Translator, ins: Instruction) -> Op:
    def run(cohort: Cohort, mask: Mask) -> None:
        commit(cohort, mask, ins)

    return run


def commit(cohort: Cohort, mask: Mask, ins: Instruction) -> None:
    """Everything issued and not committed becomes one group of its thread."""
    step = np.ones((1, 1, 1), np.int64) if mask is None else mask.astype(np.int64)
    if cohort.counters is not None:
        cohort.counters.on_commit(cohort, ins)
    if cohort.trace is not None:
        cohort.trace.on_commit(cohort, mask, ins)
    cohort.committed = cohort.committed + step


def wait_group(t: Translator, ins: Instruction) -> Op:
    if not isinstance(ins.operands[0], Integer):
        raise unsupported(ins, "expected an immediate count")
    newest = ins.operands[0].value

    def run(cohort: Cohort, mask: Mask) -> None:
        wait(cohort, mask, newest, ins)

    return run


def wait_all(t: Translator, ins: Instruction) -> Op:
    """wait_all also covers copies that were never committed."""

    def run(cohort: Cohort, mask: Mask) -> None:
        commit(cohort, mask, ins)
        wait(cohort, mask, 0, ins)

    return run


def wait(cohort: Cohort, mask: Mask, newest: int, ins: Instruction) -> None:
    """Completes every copy but those of each thread's `newest` last groups."""
    limit = cohort.committed - newest
    left: list[PendingCopy] = []
    for copy in cohort.copies:
        done = copy.group < limit
        if mask is not None:
            done = done & mask
        if done.all():
            _complete(cohort, copy, ins)
        elif done.any():
            rest = _split(cohort, copy, done, ins)
            if rest is not None:
                left.append(rest)
        else:
            left.append(copy)
    if cohort.counters is not None:
        cohort.counters.on_wait(cohort, limit, mask, ins)
    if cohort.trace is not None:
        cohort.trace.on_wait(cohort, mask, ins)
    cohort.copies = left


def _split(
    cohort: Cohort, copy: PendingCopy, done: Array, ins: Instruction
) -> PendingCopy | None:
    """Completes the lanes that are done; returns the copy of the others."""
    shape = (max(done.shape[0], copy.lanes.shape[0]), cohort.warps, 32)
    done = np.broadcast_to(done, shape)
    ready, rest = copy.only(done), copy.only(~done)
    if ready is not None:
        _complete(cohort, ready, ins)
    return rest


def _complete(cohort: Cohort, copy: PendingCopy, ins: Instruction) -> None:
    batch = cohort.batch
    if not batch.early:
        _land(cohort, copy)
    if batch.shadow is not None:
        batch.shadow.on_landing(copy.lanes, copy.size, copy.ins.line)
    if cohort.trace is not None:
        cohort.trace.on_landing(cohort, copy, ins)
