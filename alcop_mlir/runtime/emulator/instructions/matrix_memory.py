"""wmma.load and wmma.store: the fragments of a matrix in memory.

PTX ISA "Matrix Load Instruction: wmma.load", "Matrix Store Instruction: wmma.store".
The stride is in elements; without one rows (columns) follow each other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from alcop_mlir.runtime.emulator.arithmetic.fragments import (
    ELEMENTS,
    Element,
    Placement,
)
from alcop_mlir.runtime.emulator.arithmetic.storage import (
    S64,
    U64,
    UNSIGNED,
    Array,
    pack,
    parts,
)
from alcop_mlir.runtime.emulator.instructions import access
from alcop_mlir.runtime.emulator.instructions.access import Access
from alcop_mlir.runtime.emulator.instructions.fragment_multiply import (
    types_of,
    wmma_placement,
)
from alcop_mlir.runtime.emulator.instructions.memory import memory_space
from alcop_mlir.runtime.emulator.instructions.translator import Op, Translator
from alcop_mlir.runtime.emulator.machine.cohort import Cohort
from alcop_mlir.runtime.emulator.machine.warps import Mask
from alcop_mlir.runtime.emulator.ptx.scalars import SCALARS, U32T
from alcop_mlir.runtime.emulator.ptx.syntax import (
    Instruction,
    Operand,
    elements,
    unsupported,
)


def smallest_piece(ins: Instruction) -> int:
    """The bytes of the smallest access that a lane may make."""
    return min((max(ELEMENTS[name].bits, 8) // 8 for name in types_of(ins)), default=1)


@dataclass(frozen=True)
class _Pieces:
    """How a fragment lies in memory: registers, or their elements, one by one.

    row, column: of each piece, (32, pieces); size: of one, in bytes; per_register: how
    many pieces a register has
    """

    row: Array
    column: Array
    size: int
    per_register: int


def _pieces(ins: Instruction, element: Element, placement: Placement) -> _Pieces:
    """Whole registers where their elements are neighbours in memory."""
    by_row, per = "row" in ins.parts, element.per_register
    row, column = placement.row, placement.column
    step = np.diff(column if by_row else row, axis=1)
    within = np.arange(1, row.shape[1]) % per != 0
    if (step[:, within] == 1).all():
        return _Pieces(row[:, ::per], column[:, ::per], element.register_bits // 8, 1)
    if element.bits < 8:
        raise unsupported(ins)
    return _Pieces(row, column, element.bits // 8, per)


Addresses = Callable[[Cohort], list[Array]]


def _addresses(
    t: Translator,
    ins: Instruction,
    place: Operand,
    stride: Operand | None,
    pieces: _Pieces,
    placement: Placement,
    bits: int,
) -> Addresses:
    base, _ = t.base_address(place, ins)
    by_row = "row" in ins.parts
    _, rows, columns = placement.shape
    read = None if stride is None else t.read(stride, U32T, ins)
    outer, inner = pieces.row, pieces.column
    if not by_row:
        outer, inner = inner, outer

    def addresses(cohort: Cohort) -> list[Array]:
        R = cohort.R
        pitch = np.array(columns if by_row else rows).reshape(1, 1, 1)
        if read is not None:
            pitch = read(R).astype(S64)
        start = base(R).astype(U64)
        found = []
        for i in range(outer.shape[1]):
            element = outer[:, i].reshape(1, 1, -1) * pitch + inner[:, i]
            found.append(start + (element * bits // 8).astype(U64))
        return found

    return addresses


def load_fragment(t: Translator, ins: Instruction) -> Op:
    """wmma.load of a, b or c."""
    name = types_of(ins)[0]
    element, items = ELEMENTS[name], elements(ins.operands[0])
    placement = wmma_placement(ins, ins.parts[2], name, len(items))
    pieces = _pieces(ins, element, placement)
    place, *stride = ins.operands[1:]
    addresses = _addresses(
        t, ins, place, next(iter(stride), None), pieces, placement, element.bits
    )
    space = memory_space(t, ins, place)
    whole = UNSIGNED[element.register_bits // 8]
    writes = [t.writer(item, whole, ins) for item in items]
    per = pieces.per_register

    def run(cohort: Cohort, mask: Mask) -> None:
        loaded = [
            access.load(Access(cohort, mask, at, space, pieces.size, ins, True))
            for at in addresses(cohort)
        ]
        if cohort.unwritten:  # any of it may be in any lane
            origins = [origin for _, _, origin in cohort.unwritten]
            worst = np.maximum.reduce(origins).max(axis=2, keepdims=True)
            cohort.unwritten[:] = [(0, whole.itemsize * len(writes), worst)]
        for i, write in enumerate(writes):
            group = loaded[i * per : (i + 1) * per]
            write(cohort, group[0] if per == 1 else pack(group, whole), mask)

    return run


def store_fragment(t: Translator, ins: Instruction) -> Op:
    """wmma.store of d."""
    name = types_of(ins)[0]
    place, given, *stride = ins.operands
    element, items = ELEMENTS[name], elements(given)
    placement = wmma_placement(ins, ins.parts[2], name, len(items))
    pieces = _pieces(ins, element, placement)
    addresses = _addresses(
        t, ins, place, next(iter(stride), None), pieces, placement, element.bits
    )
    space = memory_space(t, ins, place)
    scalar, piece = SCALARS[f"b{element.register_bits}"], UNSIGNED[pieces.size]
    reads = [t.read(item, scalar, ins) for item in items]
    per = pieces.per_register

    def run(cohort: Cohort, mask: Mask) -> None:
        split = [parts(read(cohort.R), piece) for read in reads]
        for i, at in enumerate(addresses(cohort)):
            where = Access(cohort, mask, at, space, pieces.size, ins)
            access.store(where, split[i // per][..., i % per])

    return run
