"""The values of a reference's steps in float64, each with the error of a kernel.

Of contractions `contraction_values` says what errors add up to, and what only moves
elements is in `moved_values`; other steps add up the worst cases. Where some of the
terms of a sum may overflow when added, though not all of them together, nothing is
known of the result.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from alcop_mlir import dtypes
from alcop_mlir.element_types import ROUNDING, TINY
from alcop_mlir.errors import LaunchError
from alcop_mlir.reference.contraction_values import (
    LARGEST_EXACT,
    contraction,
    integer_contraction,
    magnitudes,
)
from alcop_mlir.reference.evaluation import (
    EITHER_ZERO,
    Array,
    Bounded,
    bounded,
    overflowed,
    rounded,
    wrapped,
)
from alcop_mlir.reference.expressions import Argument, Operation
from alcop_mlir.reference.moved_values import (
    arranged,
    concatenated,
    each,
    gathered,
    insert,
    numbers,
    padded,
    scattered,
    selection,
    windows,
)
from alcop_mlir.reference.steps import (
    Concat,
    Einsum,
    Fold,
    Gather,
    Insert,
    Iota,
    Map,
    Pad,
    Reduction,
    Reshape,
    ScatteredViews,
    Slice,
    Step,
    WindowViews,
    operand_maps,
)

_MAX_TERMS = 2**27  # elements of what a reduction combines; 1 GiB each
# The function of each combining op, and its neutral element.
_REDUCERS = {
    "arith.addf": (np.add, 0.0),
    "arith.addi": (np.add, 0.0),
    "arith.mulf": (np.multiply, 1.0),
    "arith.maximumf": (np.maximum, -math.inf),
    "arith.maxnumf": (np.fmax, -math.inf),
    "arith.maxsi": (np.maximum, -math.inf),
    "arith.minimumf": (np.minimum, math.inf),
    "arith.minnumf": (np.fmin, math.inf),
    "arith.minsi": (np.minimum, math.inf),
    "arith.andi": (np.bitwise_and, -1),
    "arith.ori": (np.bitwise_or, 0),
}


def step_values(
    steps: Iterable[Step],
    arrays: Mapping[str, Array],
    kinds: Mapping[str, str],
    sizes: Mapping[str, int],
) -> dict[str, Bounded]:
    """The value of each step's `out`, by name.

    arrays, kinds: values and dtypes of the function's arrays before it runs
    sizes: of the names that steps use
    Raises LaunchError where there is too much to compute, or steps do not fit.
    """
    known = {name: Bounded(array) for name, array in arrays.items()}
    made = {}
    for step in steps:
        try:
            with np.errstate(all="ignore"):
                result = _value(step, known, kinds, sizes)
        except (IndexError, OverflowError, ValueError) as error:
            raise LaunchError(
                f"the reference does not fit the arrays: {error}"
            ) from error
        if np.ndim(result.error):
            error = np.broadcast_to(result.error, result.values.shape)
            result = replace(result, error=error)
        made[step.out] = result
        kept = overflowed(result, _dtype(step, kinds))
        known[step.out] = replace(kept, absent=result.absent)
    return made


def _dtype(step: Step, kinds: Mapping[str, str]) -> str:
    """The type of the step's result; i8, which never overflows, if nothing is said."""
    if step.out in kinds:
        return kinds[step.out]
    if isinstance(step, Einsum | Reduction):
        return step.dtype
    computed = None
    if isinstance(step, Map | Fold):
        is_map = isinstance(step, Map)
        computed = step.expression if is_map else step.expressions[step.result]
    return computed.dtype if isinstance(computed, Operation) else "i8"


def _value(
    step: Step,
    known: Mapping[str, Bounded],
    kinds: Mapping[str, str],
    sizes: Mapping[str, int],
) -> Bounded:
    match step:
        case Einsum():
            dtype = kinds.get(step.out, step.dtype)
            if dtypes.is_integer(dtype):
                return integer_contraction(step, known, dtype)
            return contraction(step, known, dtype)
        case Map():
            return _map(step, known, numbers(step.shape, sizes))
        case Reduction():
            return _reduction(step, known)
        case Fold():
            return _folded(step, known)
        case Iota():
            return Bounded(np.arange(*numbers((step.size,), sizes), dtype=np.float64))
        case Concat():
            return concatenated(step, [known[name] for name in step.inputs])
        case Reshape():
            shape = numbers(step.shape, sizes)
            return each(lambda array: array.reshape(shape), known[step.source])
        case Slice():
            selected = selection(step, sizes)
            return each(lambda array: array[selected], known[step.source])
        case Insert():
            return insert(step, known[step.target], known[step.source], sizes)
        case ScatteredViews():
            return scattered(step, known[step.source], sizes)
        case WindowViews():
            return each(lambda array: windows(step, array, sizes), known[step.source])
        case Pad():
            return padded(step, known[step.source], sizes)
        case Gather():
            return gathered(step, known, numbers(step.shape, sizes))


def _map(step: Map, known: Mapping[str, Bounded], shape: tuple[int, ...]) -> Bounded:
    _, out = operand_maps(step)
    result = bounded(step.expression, arranged(step, out, known))
    absent = None if result.absent is None else np.broadcast_to(result.absent, shape)
    return Bounded(np.broadcast_to(result.values, shape), result.error, absent)


