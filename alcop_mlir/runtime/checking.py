"""Check results against the reference: what a function computes, in float64 NumPy.

Each element is compared with its reference, within the error that a kernel may make: a
contraction of K terms accumulated in f32 in any order, by rounding or (as tensor cores
do) by truncation, stays below K * 2^-23 of the array's largest element, scaled by the
largest in its row of A and in its column of B; rounding inputs
to tf32 first (on request) adds two halves of a unit of that; rounding an element to a
dtype adds half a unit of its last place. Errors propagate to what is computed from them
(`step_values.py`, `evaluation.py`). Integers are exact. NaN has to be NaN, infinity
infinity of its sign; where nothing is known, as where the order of additions decides
whether they overflow, any element is right, and counted as unchecked.

A few elements of the inputs are extreme: the largest and smallest numbers, denormals,
infinities, NaN and -0. Of those that spoil what is computed from them there are so few
that most of the result is plain. Arrays that are only written start as NaN (integers as
the least), so that an element that no thread wrote shows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from alcop_mlir import dtypes
from alcop_mlir.element_types import EIGHT_BIT_FLOATS
from alcop_mlir.errors import LaunchError
from alcop_mlir.frozen import frozen
from alcop_mlir.manifest.arrays import Parameter
from alcop_mlir.manifest.functions import Function
from alcop_mlir.reference import index_arrays, influence, step_values, steps
from alcop_mlir.reference.evaluation import Bounded, distance
from alcop_mlir.reference.input_scales import input_scales
from alcop_mlir.reference.positive_inputs import positive_inputs
from alcop_mlir.reference.steps import Size
from alcop_mlir.runtime.arrays import last

Arrays = Mapping[str, np.ndarray[Any, Any]]
Values = Literal["mixed", "plain", "small"]
VALUES: tuple[Values, ...] = ("mixed", "plain", "small")
_SMALL = 0.125  # the largest of small values
# Of the results, what large and infinite inputs and NaN may spoil, all together.
_SPOILT_SHARE = 0.2
_MAX_LARGE = 4  # elements of an array


@frozen
class Check:
    """The worst element of a result against the reference.

    error, tolerance: relative to the array's largest element of that tolerance
    elements:  how many were compared
    special:   how many of them had to be NaN or infinite
    unchecked: how many more might have been anything
    """

    error: float
    tolerance: float
    elements: int = 0
    special: int = 0
    unchecked: int = 0

    @property
    def ok(self) -> bool:
        """Whether the error is a number, and within the tolerance."""
        return self.error <= self.tolerance

    @property
    def excess(self) -> float:
        """The error in units of the tolerance."""
        if self.error <= self.tolerance == math.inf:
            return 0.0
        if self.tolerance:
            return self.error / self.tolerance
        return math.inf if self.error else 0.0


def random_arrays(
    function: Function, seed: int = 0, values: Values = "mixed"
) -> dict[str, np.ndarray[Any, Any]]:
    """Arrays for every parameter, by name: inputs as `dtypes.random`, outputs NaN.

    values: "mixed" with a few `dtypes.extremes` in each input, "plain" without, "small"
            with floats up to 1/8, as weights of networks are: layer after layer they
            grow less, and the bounds of a kernel's errors with them
    Of what roots and logarithms are taken, the upper half of that, without extremes.
    Raises LaunchError where a size is not known.
    """
    generator, extremes = np.random.default_rng(seed), np.random.default_rng([seed, 1])
    large, indices, scales, positive = _drawn(function)
    large = large if values == "mixed" else {}
    arrays = {}
    for parameter in function.parameters:
        name, shape = parameter.name, _numbers(parameter, parameter.shape)
        if name in indices:
            kind = dtypes.NUMPY_DTYPES[parameter.dtype]
            array = index_arrays.draw(generator, indices[name], shape, kind)
        elif parameter.role == "out":
            array = dtypes.unwritten(shape, parameter.dtype)
        else:
            largest = _SMALL if values == "small" else scales.get(name, 1.0)
            draw = dtypes.positive if name in positive else dtypes.random
            array = draw(generator, shape, parameter.dtype, largest)
            if name in large and name not in positive:
                array = dtypes.with_extremes(
                    extremes, array, parameter.dtype, large[name]
                )
        if parameter.strides is not None:
            array = with_strides(array, _numbers(parameter, parameter.strides))
        arrays[name] = array
    return arrays


def _drawn(
    function: Function,
) -> tuple[dict[str, int], dict[str, np.ndarray[Any, Any]], dict[str, float], set[str]]:
    """How many elements of each input may be large, infinite or NaN; of those that hold
    indices, which numbers they may be; how large others are, and which are positive.
    """
    try:
        shapes = _shapes(function)
        indices = index_arrays.index_values(function.reference, shapes)
        inputs = [one.name for one in function.parameters if one.role != "out"]
        scales = input_scales(function.reference, shapes, inputs)
        positive = positive_inputs(function.reference, inputs)
        return _counts(function, shapes), indices, scales, positive
    except (IndexError, KeyError, ValueError) as error:
        raise LaunchError(f"the reference does not fit the arrays: {error}") from error


def _shapes(function: Function) -> dict[str, tuple[int, ...]]:
    """Of all arrays, and of what the steps of the reference make."""
    shapes = {one.name: _numbers(one, one.shape) for one in function.parameters}
    shapes |= {one.name: one.shape for one in function.constants}
    for step in function.reference:
        shapes[step.out] = tuple(_shape(step, shapes))
    return shapes


def _counts(
    function: Function, shapes: Mapping[str, tuple[int, ...]]
) -> dict[str, int]:
    names = [one.name for one in function.parameters if one.role != "out"]
    made = {step.out for step in function.reference}
    results = [one.name for one in function.parameters if one.name in made]
    counts = {one.name: 0 for one in function.parameters if 0 in (one.strides or ())}
    for name in names:
        if name in counts or not function.reference:
            continue
        reach = influence.reach(function.reference, shapes, name, results)
        most = _SPOILT_SHARE / len(names) / reach if reach else _MAX_LARGE
        counts[name] = int(min(_MAX_LARGE, most))
    return counts


def evaluate(
    function: Function, before: Arrays, constants: Arrays | None = None
) -> dict[str, Bounded]:
    """The result of each step of the function's reference, from the arrays `before` and
    the `constants` that it reads.
    """
    read = {name for step in function.reference for name in step.reads}
    fixed = {one.name: one for one in function.constants if one.name in read}
    missing = ", ".join(sorted(set(fixed) - set(constants or ())))
    if missing:
        raise LaunchError(f"the reference of '{function.name}' reads {missing} too")
    arrays = _decoded(function, before) | {
        name: dtypes.decode((constants or {})[name], one.dtype)
        for name, one in fixed.items()
    }
    kinds = {one.name: one.dtype for one in (*function.parameters, *fixed.values())}
    sizes = {
        size: length
        for parameter in function.parameters
        for size, length in zip(
            parameter.shape, before[parameter.name].shape, strict=True
        )
        if isinstance(size, str)
    }
    return step_values.step_values(function.reference, arrays, kinds, sizes)


def with_strides(
    array: np.ndarray[Any, Any], strides: Sequence[int]
) -> np.ndarray[Any, Any]:
    """A copy of `array` with these strides, in elements."""
    memory = np.zeros(1 + max(0, last(array.shape, strides)), array.dtype)
    step = array.dtype.itemsize
    view = np.lib.stride_tricks.as_strided(
        memory, array.shape, [stride * step for stride in strides]
    )
    view[...] = array
    return view


def check(
    function: Function, before: Arrays, after: Arrays, constants: Arrays | None = None
) -> Check:
    """Compare the outputs in `after` with the reference of the inputs in `before`.

    constants: that the reference reads, by name

    Raises LaunchError where the bundle has no reference for the function.
    """
    if not function.reference:
        raise LaunchError(
            f"nothing to check '{function.name}' against: its bundle has no reference"
        )
    return compare(function, evaluate(function, before, constants), after)


def compare(
    function: Function, expected: Mapping[str, Bounded], after: Arrays
) -> Check:
    """The worst element of all arrays in `after` that have a reference."""
    got = _decoded(function, after)
    for name, bounded in expected.items():
        if name in got and np.shape(bounded.values) != got[name].shape:
            raise LaunchError(
                f"the reference of '{function.name}' gives {name!r} another shape than "
                "the array that is given"
            )
    checks = [
        _worst(got[parameter.name], expected[parameter.name], parameter.dtype)
        for parameter in function.parameters
        if parameter.name in expected
    ]
    return replace(
        max(checks, key=lambda check: check.excess, default=Check(0.0, 0.0)),
        elements=sum(check.elements for check in checks),
        special=sum(check.special for check in checks),
        unchecked=sum(check.unchecked for check in checks),
    )


def flops(function: Function) -> int:
    """Multiplications and additions of the function's contractions."""
    return sum(2 * math.prod(sizes.values()) for sizes in _contractions(function))


