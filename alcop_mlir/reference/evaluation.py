"""The values of expressions in float64 NumPy, with bounds of a kernel's error.

A kernel computes in f32 or less what is computed here in float64, where float casts
change nothing. Each value has a bound of the kernel's error: the larger of
|f(x + e) - f(x)| and |f(x - e) - f(x)| for an error e of an operand, plus one rounding
per op to the op's type. Functions like exp are allowed more (`_APPROXIMATE`). Integers
are exact, and wrap around.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from alcop_mlir.element_types import ROUNDING, TINY
from alcop_mlir.reference.expressions import Argument, Constant, Expression, Operation

# Allowed to a function that the hardware approximates, in roundings of f32 or f64: to
# its operand, as range reduction rounds it, and to its result.
_ARGUMENT_ROUNDINGS = 2
_RESULT_ROUNDINGS = 8

Array = np.ndarray[Any, Any]
_Function = Callable[..., Any]


@dataclass(frozen=True)
class Bounded:
    """Values, and the largest error of each; `error` may be of any shape that fits."""

    values: Array
    error: Any = 0.0


def _unordered(function: _Function) -> _Function:
    return lambda a, b: function(a, b) | np.isnan(a) | np.isnan(b)


_ORDER: dict[str, _Function] = {
    "gt": np.greater,
    "ge": np.greater_equal,
    "lt": np.less,
    "le": np.less_equal,
}
_COMPARE: dict[str, _Function] = {
    "oeq": np.equal,
    "ueq": _unordered(np.equal),
    **{f"o{name}": one for name, one in _ORDER.items()},
    **{f"u{name}": _unordered(one) for name, one in _ORDER.items()},
    "one": lambda a, b: np.less(a, b) | np.greater(a, b),
    "une": np.not_equal,
    "ord": lambda a, b: ~(np.isnan(a) | np.isnan(b)),
    "uno": lambda a, b: np.isnan(a) | np.isnan(b),
}
_EXACT: dict[str, _Function] = {
    "arith.negf": np.negative,
    "arith.extf": np.positive,
    "arith.maximumf": np.maximum,
    "arith.minimumf": np.minimum,
    "arith.maxnumf": np.fmax,
    "arith.minnumf": np.fmin,
    "arith.select": lambda condition, a, b: np.where(condition != 0, a, b),
    "math.absf": np.abs,
    "math.ceil": np.ceil,
    "math.floor": np.floor,
    "math.round": lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x),
    "math.roundeven": np.rint,
    "math.trunc": np.trunc,
    "math.copysign": np.copysign,
    **{f"arith.cmpf.{name}": one for name, one in _COMPARE.items()},
}
_ROUNDED: dict[str, _Function] = {
    "arith.addf": np.add,
    "arith.subf": np.subtract,
    "arith.mulf": np.multiply,
    "arith.remf": np.fmod,
    "arith.truncf": np.positive,
    "arith.sitofp": np.positive,
    "arith.uitofp": np.positive,
    "math.fma": lambda a, b, c: a * b + c,
}
_APPROXIMATE: dict[str, _Function] = {
    "arith.divf": np.divide,
    "math.sqrt": np.sqrt,
    "math.rsqrt": lambda x: 1 / np.sqrt(x),
    "math.cbrt": np.cbrt,
    "math.exp": np.exp,
    "math.exp2": np.exp2,
    "math.powf": np.power,
}
# Their errors are absolute where the result is small.
_ABSOLUTE: dict[str, _Function] = {
    "math.expm1": np.expm1,
    "math.log": np.log,
    "math.log10": np.log10,
    "math.log1p": np.log1p,
    "math.log2": np.log2,
    "math.sin": np.sin,
    "math.cos": np.cos,
    "math.tan": np.tan,
    "math.asin": np.arcsin,
    "math.acos": np.arccos,
    "math.atan": np.arctan,
    "math.atan2": np.arctan2,
    "math.sinh": np.sinh,
    "math.cosh": np.cosh,
    "math.tanh": np.tanh,
    "math.erf": np.vectorize(math.erf, otypes=[np.float64]),
}


def _unsigned(function: _Function) -> _Function:
    """Of integers that are negative where their highest bit is set."""
    return lambda a, b: function(a.view(np.uint64), b.view(np.uint64))


def _divide(a: Array, b: Array) -> Array:
    """Towards zero; 0 where the divisor is."""
    quotient = np.abs(a) // np.where(b == 0, 1, np.abs(b))
    return np.where(b == 0, 0, np.sign(a) * np.sign(b) * quotient)


_INTEGER: dict[str, _Function] = {
    "arith.addi": np.add,
    "arith.subi": np.subtract,
    "arith.muli": np.multiply,
    "arith.divsi": _divide,
    "arith.remsi": lambda a, b: a - _divide(a, b) * b,
    "arith.maxsi": np.maximum,
    "arith.minsi": np.minimum,
    "arith.maxui": _unsigned(np.maximum),
    "arith.minui": _unsigned(np.minimum),
    "arith.andi": np.bitwise_and,
    "arith.ori": np.bitwise_or,
    "arith.xori": np.bitwise_xor,
    "arith.extsi": np.positive,
    "arith.extui": np.positive,  # of i1 only
    "arith.trunci": np.positive,
    "arith.fptosi": np.positive,
    "arith.fptoui": np.positive,
    "math.absi": np.abs,
    "arith.cmpi.eq": np.equal,
    "arith.cmpi.ne": np.not_equal,
    **{f"arith.cmpi.s{name}": one for name, one in _ORDER.items()},
    **{f"arith.cmpi.u{name}": _unsigned(one) for name, one in _ORDER.items()},
}
_INEXACT = {**_APPROXIMATE, **_ABSOLUTE}
_FUNCTIONS = {**_EXACT, **_ROUNDED, **_INEXACT}


def evaluate(expression: Expression, arguments: Sequence[Any]) -> Array:
    """The expression's values; `arguments` are numbers or arrays that broadcast."""
    return bounded(expression, [Bounded(np.asarray(a)) for a in arguments]).values


