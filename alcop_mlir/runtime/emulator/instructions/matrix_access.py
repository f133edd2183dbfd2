"""ldmatrix, stmatrix and movmatrix: 8x8 matrices of 16-bit elements and registers.

PTX ISA "Warp Level Matrix Instructions". Lane l holds elements 2 (l % 4) and the next
of row l / 4; lanes 8 i to 8 i + 7 give the row addresses of matrix i.
"""

from __future__ import annotations

import numpy as np

from alcop_mlir.runtime.emulator.arithmetic.storage import U16, U32
from alcop_mlir.runtime.emulator.instructions import access
from alcop_mlir.runtime.emulator.instructions.translator import Op, Translator
from alcop_mlir.runtime.emulator.machine.cohort import Cohort
from alcop_mlir.runtime.emulator.machine.lanes import Lanes
from alcop_mlir.runtime.emulator.machine.warps import Mask
from alcop_mlir.runtime.emulator.ptx.scalars import B32
from alcop_mlir.runtime.emulator.ptx.syntax import (
    Instruction,
    elements,
    space_of,
    unsupported,
)

Array = np.ndarray
ROW_BYTES = 16  # a row of an 8x8 matrix of 16-bit elements


def _matrix_count(ins: Instruction) -> int:
    count = {"x1": 1, "x2": 2, "x4": 4}.get(ins.parts[4])
    if count is None or "m8n8" not in ins.parts or ins.parts[-1] != "b16":
        raise unsupported(ins)
    return count


def _matrix_rows(
    cohort: Cohort, address: Array, mask: Mask, count: int, ins: Instruction
) -> Lanes:
    """The lanes 0 .. 8 count - 1, each with the address of one row."""
    rows = 8 * count
    if address.shape[2] > 1:
        address = address[:, :, :rows]
    if mask is not None and mask.shape[2] > 1:
        mask = mask[:, :, :rows]
    lanes = access.shared_lanes(cohort, address, mask, ROW_BYTES, ins, rows)
    if cohort.counters is not None:
        cohort.counters.on_shared(lanes, ROW_BYTES, ins)
    return lanes


def load_matrix(t: Translator, ins: Instruction) -> Op:
    count = _matrix_count(ins)
    transposed = "trans" in ins.parts
    writes = [t.writer(o, U32, ins) for o in elements(ins.operands[0])]
    address, wide = t.base_address(ins.operands[1], ins)
    generic = wide and space_of(ins.parts) is None

    def run(cohort: Cohort, mask: Mask) -> None:
        where = address(cohort.R)
        if generic:
            where = _only_shared(cohort, mask, where, ins)
        lanes = _matrix_rows(cohort, where, mask, count, ins)
        if cohort.batch.shadow is not None:
            cohort.batch.shadow.on_read(lanes, ROW_BYTES, ins, collective=True)
        rows = lanes.place(access.read_shared(cohort, lanes, ROW_BYTES))
        shape = (*rows.shape[:2], count, 32)
        if transposed:
            cells = rows[..., None].view(U16).reshape(*rows.shape[:2], count, 8, 8)
            cells = np.ascontiguousarray(cells.swapaxes(-1, -2))
            out = cells.view(U32).reshape(shape)
        else:
            out = rows[..., None].view(U32).reshape(shape)
        for i, write in enumerate(writes):
            write(cohort, out[:, :, i], mask)

    return run


def store_matrix(t: Translator, ins: Instruction) -> Op:
    count = _matrix_count(ins)
    transposed = "trans" in ins.parts
    address, wide = t.base_address(ins.operands[0], ins)
    reads = [t.read(o, B32, ins) for o in elements(ins.operands[1])]
    generic = wide and space_of(ins.parts) is None

    def run(cohort: Cohort, mask: Mask) -> None:
        where = address(cohort.R)
        if generic:
            where = _only_shared(cohort, mask, where, ins)
        lanes = _matrix_rows(cohort, where, mask, count, ins)
        shape = (cohort.blocks, cohort.warps, 32)
        parts = [np.broadcast_to(read(cohort.R), shape) for read in reads]
        cells = np.stack(parts, axis=2).view(U16)
        cells = cells.reshape(*shape[:2], count, 8, 8)
        if transposed:
            cells = np.ascontiguousarray(cells.swapaxes(-1, -2))
        rows = cells.view(np.complex128).reshape(*shape[:2], 8 * count)
        access.store_shared(cohort, lanes, ROW_BYTES, rows, ins)

    return run


def move_matrix(t: Translator, ins: Instruction) -> Op:
    """movmatrix: transposes one 8x8 matrix across the lanes."""

    def transpose(x: Array) -> Array:
        x = np.ascontiguousarray(np.broadcast_to(x, (*x.shape[:2], 32)))
        cells = x.view(U16).reshape(*x.shape[:2], 8, 8).swapaxes(-1, -2)
        return np.ascontiguousarray(cells).reshape(*x.shape[:2], 64).view(U32)

    return t.compute(ins, U32, transpose, B32)


def _only_shared(cohort: Cohort, mask: Mask, address: Array, ins: Instruction) -> Array:
    """A generic address that must be in shared memory."""
    shared = address
    for space, _, own in access.split_generic(cohort, mask, address):
        if space != "shared":
            raise unsupported(ins, f"the address is in {space} memory")
        shared = own
    return shared
