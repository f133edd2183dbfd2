"""Steps whose f64 a kernel computes in f32."""

from __future__ import annotations

from dataclasses import fields, replace

from alcop_mlir.reference.expressions import Constant, Expression, Operation
from alcop_mlir.reference.steps import Step

_WIDE, _NARROW = "f64", "f32"


def narrowed(step: Step) -> Step:
    """The step in f32 where it is in f64; constants are rounded too."""
    changes = {}
    for field in fields(step):
        value = getattr(step, field.name)
        if field.name in ("dtype", "sums") and value == _WIDE:
            changes[field.name] = _NARROW
        elif field.name == "expression":
            changes[field.name] = _narrowed(value)
        elif field.name == "expressions":
            changes[field.name] = tuple(map(_narrowed, value))
    return replace(step, **changes)


def _narrowed(expression: Expression) -> Expression:
    if not isinstance(expression, Operation):
        return expression
    operands = tuple(map(_narrowed, expression.operands))
    if expression.dtype != _WIDE:
        return replace(expression, operands=operands)
    return Operation(expression.name, _NARROW, tuple(map(_rounded, operands)))


def _rounded(operand: Expression) -> Expression:
    is_constant = isinstance(operand, Constant)
    return Operation("arith.truncf", _NARROW, (operand,)) if is_constant else operand
