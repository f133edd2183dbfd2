"""What each output of a linalg op is made of, in terms of the op's operands.

An output element is an expression of elements of the operands, combined over the loops
that do not index the output, if there are any.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from alcop_mlir.analysis.scalar_code import expression
from alcop_mlir.bindings import ir, linalg
from alcop_mlir.expressions import (
    ROUNDING,
    Argument,
    Expression,
    Operation,
    arguments,
    behind,
)
from alcop_mlir.steps import COMBINES

Loops = tuple[int | None, ...]  # the loop along each dimension; None: index 0
_SUM_CASTS = ("arith.extf", "arith.truncf", "arith.extsi")


@dataclass(frozen=True)
class Recipe:
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


def operand_loops(op: Any) -> list[Loops] | None:
    """Per operand of a linalg op the loops that index it; None for other indices."""
    maps = linalg.get_indexing_maps(op)
    if maps is None:
        return None
    found = [_loops(attribute.value) for attribute in maps]
    known = [loops for loops in found if loops is not None]
    return known if len(known) == len(found) else None


def recipes(op: Any) -> list[Recipe] | None:
    """One recipe per output; None where one of them is not understood."""
    loops = operand_loops(op)
    if loops is None or len(op.regions) != 1:
        return None
    block = op.regions[0].blocks[0]
    yielded = list(list(block.operations)[-1].operation.operands)
    count = linalg.get_indexing_maps(op)[0].value.n_dims
    made = [
        _recipe(expression(block, value), number, loops[number], count)
        for number, value in enumerate(yielded, len(loops) - len(yielded))
    ]
    known = [one for one in made if one is not None]
    return known if len(known) == len(made) else None


def _loops(affine_map: Any) -> Loops | None:
    found: list[int | None] = []
    for result in affine_map.results:
        if isinstance(result, ir.AffineDimExpr):
            found.append(ir.AffineDimExpr(result).position)
        elif isinstance(result, ir.AffineConstantExpr) and (
            ir.AffineConstantExpr(result).value == 0
        ):
            found.append(None)
        else:
            return None
    named = [loop for loop in found if loop is not None]
    return tuple(found) if len(set(named)) == len(named) else None


def _recipe(
    yielded: Expression | None, output: int, loops: Loops, count: int
) -> Recipe | None:
    if yielded is None or None in loops:
        return None
    if len(loops) == count:
        return Recipe(output, yielded)
    total = behind(yielded, _SUM_CASTS)
    if not isinstance(total, Operation) or total.name not in COMBINES:
        return None
    terms = [
        operand
        for operand in total.operands
        if behind(operand, _SUM_CASTS) != Argument(output)
    ]
    if len(terms) != 1 or output in arguments(terms[0]):
        return None
    return Recipe(output, terms[0], total.name, _narrowest(total, yielded))


def _narrowest(total: Operation, yielded: Expression) -> str:
    """Of the types between the combining op and the output."""
    assert isinstance(yielded, Operation)  # that op, or a cast of it
    return max(total.dtype, yielded.dtype, key=lambda dtype: ROUNDING[dtype])