def _worst(got: np.ndarray[Any, Any], expected: Bounded, dtype: str) -> Check:
    """The element with the largest error, in units of its tolerance."""
    if not got.size:
        return Check(0.0, 0.0)
    values = expected.values
    allowed = np.broadcast_to(expected.error, values.shape)
    unchecked = np.isinf(allowed)
    with np.errstate(all="ignore"):
        away = distance(got, values)
        if dtype in EIGHT_BIT_FLOATS:  # what rounds to more than the largest is that
            most = dtypes.LARGEST[dtype]
            saturated = distance(got, np.clip(values, -most, most))
            away = np.where(np.abs(values) > most, np.minimum(away, saturated), away)
        # Infinity is right where the value, with its error, may exceed the largest.
        overflow = np.isinf(got) & (np.abs(values) + allowed >= dtypes.LARGEST[dtype])
        away = np.where(overflow & (got * values > 0), 0.0, away)
        # The sign of a zero that no rounding made.
        signs = (got == 0) & (values == 0) & (allowed == 0)
        away = np.where(signs & (np.signbit(got) != np.signbit(values)), np.inf, away)
        excess = np.where(away > 0, away / allowed, 0.0)
    excess = np.where(unchecked, 0.0, np.nan_to_num(excess, posinf=math.inf))
    worst = np.unravel_index(np.argmax(excess), got.shape)
    alike = np.isfinite(values) & (allowed <= allowed[worst])
    scale = float(np.abs(values[alike]).max(initial=0.0)) or 1.0
    if unchecked[worst]:
        found = Check(0.0, 0.0)
    else:
        found = Check(float(away[worst]) / scale, float(allowed[worst]) / scale)
    return replace(
        found,
        elements=got.size,
        special=int((~np.isfinite(values) & ~unchecked).sum()),
        unchecked=int(unchecked.sum()),
    )


