"""Scalar computations as data: what the body of an element-wise op computes.

An expression is a number, an argument, or an op of `arith` or `math` on expressions. It
is made from MLIR (`analysis/linalg/scalar_code.py`), stored in bundles as JSON, and
evaluated by `evaluation.py`. Ops have MLIR's names; those of comparisons end in the
predicate. Ops that are not in `OPERATIONS` are rejected when a file is read.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from typing import Annotated

from alcop_mlir.codec import Stored
from alcop_mlir.codec_forms import Bounded, Name, OneOf, Range
from alcop_mlir.element_types import REFERENCE_FLOATS, REFERENCE_INTEGERS
from alcop_mlir.errors import ConfigError
from alcop_mlir.frozen import frozen

FLOATS = REFERENCE_FLOATS
INTEGERS = REFERENCE_INTEGERS  # all signed but i1
_MAX_DEPTH = 64
_MAX_SIZE = 400  # ops, arguments and constants of one expression

# Predicates of comparisons, in MLIR's order.
FLOAT_PREDICATES = "oeq ogt oge olt ole one ord ueq ugt uge ult ule une uno".split()
INTEGER_PREDICATES = "eq ne slt sle sgt sge ult ule ugt uge".split()
# Ops by the number of their operands.
_NAMES = {
    1: """
    arith.negf arith.extf arith.truncf arith.extsi arith.extui arith.trunci
    arith.sitofp arith.uitofp arith.fptosi arith.fptoui
    math.absf math.absi math.ceil math.floor math.round math.roundeven math.trunc
    math.sqrt math.rsqrt math.cbrt math.exp math.exp2 math.expm1 math.log math.log10
    math.log1p math.log2 math.sin math.cos math.tan math.asin math.acos math.atan
    math.sinh math.cosh math.tanh math.asinh math.acosh math.atanh math.erf
    """,
    2: """
    arith.addf arith.subf arith.mulf arith.divf arith.remf arith.maximumf
    arith.minimumf arith.maxnumf arith.minnumf
    arith.addi arith.subi arith.muli arith.divsi arith.remsi arith.maxsi arith.minsi
    arith.maxui arith.minui arith.andi arith.ori arith.xori
    arith.floordivsi arith.ceildivsi arith.shli arith.shrsi arith.shrui
    math.powf math.fpowi math.ipowi math.atan2 math.copysign
    """
    + " ".join(f"arith.cmpf.{one}" for one in FLOAT_PREDICATES)
    + " "
    + " ".join(f"arith.cmpi.{one}" for one in INTEGER_PREDICATES),
    3: "arith.select math.fma",
}
OPERATIONS = {name: count for count, names in _NAMES.items() for name in names.split()}


@frozen
class Constant:
    """A number; an i1 is 0 or 1."""

    value: float


@frozen
class Argument:
    """An element of the input `number` of the op, counted from 0."""

    number: Annotated[int, Range(0), Name("argument")]


@frozen
class Operation:
    """The op `name` on `operands`; `dtype` is the type of its result."""

    name: Annotated[str, OneOf(OPERATIONS, "an op that references know"), Name("op")]
    dtype: Annotated[str, OneOf((*FLOATS, *INTEGERS)), Name("type")]
    operands: tuple[_Part, ...]


# JSON has no infinity: such constants are stored as text.
_AS_NUMBER = Stored(
    float | Annotated[str, OneOf(("inf", "-inf", "nan"))],
    lambda value: Constant(float(value)),
    lambda constant: (
        constant.value if math.isfinite(constant.value) else str(constant.value)
    ),
)
StoredConstant = Annotated[Constant, _AS_NUMBER]
_Part = StoredConstant | Argument | Operation
# An op is an object with a list in it. `check` is exact; this comes before.
Expression = Annotated[_Part, Bounded(depth=2 * _MAX_DEPTH, size=4 * _MAX_SIZE)]


def parts(expression: Expression) -> Iterator[Expression]:
    """The expression and all its subexpressions, as often as they occur."""
    yield expression
    if isinstance(expression, Operation):
        for operand in expression.operands:
            yield from parts(operand)


def arguments(expression: Expression) -> set[int]:
    """Numbers of the arguments that the expression uses."""
    return {part.number for part in parts(expression) if isinstance(part, Argument)}


def substitute(expression: Expression, given: Mapping[int, Expression]) -> Expression:
    """`expression` with other expressions for some of its arguments."""
    if isinstance(expression, Argument):
        return given.get(expression.number, expression)
    if isinstance(expression, Constant):
        return expression
    operands = tuple(substitute(one, given) for one in expression.operands)
    return Operation(expression.name, expression.dtype, operands)


def without_casts(expression: Expression, casts: Collection[str]) -> Expression:
    """The operand of a chain of casts with these names."""
    while isinstance(expression, Operation) and expression.name in casts:
        (expression,) = expression.operands
    return expression


def is_small(expression: Expression) -> bool:
    """Whether the expression is within the limits of a bundle."""
    pending, size = [(expression, 1)], 0
    while pending:
        part, depth = pending.pop()
        size += 1
        if size > _MAX_SIZE or depth > _MAX_DEPTH:
            return False
        if isinstance(part, Operation):
            pending += [(operand, depth + 1) for operand in part.operands]
    return True


def check(expression: Expression) -> None:
    """ConfigError where ops have not as many operands as they need, or are too many."""
    if not is_small(expression):
        raise ConfigError(
            f"expression is larger than {_MAX_SIZE} ops, or nested more than "
            f"{_MAX_DEPTH} deep"
        )
    for part in parts(expression):
        if isinstance(part, Operation) and len(part.operands) != OPERATIONS[part.name]:
            raise ConfigError(
                f"expression: '{part.name}' has {len(part.operands)} operands, "
                f"expected {OPERATIONS[part.name]}"
            )
