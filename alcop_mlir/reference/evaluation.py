"""The values of expressions in float64 NumPy, with bounds of a kernel's error.

A kernel computes in f32 or less what is computed here in float64, where float casts
change nothing. Each value has a bound of the kernel's error: the larger of
|f(x + e) - f(x)| and |f(x - e) - f(x)| for an error e of an operand, plus one rounding
per op to the op's type. Functions like exp are allowed more (`APPROXIMATE`). Integers
are exact, and wrap around; of those beyond 2^53 only copies and order are known.

NaN and infinity are values like others: with a finite bound, a kernel has the same. An
infinite bound says that nothing is known of the value, which may be NaN as well: the
program leaves it undefined, it is at the edge of overflow, or too close to a pole. What
is computed from it is unknown too, but for a `select` that does not select it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from alcop_mlir.element_types import (
    EIGHT_BIT_FLOATS,
    ELEMENT_TYPES,
    ROUNDING,
    TINY,
)
from alcop_mlir.frozen import frozen
from alcop_mlir.reference.expressions import Argument, Constant, Expression, Operation
from alcop_mlir.reference.op_functions import (
    APPROXIMATE,
    DIVISIONS,
    EXACT,
    EXACT_ZEROS,
    FUNCTIONS,
    INTEGER,
    INTEGER_POWER,
    ROUNDED,
    SHIFTS,
    WHOLE_POWER,
)

# Allowed to the result of a function that kernels approximate, in roundings of f32 or
# f64: twice what `test_device_functions.py` finds of those that use no approximation of
# the hardware's, and what those add, two units each ([PTX] ex2.approx, rcp.approx).
_RESULT_ROUNDINGS = 8
_LARGEST_EXACT = 2.0**53  # up to it float64 has all integers

EITHER_ZERO = 2.0**-1074  # the error of a zero whose sign may be the other

Array = np.ndarray[Any, Any]
_Function = Callable[..., Any]


@frozen
class Bounded:
    """Values, and the largest error of each; `error` may be of any shape that fits.

    It is infinite where the value is unknown, never NaN.

    absent: where there are zeros that a kernel need not multiply, as they were put
            between other elements, or are exponentials of -inf, as masks make them;
            None for nowhere
    """

    values: Array
    error: Any = 0.0
    absent: Array | None = None


# Ops that make zero of zero; what is divided comes first.
_EXPONENTIALS = ("math.exp", "math.exp2")
_KEEPING_ZEROS = ("arith.extf", "arith.truncf", "arith.mulf", "arith.divf")


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
    largest = _finite(np.abs(exact.values)) + exact.error
    return Bounded(exact.values, exact.error + step * largest + TINY[dtype])


def overflowed(exact: Bounded, dtype: str) -> Bounded:
    """What consumers read where a value, with its error, may exceed `dtype`'s largest.

    Infinity where it surely does. Nothing is known at the edge, nor beyond the largest
    of a type that a fused kernel may not round to: of floats of eight bits, which are
    the largest then, of infinities too.
    """
    row = ELEMENT_TYPES[dtype]
    size = np.abs(exact.values)
    with np.errstate(invalid="ignore"):
        if dtype in EIGHT_BIT_FLOATS:
            beyond = size + exact.error >= row.largest
            beyond &= (size > row.largest) | (np.asarray(exact.error) > 0)
            return made_infinite(exact, np.zeros_like(beyond), beyond)
        may = np.isfinite(size) & (size + exact.error >= row.largest)
        may &= (size > row.largest) | (np.asarray(exact.error) > 0)
        if not row.is_float or not np.any(may):
            return exact
        limit = max(row.largest, ELEMENT_TYPES["f32"].largest)
        surely = may & (size - exact.error > limit * (1 + row.rounding))
    return made_infinite(exact, surely, may)


def made_infinite(exact: Bounded, surely: Array, may: Array) -> Bounded:
    """`exact` with infinities of its signs where it surely overflows; nothing is known
    where it may.
    """
    values = np.where(surely, np.copysign(np.inf, exact.values), exact.values)
    return Bounded(values, np.where(surely, 0.0, np.where(may, np.inf, exact.error)))


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
            values = given.values.astype(np.float64)
            return Bounded(values, given.error, given.absent)
        case Operation(_, _, operands):
            return _applied(expression, [_read(one, arguments) for one in operands])


def _read(expression: Expression, arguments: Sequence[Bounded]) -> Bounded:
    """The expression's value as an op reads it."""
    value = _bounded(expression, arguments)
    is_op = isinstance(expression, Operation)
    if not is_op:
        return value
    kept = overflowed(value, expression.dtype)
    return replace(kept, absent=value.absent)


