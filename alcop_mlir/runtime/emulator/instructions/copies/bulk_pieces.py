"""Where bulk copies read and write: their pieces, and what they do to what is there.

PTX ISA "Data Movement and Conversion Instructions: Bulk copy".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from alcop_mlir.runtime.emulator.arithmetic.floats import flush
from alcop_mlir.runtime.emulator.arithmetic.storage import UNSIGNED, Array
from alcop_mlir.runtime.emulator.instructions import access
from alcop_mlir.runtime.emulator.instructions.access import Access
from alcop_mlir.runtime.emulator.instructions.atomics import UPDATES, decoded_update
from alcop_mlir.runtime.emulator.instructions.mbarrier import Objects
from alcop_mlir.runtime.emulator.instructions.translator import Translator
from alcop_mlir.runtime.emulator.machine.cohort import Cohort
from alcop_mlir.runtime.emulator.machine.faults import lane_fault
from alcop_mlir.runtime.emulator.machine.lanes import Lanes
from alcop_mlir.runtime.emulator.machine.loaded_kernel import Read
from alcop_mlir.runtime.emulator.machine.warps import Mask
from alcop_mlir.runtime.emulator.ptx.scalars import SCALARS, Scalar
from alcop_mlir.runtime.emulator.ptx.syntax import (
    Instruction,
    Operand,
    unsupported,
)

CHUNK = 16  # bytes: PTX ISA, alignment and size of a bulk copy
Combine = Callable[[Array, Array], Array]  # of old and new elements, as bits
# PTX ISA "cp.reduce.async.bulk" and "cp.reduce.async.bulk.tensor", valid combinations.
_BITS = ("b32", "b64", "u32", "s32", "u64", "s64")
_ORDERED = ("u32", "s32", "u64", "s64", "f16", "bf16")
REDUCTIONS = {
    "add": ("u32", "s32", "u64", "f16", "bf16", "f32", "f64"),
    **dict.fromkeys(("min", "max"), _ORDERED),
    **dict.fromkeys(("inc", "dec"), ("u32",)),
    **dict.fromkeys(("and", "or", "xor"), _BITS),
}


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


def at_shared(
    t: Translator, operand: Operand, ins: Instruction, reaches: bool = False
) -> Objects:
    """How to find the 16-byte pieces at which copies begin in shared memory.

    reaches: whether that may be the memory of another block of the cluster
    """
    address, _ = t.base_address(operand, ins)

    def find(cohort: Cohort, mask: Mask) -> Lanes:
        given = address(cohort.R)
        where = Access(cohort, mask, given, "shared", CHUNK, ins, reaches=reaches)
        return access.shared_lanes(where)

    return find


def multicast_mask(
    t: Translator, ins: Instruction, rest: Sequence[Operand]
) -> Read | None:
    """How to read which blocks of the cluster a copy goes to, or None.

    rest: the operands behind the mbarrier, of which it is the first
    """
    if "multicast::cluster" not in ins.parts:
        return None
    return t.read(rest[0], SCALARS["u16"], ins)


def check_shared(cohort: Cohort, lanes: Lanes, count: int) -> None:
    """Faults unless `count` bytes from each entry on are in shared memory."""
    size, step = cohort.batch.shared_size, cohort.batch.shared_step
    local = lanes.offset if cohort.batch.ranks == 1 else lanes.offset % step
    beyond = np.flatnonzero(local + count > size)
    if beyond.size:
        entry = int(beyond[0])
        start = int(local[entry])
        raise lane_fault(
            lanes,
            entry,
            f"a copy of {count} bytes from shared byte {start} on runs past the end of "
            f"shared memory, {size} bytes,",
        )


def combiner(ins: Instruction, scalar: Scalar) -> Combine:
    """How a reduction combines two elements of a type, given as bits."""
    name = next((p for p in ins.parts if p in REDUCTIONS), "")
    if not name:
        raise unsupported(ins)
    if scalar.name not in REDUCTIONS[name]:
        raise unsupported(ins, f"there is no .{name} of {scalar.name}")
    if scalar.is_decoded:
        update = decoded_update(name, scalar)
    else:
        update = UPDATES[name]

    def combine(old: Array, new: Array) -> Array:
        a, b = old.view(scalar.dtype), new.view(scalar.dtype)
        if scalar.name == "f32":  # PTX ISA: flushes subnormals
            flushed = flush(update(flush(a), flush(b), flush(b)))
            return flushed.view(UNSIGNED[scalar.size])
        return update(a, b, b).view(UNSIGNED[scalar.size])

    return combine
