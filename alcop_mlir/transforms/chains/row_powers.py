"""Builders of the weights of a row, exp2(c * (x - r)), with one op per element.

c * x - q is one fused multiply-add where q = c * r is computed once per row. What it
adds is exact, so that the error is that of q, which all weights of the row share
and the division by their total cancels. But it grows with r: the largest weight is
exp2(c * r - q), at most half a unit in the last place of q away from 1 in the exponent.
Up to |q| = 2^27 it is within 2^-4 and 2^4, far from what 16 bits overflow. Beyond that,
neighbours of r in f32 differ from it by 4 at least in the exponent, so that what has
been lost by rounding x is more than their weight: c is replaced there, in the whole
row, by a power of two, for which c * r is exact and the largest weight is 1.

A row starts from the least float, as -inf cannot be subtracted from itself.
A weight of -inf is 0 then too.
"""

from __future__ import annotations

import math
from typing import Any

from alcop_mlir.bindings import arith, ir
from alcop_mlir.bindings import math as math_ops
from alcop_mlir.element_types import ELEMENT_TYPES
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import build

# ex2.approx.ftz, which 0 and infinities go through exactly.
_FAST = "#arith.fastmath<afn>"
_LARGEST_OFFSET = 2.0**27
_LARGEST_SCALE = 2.0
_LEAST = -ELEMENT_TYPES["f32"].largest


@frozen
class RowPowers:
    """Weights are exp2(multiplier * x - offset), of rows with a maximum.

    multiplier: a vector of one per row, or a number for all rows; None for weights that
        are exp2(scale * (x - offset))
    offset: a vector of one per row

    Of a single row, what a vector would be is a number.
    """

    scale: float
    multiplier: Any
    offset: Any

    def of(self, elements: ir.Value, along: Any) -> Any:
        """The weights of elements; `along` gives a vector of rows its columns."""
        offset = along(self.offset)
        if self.multiplier is None:
            return exp2(_times(arith.subf(elements, offset), self.scale))
        if isinstance(self.multiplier, float):
            multiplier = splat(elements.type, self.multiplier)
        else:
            multiplier = along(self.multiplier)
        return exp2(math_ops.fma(elements, multiplier, arith.negf(offset)))

    def corrected(self, before: ir.Value) -> Any:
        """What totals so far are multiplied by, which had the offset before."""
        exponent = arith.subf(before, self.offset)
        if self.multiplier is None:
            return exp2(_times(exponent, self.scale))
        if _exact(self.scale) < self.scale:
            # The offset of a larger maximum may be less, where the multiplier changes.
            exponent = arith.minnumf(exponent, splat(exponent.type, 0.0))
        return exp2(exponent)


def row_powers(scale: float, maximum: ir.Value) -> RowPowers:
    """Of rows with these maxima, none of which is -inf."""
    if scale == 1 or scale > _LARGEST_SCALE:
        return RowPowers(scale, None, maximum)
    offset = _times(maximum, scale)
    exact = _exact(scale)
    if exact == scale:
        return RowPowers(scale, scale, offset)
    kind = maximum.type
    bound = splat(kind, _LARGEST_OFFSET / scale)
    is_large = arith.cmpf(arith.CmpFPredicate.OGT, math_ops.absf(maximum), bound)
    multiplier = arith.select(is_large, splat(kind, exact), splat(kind, scale))
    return RowPowers(scale, multiplier, arith.mulf(maximum, multiplier))


def first_maximum(start: float) -> float:
    """What the maximum of a row starts from instead of `start`, -inf or a number."""
    return max(start, _LEAST)


def _exact(scale: float) -> float:
    """A power of two for a scale: the next one, but 1 at most, as nothing overflows."""
    return min(1.0, 2.0 ** math.ceil(math.log2(scale)))


def exp2(value: ir.Value) -> Any:
    """Powers of two, of which those below 2^-126 are 0."""
    attributes = {"fastmath": ir.Attribute.parse(_FAST)}
    return ir.Operation.create("math.exp2", [value.type], [value], attributes).result


def splat(kind: Any, number: float) -> Any:
    """A constant of f32, or a vector of them."""
    attribute = ir.FloatAttr.get(ir.F32Type.get(), number)
    if isinstance(kind, ir.VectorType):
        return build.splat(kind, attribute)
    return arith.constant(kind, attribute)


def _times(value: ir.Value, number: float) -> Any:
    return value if number == 1 else arith.mulf(value, splat(value.type, number))
