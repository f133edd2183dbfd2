"""Prepares powers for upstream's `math-expand-ops`, which multiplies instead.

It squares and multiplies where the exponent is a whole constant, and makes any other
`math.fpowi` a `math.powf`, whose exponent no longer holds all integers. Multiplications
of f16 or bf16 would be rounded one by one: such powers are computed in f32. Powers of
integers, which upstream does not expand, are multiplied here.
"""

from __future__ import annotations

from alcop_mlir.analysis.ir.loops import splat
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.bindings import arith, ir
from alcop_mlir.passes import edit

_REAL, _WHOLE, _INTEGER = "math.powf", "math.fpowi", "math.ipowi"
_SIMPLE_POWERS = (2.0, 3.0)  # of other real exponents upstream loses precision
_COMPUTED_BITS = 32


def widen_powers(kernels: ir.Operation) -> None:
    """Compute powers of 16-bit floats in f32."""
    for power in walk(kernels, _REAL, _WHOLE):
        kind = power.results[0].type
        element = getattr(kind, "element_type", kind)
        if element.width >= _COMPUTED_BITS:
            continue
        with power.location, ir.InsertionPoint(power):
            wide = _like(kind, ir.F32Type.get())
            operands = [
                arith.extf(wide, one) if one.type == kind else one
                for one in power.operands
            ]
            result = edit.like(power, [wide], operands).results[0]
            power.results[0].replace_all_uses_with(arith.truncf(kind, result))
        power.erase()


def expand_integer_powers(kernels: ir.Operation) -> None:
    """Square and multiply where the exponent is a positive constant."""
    for power in walk(kernels, _INTEGER):
        base, exponent = power.operands
        count = splat(exponent)
        if count is None or count < 1:
            continue
        with power.location, ir.InsertionPoint(power):
            result, left = None, int(count)
            while left:
                if left % 2:
                    result = arith.muli(result, base) if result else base
                left //= 2
                base = arith.muli(base, base) if left else base
            power.results[0].replace_all_uses_with(result)
        power.erase()


def expanded_powers(kernels: ir.Operation) -> list[str]:
    """The ops among powers that upstream shall expand: all of a kind, or none."""
    real = [splat(power.operands[1]) for power in walk(kernels, _REAL)]
    whole = [splat(power.operands[1]) for power in walk(kernels, _WHOLE)]
    names = []
    if all(exponent in _SIMPLE_POWERS for exponent in real):
        names.append("powf")
    if None not in whole:
        names.append("fpowi")
    return names


def _like(kind: ir.Type, element: ir.Type) -> ir.Type:
    if not isinstance(kind, ir.VectorType):
        return element
    return ir.VectorType.get(kind.shape, element)