def _reduction(step: Reduction, known: Mapping[str, Bounded]) -> Bounded:
    operands, out = operand_maps(step)
    reduced = "".join(dict.fromkeys("".join(operands)))
    reduced = "".join(loop for loop in reduced if loop not in f"{out}.")
    given = arranged(step, out + reduced, known)
    shape = _shape_of_terms(given)
    terms = bounded(step.expression, given)
    result = _combined(
        step, np.broadcast_to(terms.values, shape), terms.error, len(out)
    )
    if step.init is None:
        return result
    both = Operation(step.combine, step.dtype, (Argument(0), Argument(1)))
    start = known[step.init]
    total = bounded(both, [start, result])
    if step.combine != "arith.addf":
        return total
    # Terms may be added to the start one after the other.
    count = math.prod(shape[len(out) :])
    size = count * ROUNDING[step.dtype] * magnitudes(start.values)
    return Bounded(total.values, total.error + size)


def _combined(step: Reduction, terms: Array, error: Any, kept: int) -> Bounded:
    """`terms` combined over all dimensions but the first `kept`."""
    combine, start = _REDUCERS[step.combine]
    axes = tuple(range(kept, terms.ndim))
    count = math.prod(terms.shape[kept:])
    errors = np.broadcast_to(error, terms.shape)
    is_bits = combine in (np.bitwise_and, np.bitwise_or)
    if is_bits:
        terms = terms.astype(np.int64)
    result = combine.reduce(terms, axis=axes, initial=start)
    rounding, largest = ROUNDING[step.dtype], dtypes.LARGEST[step.dtype]
    unknown = np.isinf(errors).any(axis=axes)
    is_float = rounding > 0 and step.dtype != "f64"
    if combine is np.add:
        # Partial results may be larger than the last: as large as for random terms.
        size = magnitudes(result) + np.sqrt(np.square(magnitudes(terms)).sum(axes))
        moved = errors.sum(axes) + count * rounding * size
        total = magnitudes(terms).sum(axes) + moved
        if is_float:
            unknown |= ~np.isnan(result) & (total >= largest)
        elif step.dtype == "i64":
            unknown |= total >= LARGEST_EXACT
    elif is_bits:
        moved = np.zeros(result.shape)
        unknown |= (errors > 0).any(axis=axes)
    elif combine is np.multiply:
        sizes = magnitudes(terms) + errors
        most = np.prod(np.maximum(sizes, 1), axis=axes)  # of some of them
        moved = np.prod(sizes, axis=axes) * (1 + count * rounding) - np.abs(result)
        moved = np.where(np.isfinite(result), moved, 0.0) + count * most * (
            TINY[step.dtype] if count > 1 else 0.0
        )
        vanishes = ((errors > 0) & (np.abs(terms) <= errors)).any(axis=axes)
        unknown |= np.isfinite(result) & ~(most < largest)
        unknown |= np.isinf(result) & (vanishes | _underflows(terms, axes, step.dtype))
    else:
        moved = errors.max(axis=axes, initial=0.0)
        # Which zero is the larger depends on the order of the terms.
        moved = np.where(result == 0, moved + EITHER_ZERO, moved)
    moved = np.where(unknown | np.isnan(moved), np.inf, moved)
    found = Bounded(wrapped(result, step.dtype), moved)
    is_exact = combine not in (np.add, np.multiply)  # one of the terms, or all bits
    return found if is_exact else rounded(found, step.dtype)


def _underflows(terms: Array, axes: tuple[int, ...], dtype: str) -> Array:
    """Whether some of the terms, multiplied, may be zero, though none is."""
    return np.prod(np.minimum(np.abs(terms), 1), axis=axes) <= TINY[dtype]


def _folded(step: Fold, known: Mapping[str, Bounded]) -> Bounded:
    """One iteration after the other: in them, the order matters."""
    _, out = operand_maps(step)
    given = arranged(step, out + step.order, known)
    shape = _shape_of_terms(given)
    kept = shape[: len(out)]
    state = [known[name] for name in step.starts]
    for place in np.ndindex(*shape[len(out) :]):
        elements = [each(lambda array, at=place: _at(array, at), one) for one in given]
        now = [bounded(one, [*elements, *state]) for one in step.expressions]
        state = [
            overflowed(new, one.dtype) if isinstance(one, Operation) else new
            for one, new in zip(step.expressions, now, strict=True)
        ]
    result = state[step.result]
    return Bounded(np.broadcast_to(result.values, kept), result.error)


def _at(array: Array, place: tuple[int, ...]) -> Array:
    """What there is at this place along the last dimensions; those of size 1 repeat."""
    sizes = array.shape[array.ndim - len(place) :]
    indices = (min(one, size - 1) for one, size in zip(place, sizes, strict=True))
    return array[(..., *indices)]


def _shape_of_terms(given: Iterable[Bounded]) -> tuple[int, ...]:
    """Of all loops. Raises LaunchError where they are too many."""
    shape = np.broadcast_shapes(*(one.values.shape for one in given))
    if math.prod(shape) > _MAX_TERMS:
        raise LaunchError(
            f"a reduction over {math.prod(shape)} terms is too large to check, "
            f"expected at most {_MAX_TERMS}"
        )
    return shape
