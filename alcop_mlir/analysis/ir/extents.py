"""Sizes of memrefs, as numbers or as values that exist already."""

from __future__ import annotations

from typing import Any

from alcop_mlir.analysis.ir.alignment import (
    divisor,
    given,
    kept_dimensions,
    without_casts,
)
from alcop_mlir.analysis.ir.loops import constant, defining_op
from alcop_mlir.bindings import ir

# Ops that take the dynamic sizes of their result as operands: the first such operand.
_OPEN_SIZES = {"memref.alloc": 0, "memref.expand_shape": 1}


def extent(memref: ir.Value, number: int) -> Any:
    """Size of dimension `number`: an int, a value, or None where no value holds it.

    Looks through casts, and at the sizes that a view or an allocation was made with.
    """
    memref = without_casts(memref)
    if not memref.type.is_dynamic_dim(number):
        return memref.type.shape[number]
    op = defining_op(memref)
    if op is None:
        return None
    if op.name == "memref.reinterpret_cast":
        size = given(op, "sizes")[number]
    elif op.name == "memref.subview":
        size = given(op, "sizes")[kept_dimensions(op)[number]]
    elif op.name in _OPEN_SIZES:
        dimension = sum(memref.type.is_dynamic_dim(n) for n in range(number))
        size = op.operands[_OPEN_SIZES[op.name] + dimension]
    else:
        return None
    if isinstance(size, int):
        return size
    known = constant(size)
    return size if known is None else known


def extent_divisor(memref: ir.Value, number: int) -> int:
    """A number that divides the size of dimension `number`; 0 if that is 0."""
    size = extent(memref, number)
    if size is None:
        return 1
    return size if isinstance(size, int) else divisor(size)
