"""Operands of a contraction that hold two elements in a byte, and groups of scales.

Neighbours along K share a byte, the first in its lower half. The map of such an
operand has `k floordiv 2` along one dimension, and the body takes the half:

  ^bb0(%a: f16, %byte: i8, %scale: f16, %c: f32):
    %k = linalg.index 2 : index
    %i = arith.index_cast %k : index to i8
    %odd = arith.andi %i, %c1 : i8
    %by = arith.shli %odd, %c2 : i8          // 0, or 4 bits
    %low = arith.shrui %byte, %by : i8
    %q = arith.trunci %low : i8 to i4        // the nibble

What belongs to groups along K, as scales and zero points, has `k floordiv 32` along its
first dimension and the columns along the second. `alcop-sink-unpacking` writes this
code. Changes nothing.
"""

from __future__ import annotations

from typing import Any

from alcop_mlir.analysis.ir.loops import block_of, constant, made_by
from alcop_mlir.analysis.ir.slices import backward_slice
from alcop_mlir.analysis.linalg.view import LinalgView, Operand
from alcop_mlir.bindings import ir
from alcop_mlir.frozen import frozen
from alcop_mlir.target import mma_shape

PER_BYTE = 2
NIBBLE_BITS = 4
GROUP_STEP = mma_shape(2)[2]  # elements along k of one mma.sync, of one group


def nibble_of(value: ir.Value) -> tuple[Any, int] | None:
    """The byte and the loop of a nibble of the form above; None for another value."""
    if str(value.type) != "i4":
        return None
    shifted = _operands(value, "arith.trunci")
    byte_and_by = _operands(*shifted, "arith.shrui")
    odd = _operands(*byte_and_by[1:], "arith.shli")
    number = _operands(*odd[:1], "arith.andi")
    index = _operands(*number[:1], "arith.index_cast")
    loop = made_by(index[0], "linalg.index") if index else None
    if loop is None or constant(odd[1]) != 2 or constant(number[1]) != 1:
        return None
    byte = byte_and_by[0]
    return (byte, loop.attributes["dim"].value) if str(byte.type) == "i8" else None


def _operands(*value_and_name: Any) -> list[Any]:
    """Those of the op of that name that makes the value; none for any other."""
    *value, name = value_and_name
    op = made_by(value[0], name) if value else None
    return [] if op is None else list(op.operands)


def find_nibble(block: ir.Block | None) -> Any | None:
    """The one nibble that a body takes; None where it takes none, or several."""
    if block is None:
        return None
    found = [
        result
        for op in block.operations
        for result in op.operation.results
        if nibble_of(result) is not None
    ]
    return found[0] if len(found) == 1 else None


def nibble_ops(nibble: ir.Value) -> list[Any]:
    """The ops by which a body takes a nibble out of its byte."""
    ops, _ = backward_slice([nibble], block_of(nibble))
    return [op.operation for op in ops]


def packed_operand(view: LinalgView) -> int | None:
    """The number of the operand that holds a body's nibbles, neighbours along a loop.

    None where the body takes none, or not as the operand is packed.
    """
    nibble = find_nibble(view.block)
    if nibble is None:
        return None
    found = nibble_of(nibble)
    assert found is not None
    byte, loop = found
    for number, operand in enumerate(view.inputs):
        halves = [one for one in map(_group, operand.indices) if one is not None]
        if operand.argument == byte and halves == [(loop, PER_BYTE)]:
            return number
    return None


def group_of(operand: Operand) -> tuple[int, int] | None:
    """The loop that an operand's first index divides, and by what; None for another.

    The second index is a loop alone, and there is no third.
    """
    if len(operand.indices) != 2 or operand.loops[1] is None:
        return None
    return _group(operand.indices[0])


@frozen
class UnpackedOperand(Operand):
    """A packed operand with the map that it had, if it held each element on its own."""


def unpacked(operand: Operand) -> UnpackedOperand:
    """A packed operand by the loops of its elements."""
    results = [
        ir.AffineExpr.get_dim(group[0])
        if (group := _group(index))
        else index.expression
        for index in operand.indices
    ]
    plain = ir.AffineMap.get(operand.map.n_dims, 0, results)
    return UnpackedOperand(operand.value, operand.argument, plain)


def _group(index: Any) -> tuple[int, int] | None:
    expression = index.expression
    if not isinstance(expression, ir.AffineFloorDivExpr):
        return None
    if not isinstance(expression.lhs, ir.AffineDimExpr):
        return None
    if not isinstance(expression.rhs, ir.AffineConstantExpr):
        return None
    return expression.lhs.position, expression.rhs.value