def _applied(op: Operation, operands: list[Bounded]) -> Bounded:
    if op.name == "arith.select":
        return _selected(*operands)
    values = [operand.values for operand in operands]
    result = _values(op, values)
    error = np.zeros(())
    unknown = _undefined(op, operands)
    for number, operand in enumerate(operands):
        step = operand.error
        if not np.any(step):
            continue
        unknown = unknown | np.isinf(operand.error)
        moved = [
            _values(op, [*values[:number], one, *values[number + 1 :]])
            for one in _moved(operand.values, step)
        ]
        error = error + np.maximum(*(distance(one, result) for one in moved))
        unknown = unknown | _jumps(op, operand.values, step)
    if ".cmp" in op.name:
        return Bounded(result, np.where(unknown | _may_be_equal(operands), 1.0, error))
    error = error + _rounding_error(op, result, operands)
    unknown = unknown | np.isnan(error)
    if np.any(unknown):
        error = np.where(unknown, 1.0 if op.dtype == "i1" else np.inf, error)
    return Bounded(result, error, _absent(op, operands, result))


def _absent(op: Operation, operands: Sequence[Bounded], result: Array) -> Array | None:
    """Where the result is a zero of a mask: an exponential of -inf, or made of one."""
    if op.name in _EXPONENTIALS:
        (given,) = operands
        found = np.isneginf(given.values) & np.isfinite(given.error)
        return found if np.any(found) else None
    known = [one.absent for one in operands if one.absent is not None]
    if op.name not in _KEEPING_ZEROS or not known:
        return None
    return np.logical_or.reduce([one & (result == 0) for one in known])


def _moved(operand: Array, step: Any) -> Iterator[Array]:
    """Up and down by an error; -0 without one keeps its sign."""
    for move in (step, -step):
        yield np.where(step == 0, operand, operand + move)


def _selected(condition: Bounded, one: Bounded, other: Bounded) -> Bounded:
    """Only what is selected matters, if that is known."""
    is_one = condition.values != 0
    values = np.where(is_one, one.values, other.values).astype(np.float64)
    error = np.where(is_one, one.error, other.error)
    if np.any(condition.error):
        apart = distance(one.values, other.values) + one.error + other.error
        error = np.where(condition.error > 0, apart, error)
    return Bounded(values, error)


def _undefined(op: Operation, operands: Sequence[Bounded]) -> Any:
    """Where MLIR does not say what the result is."""
    if op.name in ("arith.fptosi", "arith.fptoui"):
        (given,) = operands
        low, high = _range(op.dtype, signed=op.name == "arith.fptosi")
        least, most = given.values - given.error, given.values + given.error
        return ~((np.trunc(least) >= low) & (np.trunc(most) <= high))
    if op.name in DIVISIONS:
        left, right = operands
        least, _ = _range(op.dtype)
        wraps = (left.values - left.error <= least) & (
            np.abs(right.values + 1) <= right.error
        )
        is_unknown = (np.abs(right.values) <= right.error) | wraps
        return is_unknown | _beyond_float64(op, [left.values, right.values])
    if op.name in SHIFTS:
        places, bits = operands[1].values, ELEMENT_TYPES[op.dtype].bits
        return (places < 0) | (places >= bits) | (op.dtype == "i64")
    if op.name == INTEGER_POWER:
        base, exponent = (one.values for one in operands)
        size = np.power(np.abs(base), np.maximum(exponent, 0))
        return (exponent < 0) | (size > _LARGEST_EXACT) & (op.dtype == "i64")
    if op.name in INTEGER:
        return _beyond_float64(op, [operand.values for operand in operands])
    if op.name == WHOLE_POWER:  # what is divided by may be denormal
        base, exponent = operands
        power = np.abs(_values(op, [base.values, np.abs(exponent.values)]))
        return (exponent.values < 0) & (power > 0) & (power < 4 * TINY[op.dtype])
    if op.name == "math.copysign":  # the sign of NaN
        return np.isnan(operands[1].values)
    if op.name == "arith.divf":
        divisor = operands[1]
        return (divisor.error > 0) & (np.abs(divisor.values) <= divisor.error)
    return np.zeros((), bool)


def _beyond_float64(op: Operation, values: Sequence[Array]) -> Any:
    """Where float64 is not exact for integers; the order of two is known from one."""
    large = [np.abs(one) > _LARGEST_EXACT for one in values]
    name = op.name.partition(".")[2]
    if name.startswith(("cmpi", "max", "min")):
        return large[0] & large[1]
    if op.dtype == "i64" and name in ("addi", "subi", "muli"):
        large.append(np.abs(INTEGER[op.name](*values)) > _LARGEST_EXACT)
    return np.logical_or.reduce(np.broadcast_arrays(*large))


def _range(dtype: str, signed: bool = True) -> tuple[float, float]:
    """The least and the largest integer of a type."""
    bits = ELEMENT_TYPES[dtype].bits
    if not signed:
        return 0.0, 2.0**bits - 1
    return -(2.0 ** (bits - 1)), 2.0 ** (bits - 1) - 1


