"""Builders of arithmetic on vectors with an element per row of a block's tile.

Operands are such vectors, values that are the same for all rows, or ints.
"""

from __future__ import annotations

from typing import Any

from alcop_mlir.bindings import arith, ir, vector
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import build

_LESS = arith.CmpIPredicate.ult


@frozen
class RowVectors:
    """Vectors for so many rows."""

    count: int

    def kind(self, element: ir.Type | None = None) -> Any:
        """The type of a vector; of indices where no type is given."""
        return ir.VectorType.get([self.count], element or ir.IndexType.get())

    def numbers(self) -> Any:
        """The numbers of the rows."""
        return vector.step(self.kind())

    def all(self, value: ir.Value | int, element: ir.Type | None = None) -> Any:
        """The same for each row; `element` is the type of an int."""
        if isinstance(value, int):
            kind = self.kind(element)
            return build.splat(kind, ir.IntegerAttr.get(kind.element_type, value))
        if isinstance(value.type, ir.VectorType):
            return value
        return vector.broadcast(self.kind(value.type), value)

    def add(self, left: ir.Value, right: ir.Value | int) -> Any:
        """`left + right`, of indices."""
        return left if _is(right, 0) else arith.addi(self.all(left), self.all(right))

    def mul(self, left: ir.Value, right: ir.Value | int) -> Any:
        """`left * right`, of indices."""
        return left if _is(right, 1) else arith.muli(self.all(left), self.all(right))

    def div(self, left: ir.Value, right: ir.Value | int) -> Any:
        """`left / right`, rounded down, of indices that are not negative."""
        return left if _is(right, 1) else arith.divui(self.all(left), self.all(right))

    def rem(self, left: ir.Value, right: ir.Value | int) -> Any:
        """The remainder of `left / right`, of indices that are not negative."""
        return arith.remui(self.all(left), self.all(right))

    def is_below(self, left: ir.Value, right: ir.Value | int) -> Any:
        """Whether 0 <= `left` < `right`, of indices."""
        return arith.cmpi(_LESS, self.all(left), self.all(right))


def _is(value: ir.Value | int, number: int) -> bool:
    return isinstance(value, int) and value == number
