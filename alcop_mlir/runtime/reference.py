"""What a function ought to compute, in float64 NumPy, and how far a result is from it.

Relative error of an array: the largest |got - expected| over all elements, divided by
the largest |expected|. A product of K terms accumulated in f32 in any order, by
rounding or (as tensor cores do) by truncation, stays below K * 2^-23 of that; rounding
the result to its own dtype adds half a unit in the last place, and rounding the inputs
to tf32 first (on request) two halves of a unit of that. Products of integers are exact.
Arrays that are only written start as NaN (integers as the least), so that an element
that no thread wrote shows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from alcop_mlir.errors import LaunchError
from alcop_mlir.runtime import dtypes
from alcop_mlir.runtime.manifest import Contraction, Function, Parameter

F32_STEP = 2.0**-23  # largest relative error of one truncated f32 operation

Arrays = Mapping[str, np.ndarray[Any, Any]]


@dataclass(frozen=True)
class Check:
    """The worst array of a result against the reference."""

    error: float
    tolerance: float

    @property
    def ok(self) -> bool:
        """Whether the error is a number, and within the tolerance."""
        return self.error <= self.tolerance

    @property
    def excess(self) -> float:
        """The error in units of the tolerance."""
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
        shape = _static(parameter)
        if parameter.role == "out":
            array = dtypes.unwritten(shape, parameter.dtype)
        else:
            array = dtypes.random(generator, shape, parameter.dtype)
        if parameter.strides is not None:
            array = with_strides(array, parameter.strides)
        arrays[parameter.name] = array
    return arrays


def evaluate(steps: Sequence[Contraction], inputs: Arrays) -> dict[str, Any]:
    """float64 arrays of every step's `out`, from the values as they were before."""
    values: dict[str, Any] = dict(inputs)
    results = {}
    for step in steps:
        lhs, rhs = (values[name].astype(np.float64) for name in (step.lhs, step.rhs))
        out = np.einsum(step.maps, lhs, rhs, optimize=True)
        if step.init is not None:
            out = out + values[step.init].astype(np.float64)
        values[step.out] = results[step.out] = out
    return results


def with_strides(
    array: np.ndarray[Any, Any], strides: Sequence[int]
) -> np.ndarray[Any, Any]:
    """A copy of `array` whose elements lie so far apart, in elements."""
    steps = zip(array.shape, strides, strict=True)
    elements = 1 + sum((size - 1) * stride for size, stride in steps if size > 1)
    memory = np.zeros(elements, array.dtype)
    step = array.dtype.itemsize
    view = np.lib.stride_tricks.as_strided(
        memory, array.shape, [stride * step for stride in strides]
    )
    view[...] = array
    return view


def check(function: Function, before: Arrays, after: Arrays) -> Check:
    """Compare the outputs in `after` with what the inputs in `before` give.

    Raises LaunchError where the bundle does not say what the function computes.
    """
    if not function.reference:
        raise LaunchError(
            f"nothing to check '{function.name}' against: its bundle has no reference"
        )
    expected = evaluate(function.reference, _decoded(function, before))
    got = _decoded(function, after)
    checks = [
        Check(
            relative_error(got[parameter.name], expected[parameter.name]),
            tolerance(function, parameter.name),
        )
        for parameter in function.parameters
        if parameter.name in expected
    ]
    return max(checks, key=lambda check: check.excess)


def relative_error(got: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> float:
    """As the module docstring defines it; infinite where `got` is not finite."""
    if not np.isfinite(got).all():
        return float("inf")
    distance = np.abs(got.astype(np.float64) - expected).max(initial=0.0)
    scale = np.abs(expected).max(initial=0.0)
    return float(distance / scale) if scale else float(distance)


def tolerance(function: Function, output: str) -> float:
    """Largest relative error that `output` may have, earlier steps' included."""
    kinds = {parameter.name: parameter.dtype for parameter in function.parameters}
    allowed = 0.0
    for step, sizes in _loops(function):
        kind = kinds.get(step.out, "f32")
        if not dtypes.is_integer(kind):
            out = step.maps.split("->")[1]
            terms = math.prod(size for loop, size in sizes.items() if loop not in out)
            allowed += (terms + (step.init is not None)) * F32_STEP
        if step.precision is not None:
            allowed += 2 * dtypes.ROUNDING[step.precision]
        allowed += dtypes.ROUNDING[kind]
        if step.out == output:
            break
    return allowed


def flops(function: Function) -> int:
    """Multiplications and additions of the function's contractions."""
    return sum(2 * math.prod(sizes.values()) for _, sizes in _loops(function))


def _loops(function: Function) -> Iterator[tuple[Contraction, dict[str, int]]]:
    """Each step of the reference with the size of each of its loops, by letter."""
    shapes = {parameter.name: _static(parameter) for parameter in function.parameters}
    for step in function.reference:
        operands, out = step.maps.split("->")
        lhs, rhs = operands.split(",")
        sizes = dict(zip(lhs, shapes[step.lhs], strict=True))
        sizes.update(zip(rhs, shapes[step.rhs], strict=True))
        shapes[step.out] = tuple(sizes[loop] for loop in out)
        yield step, sizes


def _decoded(function: Function, arrays: Arrays) -> dict[str, np.ndarray[Any, Any]]:
    return {
        parameter.name: dtypes.decode(arrays[parameter.name], parameter.dtype)
        for parameter in function.parameters
    }


def _static(parameter: Parameter) -> tuple[int, ...]:
    shape = []
    for size in parameter.shape:
        if isinstance(size, str):
            raise LaunchError(
                f"the size '{size}' of '{parameter.name}' is known only with arrays: "
                f"give it a number, as in --sizes {size}=256"
            )
        shape.append(size)
    return tuple(shape)
