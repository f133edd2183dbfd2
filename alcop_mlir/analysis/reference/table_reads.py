"""What the body of a linalg op reads of other arrays, at indices that it computes.

    ^bb0(%n: i32, %o: f16):
      %k = linalg.index 1 : index
      %row = arith.index_cast %n : i32 to index
      %v = tensor.extract %table[%row, %k]

An index is an expression of the op's operands, of its loops, and of what was read
before. Integers of 64 bits and indices are computed as such: those that a table has are
exact in float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from alcop_mlir.analysis.linalg.scalar_code import expression
from alcop_mlir.analysis.linalg.view import LinalgView
from alcop_mlir.analysis.reference.buffer_values import NotUnderstood
from alcop_mlir.bindings import ir
from alcop_mlir.frozen import frozen
from alcop_mlir.reference.expressions import Argument, Expression, arguments

_READS = ("tensor.extract", "memref.load")
_LOOP = "linalg.index"


@frozen
class TableRead:
    """One read of a table.

    element: the value in the body
    indices: one per dimension; arguments are the op's operands, then its loops from
             `first_loop` on, then earlier reads
    loops:   that the indices depend on, in order
    """

    table: Any
    element: Any
    indices: tuple[Expression, ...]
    loops: tuple[int, ...]


@frozen
class BodyValues:
    """Values of a body that are no operand's elements, as arguments of expressions.

    Arguments are numbered: operands, loops, reads.
    """

    view: LinalgView
    reads: tuple[TableRead, ...] = ()

    @property
    def first_loop(self) -> int:
        """The argument that stands for the first loop."""
        return len(self.view.operands)

    @property
    def first_read(self) -> int:
        """The argument that stands for the first read."""
        return self.first_loop + self.view.rank

    @property
    def known(self) -> dict[Any, Expression]:
        """Loops and reads, by the value in the body."""
        found: dict[Any, Expression] = {
            op.operation.results[0]: Argument(
                self.first_loop + op.operation.attributes["dim"].value
            )
            for op in self.view.block.operations
            if op.operation.name == _LOOP
        }
        for number, read in enumerate(self.reads):
            found[read.element] = Argument(self.first_read + number)
        return found


def body_values(view: LinalgView, used: Sequence[Sequence[int | None]]) -> BodyValues:
    """The loops and the reads of the op's body, in order.

    used: the loops of each operand's indices
    Raises NotUnderstood where an index is none that expressions can say.
    """
    found = BodyValues(view)
    for op in view.block.operations:
        if op.operation.name in _READS:
            read = _read(op.operation, found, used)
            found = BodyValues(view, (*found.reads, read))
    return found


def _read(
    op: ir.Operation, before: BodyValues, used: Sequence[Sequence[int | None]]
) -> TableRead:
    table, *given = op.operands
    known = before.known
    indices = [expression(before.view.block, one, known) for one in given]
    computed = tuple(one for one in indices if one is not None)
    if len(computed) < len(given):
        raise NotUnderstood
    loops: set[int] = set()
    for argument in {one for index in computed for one in arguments(index)}:
        loops.update(_loops(argument, before, used))
    return TableRead(table, op.results[0], computed, tuple(sorted(loops)))


def _loops(
    argument: int, values: BodyValues, used: Sequence[Sequence[int | None]]
) -> set[int]:
    """The loops that an argument depends on."""
    if argument >= values.first_read:
        return set(values.reads[argument - values.first_read].loops)
    if argument >= values.first_loop:
        return {argument - values.first_loop}
    return {loop for loop in used[argument] if loop is not None}
