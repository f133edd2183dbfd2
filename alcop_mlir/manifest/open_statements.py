"""What statements say of arrays whose sizes are known at run time only: extents and
strides are polynomials in sizes, as lists of terms.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from alcop_mlir.element_types import element_bytes
from alcop_mlir.extents import Extent
from alcop_mlir.manifest.arrays import Parameter
from alcop_mlir.manifest.held_values import Array, Shape
from alcop_mlir.manifest.promises import listed, polynomial
from alcop_mlir.polynomials import constant


def open_members(
    sizes: Mapping[str, Extent],
    arrays: Mapping[str, Array],
    used: Mapping[str, tuple[Shape, str]],
) -> dict[str, Any] | None:
    """Extents of loops, and of arrays that are used, by their shapes and loops, what
    lies between neighbours; None where elements do not lie one behind the other.
    """
    parameters = [a for n in used if isinstance(a := arrays[n], Parameter)]
    if any(one.strides is not None for one in parameters):
        return None
    return {
        "extents": {loop: listed(polynomial(one)) for loop, one in sizes.items()},
        "arrays": {
            n: [loops, _strides(shape), element_bytes(arrays[n].dtype)]
            for n, (shape, loops) in sorted(used.items())
        },
    }


def _strides(shape: Shape) -> list[Any]:
    found, span = [], constant(1)
    for extent in reversed(shape):
        found.append(listed(span))
        span = span * polynomial(extent)
    return found[::-1]
