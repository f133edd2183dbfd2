"""cp.async.bulk.tensor: boxes of arrays, by tensor maps.

PTX ISA "cp.async.bulk.tensor", "Tensor copy". What lies outside of the array reads as
zeros (or NaN) and is not written, but counts among the bytes of an mbarrier.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from alcop_mlir.runtime.emulator.arithmetic.storage import U64, Array
from alcop_mlir.runtime.emulator.instructions.copies.bulk_load import (
    Destinations,
    Load,
    read_global,
    start_load,
)
from alcop_mlir.runtime.emulator.instructions.copies.bulk_pieces import (
    CHUNK,
    Pieces,
    at_shared,
    check_shared,
    combiner,
    multicast_mask,
    pieces,
)
from alcop_mlir.runtime.emulator.instructions.copies.bulk_store import start_store
from alcop_mlir.runtime.emulator.instructions.mbarrier import objects
from alcop_mlir.runtime.emulator.instructions.memory import reaches_cluster
from alcop_mlir.runtime.emulator.instructions.translator import Op, Translator
from alcop_mlir.runtime.emulator.machine.batch import Batch
from alcop_mlir.runtime.emulator.machine.cohort import Cohort
from alcop_mlir.runtime.emulator.machine.faults import lane_fault
from alcop_mlir.runtime.emulator.machine.lanes import Lanes
from alcop_mlir.runtime.emulator.machine.loaded_kernel import Read
from alcop_mlir.runtime.emulator.machine.memory import GLOBAL_WINDOW, PARAM_WINDOW
from alcop_mlir.runtime.emulator.machine.tensor_map import (
    SIZE,
    Layout,
    swizzled,
    unpack,
)
from alcop_mlir.runtime.emulator.machine.warps import Mask
from alcop_mlir.runtime.emulator.ptx.scalars import SCALARS
from alcop_mlir.runtime.emulator.ptx.syntax import (
    Address,
    Instruction,
    Operand,
    Vector,
    elements,
    unsupported,
)

# Destination swizzles repeat after so many bytes, which a box has to be aligned to.
ALIGNMENT = 128  # PTX ISA: of the shared side of a tensor copy


def copy_tensor(t: Translator, ins: Instruction) -> Op:
    """cp.async.bulk.tensor and cp.reduce.async.bulk.tensor, in tile mode."""
    if any(p.startswith("im2col") or "gather" in p for p in ins.parts):
        raise unsupported(ins)
    operands = list(ins.operands)
    loads = isinstance(operands[1], Vector)
    tensor = operands.pop(1 if loads else 0)
    find = at_shared(t, operands[0], ins, reaches_cluster(ins))
    targets = None
    if loads:
        blocks = multicast_mask(t, ins, operands[2:])
        targets = Destinations(objects(t, operands[1], ins), blocks)
    if not isinstance(tensor, Vector) or len(tensor.items) != 2:
        raise unsupported(ins)
    map_at = _map_address(t, tensor.items[0], ins)
    corner = [t.read(item, SCALARS["s32"], ins) for item in elements(tensor.items[1])]
    if f"{len(corner)}d" not in ins.parts:
        raise unsupported(ins, "as many coordinates as dimensions are expected")
    reduces = ins.parts[1] == "reduce"

    def one(cohort: Cohort, issuers: Lanes, layout: Layout) -> None:
        every = issuers.widened()
        corners = np.stack(
            [every.pick(read(cohort.R)).astype(np.int64) for read in corner], axis=1
        )
        _check_box(cohort, issuers, layout)
        unit = layout.chunk(corners)
        if reduces:
            unit = layout.item
        address, inside = layout.boxes(corners, unit)
        step = np.arange(0, layout.bytes, CHUNK)

        def pieces_at(there: Lanes, chosen: Array) -> Pieces:
            shared = swizzled(there.offset[:, None] + step, layout.swizzle)
            offset = address[chosen] - GLOBAL_WINDOW
            return pieces(there, shared, offset, inside[chosen], unit)

        if targets is None:
            combine = combiner(ins, SCALARS[layout.dtype]) if reduces else None
            start_store(cohort, pieces_at(issuers, np.arange(len(address))), combine)
            return
        for there, bars, chosen in targets.each(cohort, issuers):
            given = pieces_at(there, chosen)
            read = read_global(cohort, given, layout.outside(unit))
            start_load(Load(cohort, given, bars, read, layout.bytes))

    def run(cohort: Cohort, mask: Mask) -> None:
        lanes = find(cohort, mask)
        for part, layout in _by_map(cohort, lanes, map_at, len(corner)):
            one(cohort, part, layout)

    return run


def _map_address(t: Translator, operand: Operand, ins: Instruction) -> Read:
    """The generic address of a tensor map."""
    address, _ = t.base_address(operand, ins)
    base = operand.base if isinstance(operand, Address) else None
    if base in t.memory_map.parameters:
        return lambda R: address(R).astype(U64) + U64.type(PARAM_WINDOW)
    return lambda R: address(R).astype(U64)


def _by_map(
    cohort: Cohort, lanes: Lanes, address: Read, rank: int
) -> Iterator[tuple[Lanes, Layout]]:
    """The lanes with each map."""
    if not lanes.offset.size:
        return
    every = lanes.widened()
    at = every.pick(address(cohort.R))
    maps = np.unique(at).tolist()
    for one in maps:
        part = lanes if len(maps) == 1 else every.only(np.flatnonzero(at == one))
        yield part, _layout(cohort.batch, part, one, rank)


def _layout(batch: Batch, lanes: Lanes, address: int, rank: int) -> Layout:
    if address % 64:
        raise lane_fault(lanes, 0, f"tensor map at 0x{address:x}, no multiple of 64,")
    raw = _bytes_at(batch, address)
    found = None if raw is None else unpack(raw)
    if found is None:
        raise lane_fault(lanes, 0, f"there is no tensor map at address 0x{address:x},")
    why = found.problem()
    if found.rank != rank:
        why = f"it has {found.rank} dimensions"
    if why:
        raise lane_fault(lanes, 0, f"the tensor map does not fit: {why},")
    return found


def _bytes_at(batch: Batch, address: int) -> bytes | None:
    start = address - PARAM_WINDOW
    data: Array = batch.parameters.data[0]
    if not 0 <= start <= data.size - SIZE:
        start, data = address - GLOBAL_WINDOW, batch.memory.data
        at = batch.memory.buffer_at(address)
        if at < 0 or address + SIZE > batch.memory.buffers[at].stop:
            return None
    return data[start : start + SIZE].tobytes()


def _check_box(cohort: Cohort, issuers: Lanes, layout: Layout) -> None:
    """PTX ISA: the shared side is aligned to 128 bytes."""
    odd = np.flatnonzero(issuers.offset % ALIGNMENT)  # so are the blocks' memories
    if odd.size:
        entry = int(odd[0])
        raise lane_fault(
            issuers,
            entry,
            f"a box at shared byte {int(issuers.offset[entry])}, no multiple of "
            f"{ALIGNMENT},",
        )
    check_shared(cohort, issuers, layout.bytes)
