"""What the rows of a whole kernel say of it."""

from __future__ import annotations

from collections.abc import Sequence

from alcop_mlir.runtime.emulator.instructions.memory import MAX_VECTOR_BYTES
from alcop_mlir.runtime.emulator.instructions.opcodes.forms import check_form
from alcop_mlir.runtime.emulator.instructions.opcodes.opcode import Opcode
from alcop_mlir.runtime.emulator.instructions.opcodes.table import opcode_of
from alcop_mlir.runtime.emulator.ptx.syntax import Instruction


def rows_of(code: Sequence[Instruction]) -> list[Opcode]:
    """The row of each instruction, looked up once for each opcode."""
    known: dict[tuple[str, ...], Opcode] = {}
    rows: list[Opcode] = []
    for ins in code:
        row = known.get(ins.parts)
        if row is None:
            row = known[ins.parts] = opcode_of(ins)
            check_form(ins)
        rows.append(row)
    return rows


def shared_granule(code: Sequence[Instruction], rows: Sequence[Opcode]) -> int:
    """The smallest shared access of the kernel, in bytes."""
    sizes = [
        row.size(ins)
        for ins, row in zip(code, rows, strict=True)
        if row.size is not None and row.touches_shared
    ]
    return min([MAX_VECTOR_BYTES, *sizes])


def orders_by_flags(code: Sequence[Instruction], rows: Sequence[Opcode]) -> bool:
    """Whether some access or fence releases, and some acquires."""
    orders = [row.order(ins) for ins, row in zip(code, rows, strict=True)]
    known = [order for order in orders if order is not None]
    return any(o.acquires for o in known) and any(o.releases for o in known)


def moves_by_engine(rows: Sequence[Opcode]) -> bool:
    """Whether some bulk copy reads or writes global memory."""
    return any(row.is_bulk_copy for row in rows)
