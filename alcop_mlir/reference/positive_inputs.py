"""Which inputs have to be positive: roots and logarithms are taken of their elements.

A batch norm divides by the root of a variance and a small constant. Of negative numbers
that is NaN, and so is all that is computed from it: nothing would be checked.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from alcop_mlir.reference.expressions import (
    Argument,
    Constant,
    Expression,
    Operation,
    parts,
    without_casts,
)
from alcop_mlir.reference.steps import Map, Reduction, Reshape, Slice, Step

_OF_POSITIVE = (
    "math.sqrt", "math.rsqrt", "math.log", "math.log2", "math.log10",
)  # fmt: skip
_CASTS = ("arith.extf", "arith.truncf")
_ADD = "arith.addf"


def positive_inputs(steps: Iterable[Step], inputs: Collection[str]) -> set[str]:
    """The `inputs` of whose elements the steps take roots or logarithms.

    Also where these are reshaped or cut, copied, converted, or positive constants are
    added to them, before.
    """
    origins = {name: name for name in inputs}
    found: set[str] = set()
    for step in steps:
        if isinstance(step, Map | Reduction):
            rooted = {step.inputs[number] for number in _rooted(step.expression)}
            found |= {origins[name] for name in rooted if name in origins}
        source = _source(step)
        if source in origins:
            origins[step.out] = origins[source]
        else:
            origins.pop(step.out, None)
    return found


def _rooted(expression: Expression) -> Iterator[int]:
    """Numbers of the inputs of whose elements it takes a root or a logarithm."""
    for part in parts(expression):
        if isinstance(part, Operation) and part.name in _OF_POSITIVE:
            number = _element(part.operands[0])
            if number is not None:
                yield number


def _source(step: Step) -> str | None:
    """The array that has the step's elements, but for positive constants."""
    if isinstance(step, Reshape | Slice):
        return step.source
    if not isinstance(step, Map):
        return None
    number = _element(step.expression)
    return None if number is None else step.inputs[number]


def _element(expression: Expression) -> int | None:
    """The number of the input of which this is an element, but for constants."""
    expression = without_casts(expression, _CASTS)
    while isinstance(expression, Operation) and expression.name == _ADD:
        others = [one for one in expression.operands if not _is_positive(one)]
        if len(others) != 1:
            return None
        expression = without_casts(others[0], _CASTS)
    return expression.number if isinstance(expression, Argument) else None


def _is_positive(expression: Expression) -> bool:
    number = without_casts(expression, _CASTS)
    return isinstance(number, Constant) and number.value > 0
