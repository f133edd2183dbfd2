"""Each output of a linalg op as an expression of the op's operands.

An output element is an expression of elements of the operands, combined over the loops
that do not index the output, if there are any. Other outputs of such loops are computed
anew in each iteration, maybe from each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from alcop_mlir.analysis.linalg.scalar_code import expression
from alcop_mlir.analysis.linalg.view import LinalgView, Loops, Operand, Window
from alcop_mlir.analysis.reference.buffer_values import NotUnderstood
from alcop_mlir.element_types import ROUNDING
from alcop_mlir.frozen import frozen
from alcop_mlir.reference.expressions import (
    Argument,
    Expression,
    Operation,
    arguments,
    without_casts,
)
from alcop_mlir.reference.steps import COMBINES

Indices = tuple[int | Window | None, ...]  # a loop, a window, or 0
_SUM_CASTS = ("arith.extf", "arith.truncf", "arith.extsi")


@frozen
class OutputExpression:
    """One output of an op.

    output:     number of the operand that is written
    expression: its arguments are the op's operands, by number
    combine:    the op that combines its values, starting from what the output was;
                None where all loops index the output
    dtype:      that the combining is done in
    is_folded:  whether it is computed anew in each iteration, maybe from other outputs
    yielded:    what the body makes of one element of each operand, outputs among them
    """

    output: int
    expression: Expression
    yielded: Expression
    combine: str | None = None
    dtype: str = ""
    is_folded: bool = False


def operand_indices(operand: Operand) -> Indices:
    """What indexes an operand. Raises NotUnderstood where that is unsupported."""
    for index in operand.indices:
        if index.loop is None and index.window is None and index.constant != 0:
            raise NotUnderstood
    indices = tuple(
        index.window if index.loop is None else index.loop for index in operand.indices
    )
    named = [loop for loop in loops_of(indices) if loop is not None]
    if len(set(named)) != len(named):
        raise NotUnderstood
    return indices


def loops_of(indices: Indices) -> Loops:
    """The loops that index an operand, where a window with taps is two dimensions."""
    loops: list[int | None] = []
    for index in indices:
        if not isinstance(index, Window):
            loops.append(index)
            continue
        loops += [index.position, *([] if index.tap is None else [index.tap])]
    return tuple(loops)


def output_expressions(
    view: LinalgView, known: Mapping[Any, Expression], outputs: Sequence[Loops]
) -> list[OutputExpression]:
    """One expression per output. Raises NotUnderstood where one is unsupported.

    known:   of values in the body that are no elements of operands
    outputs: the loops along each output
    """
    is_reduced = len({*chain(*outputs)} - {None}) < view.rank
    yielded = list(view.block.operations)[-1].operation.operands
    first = len(view.inputs)
    written = range(first, first + len(view.outputs))
    return [
        _output_expression(
            expression(view.block, value, known), number, written, is_reduced
        )
        for number, value in zip(written, yielded, strict=True)
    ]


def _output_expression(
    yielded: Expression | None, output: int, written: range, is_reduced: bool
) -> OutputExpression:
    if yielded is None:
        raise NotUnderstood
    if not is_reduced:
        return OutputExpression(output, yielded, yielded)
    folded = OutputExpression(output, yielded, yielded, is_folded=True)
    total = without_casts(yielded, _SUM_CASTS)
    if not isinstance(total, Operation) or total.name not in COMBINES:
        return folded
    terms = [
        operand
        for operand in total.operands
        if without_casts(operand, _SUM_CASTS) != Argument(output)
    ]
    if len(terms) != 1 or not arguments(terms[0]).isdisjoint(written):
        return folded
    return OutputExpression(
        output, terms[0], yielded, total.name, _narrowest(total, yielded)
    )


def _narrowest(total: Operation, yielded: Expression) -> str:
    """The narrowest of the types between the combining op and the output."""
    assert isinstance(yielded, Operation)  # that op, or a cast of it
    return max(total.dtype, yielded.dtype, key=lambda dtype: ROUNDING[dtype])
