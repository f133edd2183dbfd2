"""Index values in linear form, and how far apart two of them are.

`%row = addi %base, %c8` is 8 from `%base`, whatever that is. Additions, subtractions
and multiples by constants are followed, in `arith` and in `affine.apply`; all else is a
term of its own. So are casts: 32 bits may wrap around where 64 do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from alcop_mlir.analysis.ir.loops import constant, defining_op, made_by
from alcop_mlir.bindings import ir


@dataclass(frozen=True)
class Terms:
    """`constant`, and `multiples[value] * value` of each value; no multiple of 0."""

    constant: int
    multiples: dict[Any, int]

    def plus(self, other: Terms, times: int = 1) -> Terms:
        """This, and so many times `other`."""
        multiples = dict(self.multiples)
        for value, number in other.multiples.items():
            multiples[value] = multiples.get(value, 0) + times * number
        return Terms(
            self.constant + times * other.constant,
            {value: number for value, number in multiples.items() if number},
        )

    def times(self, number: int) -> Terms:
        """So many times this."""
        return Terms(0, {}).plus(self, number)


def terms(index: ir.Value | int) -> Terms:
    """An index, or a number, in linear form."""
    if isinstance(index, int):
        return Terms(index, {})
    number = constant(index)
    if number is not None:
        return Terms(number, {})
    op = defining_op(index)
    found = None if op is None else _terms_of(op)
    return Terms(0, {index: 1}) if found is None else found


def distance(one: Terms, other: Terms) -> int | None:
    """`one` less `other`, where that is a number; else None."""
    rest = one.plus(other, -1)
    return None if rest.multiples else rest.constant


def element(memref: ir.Value, indices: Sequence[Any]) -> tuple[Any, list[Terms]]:
    """What `memref` is a view of, and the indices of one of its elements in that.

    Subviews with steps of 1 that keep all dimensions are followed.
    """
    found = [terms(index) for index in indices]
    while (view := made_by(memref, "memref.subview")) is not None:
        offsets = _offsets(view)
        if offsets is None or len(offsets) != len(found):
            break
        found = [one.plus(offset) for one, offset in zip(found, offsets, strict=True)]
        memref = view.operands[0]
    return memref, found


def _terms_of(op: ir.Operation) -> Terms | None:
    """The result of `op`; None where it is not linear."""
    if op.name == "affine.apply":
        (result,) = op.attributes["map"].value.results
        dims = op.attributes["map"].value.n_dims
        return _of_expression(result, list(op.operands), dims)
    if op.name not in ("arith.addi", "arith.subi", "arith.muli"):
        return None
    left, right = map(terms, op.operands)
    if op.name == "arith.muli":
        return _product(left, right)
    return left.plus(right, 1 if op.name == "arith.addi" else -1)


def _product(left: Terms, right: Terms) -> Terms | None:
    if not left.multiples:
        return right.times(left.constant)
    return None if right.multiples else left.times(right.constant)


def _of_expression(
    expression: ir.AffineExpr, operands: list[Any], dims: int
) -> Terms | None:
    """An affine expression of these operands; None where it divides."""
    if isinstance(expression, ir.AffineConstantExpr):
        return Terms(expression.value, {})
    if isinstance(expression, ir.AffineDimExpr):
        return terms(operands[expression.position])
    if isinstance(expression, ir.AffineSymbolExpr):
        return terms(operands[dims + expression.position])
    if not isinstance(expression, ir.AffineAddExpr | ir.AffineMulExpr):
        return None
    left = _of_expression(expression.lhs, operands, dims)
    right = _of_expression(expression.rhs, operands, dims)
    if left is None or right is None:
        return None
    is_sum = isinstance(expression, ir.AffineAddExpr)
    return left.plus(right) if is_sum else _product(left, right)


def _offsets(view: ir.Operation) -> list[Terms] | None:
    """The offsets of a subview; None where it steps over elements."""
    if any(step != 1 for step in view.attributes["static_strides"]):
        return None
    dynamic = iter(list(view.operands)[1:])
    static = view.attributes["static_offsets"]
    unknown = ir.ShapedType.get_dynamic_size()
    return [
        terms(next(dynamic)) if offset == unknown else Terms(offset, {})
        for offset in static
    ]
