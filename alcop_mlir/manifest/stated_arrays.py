"""What statements say of arrays: extents of loops, elements between neighbours, bytes.

Where sizes are known at run time only extents and strides are polynomials in them, as
lists of terms.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from alcop_mlir.element_types import element_bytes
from alcop_mlir.extents import Extent
from alcop_mlir.manifest.arrays import Parameter
from alcop_mlir.manifest.held_values import Array, Operand, Shape
from alcop_mlir.manifest.kernels import block_counts
from alcop_mlir.manifest.promises import listed, polynomial
from alcop_mlir.polynomials import constant

Part = tuple[str, str, int]  # of a sum: its loop, that of parts, and how many there are


class Unstated(Exception):
    """Why there is no statement."""


def sizes_of(operands: Iterable[Operand]) -> dict[str, Extent]:
    """How many turns each loop has; raises Unstated where operands do not agree."""
    found: dict[str, Extent] = {}
    for one in operands:
        if len(one.shape) != len(one.loops):
            raise Unstated(f"array {one.array} has another rank")
        for loop, extent in zip(one.loops, one.shape, strict=True):
            if found.setdefault(loop, extent) != extent:
                raise Unstated(f"array {one.array} is of another shape")
    return found


def known_members(
    operands: Mapping[str, Operand],
    arrays: Mapping[str, Array],
    grid: Iterable[Any],
    part: Part | None = None,
) -> dict[str, Any]:
    """Of known extents; part: of the sum, if each block adds up one."""
    extents = {n: _known(one) for n, one in sizes_of(operands.values()).items()}
    if part is not None:
        summed, _, count = part
        if extents[summed] % count:
            raise Unstated("parts of a sum that are not as long as each other")
        extents[summed] //= count
    return {
        "extents": extents,
        "arrays": {
            name: _stated(one, arrays[name], part)
            for name, one in sorted(operands.items())
        },
        "grid": [_number(one) for one in grid],
    }


def open_members(
    operands: Mapping[str, Operand], arrays: Mapping[str, Array]
) -> dict[str, Any]:
    """Of sizes that are known at run time only; Unstated where elements do not lie one
    behind the other.
    """
    parameters = [a for n in operands if isinstance(a := arrays[n], Parameter)]
    if any(one.strides is not None for one in parameters):
        raise Unstated("rows with steps of their own, of sizes not known")
    sizes = sizes_of(operands.values())
    return {
        "extents": {loop: listed(polynomial(one)) for loop, one in sizes.items()},
        "arrays": {
            name: [one.loops, _open_strides(one.shape), _bytes(arrays[name])]
            for name, one in sorted(operands.items())
        },
    }


def _stated(operand: Operand, array: Array, part: Part | None) -> list[Any]:
    loops, strides = operand.loops, _strides(array, operand.shape)
    if part is not None and part[0] in loops:
        summed, parts, count = part
        at = loops.index(summed)
        step = strides[at] * _known(operand.shape[at]) // count
        loops, strides = loops + parts, [*strides, step]
    return [loops, strides, _bytes(array)]


def _strides(array: Array, shape: Shape) -> list[int]:
    if isinstance(array, Parameter) and array.strides is not None:
        return [_number(one) for one in array.strides]
    numbers = [_known(extent) for extent in shape]
    return [math.prod(numbers[n + 1 :]) for n in range(len(numbers))]


def _open_strides(shape: Shape) -> list[Any]:
    found, span = [], constant(1)
    for extent in reversed(shape):
        found.append(listed(span))
        span = span * polynomial(extent)
    return found[::-1]


def _bytes(array: Array) -> int:
    return element_bytes(array.dtype)


def _known(extent: Any) -> int:
    if not isinstance(extent, int):
        raise Unstated("sizes that are not known")
    return extent


def _number(value: Any) -> int:
    """A number of blocks, or a stride."""
    return math.prod(map(_known, block_counts(value)))
