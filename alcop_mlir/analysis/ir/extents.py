"""Sizes and strides of memrefs, as numbers or as values that exist already."""

from __future__ import annotations

from typing import Any

from alcop_mlir.analysis.ir.alignment import (
    divisor,
    given,
    kept_dimensions,
    without_casts,
)
from alcop_mlir.analysis.ir.loops import constant, defining_op, made_by, without
from alcop_mlir.bindings import ir

# Ops that take the dynamic sizes of their result as operands: the first such operand.
_OPEN_SIZES = {"memref.alloc": 0, "memref.expand_shape": 1}
_SAME_SIZES = ("memref.assume_alignment", "memref.cast")
# Ops that make polynomials of polynomials, but affine.apply with divisions.
_CALCULATIONS = (
    "affine.apply",
    "arith.addi",
    "arith.index_cast",
    "arith.muli",
    "arith.subi",
)


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


def stride(memref: ir.Value, number: int) -> Any:
    """Stride of dimension `number`: an int, a value, or None where no value holds it.

    0 of a dimension of one element, if its type does not say more.
    """
    memref = without_casts(memref)
    kind = memref.type
    strides, _ = kind.get_strides_and_offset()
    if not kind.is_dynamic_stride_or_offset(strides[number]):
        return strides[number]
    if not kind.is_dynamic_dim(number) and kind.shape[number] == 1:
        return 0
    if (op := made_by(memref, "memref.reinterpret_cast")) is not None:
        return given(op, "strides")[number]
    if (op := made_by(memref, "memref.expand_shape")) is not None:
        for dimension, group in enumerate(op.attributes["reassociation"]):
            if [*group][-1].value == number:
                return stride(op.operands[0], dimension)
    return None


def extent_divisor(memref: ir.Value, number: int) -> int:
    """A number that divides the size of dimension `number`; 0 if that is 0."""
    size = extent(memref, number)
    if size is None:
        return 1
    return size if isinstance(size, int) else divisor(size)


def has_host_size(memref: ir.Value, number: int) -> bool:
    """Whether the host knows a size: as a number, from an argument, or of such ones."""
    found = extent(memref, number)
    if found is None:
        return defining_op(without(memref, *_SAME_SIZES)) is None
    return isinstance(found, int) or is_of_sizes(found)


def is_of_sizes(value: ir.Value) -> bool:
    """Whether a value is a polynomial of sizes of memrefs, as manifests have them."""
    op = defining_op(value)
    if op is None or constant(value) is not None:
        return op is not None
    if op.name == "memref.dim":
        dimension = constant(op.operands[1])
        return dimension is not None and has_host_size(op.operands[0], dimension)
    if op.name == "affine.apply":
        (expression,) = op.attributes["map"].value.results
        if not _is_polynomial(expression):
            return False
    return op.name in _CALCULATIONS and all(map(is_of_sizes, op.operands))


def _is_polynomial(expression: ir.AffineExpr) -> bool:
    """Whether an affine expression has no divisions and remainders."""
    match expression:
        case ir.AffineAddExpr() | ir.AffineMulExpr():
            return all(map(_is_polynomial, (expression.lhs, expression.rhs)))
        case ir.AffineConstantExpr() | ir.AffineDimExpr() | ir.AffineSymbolExpr():
            return True
    return False


def groups_of(reshape: ir.Operation) -> list[list[int]]:
    """The dimensions of the longer shape that are one dimension of the shorter.

    reshape: `expand_shape` or `collapse_shape`, of a tensor or memref
    """
    groups = reshape.attributes["reassociation"]
    return [[number.value for number in group] for group in groups]
