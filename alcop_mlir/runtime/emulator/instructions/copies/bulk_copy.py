"""cp.async.bulk: how copies of so many bytes are read, in all directions.

PTX ISA "Data Movement and Conversion Instructions: Bulk copy". A copy to shared memory
counts its bytes at an mbarrier when it lands; one to global memory belongs to the group
that its thread commits next.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from alcop_mlir.runtime.emulator.arithmetic.storage import Array
from alcop_mlir.runtime.emulator.instructions import bounds
from alcop_mlir.runtime.emulator.instructions.copies.bulk_load import (
    Destinations,
    Load,
    read_global,
    read_shared,
    start_load,
)
from alcop_mlir.runtime.emulator.instructions.copies.bulk_pieces import (
    CHUNK,
    at_shared,
    check_shared,
    combiner,
    multicast_mask,
    pieces,
)
from alcop_mlir.runtime.emulator.instructions.copies.bulk_store import start_store
from alcop_mlir.runtime.emulator.instructions.mbarrier import objects
from alcop_mlir.runtime.emulator.instructions.translator import Op, Translator
from alcop_mlir.runtime.emulator.machine.cohort import Cohort
from alcop_mlir.runtime.emulator.machine.faults import lane_fault
from alcop_mlir.runtime.emulator.machine.lanes import Lanes
from alcop_mlir.runtime.emulator.machine.warps import Mask
from alcop_mlir.runtime.emulator.ptx.scalars import U32T
from alcop_mlir.runtime.emulator.ptx.syntax import (
    Instruction,
    Operand,
    unsupported,
)


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
    return _bulk(t, ins, "global", "shared")


def copy_out(t: Translator, ins: Instruction) -> Op:
    """cp.async.bulk, cp.reduce.async.bulk from shared to global memory."""
    return _bulk(t, ins, "shared", "global")


def copy_across(t: Translator, ins: Instruction) -> Op:
    """cp.async.bulk, cp.reduce.async.bulk to the memory of a block of the cluster."""
    return _bulk(t, ins, "shared", "shared")


def _bulk(t: Translator, ins: Instruction, source: str, target: str) -> Op:
    if "cp_mask" in ins.parts:
        raise unsupported(ins)
    to, given, size, *more = ins.operands
    loads, across = target == "shared", source == target
    reaches = loads and "shared::cluster" in ins.parts
    find = at_shared(t, to if loads else given, ins, reaches)
    find_source = at_shared(t, given, ins) if across else None
    address, _ = t.base_address(given if loads else to, ins)
    sizes = _sizes(t, ins, size)
    targets = None
    if loads:
        blocks = multicast_mask(t, ins, more[1:])
        targets = Destinations(objects(t, more[0], ins), blocks)
    combine = combiner(ins, ins.type) if ins.parts[1] == "reduce" else None
    unit = CHUNK if combine is None else ins.type.size

    def load(
        cohort: Cohort, issuers: Lanes, other: Array, count: int, source: Lanes | None
    ) -> None:
        """`other`: where the pieces come from, or `source`, in shared memory."""
        assert targets is not None
        for there, bars, chosen in targets.each(cohort, issuers):
            check_shared(cohort, there, count)
            here = _steps(there.offset, count)
            given = pieces(there, here, other[chosen], None, unit)
            if source is None:
                read = read_global(cohort, given)
            else:
                read = read_shared(cohort, source)
            start_load(Load(cohort, given, bars, read, count, combine, source))

    def one(cohort: Cohort, issuers: Lanes, mask: Array, count: int) -> None:
        if find_source is not None:
            found = find_source(cohort, mask)
            check_shared(cohort, found, count)
            source = found.spread(_steps(found.offset, count, unit), unit)
            other = _steps(found.widened().offset, count, unit)
            load(cohort, issuers, other, count, source)
            return
        check_shared(cohort, issuers, count)
        every = issuers.widened()
        start = every.pick(bounds.global_offset(address(cohort.R)))
        odd = np.flatnonzero(start % CHUNK)
        if odd.size:
            why = "the global address of a bulk copy is no multiple of 16,"
            raise lane_fault(every, int(odd[0]), why)
        other = _steps(start, count, unit)
        if loads:
            load(cohort, issuers, other, count, None)
            return
        here = _steps(issuers.offset, count)
        start_store(cohort, pieces(issuers, here, other, None, unit), combine)

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


def _steps(start: Array, count: int, unit: int = CHUNK) -> Array:
    """The offsets of pieces of `count` bytes from each start on, (entries, pieces)."""
    return start[:, None] + np.arange(0, count, unit)


def _on(cohort: Cohort, lanes: Lanes) -> Array:
    """The mask of these lanes."""
    return lanes.place(np.ones(lanes.offset.size, bool))