def _jumps(op: Operation, operand: Array, step: Any) -> Any:
    """Where the function does more between the ends of `operand` +- `step` than there.

    `step` is an error, of one operand; 0 where there is none.
    """
    match op.name:
        case "math.sin" | "math.cos" | "math.tan":
            pole = np.floor((operand - step) / np.pi + 0.5) != np.floor(
                (operand + step) / np.pi + 0.5
            )
            return (step > 1) | (pole if op.name == "math.tan" else False)
        case "arith.trunci" | "arith.addi" | "arith.subi" | "arith.muli":
            low, high = _range(op.dtype)
            return (step >= (high - low) / 2) | ((op.name == "arith.muli") & (step > 1))
        case "arith.andi" | "arith.ori" | "arith.xori" | "arith.remsi" | "math.ipowi":
            return np.asarray(step) > 0
        case "arith.shli" | "arith.shrsi" | "arith.shrui":
            return np.asarray(step) > 0
        case "arith.remf":
            return np.asarray(step) > 0.5 * np.abs(operand)
    return np.zeros((), bool)


def _may_be_equal(operands: Sequence[Bounded]) -> Any:
    """Where the errors of two numbers reach from one to the other."""
    one, other = operands
    error = np.asarray(one.error + other.error)
    return (error > 0) & (np.abs(one.values - other.values) <= error)


def _values(op: Operation, operands: Sequence[Array]) -> Array:
    function = INTEGER.get(op.name)
    if function is None:
        return np.asarray(FUNCTIONS[op.name](*operands), np.float64)
    whole = [_whole(operand) for operand in operands]
    if op.name == "arith.shrui" and op.dtype != "i64":
        whole[0] = whole[0] & (1 << ELEMENT_TYPES[op.dtype].bits) - 1
    return _wrapped(np.asarray(function(*whole)), op.dtype).astype(np.float64)


def _whole(operand: Array) -> Array:
    """Rounded towards zero, and to what int64 has; 0 for NaN."""
    fits = np.abs(operand) < 2.0**63
    whole = np.where(fits, np.trunc(operand), 0).astype(np.int64)
    about = np.iinfo(np.int64)
    whole = np.where(operand >= 2.0**63, about.max, whole)
    return np.where(operand <= -(2.0**63), about.min, whole)


def _wrapped(values: Array, dtype: str) -> Array:
    if dtype == "i1":
        return values & 1
    if dtype == "i64":
        return values  # as int64 does
    half = 2 ** (int(dtype[1:]) - 1)
    return (values.astype(np.int64) + half) % (2 * half) - half


def _rounding_error(op: Operation, result: Array, operands: Sequence[Bounded]) -> Any:
    size = _finite(np.abs(result))
    if op.name in ("arith.maxnumf", "arith.minnumf"):
        return np.where(result == 0, EITHER_ZERO, 0.0)
    if op.name in EXACT or not ROUNDING[op.dtype]:
        return 0.0
    error = ROUNDING[op.dtype] * size + TINY[op.dtype]
    if op.name in APPROXIMATE:
        roundings: Any = _RESULT_ROUNDINGS
        if op.name == WHOLE_POWER:  # as many multiplications, and a division
            roundings = 2 * np.abs(operands[1].values) + 1
        if op.name == "math.powf" and op.dtype == "f64":  # by a logarithm of f64
            roundings = roundings + 4 * _finite(np.abs(np.log(np.abs(result))))
        error = error + roundings * _computed_in(op.dtype) * size
    if op.name in ROUNDED or op.name == "arith.divf":
        error = np.where(_is_exact(op, result, operands), 0.0, error)
    return error


def _is_exact(op: Operation, result: Array, operands: Sequence[Bounded]) -> Any:
    """Where IEEE rounds nothing, as a type narrower than float64 has the numbers.

    Not of zeros from additions: their sign depends on what is fused.
    """
    if op.dtype == "f64" or any(np.any(one.error) for one in operands):
        return np.zeros((), bool)
    digits, _ = np.frexp(result)
    scaled = digits / ROUNDING[op.dtype]
    is_known = np.abs(result) >= TINY[op.dtype] / ROUNDING[op.dtype]
    if op.name in EXACT_ZEROS:
        is_finite = [np.isfinite(one.values) for one in operands]
        is_known |= (result == 0) & np.logical_and.reduce(
            np.broadcast_arrays(*is_finite)
        )
    return is_known & np.isfinite(result) & (scaled == np.trunc(scaled))


def _finite(size: Array) -> Array:
    """Magnitudes; 0 for NaN and infinity, which no rounding changes."""
    return np.where(np.isfinite(size), size, 0.0)


def _computed_in(dtype: str) -> float:
    """The rounding of the type that functions of `dtype` are computed in."""
    return min(ROUNDING[dtype], ROUNDING["f32"])


def distance(one: Array, other: Array) -> Array:
    """Between two results; infinite where only one is a number."""
    is_same = (one == other) | (np.isnan(one) & np.isnan(other))
    found = np.where(is_same, 0.0, np.abs(one - other))
    return np.where(np.isnan(found), np.inf, found)
