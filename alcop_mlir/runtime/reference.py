"""What a function ought to compute, in float64 NumPy, and how far a result is from it.

Relative error of an array: the largest |got - expected| over all elements, divided by
the largest |expected|. A product of K terms accumulated in f32 in any order, by
rounding or (as tensor cores do) by truncation, stays below K * 2^-23 of that; rounding
the result to its own dtype adds half a unit in the last place. Arrays that are only
written start as NaN, so that an element that no thread wrote shows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from alcop_mlir.errors import LaunchError
from alcop_mlir.runtime.arrays import NUMPY_DTYPES
from alcop_mlir.runtime.manifest import Contraction, Function, Parameter

F32_STEP = 2.0**-23  # largest relative error of one truncated f32 operation
ROUNDING = {"f16": 2.0**-11, "f32": 2.0**-24, "f64": 2.0**-24}

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


def random_arrays(function: Function, seed: int = 0) -> dict[str, np.ndarray[Any, Any]]:
    """Arrays for every parameter, by name: inputs uniform in [-1, 1], outputs NaN.

    Raises LaunchError where a size is not known.
    """
    generator = np.random.default_rng(seed)
    arrays = {}
    for parameter in function.parameters:
        shape = _static(parameter)
        array = np.empty(shape, NUMPY_DTYPES[parameter.dtype])
        if parameter.role == "out":
            array.fill(np.nan)
        else:
            array[...] = generator.random(shape, np.float32) * 2 - 1
        arrays[parameter.name] = array
    return arrays


def evaluate(steps: Sequence[Contraction], inputs: Arrays) -> dict[str, Any]:
    """float64 arrays of every step's `out`, from the arrays as they were before."""
    values: dict[str, Any] = dict(inputs)
    results = {}
    for step in steps:
        lhs, rhs = (values[name].astype(np.float64) for name in (step.lhs, step.rhs))
        out = np.einsum(step.maps, lhs, rhs, optimize=True)
        if step.init is not None:
            out = out + values[step.init].astype(np.float64)
        values[step.out] = results[step.out] = out
    return results


def check(function: Function, before: Arrays, after: Arrays) -> Check:
    """Compare the outputs in `after` with what the inputs in `before` give.

    Raises LaunchError where the bundle does not say what the function computes.
    """
    if not function.reference:
        raise LaunchError(
            f"nothing to check '{function.name}' against: its bundle has no reference"
        )
    expected = evaluate(function.reference, before)
    checks = [
        Check(
            relative_error(after[parameter.name], expected[parameter.name]),
            tolerance(function, parameter.name),
        )
        for parameter in function.parameters
        if parameter.name in expected
    ]
    return max(checks, key=lambda check: check.error / check.tolerance)


def relative_error(got: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> float:
    """As the module docstring defines it; infinite where `got` is not finite."""
    if not np.isfinite(got).all():
        return float("inf")
    distance = np.abs(got.astype(np.float64) - expected).max(initial=0.0)
    scale = np.abs(expected).max(initial=0.0)
    return float(distance / scale) if scale else float(distance)


def tolerance(function: Function, output: str) -> float:
    """Largest relative error that `output` may have, earlier steps' included."""
    dtypes = {parameter.name: parameter.dtype for parameter in function.parameters}
    allowed = 0.0
    for step, sizes in _loops(function):
        out = step.maps.split("->")[1]
        terms = math.prod(size for loop, size in sizes.items() if loop not in out)
        allowed += (terms + (step.init is not None)) * F32_STEP
        allowed += ROUNDING[dtypes.get(step.out, "f32")]
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


def _static(parameter: Parameter) -> tuple[int, ...]:
    shape = []
    for size in parameter.shape:
        if isinstance(size, str):
            raise LaunchError(
                f"the size '{size}' of '{parameter.name}' is known only with arrays"
            )
        shape.append(size)
    return tuple(shape)
