"""cp.async.bulk.tensor: boxes of arrays, by tensor maps.

PTX ISA "cp.async.bulk.tensor", "Tensor copy", in tile and im2col mode. What lies
outside of the array reads as zeros (or NaN) and is not written, but counts among the
bytes of an mbarrier. Loads round f32 where the elements of the map are tf32.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from alcop_mlir.runtime.emulator.arithmetic.floats import encode_tf32
from alcop_mlir.runtime.emulator.arithmetic.storage import F32, U64, Array
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
from alcop_mlir.runtime.emulator.machine.tensor_map_rules import CORNER_BITS, problem
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


_MAP = np.arange(0, SIZE, CHUNK)  # the pieces of a map
# PTX ISA, "Target ISA Notes" of the instruction: these are of later targets.
LATER = ("tile::gather4", "tile::scatter4", "im2col::w", "im2col::w::128")


def copy_tensor(t: Translator, ins: Instruction) -> Op:
    """cp.async.bulk.tensor and cp.reduce.async.bulk.tensor."""
    later = [part for part in LATER if part in ins.parts]
    if later:
        raise unsupported(ins, f".{later[0]} is of sm_100")
    operands = list(ins.operands)
    loads = isinstance(operands[1], Vector)
    tensor = operands.pop(1 if loads else 0)
    find = at_shared(t, operands[0], ins, reaches_cluster(ins))
    targets = None
    columns = any(part.startswith("im2col") for part in ins.parts)
    shifts = list(elements(operands.pop(2))) if loads and columns else []
    shift = [t.read(item, SCALARS["u16"], ins) for item in shifts]
    if loads:
        blocks = multicast_mask(t, ins, operands[2:])
        targets = Destinations(objects(t, operands[1], ins), blocks)
    if not isinstance(tensor, Vector) or len(tensor.items) != 2:
        raise unsupported(ins)
    map_at = _map_address(t, tensor.items[0], ins)
    corner = [t.read(item, SCALARS["s32"], ins) for item in elements(tensor.items[1])]
    if f"{len(corner)}d" not in ins.parts:
        raise unsupported(ins, "as many coordinates as dimensions are expected")
    if columns and (len(corner) < 3 or (loads and len(shift) != len(corner) - 2)):
        raise unsupported(ins, "im2col mode has offsets for all but the first and last")
    reduces = ins.parts[1] == "reduce"

    def one(cohort: Cohort, issuers: Lanes, layout: Layout) -> None:
        every = issuers.widened()
        corners = np.stack(
            [every.pick(read(cohort.R)).astype(np.int64) for read in corner], axis=1
        )
        _check_box(cohort, issuers, layout)
        given = [every.pick(read(cohort.R)).astype(np.int64) for read in shift]
        unit = layout.chunk(corners)
        if reduces:
            unit = layout.item
        if columns:
            offsets = np.zeros((len(corners), len(corner) - 2), np.int64)
            offsets = np.stack(given, axis=1) if given else offsets
            _check_column(every, layout, corners, offsets)
            address, inside = layout.columns(corners, offsets, unit)
        else:
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
            if layout.dtype == "tf32":
                read = _rounding(read)
            start_load(Load(cohort, given, bars, read, layout.bytes))

    def run(cohort: Cohort, mask: Mask) -> None:
        lanes = find(cohort, mask)
        for part, layout in _by_map(cohort, lanes, map_at, len(corner), columns):
            one(cohort, part, layout)

    return run


def _rounding(read: Callable[[], Array]) -> Callable[[], Array]:
    """What a load of f32 with elements of tf32 makes: the nearest ones, ties to even.

    Not documented: seen on sm_120, triton-lang/triton, pull request 11751.
    """

    def rounded() -> Array:
        data = np.ascontiguousarray(read())
        return encode_tf32(data.view(F32)).view(data.dtype)

    return rounded


def _map_address(t: Translator, operand: Operand, ins: Instruction) -> Read:
    """The generic address of a tensor map."""
    address, _ = t.base_address(operand, ins)
    base = operand.base if isinstance(operand, Address) else None
    if base in t.memory_map.parameters:
        return lambda R: address(R).astype(U64) + U64.type(PARAM_WINDOW)
    return lambda R: address(R).astype(U64)


def _by_map(
    cohort: Cohort, lanes: Lanes, address: Read, rank: int, columns: bool
) -> Iterator[tuple[Lanes, Layout]]:
    """The lanes with each map."""
    if not lanes.offset.size:
        return
    every = lanes.widened()
    at = every.pick(address(cohort.R))
    maps = np.unique(at).tolist()
    for one in maps:
        part = lanes if len(maps) == 1 else every.only(np.flatnonzero(at == one))
        yield part, _layout(cohort.batch, part, one, rank, columns)


def _layout(
    batch: Batch, lanes: Lanes, address: int, rank: int, columns: bool
) -> Layout:
    if address % 64:
        raise lane_fault(lanes, 0, f"tensor map at 0x{address:x}, no multiple of 64,")
    raw = _bytes_at(batch, address)
    found = None if raw is None else unpack(raw)
    if found is None:
        why = (
            "(how the driver encodes its 128 bytes is not documented: pass a TensorMap "
            "or Im2colMap of the array)"
        )
        raise lane_fault(
            lanes, 0, f"there is no tensor map at address 0x{address:x} {why},"
        )
    why = problem(found)
    if found.rank != rank:
        why = f"it has {found.rank} dimensions"
    elif (found.window is not None) != columns:
        why = f"it is of {'tile' if columns else 'im2col'} mode"
    _check_view(batch, lanes, address)
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


def _check_view(batch: Batch, lanes: Lanes, address: int) -> None:
    """What the launch has changed of a map is there: PTX ISA, "fence.proxy"."""
    watcher, offset = batch.global_shadow, address - GLOBAL_WINDOW
    if watcher is None or batch.memory.buffer_at(address) < 0:
        return
    views = batch.map_views
    if address not in views.changed and not watcher.was_written(offset, SIZE):
        return
    every = lanes.widened()
    watcher.on_read(every.spread(offset + _MAP + 0 * every.offset[:, None], CHUNK))
    blocks = batch.numbers[every.block()]
    for entry, block in enumerate(blocks.tolist()):
        why = views.problem(block, address)
        if why:
            watcher.report_map(every, entry, address, why)


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


def _check_column(
    issuers: Lanes, layout: Layout, starts: Array, offsets: Array
) -> None:
    """PTX ISA "Im2col mode": where a copy may begin, and how large offsets are."""
    last = (1 << CORNER_BITS[layout.rank - 2]) - 1
    for d, (low, high) in enumerate(layout.corners(), start=1):
        odd = (starts[:, d] < low) | (starts[:, d] > high)
        if odd.any():
            entry = int(odd.argmax())
            at = int(starts[entry, d])
            why = f"coordinate {at} of dimension {d} is not from {low} to {high},"
            raise lane_fault(issuers, entry, f"{why} where a column may begin,")
        odd = offsets[:, d - 1] > last
        if odd.any():
            entry = int(odd.argmax())
            why = f"im2col offset {int(offsets[entry, d - 1])} is not from 0 to {last},"
            raise lane_fault(issuers, entry, why)
