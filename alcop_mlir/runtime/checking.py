"""Check results against the reference: what a function computes, in float64 NumPy.

Each element is compared with its reference, within the error that a kernel may make: a
contraction of K terms accumulated in f32 in any order, by rounding or (as tensor cores
do) by truncation, stays below K * 2^-23 of the array's largest element; rounding inputs
to tf32 first (on request) adds two halves of a unit of that; rounding an element to a
dtype adds half a unit of its last place. Errors propagate to what is computed from them
(`step_values.py`, `evaluation.py`). Integers are exact.
Arrays that are only written start as NaN (integers as the least), so that an element
that no thread wrote shows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from alcop_mlir import dtypes
from alcop_mlir.errors import LaunchError
from alcop_mlir.manifest.arrays import Parameter
from alcop_mlir.manifest.functions import Function
from alcop_mlir.reference import step_values, steps
from alcop_mlir.reference.evaluation import Bounded, distance
from alcop_mlir.reference.steps import Size
from alcop_mlir.runtime.arrays import last

Arrays = Mapping[str, np.ndarray[Any, Any]]


@dataclass(frozen=True)
class Check:
    """The worst element of a result against the reference.

    error, tolerance: relative to the largest element of the array
    """

    error: float
    tolerance: float

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


def random_arrays(function: Function, seed: int = 0) -> dict[str, np.ndarray[Any, Any]]:
    """Arrays for every parameter, by name: inputs as `dtypes.random`, outputs NaN.

    Raises LaunchError where a size is not known.
    """
    generator = np.random.default_rng(seed)
    arrays = {}
    for parameter in function.parameters:
        shape = _numbers(parameter, parameter.shape)
        if parameter.role == "out":
            array = dtypes.unwritten(shape, parameter.dtype)
        else:
            array = dtypes.random(generator, shape, parameter.dtype)
        if parameter.strides is not None:
            array = with_strides(array, _numbers(parameter, parameter.strides))
        arrays[parameter.name] = array
    return arrays


def evaluate(function: Function, before: Arrays) -> dict[str, Bounded]:
    """The result of each step of the function's reference, from the arrays `before`."""
    kinds = {parameter.name: parameter.dtype for parameter in function.parameters}
    sizes = {
        size: length
        for parameter in function.parameters
        for size, length in zip(
            parameter.shape, before[parameter.name].shape, strict=True
        )
        if isinstance(size, str)
    }
    return step_values.step_values(
        function.reference, _decoded(function, before), kinds, sizes
    )


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


def check(function: Function, before: Arrays, after: Arrays) -> Check:
    """Compare the outputs in `after` with the reference of the inputs in `before`.

    Raises LaunchError where the bundle has no reference for the function.
    """
    if not function.reference:
        raise LaunchError(
            f"nothing to check '{function.name}' against: its bundle has no reference"
        )
    return compare(function, evaluate(function, before), after)


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
    return max(checks, key=lambda check: check.excess, default=Check(0.0, 0.0))


def flops(function: Function) -> int:
    """Multiplications and additions of the function's contractions."""
    return sum(2 * math.prod(sizes.values()) for sizes in _contractions(function))


def _worst(got: np.ndarray[Any, Any], expected: Bounded, dtype: str) -> Check:
    """The element with the largest error, in units of its tolerance."""
    if not got.size:
        return Check(0.0, 0.0)
    values = expected.values
    unbounded = np.where(np.isnan(values), 0.0, math.inf)
    allowed = np.where(np.isnan(expected.error), unbounded, expected.error)
    with np.errstate(all="ignore"):
        away = distance(got, values)
        # Infinity is right where the value, with its error, may exceed the largest.
        overflow = np.isinf(got) & (np.abs(values) + allowed >= dtypes.LARGEST[dtype])
        away = np.where(overflow & (got * values > 0), 0.0, away)
        excess = np.where(away > 0, away / allowed, 0.0)
    worst = np.unravel_index(
        np.argmax(np.nan_to_num(excess, posinf=math.inf)), got.shape
    )
    finite = np.abs(values[np.isfinite(values)]).max(initial=0.0)
    scale = float(finite) or 1.0
    return Check(float(away[worst]) / scale, float(allowed[worst]) / scale)


def _contractions(function: Function) -> Iterator[dict[str, int]]:
    """The sizes of the loops of each contraction, by letter."""
    shapes: dict[str, Sequence[Any]] = {
        parameter.name: _numbers(parameter, parameter.shape)
        for parameter in function.parameters
    }
    for step in function.reference:
        sizes = {}
        if isinstance(step, steps.Einsum | steps.Reduction):
            operands, out = steps.operand_maps(step)
            for name, loops in zip(step.reads, operands, strict=False):
                sizes.update(zip(loops, shapes[name], strict=True))
            shapes[step.out] = [sizes[loop] for loop in out]
        else:
            shapes[step.out] = _shape(step, shapes)
        if isinstance(step, steps.Einsum):
            yield sizes


def _shape(
    step: steps.Map | steps.Reshape | steps.Slice | steps.Insert | steps.WindowViews,
    shapes: Mapping[str, Sequence[Any]],
) -> Sequence[Any]:
    match step:
        case steps.Map() | steps.Reshape():
            return step.shape
        case steps.Slice():
            return step.sizes
        case steps.Insert():
            return shapes[step.target]
        case steps.WindowViews():
            shape = [*shapes[step.source]]
            axis = step.dimension
            return [*shape[:axis], step.positions, step.taps, *shape[axis + 1 :]]


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
