"""What statements say of arrays: extents of loops, elements between neighbours, bytes.

Where sizes are known at run time only extents and strides are polynomials in them, as
lists of terms.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

from alcop_mlir.element_types import element_bytes
from alcop_mlir.extents import Extent
from alcop_mlir.manifest.arrays import Parameter
from alcop_mlir.manifest.held_values import Array, Operand
from alcop_mlir.manifest.indices import Shape, steps_of
from alcop_mlir.manifest.kernels import block_counts
from alcop_mlir.manifest.promises import listed, polynomial
from alcop_mlir.polynomials import Polynomial, constant, size

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
    extents = {n: known(one) for n, one in sizes_of(operands.values()).items()}
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


def is_known(operands: Mapping[str, Operand]) -> bool:
    """Whether all extents are numbers."""
    return all(isinstance(one, int) for one in sizes_of(operands.values()).values())


def merged(
    operands: Mapping[str, Operand], order: str, arrays: Mapping[str, Array]
) -> tuple[Mapping[str, Operand], str]:
    """With one loop for two where each operand that has one has both, one inside
    of the other: kernels go through elements that lie one behind the other.
    """
    if any(one.strides or _has_steps(arrays[n]) for n, one in operands.items()):
        return operands, order
    for outer, inner in pairwise(order):
        both = outer + inner
        every = [one.loops for one in operands.values() if {*both} & {*one.loops}]
        if all(both in loops for loops in every):
            made = {n: _merged(one, outer, inner) for n, one in operands.items()}
            return merged(made, order.replace(both, outer), arrays)
    return operands, order


def _has_steps(array: Array) -> bool:
    return isinstance(array, Parameter) and array.strides is not None


def _merged(operand: Operand, outer: str, inner: str) -> Operand:
    if inner not in operand.loops:
        return operand
    at, shape = operand.loops.index(inner), [*operand.shape]
    both = polynomial(shape[at - 1]) * polynomial(shape[at])
    shape[at - 1 : at + 1] = [both if both.known is None else both.known]
    loops = operand.loops.replace(outer + inner, outer)
    return Operand(operand.array, tuple(shape), loops)


def open_members(
    operands: Mapping[str, Operand],
    arrays: Mapping[str, Array],
    part: Part | None = None,
) -> dict[str, Any]:
    """Of sizes that are known at run time only; Unstated where elements do not lie one
    behind the other. `K/8` is a size too, an eighth of one.
    """
    if any(_has_steps(arrays[name]) for name in operands):
        raise Unstated("rows with steps of their own, of sizes not known")
    if part is not None:
        operands = _in_parts(operands, part)
    sizes = sizes_of(operands.values())
    return {
        "extents": {loop: listed(polynomial(one)) for loop, one in sizes.items()},
        "arrays": {
            name: [one.loops, _open_strides(one.shape), _bytes(arrays[name])]
            for name, one in sorted(operands.items())
        },
    }


def _in_parts(operands: Mapping[str, Operand], part: Part) -> dict[str, Operand]:
    """With a loop of parts around that of the sum, which is one of its parts."""
    summed, parts, count = part
    whole = sizes_of(operands.values())[summed]
    if isinstance(whole, Polynomial) or (isinstance(whole, int) and whole % count):
        raise Unstated("parts of a sum that are not as long as each other")
    one = (
        constant(whole // count) if isinstance(whole, int) else size(f"{whole}/{count}")
    )

    def of_parts(extent: Extent) -> Polynomial:
        found = constant(0)
        for factor, names in polynomial(extent).terms:
            term = constant(factor)
            for name in names:
                term = term * (one * constant(count) if name == whole else size(name))
            found = found + term
        return found

    found: dict[str, Operand] = {}
    for name, operand in operands.items():
        loops, shape = operand.loops, [*map(of_parts, operand.shape)]
        if summed in loops:
            at = loops.index(summed)
            loops = f"{loops[:at]}{parts}{loops[at:]}"
            shape[at : at + 1] = [constant(count), one]
        found[name] = Operand(name, tuple(shape), loops)
    return found


def _stated(operand: Operand, array: Array, part: Part | None) -> list[Any]:
    loops, strides = operand.loops, [*(operand.strides or ())]
    if operand.strides is None:
        strides = strides_of(array, operand.shape)
    if part is not None and part[0] in loops:
        summed, parts, count = part
        at = loops.index(summed)
        step = strides[at] * known(operand.shape[at]) // count
        loops, strides = loops + parts, [*strides, step]
    first = [operand.first] if operand.first else []
    return [loops, strides, _bytes(array), *first]


def strides_of(array: Array, shape: Shape) -> list[int]:
    """Elements between neighbours, of an array of that shape."""
    if isinstance(array, Parameter) and array.strides is not None:
        return [_number(one) for one in array.strides]
    return steps_of(tuple(map(known, shape)))


def _open_strides(shape: Shape) -> list[Any]:
    found, span = [], constant(1)
    for extent in reversed(shape):
        found.append(listed(span))
        span = span * polynomial(extent)
    return found[::-1]


def _bytes(array: Array) -> int:
    return element_bytes(array.dtype)


def known(extent: Any) -> int:
    """The extent as a number; Unstated where it is none."""
    if not isinstance(extent, int):
        raise Unstated("sizes that are not known")
    return extent


def _number(value: Any) -> int:
    """A number of blocks, or a stride."""
    return math.prod(map(known, block_counts(value)))
