"""The values of contractions in float64, each with the error of a kernel.

Errors of the inputs are kept relative to the largest element of each row of A and
column of B, as errors of the terms that are added mostly cancel. Where some of the
terms may overflow when added, though not all of them together, nothing is known of the
result; nor where a NaN or an infinity is multiplied by a zero that a transposed
convolution has put between pixels, which it may as well skip.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from alcop_mlir import dtypes
from alcop_mlir.element_types import ROUNDING, TINY
from alcop_mlir.frozen import frozen
from alcop_mlir.reference.evaluation import (
    Array,
    Bounded,
    made_infinite,
    overflowed,
    rounded,
    wrapped,
)
from alcop_mlir.reference.moved_values import errors_of
from alcop_mlir.reference.steps import (
    Einsum,
    operand_maps,
)

F32_STEP = 2.0**-23  # largest relative error of one truncated f32 operation


LARGEST_EXACT = 2.0**53  # up to it float64 has all integers


def contraction(step: Einsum, known: Mapping[str, Bounded], dtype: str) -> Bounded:
    """Of floats, whose result is of that type."""
    left, right = (_Operand.of(step, n, known) for n in range(2))
    exact = _einsum(step.maps, left.values, right.values)
    rows, columns = left.size + (left.size == 0), right.size + (right.size == 0)
    terms = _terms(step, left.values, right.values)
    # Of few terms, none may be as large as an error can make it.
    few = min(terms, 1 + math.sqrt(terms) / 2)
    typical = max(few, _largest(exact / (rows * columns)))
    start = Bounded(np.zeros(())) if step.init is None else known[step.init]
    terms += step.init is not None
    exact = exact + start.values
    relative = _accumulation_error(terms, step.sums)
    if step.precision is not None:
        relative += 2 * ROUNDING[step.precision]
    error = typical * (
        relative * left.size * right.size
        + left.error * right.size
        + left.size * right.error
        + left.error * right.error
    )
    error = error + start.error + relative * magnitudes(start.values)
    # Infinity times what may be zero, or of either sign.
    unknown = (left.infinite & right.vanishes) | (left.vanishes & right.infinite)
    unknown = (unknown & ~(left.nan | right.nan)) | left.unknown | right.unknown
    unknown |= _skipped(step, known) | _skipped(step, known, 1)
    error = np.where(unknown | np.isnan(error), np.inf, error)
    sums = _overflown(step, Bounded(exact, error), left, right, start)
    return rounded(sums, dtype)


def _skipped(step: Einsum, known: Mapping[str, Bounded], number: int = 0) -> Any:
    """Where a NaN or an infinity meets a zero of operand `number` that may be skipped.

    Not where a NaN meets another element, which makes a NaN of any sum.
    """
    given, other = (
        known[(step.lhs, step.rhs)[number]],
        known[(step.rhs, step.lhs)[number]],
    )
    if given.absent is None or np.all(np.isfinite(other.values)):
        return False

    def meet(one: Array, another: Array) -> Array:
        pair = (one, another) if number == 0 else (another, one)
        return _einsum(step.maps, *(array.astype(float) for array in pair)) > 0

    skipped = meet(given.absent, ~np.isfinite(other.values))
    return skipped & ~meet(~given.absent, np.isnan(other.values))


@frozen
class _Operand:
    """One of A and B, and what there is along the loops that a contraction sums over.

    All but `values` have a dimension for each loop of the result.

    size:     the largest finite magnitude
    error:    the largest error that is known
    nan, infinite: whether there is one
    vanishes: whether there is an inexact value that may be 0
    unknown:  whether there is a value of which nothing is known
    """

    values: Array
    size: Array
    error: Array
    nan: Array
    infinite: Array
    vanishes: Array
    unknown: Array

    @classmethod
    def of(cls, step: Einsum, number: int, known: Mapping[str, Bounded]) -> _Operand:
        given = known[(step.lhs, step.rhs)[number]]
        operands, out = operand_maps(step)
        own = operands[number]
        if step.precision is not None:
            given = overflowed(_to_precision(given, step.precision), step.precision)
        values = given.values
        kept = [loop for loop in out if loop in own]
        axes = tuple(n for n, loop in enumerate(own) if loop not in out)

        def along(array: Array) -> Array:
            """The largest along the loops that are summed over, laid out as `out`."""
            largest = array.max(axis=axes, initial=0)
            left = [loop for loop in own if loop in out]
            places = tuple(slice(None) if loop in kept else None for loop in out)
            return largest.transpose([left.index(loop) for loop in kept])[places]

        error, vanishes = np.zeros(values.shape), np.zeros(values.shape, bool)
        unknown = vanishes
        if np.any(given.error):
            error = errors_of(given)
            vanishes, unknown = (error > 0) & (np.abs(values) <= error), np.isinf(error)
            error = np.where(unknown, 0.0, error)
        nan, infinite = np.isnan(values), np.isinf(values)
        found = (magnitudes(values), error, nan, infinite, vanishes, unknown)
        return cls(values, *map(along, found))


def _to_precision(given: Bounded, precision: str) -> Bounded:
    """`given` as rounded before it is multiplied, as far as denormals and overflow go.

    The relative error is added for the whole contraction.
    """
    row = dtypes.LARGEST[precision] * (1 - ROUNDING[precision])
    near = np.isfinite(given.values) & (np.abs(given.values) >= row)
    error = given.error + TINY[precision]
    return Bounded(given.values, np.where(near, np.inf, error))


def _overflown(
    step: Einsum, exact: Bounded, left: _Operand, right: _Operand, start: Bounded
) -> Bounded:
    """`exact`, but infinite or unknown where adding some of the terms may overflow."""
    limit = dtypes.LARGEST[step.sums] * (1 - 2.0**-6)
    terms = _terms(step, left.values, right.values)
    most = terms * left.size * right.size + magnitudes(start.values)
    if not np.any(most > limit) or step.sums == "f64":
        return exact
    size = _einsum(step.maps, *map(magnitudes, (left.values, right.values)))
    size = size + magnitudes(start.values) + exact.error
    may = ~np.isnan(exact.values) & (size > limit)  # infinity too: of either sign
    against = (size - np.abs(exact.values)) / 2
    surely = (
        may
        & np.isfinite(exact.values)
        & (against < limit)
        & (
            np.abs(exact.values) - exact.error
            > dtypes.LARGEST[step.sums] * (1 + 2.0**-6)
        )
    )
    return made_infinite(exact, surely, may)


def integer_contraction(
    step: Einsum, known: Mapping[str, Bounded], dtype: str
) -> Bounded:
    """The value, exact if A and B are."""
    lhs, rhs = known[step.lhs], known[step.rhs]
    terms = _terms(step, lhs.values, rhs.values)
    if terms * _largest(lhs.values) * _largest(rhs.values) < LARGEST_EXACT:
        exact = _einsum(step.maps, lhs.values, rhs.values)
    else:  # int64 wraps around, which the last bits do not see; it is slow
        whole = (_whole(lhs), _whole(rhs))
        exact = wrapped(np.einsum(step.maps, *whole), dtype)
    error = np.zeros(())
    if np.any(lhs.error) or np.any(rhs.error):
        pairs = (
            (errors_of(lhs), np.abs(rhs.values)),
            (np.abs(lhs.values), errors_of(rhs)),
        )
        error = sum((_einsum(step.maps, *pair) for pair in pairs), error)
        error = np.where(np.isnan(error), np.inf, error)  # unknown times zero
    if step.init is not None:
        start = known[step.init]
        exact, error = exact + start.values, error + start.error
    if dtype == "i64":
        size = _einsum(step.maps, np.abs(lhs.values), np.abs(rhs.values))
        is_large = size + np.abs(exact) > LARGEST_EXACT
        return Bounded(exact, np.where(is_large, np.inf, error))
    return Bounded(wrapped(exact, dtype), error)


def _whole(given: Bounded) -> Array:
    return given.values.astype(np.int64)


def _einsum(maps: str, lhs: Array, rhs: Array) -> Array:
    return np.asarray(np.einsum(maps, lhs, rhs, optimize=True))


def _terms(step: Einsum, lhs: Array, rhs: Array) -> int:
    """The number of terms that are added for each element."""
    (left, right), out = operand_maps(step)
    sizes = dict(zip(left, lhs.shape, strict=True))
    sizes.update(zip(right, rhs.shape, strict=True))
    return math.prod(size for loop, size in sizes.items() if loop not in out)


def _accumulation_error(terms: int, dtype: str) -> float:
    """The relative error of adding so many terms; tensor cores truncate in f32."""
    if dtype == "f32":
        return terms * F32_STEP
    # Rounded to nearest, one after the other: as likely up as down.
    return (1 + 2 * math.sqrt(terms)) * ROUNDING[dtype]


def _largest(array: Array) -> float:
    """The largest finite magnitude."""
    return float(magnitudes(array).max(initial=0.0))


def magnitudes(array: Array) -> Array:
    """Of finite values; 0 for others."""
    return np.where(np.isfinite(array), np.abs(array), 0.0)
