"""Each output of a linalg op as an expression of the op's operands.

An output element is an expression of elements of the operands, combined over the loops
that do not index the output, if there are any.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from alcop_mlir.analysis.linalg.scalar_code import expression
from alcop_mlir.bindings import ir, linalg
from alcop_mlir.element_types import ROUNDING
from alcop_mlir.reference.expressions import (
    Argument,
    Expression,
    Operation,
    arguments,
    without_casts,
)
from alcop_mlir.reference.steps import COMBINES


@dataclass(frozen=True)
class WindowIndex:
    """The index `position * stride + tap * dilation`, of two loops."""

    position: int
    stride: int
    tap: int
    dilation: int


Loops = tuple[int | None, ...]  # the loop along each dimension; None: index 0
Indices = tuple[int | WindowIndex | None, ...]
_SUM_CASTS = ("arith.extf", "arith.truncf", "arith.extsi")


@dataclass(frozen=True)
class OutputExpression:
    """One output of an op.

    output:     number of the operand that is written
    expression: its arguments are the op's operands, by number
    combine:    the op that combines its values, starting from what the output was;
                None where all loops index the output
    dtype:      that the combining is done in
    """

    output: int
    expression: Expression
    combine: str | None = None
    dtype: str = ""


def operand_indices(op: Any) -> list[Indices] | None:
    """The indices of each operand of a linalg op; None where one is unsupported."""
    maps = linalg.get_indexing_maps(op)
    if maps is None:
        return None
    found = [_indices(attribute.value) for attribute in maps]
    known = [indices for indices in found if indices is not None]
    return known if len(known) == len(found) else None


def loops_of(indices: Indices) -> Loops:
    """The loops that index an operand, where each window is two dimensions."""
    loops: list[int | None] = []
    for index in indices:
        is_window = isinstance(index, WindowIndex)
        loops += [index.position, index.tap] if is_window else [index]
    return tuple(loops)


def output_expressions(op: Any) -> list[OutputExpression] | None:
    """One expression per output; None where one of them is unsupported."""
    indices = operand_indices(op)
    if indices is None or len(op.regions) != 1:
        return None
    loops = [loops_of(one) for one in indices]
    block = op.regions[0].blocks[0]
    yielded = list(list(block.operations)[-1].operation.operands)
    count = linalg.get_indexing_maps(op)[0].value.n_dims
    made = [
        _output_expression(expression(block, value), number, loops[number], count)
        for number, value in enumerate(yielded, len(loops) - len(yielded))
    ]
    known = [one for one in made if one is not None]
    return known if len(known) == len(made) else None


def _indices(affine_map: Any) -> Indices | None:
    coefficients = [_linear(result) for result in affine_map.results]
    known = [one for one in coefficients if one is not None and _is_index(one)]
    if len(known) < len(coefficients):
        return None
    indices = tuple(map(_index, known))
    named = [loop for loop in loops_of(indices) if loop is not None]
    return indices if len(set(named)) == len(named) else None


def _is_index(coefficients: dict[int, int]) -> bool:
    return len(coefficients) in (0, 2) or [*coefficients.values()] == [1]


def _index(coefficients: dict[int, int]) -> int | WindowIndex | None:
    """What a dimension is indexed by: 0, a loop, or a window."""
    match list(coefficients.items()):
        case [(position, stride), (tap, dilation)]:
            return WindowIndex(position, stride, tap, dilation)
        case [(loop, _)]:
            return loop
    return None


def _linear(expression: Any) -> dict[int, int] | None:
    """The coefficient of each loop in a linear index; None for another index."""
    if isinstance(expression, ir.AffineDimExpr):
        return {ir.AffineDimExpr(expression).position: 1}
    if isinstance(expression, ir.AffineConstantExpr):
        return {} if ir.AffineConstantExpr(expression).value == 0 else None
    if isinstance(expression, ir.AffineMulExpr):
        product = ir.AffineMulExpr(expression)
        loop = _linear(product.lhs)
        if loop is None or not isinstance(product.rhs, ir.AffineConstantExpr):
            return None
        coefficient = ir.AffineConstantExpr(product.rhs).value
        return {loop_number: coefficient * one for loop_number, one in loop.items()}
    if isinstance(expression, ir.AffineAddExpr):
        total = ir.AffineAddExpr(expression)
        lhs, rhs = _linear(total.lhs), _linear(total.rhs)
        if lhs is None or rhs is None or {*lhs} & {*rhs}:
            return None
        return lhs | rhs
    return None


def _output_expression(
    yielded: Expression | None, output: int, loops: Loops, count: int
) -> OutputExpression | None:
    if yielded is None or None in loops:
        return None
    if len(loops) == count:
        return OutputExpression(output, yielded)
    total = without_casts(yielded, _SUM_CASTS)
    if not isinstance(total, Operation) or total.name not in COMBINES:
        return None
    terms = [
        operand
        for operand in total.operands
        if without_casts(operand, _SUM_CASTS) != Argument(output)
    ]
    if len(terms) != 1 or output in arguments(terms[0]):
        return None
    return OutputExpression(output, terms[0], total.name, _narrowest(total, yielded))


def _narrowest(total: Operation, yielded: Expression) -> str:
    """The narrowest of the types between the combining op and the output."""
    assert isinstance(yielded, Operation)  # that op, or a cast of it
    return max(total.dtype, yielded.dtype, key=lambda dtype: ROUNDING[dtype])
