"""Let contractions read rows of a table where the table has them.

Before:  linalg.generic ins(%indices : memref<40xi32>) outs(%rows : memref<40x64xf16>) {
           memref.load %table[%index, %k] }          // loops m, k
         linalg.matmul ins(%rows, %B) outs(%C)
After:   %A = "alcop.take"(%table, %indices)         // rows that are never made
         linalg.matmul ins(%A, %B) outs(%C)

As embeddings and tables of experts are read. The op that copies rows is erased, and
their buffer, if no other op reads them. Rows must be whole rows of the table, and
nothing may write table or indices between the two ops. Indices may have several
dimensions, of which the contraction must have one loop: its input is a collapsed view.
Where the body computes the number of a row from the index, as where numbers below zero
count from the end, an op before the contraction stores these numbers in a buffer.

A batch of matrices is read in the same way, where that is the first dimension:
`%table[%indices[b, m]]`, `%table[b, %indices[b, m]]` of a table for each, or of whole
matrices, as those of experts, `%table[%indices[b]]`.
Other ops are left unchanged.

Runs after alcop-collapse-loops and before alcop-raise-contractions. Reads and writes no
`alcop` attributes.
"""

from __future__ import annotations

from typing import Any

from alcop_mlir.analysis.ir.code_motion import ops_before, reaches_only_operands, writes
from alcop_mlir.analysis.ir.loops import made_by
from alcop_mlir.analysis.ir.memory import is_own_allocation
from alcop_mlir.analysis.ir.rejected import Rejected
from alcop_mlir.analysis.linalg.contractions import classify, structured_ops
from alcop_mlir.analysis.linalg.row_copies import RowCopy, row_copy
from alcop_mlir.bindings import ir, linalg
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import build, edit
from alcop_mlir.passes.base import NOALIAS, Pass, option
from alcop_mlir.transforms.linalg.collapsed_views import collapsed


@frozen
class RaiseGathers(Pass):
    name = "alcop-raise-gathers"
    anchor = "func.func"

    allow_tf32: bool = option(False, "contractions of f32, with inputs rounded to tf32")
    assume_noalias_args: bool = option(False, NOALIAS)

    def run(self, op: ir.Operation) -> None:
        ops = structured_ops(op)
        copies = {copy.rows: copy for copy in map(row_copy, ops) if copy is not None}
        for reader in ops:
            for number, value in enumerate(list(reader.operands)[:-1]):
                view = made_by(value, "memref.collapse_shape")
                rows = value if view is None else view.operands[0]
                if rows in copies:
                    self._read_table(reader, number, copies[rows])
        for copy in copies.values():
            _erase_unread(copy)

    def _read_table(self, reader: ir.Operation, number: int, copy: RowCopy) -> None:
        """Let the op read the table instead of rows, if it is a contraction then."""
        rows = reader.operands[number]
        is_batch = rows == copy.rows and rows.type.rank == 3
        is_matrix = rows.type.rank == copy.table.type.rank == 2
        if not (is_batch or is_matrix) or not self._is_unchanged(copy, reader):
            return
        with reader.location, ir.InsertionPoint(reader):
            every = list(range(copy.indices.type.rank))
            numbers = _numbers(copy)
            indices = numbers if is_batch else collapsed(numbers, [every])
            take = ir.Operation.create(
                "alcop.take", [build.memref_like(rows.type)], [copy.table, indices]
            )
        reader.operands[number] = take.results[0]
        if isinstance(classify(reader, self.allow_tf32), Rejected):
            reader.operands[number] = rows
            take.erase()
            _erase_numbers(copy, numbers, indices)
            return
        edit.erase_unused([rows.owner] if rows != copy.rows else [])

    def _is_unchanged(self, copy: RowCopy, reader: ir.Operation) -> bool:
        """Whether nothing writes rows, table or indices between the two ops."""
        for op in ops_before(reader):
            if op == copy.op:
                return True
            if not reaches_only_operands(op) or any(
                writes(op, memref, self.assume_noalias_args)
                for memref in (copy.rows, copy.table, copy.indices)
            ):
                return False
        return False


def _numbers(copy: RowCopy) -> Any:
    """The numbers of the rows: the indices, or a buffer of what is computed of them."""
    if not copy.ops:
        return copy.indices
    kind = ir.MemRefType.get(copy.indices.type.shape, copy.number.type)
    numbers = build.alloc(kind, build.dynamic_sizes(copy.indices))
    each = build.loop_map(kind.rank, range(kind.rank))
    op = build.generic([copy.indices], numbers, [each, each])
    (block,) = op.regions[0].blocks
    with ir.InsertionPoint(block):
        mapping = {copy.argument: block.arguments[0]}
        for one in copy.ops:
            edit.clone(one, mapping)
        linalg.YieldOp([mapping[copy.number]])
    return numbers


def _erase_numbers(copy: RowCopy, numbers: ir.Value, indices: ir.Value) -> None:
    """Undo `_numbers`, and the view of them."""
    if numbers != copy.indices:
        if indices != numbers:
            edit.erase_unused([indices.owner])
        for use in list(numbers.uses):
            use.owner.operation.erase()
        edit.erase_unused([numbers.owner])


def _erase_unread(copy: RowCopy) -> None:
    """Erase the copy, and its buffer, where no op reads it."""
    users = [use.owner.operation for use in copy.rows.uses]
    frees = [user for user in users if user.name == "memref.dealloc"]
    if is_own_allocation(copy.rows) and len(frees) + 1 == len(users):
        for op in (*frees, copy.op, copy.rows.owner):
            op.erase()