def bounded(expression: Expression, arguments: Sequence[Bounded]) -> Bounded:
    """The expression's values, with bounds of a kernel's error."""
    with np.errstate(all="ignore"):
        return _bounded(expression, arguments)


def rounded(exact: Bounded, dtype: str) -> Bounded:
    """The same values, in an array of `dtype`."""
    step = ROUNDING[dtype]
    if step == 0:
        return exact
    largest = np.abs(exact.values) + exact.error
    return Bounded(exact.values, exact.error + step * largest + TINY[dtype])


def wrapped(values: Array, dtype: str) -> Array:
    """Integers wrapped around to an integer type; other types unchanged."""
    if not dtype.startswith("i"):
        return values
    return _wrapped(values.astype(np.int64), dtype).astype(np.float64)


def _bounded(expression: Expression, arguments: Sequence[Bounded]) -> Bounded:
    match expression:
        case Constant(value):
            return Bounded(np.asarray(value, np.float64))
        case Argument(number):
            given = arguments[number]
            return Bounded(given.values.astype(np.float64), given.error)
        case Operation(_, _, operands):
            return _applied(expression, [_bounded(one, arguments) for one in operands])


def _applied(op: Operation, operands: list[Bounded]) -> Bounded:
    values = [operand.values for operand in operands]
    result = _values(op, values)
    error = np.zeros(())
    for number, operand in enumerate(operands):
        step = operand.error + _argument_error(op, operand.values)
        if not np.any(step):
            continue
        moved = [
            _values(
                op, [*values[:number], operand.values + move, *values[number + 1 :]]
            )
            for move in (step, -step)
        ]
        error = error + np.maximum(*(distance(one, result) for one in moved))
    return Bounded(result, error + _rounding_error(op, result))


def _values(op: Operation, operands: Sequence[Array]) -> Array:
    function = _INTEGER.get(op.name)
    if function is None:
        return np.asarray(_FUNCTIONS[op.name](*operands), np.float64)
    whole = [np.trunc(operand).astype(np.int64) for operand in operands]
    return _wrapped(np.asarray(function(*whole)), op.dtype).astype(np.float64)


def _wrapped(values: Array, dtype: str) -> Array:
    if dtype == "i1":
        return values & 1
    half = 2 ** (int(dtype[1:]) - 1)
    return (values.astype(np.int64) + half) % (2 * half) - half


def _argument_error(op: Operation, operand: Array) -> Any:
    if op.name not in _INEXACT:
        return 0.0
    return _ARGUMENT_ROUNDINGS * _computed_in(op.dtype) * np.abs(operand)


def _rounding_error(op: Operation, result: Array) -> Any:
    size = np.abs(result)
    if op.name in _EXACT or not ROUNDING[op.dtype]:
        return 0.0
    error = ROUNDING[op.dtype] * size + TINY[op.dtype]
    if op.name in _INEXACT:
        size = size + 1 if op.name in _ABSOLUTE else size
        error = error + _RESULT_ROUNDINGS * _computed_in(op.dtype) * size
    return error


def _computed_in(dtype: str) -> float:
    """The rounding of the type that functions of `dtype` are computed in."""
    return min(ROUNDING[dtype], ROUNDING["f32"])


def distance(one: Array, other: Array) -> Array:
    """Between two results; infinite where only one is a number."""
    is_same = (one == other) | (np.isnan(one) & np.isnan(other))
    found = np.where(is_same, 0.0, np.abs(one - other))
    return np.where(np.isnan(found), np.inf, found)