def _contractions(function: Function) -> Iterator[dict[str, int]]:
    """The sizes of the loops of each contraction, by letter."""
    shapes: dict[str, Sequence[Any]] = {
        parameter.name: _numbers(parameter, parameter.shape)
        for parameter in function.parameters
    }
    shapes |= {one.name: one.shape for one in function.constants}
    for step in function.reference:
        if isinstance(step, steps.Einsum):
            yield _loops(step, shapes)
        shapes[step.out] = _shape(step, shapes)


def _loops(
    step: steps.Einsum | steps.Reduction | steps.Fold,
    shapes: Mapping[str, Sequence[Any]],
) -> dict[str, Any]:
    """The size of each loop."""
    operands, _ = steps.operand_maps(step)
    sizes: dict[str, Any] = {}
    for name, loops in zip(step.reads, operands, strict=False):
        sizes.update(zip(loops, shapes[name], strict=True))
    return sizes


def _shape(step: steps.Step, shapes: Mapping[str, Sequence[Any]]) -> Sequence[Any]:
    match step:
        case steps.Einsum() | steps.Reduction() | steps.Fold():
            sizes = _loops(step, shapes)
            return [sizes[loop] for loop in steps.operand_maps(step)[1]]
        case steps.Map() | steps.Reshape() | steps.Gather():
            return step.shape
        case steps.Iota():
            return [step.size]
        case steps.Concat():
            every = [shapes[name] for name in step.inputs]
            along = step.dimension
            length = sum(shape[along] for shape in every)
            return [*every[0][:along], length, *every[0][along + 1 :]]
        case steps.Slice():
            return step.sizes
        case steps.Insert():
            return shapes[step.target]
        case steps.WindowViews():
            shape = [*shapes[step.source]]
            axis = step.dimension
            taps = [] if step.taps is None else [step.taps]
            return [*shape[:axis], step.positions, *taps, *shape[axis + 1 :]]
        case steps.Pad():
            parts: list[Any] = [shapes[step.source], step.low, step.high]
            return [sum(sizes) for sizes in zip(*parts, strict=True)]


def _decoded(function: Function, arrays: Arrays) -> dict[str, np.ndarray[Any, Any]]:
    return {
        parameter.name: dtypes.decode(arrays[parameter.name], parameter.dtype)
        for parameter in function.parameters
    }


def _numbers(parameter: Parameter, sizes: Sequence[Size]) -> tuple[int, ...]:
    numbers = []
    for size in sizes:
        if isinstance(size, str):
            raise LaunchError(
                f"the size '{size}' of '{parameter.name}' is known only with arrays: "
                f"give it a number, as in --sizes {size}=256"
            )
        numbers.append(size)
    return tuple(numbers)
