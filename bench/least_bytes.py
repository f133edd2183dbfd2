"""The fewest bytes of global memory that any way of computing a function can move.

    whole arguments and constants    read once
    parts of them, rows of tables    those that the function takes, once
    results                          written once

What is computed in between is not counted: it might never leave the chip. So no
compiler moves fewer, and the best one may move more.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from alcop_mlir.element_types import element_bytes
from alcop_mlir.extents import Extent, number
from alcop_mlir.manifest.arrays import Constant, Parameter
from alcop_mlir.manifest.functions import Function
from alcop_mlir.reference.steps import Gather, Slice, Step


def least_bytes(function: Function) -> int:
    """Bytes of a call of `function`, whose sizes and reference are known."""
    arrays = (*function.parameters, *function.constants)
    read = sum(_read(one, function.reference) for one in arrays)
    made = {step.out for step in function.reference}
    return read + sum(one.bytes for one in function.parameters if one.name in made)


def _read(array: Parameter | Constant, steps: tuple[Step, ...]) -> int:
    """Bytes that the steps read of an array: at most all of them."""
    size = element_bytes(array.dtype)
    return min(array.bytes, sum(size * one for one in _elements(array, steps)))


def _elements(array: Parameter | Constant, steps: tuple[Step, ...]) -> Iterator[int]:
    """How many elements of what it was given as each step that reads it takes."""
    for step in steps:
        if array.name in step.reads:
            yield _taken(array, step)
        if array.name == step.out:
            return


def _taken(array: Parameter | Constant, step: Step) -> int:
    """How many elements of it the step takes, at most."""
    shape: Iterable[Extent] = array.shape
    if isinstance(step, Slice):
        shape = step.sizes
    elif isinstance(step, Gather) and array.name not in step.inputs:
        shape = step.shape
    return math.prod(number(size, {}) for size in shape)
