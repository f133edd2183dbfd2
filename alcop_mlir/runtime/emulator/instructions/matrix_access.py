"""ldmatrix, stmatrix and movmatrix: 8x8 matrices of 16-bit elements and registers.

PTX ISA "Warp Level Matrix Instructions". Lane l holds elements 2 (l % 4) and the next
of row l / 4; lanes 8 i to 8 i + 7 give the row addresses of matrix i.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from alcop_mlir.runtime.emulator.arithmetic.storage import MOVED_AS, U16, U32, Array
from alcop_mlir.runtime.emulator.instructions import access
from alcop_mlir.runtime.emulator.instructions.access import Access
from alcop_mlir.runtime.emulator.instructions.translator import Op, Translator
from alcop_mlir.runtime.emulator.machine.cohort import Cohort, Unwritten
from alcop_mlir.runtime.emulator.machine.lanes import Lanes
from alcop_mlir.runtime.emulator.machine.warps import LANES, Mask
from alcop_mlir.runtime.emulator.ptx.scalars import B32
from alcop_mlir.runtime.emulator.ptx.syntax import (
    Instruction,
    Operand,
    elements,
    space_of,
    unsupported,
)

ROW_BYTES = 16  # a row of an 8x8 matrix of 16-bit elements


def _matrix_count(ins: Instruction) -> int:
    counts = {"x1": 1, "x2": 2, "x4": 4}
    count = next((counts[part] for part in ins.parts if part in counts), None)
    if count is None or "m8n8" not in ins.parts or ins.parts[-1] != "b16":
        raise unsupported(ins)
    return count


Rows = Callable[[Cohort, Mask], Lanes]


def _matrix_rows(t: Translator, ins: Instruction, operand: Operand, count: int) -> Rows:
    """How to find the lanes 0 .. 8 count - 1, each with the address of one row."""
    base, wide = t.base_address(operand, ins)
    generic = wide and space_of(ins.parts) is None
    rows = 8 * count

    def lanes_of(cohort: Cohort, mask: Mask) -> Lanes:
        address = base(cohort.R)
        if generic:
            address = _only_shared(cohort, mask, address, ins)
        if address.shape[2] > 1:
            address = address[:, :, :rows]
        if mask is not None and mask.shape[2] > 1:
            mask = mask[:, :, :rows]
        where = Access(cohort, mask, address, "shared", ROW_BYTES, ins)
        return access.shared_lanes(where, rows)

    return lanes_of


def _only_shared(cohort: Cohort, mask: Mask, address: Array, ins: Instruction) -> Array:
    """A generic address that must be in shared memory."""
    where = Access(cohort, mask, address, "generic", ROW_BYTES, ins)
    for part in access.split_generic(where):
        if part.space != "shared":
            raise unsupported(ins, f"the address is in {part.space} memory")
        address = part.address
    return address


def _registers(ins: Instruction, operand: Operand, count: int) -> tuple[Operand, ...]:
    """One register for each matrix."""
    found = elements(operand)
    if len(found) != count:
        raise unsupported(ins, f"expected a vector of {count} registers")
    return found


def load_matrix(t: Translator, ins: Instruction) -> Op:
    count = _matrix_count(ins)
    transposed = "trans" in ins.parts
    registers = _registers(ins, ins.operands[0], count)
    writes = [t.writer(o, U32, ins) for o in registers]
    lanes_of = _matrix_rows(t, ins, ins.operands[1], count)

    def run(cohort: Cohort, mask: Mask) -> None:
        lanes = lanes_of(cohort, mask)
        access.note_shared(cohort, lanes)
        access.check_read(cohort, lanes, collective=True)
        if cohort.unwritten:
            origins = _origins(cohort.unwritten, count, transposed)
            cohort.unwritten[:] = [(4 * i, 4, one) for i, one in enumerate(origins)]
        rows = lanes.place(access.read_shared(cohort, lanes))[..., None]
        if transposed:
            cells = rows.view(U16).reshape(*rows.shape[:2], count, 8, 8)
            rows = np.ascontiguousarray(cells.swapaxes(-1, -2))
        out = rows.view(U32).reshape(*rows.shape[:2], count, LANES)
        for i, write in enumerate(writes):
            write(cohort, out[:, :, i], mask)

    return run


def _origins(parts: list[Unwritten], count: int, transposed: bool) -> list[Array]:
    """Of each register, the origins of what its lanes receive.

    parts: of the rows, by their lanes
    """
    blocks, warps, _ = parts[0][2].shape
    cells = np.zeros((blocks, warps, 8 * count, ROW_BYTES // 2), np.int32)
    for byte, size, origin in parts:
        part = cells[..., byte // 2 : -(-(byte + size) // 2)]
        np.maximum(part, origin[..., None], out=part)
    cells = cells.reshape(blocks, warps, count, 8, 8)
    if transposed:
        cells = cells.swapaxes(-1, -2)
    lanes = cells.reshape(blocks, warps, count, LANES, 2).max(axis=-1)
    return [lanes[:, :, i] for i in range(count)]


def store_matrix(t: Translator, ins: Instruction) -> Op:
    count = _matrix_count(ins)
    transposed = "trans" in ins.parts
    reads = [t.read(o, B32, ins) for o in _registers(ins, ins.operands[1], count)]
    lanes_of = _matrix_rows(t, ins, ins.operands[0], count)

    def run(cohort: Cohort, mask: Mask) -> None:
        lanes = lanes_of(cohort, mask)
        shape = (cohort.blocks, cohort.warps, LANES)
        registers = [np.broadcast_to(read(cohort.R), shape) for read in reads]
        cells = np.ascontiguousarray(np.stack(registers, axis=2)).view(U16)
        cells = cells.reshape(*shape[:2], count, 8, 8)
        if transposed:
            cells = np.ascontiguousarray(cells.swapaxes(-1, -2))
        rows = cells.view(MOVED_AS[ROW_BYTES]).reshape(*shape[:2], 8 * count)
        access.store_shared(cohort, lanes, rows)

    return run


def move_matrix(t: Translator, ins: Instruction) -> Op:
    """movmatrix: transposes one 8x8 matrix across the lanes."""

    def transpose(x: Array) -> Array:
        x = np.ascontiguousarray(np.broadcast_to(x, (*x.shape[:2], 32)))
        cells = x.view(U16).reshape(*x.shape[:2], 8, 8).swapaxes(-1, -2)
        return np.ascontiguousarray(cells).reshape(*x.shape[:2], 64).view(U32)

    return t.compute(ins, U32, transpose, B32)
