"""What a launch promises of arrays, sizes and blocks, as certificates list it.

Plain JSON values, so that what proves, checks and launches may compare them. A number
is a list of terms, `[[2, ["M", "K"]], [8, []]]` for 2 * M * K + 8.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from alcop_mlir.element_types import element_bytes
from alcop_mlir.extents import Extent
from alcop_mlir.manifest.arrays import Constant, Intermediate, Parameter
from alcop_mlir.manifest.functions import Function
from alcop_mlir.manifest.kernels import (
    AtMost,
    CeilDiv,
    Kernel,
    Pointer,
    SizeValue,
    Variant,
    block_counts,
)
from alcop_mlir.polynomials import Polynomial, collected, constant, size

AXES = ("%ctaid.x", "%ctaid.y", "%ctaid.z")
_Array = Parameter | Intermediate | Constant


def promises(
    function: Function, variant: Variant, kernel: Kernel, parameters: Sequence[str]
) -> dict[str, Any]:
    """All of one launch; parameters: the names of those of the kernel."""
    arrays = {one.name: one for one in _arrays(function)}
    given = dict(zip(parameters, kernel.arguments, strict=False))
    return {
        "arrays": {
            name: _bytes(arrays[one.array])
            for name, one in given.items()
            if isinstance(one, Pointer) and one.array in arrays
        },
        "values": {
            name: listed(polynomial(one.size))
            for name, one in given.items()
            if isinstance(one, SizeValue)
        },
        "grid": {
            axis: [
                [listed(one.dividend), one.divisor]
                if isinstance(one, CeilDiv)
                else [listed(constant(one)), 1]
                for one in block_counts(blocks)
            ]
            for axis, blocks in zip(AXES, kernel.grid, strict=True)
        },
        "facts": [
            listed(one.most - one.least)
            for one in (*function.checks, *variant.checks, *variant.guard)
            if isinstance(one, AtMost)
        ],
    }


def polynomial(extent: Extent) -> Polynomial:
    """A size as a polynomial in sizes."""
    if isinstance(extent, Polynomial):
        return extent
    return size(extent) if isinstance(extent, str) else constant(extent)


def listed(value: Polynomial) -> list[Any]:
    """A polynomial as JSON values."""
    return [[factor, list(names)] for factor, names in value.terms]


def value_of(terms: Any, sizes: Mapping[str, int]) -> int:
    """The number that a list of terms is; KeyError, TypeError or ValueError for what is
    none, or names other sizes.
    """
    return collected((factor, tuple(names)) for factor, names in terms).value(sizes)


def _arrays(function: Function) -> Iterator[_Array]:
    yield from function.parameters
    yield from function.intermediates
    yield from function.constants
    if function.prepare is not None:
        yield from function.prepare.arrays


def _bytes(array: _Array) -> list[Any]:
    """The bytes from the first element to behind the last, and what is 0 where there is
    none, if that number does not say so.
    """
    strides = array.strides if isinstance(array, Parameter) else None
    shape = [polynomial(one) for one in array.shape]
    elements, lengths = constant(1), []
    if strides is None:
        for extent in shape:
            elements = elements * extent
    else:
        for extent, stride in zip(shape, strides, strict=True):
            elements = elements + (extent - constant(1)) * polynomial(stride)
        lengths = [listed(one) for one in shape if one.known is None or one.known < 1]
    return [listed(elements * constant(element_bytes(array.dtype))), lengths]
