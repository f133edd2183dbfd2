"""Accumulator initialisation: what the output of a contraction holds before it.

Looks at the ops above the contraction; changes nothing.
"""

from __future__ import annotations

from typing import Any

from alcop_mlir.analysis.ir.code_motion import (
    may_write,
    ops_between,
    touches,
    users_above,
)
from alcop_mlir.analysis.ir.loops import made_by, splat
from alcop_mlir.analysis.ir.memory import root
from alcop_mlir.analysis.ir.memref_layouts import follows_shape
from alcop_mlir.analysis.linalg.contractions import Contraction
from alcop_mlir.analysis.linalg.elementwise import (
    Elementwise,
    elementwise,
    filled_with,
    find_writer,
)
from alcop_mlir.bindings import ir
from alcop_mlir.dialects import alcop
from alcop_mlir.frozen import frozen


@frozen
class AccumulatorInit:
    """What C holds before the contraction.

    kind:   "zero" (`writer` fills it with zero), "copy" (`writer` copies or broadcasts
            another memref into it) or "read" (anything: it has to be read)
    writer: the op that writes it, None for "read"
    """

    kind: str
    writer: Any


def find_accumulator_init(
    contraction: Contraction, noalias_arguments: bool = False
) -> AccumulatorInit:
    """What fills C: the nearest op above in the same block that writes it.

    Ops in between must be known not to touch C, and, for a copy, not to write its
    source: otherwise the init is "read", and all ops are left unchanged.

    noalias_arguments: whether a written argument overlaps no other
    """
    out = contraction.out
    collapse = made_by(out, "memref.collapse_shape")
    same = (out, out if collapse is None else collapse.operands[0])
    element = find_writer(contraction.op, same, touches, noalias_arguments)
    if element is None:
        return AccumulatorInit("read", None)
    if _fills_with_zero(element):
        return AccumulatorInit("zero", element.op)
    if element.output.value != out or not _is_copy(element):
        return AccumulatorInit("read", None)
    source = element.inputs[0].value
    between = ops_between(element.op, contraction.op)
    if any(may_write(op, source, noalias_arguments) for op in between):
        return AccumulatorInit("read", None)
    return AccumulatorInit("copy", element.op)


def marked_init(contraction: ir.Operation) -> Elementwise | None:
    """The op above a marked contraction that is marked as its init, or None."""
    out = list(contraction.operands)[-1]
    for op in users_above(contraction, out):
        mark = alcop.get(op, alcop.ContractionAttr) or {}
        element = elementwise(op) if mark.get("role") == "init" else None
        if element is not None and element.output.value == out:
            return element
    return None


def fill_before(op: ir.Operation, memref: ir.Value) -> Any | None:
    """The `linalg.fill` above `op` that fills `memref` last, or None.

    Nothing in between may touch the memref: `op` is the first to read what was filled.
    """
    found = find_writer(op, [memref], touches, False)
    return found.op if found is not None and found.op.name == "linalg.fill" else None


def _fills_with_zero(element: Elementwise) -> bool:
    """Whether it writes zero, an input or a constant from outside."""
    value = filled_with(element)
    return value is not None and splat(value) == 0


def _is_copy(element: Elementwise) -> bool:
    """Whether the output is a copy of another memref, perhaps extended in type."""
    if len(element.inputs) != 1 or not element.inputs[0].is_memref:
        return False
    (source,) = element.inputs
    if None in source.loops or not follows_shape(source.value.type):
        return False
    if root(source.value) == root(element.output.value):
        return False
    if element.block is None:
        return True
    *body, end = (op.operation for op in element.block.operations)
    if not body:
        return end.operands[0] == source.argument
    (first, *others) = body
    extends = first.name == "arith.extf" and first.operands[0] == source.argument
    return extends and not others and end.operands[0] == first.results[0]


def starts_from_zero(op: ir.Operation) -> bool:
    """Whether `op` is marked as a contraction that a fill with zero was folded into."""
    return (alcop.get(op, alcop.ContractionAttr) or {}).get("init") == "zero"
