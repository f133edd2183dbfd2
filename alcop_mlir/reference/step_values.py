"""The values of a reference's steps in float64, each with the error of a kernel.

A contraction keeps the errors of its inputs relative to the largest element of each row
of A and column of B, as errors of the terms that are added mostly cancel; other steps
add up the worst cases. Where some of the terms may overflow when added, though not all
of them together, nothing is known of the result; nor where a NaN or an infinity is
multiplied by a zero that a transposed convolution has put between pixels, which it may
as well skip.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from alcop_mlir import dtypes
from alcop_mlir.element_types import ROUNDING, TINY
from alcop_mlir.errors import LaunchError
from alcop_mlir.extents import Extent, number
from alcop_mlir.frozen import frozen
from alcop_mlir.reference.evaluation import (
    EITHER_ZERO,
    Array,
    Bounded,
    bounded,
    made_infinite,
    overflowed,
    rounded,
    wrapped,
)
from alcop_mlir.reference.expressions import Argument, Operation
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

F32_STEP = 2.0**-23  # largest relative error of one truncated f32 operation
_LARGEST_EXACT = 2.0**53  # up to it float64 has all integers
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
                return _integer_contraction(step, known, dtype)
            return _contraction(step, known, dtype)
        case Map():
            return _map(step, known, _numbers(step.shape, sizes))
        case Reduction():
            return _reduction(step, known)
        case Fold():
            return _folded(step, known)
        case Iota():
            return Bounded(np.arange(*_numbers((step.size,), sizes), dtype=np.float64))
        case Concat():
            return _concatenated(step, [known[name] for name in step.inputs])
        case Reshape():
            shape = _numbers(step.shape, sizes)
            return _each(lambda array: array.reshape(shape), known[step.source])
        case Slice():
            selected = _selection(step, sizes)
            return _each(lambda array: array[selected], known[step.source])
        case Insert():
            return _insert(step, known[step.target], known[step.source], sizes)
        case ScatteredViews():
            return _scattered(step, known[step.source], sizes)
        case WindowViews():
            return _each(lambda array: _windows(step, array, sizes), known[step.source])
        case Pad():
            return _padded(step, known[step.source], sizes)
        case Gather():
            return _gathered(step, known, _numbers(step.shape, sizes))


def _contraction(step: Einsum, known: Mapping[str, Bounded], dtype: str) -> Bounded:
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
    error = error + start.error + relative * _magnitudes(start.values)
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
            error = _errors(given)
            vanishes, unknown = (error > 0) & (np.abs(values) <= error), np.isinf(error)
            error = np.where(unknown, 0.0, error)
        nan, infinite = np.isnan(values), np.isinf(values)
        found = (_magnitudes(values), error, nan, infinite, vanishes, unknown)
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
    most = terms * left.size * right.size + _magnitudes(start.values)
    if not np.any(most > limit) or step.sums == "f64":
        return exact
    size = _einsum(step.maps, *map(_magnitudes, (left.values, right.values)))
    size = size + _magnitudes(start.values) + exact.error
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


def _integer_contraction(
    step: Einsum, known: Mapping[str, Bounded], dtype: str
) -> Bounded:
    """The value, exact if A and B are."""
    lhs, rhs = known[step.lhs], known[step.rhs]
    terms = _terms(step, lhs.values, rhs.values)
    if terms * _largest(lhs.values) * _largest(rhs.values) < _LARGEST_EXACT:
        exact = _einsum(step.maps, lhs.values, rhs.values)
    else:  # int64 wraps around, which the last bits do not see; it is slow
        whole = (_whole(lhs), _whole(rhs))
        exact = wrapped(np.einsum(step.maps, *whole), dtype)
    error = np.zeros(())
    if np.any(lhs.error) or np.any(rhs.error):
        pairs = ((_errors(lhs), np.abs(rhs.values)), (np.abs(lhs.values), _errors(rhs)))
        error = sum((_einsum(step.maps, *pair) for pair in pairs), error)
        error = np.where(np.isnan(error), np.inf, error)  # unknown times zero
    if step.init is not None:
        start = known[step.init]
        exact, error = exact + start.values, error + start.error
    if dtype == "i64":
        size = _einsum(step.maps, np.abs(lhs.values), np.abs(rhs.values))
        is_large = size + np.abs(exact) > _LARGEST_EXACT
        return Bounded(exact, np.where(is_large, np.inf, error))
    return Bounded(wrapped(exact, dtype), error)


def _whole(given: Bounded) -> Array:
    return given.values.astype(np.int64)


def _map(step: Map, known: Mapping[str, Bounded], shape: tuple[int, ...]) -> Bounded:
    _, out = operand_maps(step)
    result = bounded(step.expression, _arranged(step, out, known))
    absent = None if result.absent is None else np.broadcast_to(result.absent, shape)
    return Bounded(np.broadcast_to(result.values, shape), result.error, absent)


def _reduction(step: Reduction, known: Mapping[str, Bounded]) -> Bounded:
    operands, out = operand_maps(step)
    reduced = "".join(dict.fromkeys("".join(operands)))
    reduced = "".join(loop for loop in reduced if loop not in f"{out}.")
    given = _arranged(step, out + reduced, known)
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
    size = count * ROUNDING[step.dtype] * _magnitudes(start.values)
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
        size = _magnitudes(result) + np.sqrt(np.square(_magnitudes(terms)).sum(axes))
        moved = errors.sum(axes) + count * rounding * size
        total = _magnitudes(terms).sum(axes) + moved
        if is_float:
            unknown |= ~np.isnan(result) & (total >= largest)
        elif step.dtype == "i64":
            unknown |= total >= _LARGEST_EXACT
    elif is_bits:
        moved = np.zeros(result.shape)
        unknown |= (errors > 0).any(axis=axes)
    elif combine is np.multiply:
        sizes = _magnitudes(terms) + errors
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
    given = _arranged(step, out + step.order, known)
    shape = _shape_of_terms(given)
    kept = shape[: len(out)]
    state = [known[name] for name in step.starts]
    for place in np.ndindex(*shape[len(out) :]):
        elements = [_each(lambda array, at=place: _at(array, at), one) for one in given]
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


def _concatenated(step: Concat, inputs: Sequence[Bounded]) -> Bounded:
    values = np.concatenate([one.values for one in inputs], step.dimension)
    if not any(np.any(one.error) for one in inputs):
        return Bounded(values)
    return Bounded(values, np.concatenate(list(map(_errors, inputs)), step.dimension))


def _insert(
    step: Insert, target: Bounded, source: Bounded, sizes: Mapping[str, int]
) -> Bounded:
    values, errors = target.values.astype(np.float64), _errors(target).copy()
    selected, shape = _selection(step, sizes), _numbers(step.sizes, sizes)
    values[selected] = source.values.reshape(shape)
    errors[selected] = _errors(source).reshape(shape)
    if all(stride == 1 for stride in step.strides):
        return Bounded(values, errors)
    # Where zeros of the target stay, between what is inserted and around it.
    absent = target.values == 0
    absent[selected] = False
    return Bounded(values, errors, absent)


def _places(step: WindowViews, sizes: Mapping[str, int], stride: int = 1) -> Array:
    """Of each position and tap, with so many elements from a position to the next."""
    (positions,) = _numbers((step.positions,), sizes)
    places = np.arange(positions) * stride
    if step.taps is None:
        return places
    (taps,) = _numbers((step.taps,), sizes)
    return np.add.outer(places, np.arange(taps) * step.dilation)


def _scattered(
    step: ScatteredViews, source: Bounded, sizes: Mapping[str, int]
) -> Bounded:
    """Zeros between elements need not be multiplied, nor those around them."""
    turned = replace(step, dilation=-step.dilation)
    places, parts = np.divmod(_places(turned, sizes) - step.first, step.stride)
    axis, extent = step.dimension, source.values.shape[step.dimension]
    is_there = (parts == 0) & (places >= 0) & (places < extent)
    after = (1,) * (source.values.ndim - axis - 1)
    is_there = is_there.reshape(*is_there.shape, *after)

    def moved(array: Array) -> Array:
        ended = np.pad(array, [(0, int(n == axis)) for n in range(array.ndim)])
        found = np.take(ended, places.clip(0, extent), axis)
        return np.where(is_there, found, np.zeros((), array.dtype))

    found = _each(moved, source)
    absent = False if found.absent is None else found.absent
    return replace(found, absent=absent | ~is_there & np.ones(found.values.shape, bool))


def _windows(step: WindowViews, array: Array, sizes: Mapping[str, int]) -> Array:
    places = _places(step, sizes, step.stride) + step.first
    if np.any(places < 0):
        raise IndexError(f"windows begin at {places.min()}")
    return np.take(array, places, axis=step.dimension)


def _padded(step: Pad, source: Bounded, sizes: Mapping[str, int]) -> Bounded:
    low, high = _numbers(step.low, sizes), _numbers(step.high, sizes)
    width = list(zip(low, high, strict=True))
    values = np.pad(source.values, width, constant_values=step.value.value)
    errors = np.pad(_errors(source), width) if np.any(source.error) else source.error
    absent = None if source.absent is None else np.pad(source.absent, width)
    return Bounded(values, errors, absent)


def _gathered(
    step: Gather, known: Mapping[str, Bounded], shape: tuple[int, ...]
) -> Bounded:
    """Raises IndexError where an index is not one of the source's.

    Of an element whose index is inexact, nothing is known.
    """
    _, out = operand_maps(step)
    loops = [Bounded(loop) for loop in np.indices(shape, sparse=True)]
    given = [*_arranged(step, out, known), *loops]
    source, places = known[step.source], []
    unknown = np.zeros(shape, bool)
    for dimension, expression in enumerate(step.indices):
        index = bounded(expression, given)
        extent = source.values.shape[dimension]
        is_inexact = np.broadcast_to(index.error, index.values.shape) > 0
        values = np.where(is_inexact, 0, index.values)
        unknown = unknown | is_inexact
        low, high = values.min(initial=0), values.max(initial=0)
        if low < 0 or (high >= extent and math.prod(shape)):
            raise IndexError(
                f"an index of dimension {dimension} is {low if low < 0 else high:.0f}, "
                f"expected 0 to {extent - 1}"
            )
        places.append(np.broadcast_to(values.astype(np.int64), shape))
    found = _each(lambda array: array[tuple(places)], source)
    if not np.any(unknown):
        return found
    return Bounded(found.values, np.where(unknown, np.inf, found.error))


def _selection(step: Slice | Insert, sizes: Mapping[str, int]) -> tuple[slice, ...]:
    offsets, lengths = _numbers(step.offsets, sizes), _numbers(step.sizes, sizes)
    return tuple(
        slice(offset, offset + max(0, (size - 1) * stride + 1), max(1, stride))
        for offset, size, stride in zip(offsets, lengths, step.strides, strict=True)
    )


def _arranged(
    step: Map | Reduction | Fold | Gather, loops: str, known: Mapping[str, Bounded]
) -> list[Bounded]:
    """The inputs with one dimension per loop, of size 1 where they do not have it."""

    def arrange(array: Array, own: str) -> Array:
        picked = array[tuple(0 if loop == "." else slice(None) for loop in own)]
        own = own.replace(".", "")
        order = sorted(range(len(own)), key=lambda number: loops.index(own[number]))
        places = tuple(slice(None) if loop in own else None for loop in loops)
        return picked.transpose(order)[places]

    return [
        _each(lambda array, own=own: arrange(array, own), known[name])
        for name, own in zip(step.inputs, operand_maps(step)[0], strict=True)
    ]


def _each(function: Any, given: Bounded) -> Bounded:
    """`function` of the values, and of their errors if each value has its own."""
    error = function(given.error) if np.ndim(given.error) else given.error
    absent = None if given.absent is None else function(given.absent)
    return Bounded(function(given.values), error, absent)


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


def _errors(given: Bounded) -> Array:
    return np.broadcast_to(given.error, given.values.shape)


def _largest(array: Array) -> float:
    """The largest finite magnitude."""
    return float(_magnitudes(array).max(initial=0.0))


def _magnitudes(array: Array) -> Array:
    """Of finite values; 0 for others."""
    return np.where(np.isfinite(array), np.abs(array), 0.0)


def _numbers(shape: Sequence[Extent], sizes: Mapping[str, int]) -> tuple[int, ...]:
    """Raises ValueError where a polynomial is negative for these sizes."""
    found = tuple(number(size, sizes) for size in shape)
    if min(found, default=0) < 0:
        raise ValueError(f"sizes or offsets are {list(found)}")
    return found
