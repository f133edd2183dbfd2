"""The values of a reference's steps in float64, each with the error of a kernel.

A contraction keeps the errors of its inputs relative to the largest element, as errors
of the terms that are added mostly cancel; other steps add up the worst cases.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from alcop_mlir import dtypes
from alcop_mlir.element_types import ROUNDING
from alcop_mlir.errors import LaunchError
from alcop_mlir.reference.evaluation import Array, Bounded, bounded, rounded, wrapped
from alcop_mlir.reference.expressions import Argument, Operation
from alcop_mlir.reference.steps import (
    Einsum,
    Insert,
    Map,
    Reduction,
    Reshape,
    Size,
    Slice,
    Step,
    WindowViews,
    operand_maps,
)

F32_STEP = 2.0**-23  # largest relative error of one truncated f32 operation
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
            result = Bounded(result.values, error)
        known[step.out] = made[step.out] = result
    return made


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
                return _integer_contraction(step, known, dtype)
            return _contraction(step, known, dtype)
        case Map():
            return _map(step, known, _numbers(step.shape, sizes))
        case Reduction():
            return _reduction(step, known)
        case Reshape():
            shape = _numbers(step.shape, sizes)
            return _each(lambda array: array.reshape(shape), known[step.source])
        case Slice():
            selected = _selection(step)
            return _each(lambda array: array[selected], known[step.source])
        case Insert():
            return _insert(step, known[step.target], known[step.source])
        case WindowViews():
            return _each(lambda array: _windows(step, array), known[step.source])


def _contraction(step: Einsum, known: Mapping[str, Bounded], dtype: str) -> Bounded:
    lhs, rhs = known[step.lhs], known[step.rhs]
    exact, error = _einsum(step.maps, lhs.values, rhs.values), 0.0
    terms = _terms(step, lhs.values, rhs.values)
    if step.init is not None:
        exact, error = exact + known[step.init].values, known[step.init].error
        terms += 1
    relative = _accumulation_error(terms, step.sums)
    relative += _relative_error(lhs) + _relative_error(rhs)
    if step.precision is not None:
        relative += 2 * ROUNDING[step.precision]
    return rounded(Bounded(exact, error + relative * _largest(exact)), dtype)


def _integer_contraction(
    step: Einsum, known: Mapping[str, Bounded], dtype: str
) -> Bounded:
    """The value, exact if A and B are."""
    lhs, rhs = known[step.lhs], known[step.rhs]
    exact, error = _einsum(step.maps, lhs.values, rhs.values), np.zeros(())
    if np.any(lhs.error) or np.any(rhs.error):
        pairs = ((_errors(lhs), np.abs(rhs.values)), (np.abs(lhs.values), _errors(rhs)))
        error = sum((_einsum(step.maps, *pair) for pair in pairs), error)
    if step.init is not None:
        start = known[step.init]
        exact, error = exact + start.values, error + start.error
    return Bounded(wrapped(exact, dtype), error)


def _map(step: Map, known: Mapping[str, Bounded], shape: tuple[int, ...]) -> Bounded:
    operands, out = operand_maps(step)
    result = bounded(step.expression, _arranged(step.inputs, operands, out, known))
    return Bounded(np.broadcast_to(result.values, shape), result.error)


def _reduction(step: Reduction, known: Mapping[str, Bounded]) -> Bounded:
    operands, out = operand_maps(step)
    reduced = "".join(dict.fromkeys("".join(operands)))
    reduced = "".join(loop for loop in reduced if loop not in f"{out}.")
    given = _arranged(step.inputs, operands, out + reduced, known)
    shape = np.broadcast_shapes(*(one.values.shape for one in given))
    if math.prod(shape) > _MAX_TERMS:
        raise LaunchError(
            f"a reduction over {math.prod(shape)} terms is too large to check, "
            f"expected at most {_MAX_TERMS}"
        )
    terms = bounded(step.expression, given)
    result = _combined(
        step, np.broadcast_to(terms.values, shape), terms.error, len(out)
    )
    if step.init is None:
        return result
    both = Operation(step.combine, step.dtype, (Argument(0), Argument(1)))
    return bounded(both, [known[step.init], result])


def _combined(step: Reduction, terms: Array, error: Any, kept: int) -> Bounded:
    """`terms` combined over all dimensions but the first `kept`."""
    combine, start = _REDUCERS[step.combine]
    axes = tuple(range(kept, terms.ndim))
    count = math.prod(terms.shape[kept:])
    errors = np.broadcast_to(error, terms.shape)
    result = combine.reduce(terms, axis=axes, initial=start)
    if combine is np.add:
        # Partial results may be larger than the last: as large as for random terms.
        size = np.abs(result) + np.sqrt(np.square(terms).sum(axes))
        moved = errors.sum(axes) + count * ROUNDING[step.dtype] * size
    elif combine is np.multiply:
        size = np.prod(np.abs(terms) + errors, axis=axes)
        moved = size * (1 + count * ROUNDING[step.dtype]) - np.abs(result)
    else:
        moved = errors.max(axis=axes, initial=0.0)
    return rounded(Bounded(wrapped(result, step.dtype), moved), step.dtype)


def _insert(step: Insert, target: Bounded, source: Bounded) -> Bounded:
    values, errors = target.values.astype(np.float64), _errors(target).copy()
    values[_selection(step)] = source.values.reshape(step.sizes)
    errors[_selection(step)] = _errors(source).reshape(step.sizes)
    return Bounded(values, errors)


def _windows(step: WindowViews, array: Array) -> Array:
    positions = np.arange(step.positions)[:, None] * step.stride
    places = positions + np.arange(step.taps) * step.dilation
    return np.take(array, places, axis=step.dimension)


def _selection(step: Slice | Insert) -> tuple[slice, ...]:
    return tuple(
        slice(offset, offset + max(0, (size - 1) * stride + 1), max(1, stride))
        for offset, size, stride in zip(
            step.offsets, step.sizes, step.strides, strict=True
        )
    )


def _arranged(
    names: Sequence[str],
    operands: Sequence[str],
    loops: str,
    known: Mapping[str, Bounded],
) -> list[Bounded]:
    """The arrays with one dimension per loop, of size 1 where they do not have it."""

    def arrange(array: Array, own: str) -> Array:
        picked = array[tuple(0 if loop == "." else slice(None) for loop in own)]
        own = own.replace(".", "")
        order = sorted(range(len(own)), key=lambda number: loops.index(own[number]))
        places = tuple(slice(None) if loop in own else None for loop in loops)
        return picked.transpose(order)[places]

    return [
        _each(lambda array, own=own: arrange(array, own), known[name])
        for name, own in zip(names, operands, strict=True)
    ]


def _each(function: Any, given: Bounded) -> Bounded:
    """`function` of the values, and of their errors if each value has its own."""
    error = function(given.error) if np.ndim(given.error) else given.error
    return Bounded(function(given.values), error)


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


def _relative_error(given: Bounded) -> float:
    largest, error = _largest(given.values), float(np.max(given.error, initial=0.0))
    if not error:
        return 0.0
    return error / largest if largest else math.inf


def _errors(given: Bounded) -> Array:
    return np.broadcast_to(given.error, given.values.shape)


def _largest(array: Array) -> float:
    """The largest finite magnitude."""
    finite = np.where(np.isfinite(array), np.abs(array), 0.0)
    return float(finite.max(initial=0.0))


def _numbers(shape: Sequence[Size], sizes: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(sizes[size] if isinstance(size, str) else size for size in shape)
