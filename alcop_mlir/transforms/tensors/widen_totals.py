"""Add up in f32 what a program adds up in f16 or bf16.

Before:  %s = linalg.generic ins(%x : tensor<8x64xf16>) outs(%z : tensor<8xf16>) {
           arith.addf %in, %out : f16 }
After:   %t = linalg.generic ins(%x : tensor<8x64xf16>) outs(%w : tensor<8xf32>) {
           arith.extf %in ; arith.addf : f32 }
         %s = linalg.generic ins(%t : tensor<8xf32>) outs(..xf16) { arith.truncf }

A sum of 16 bits is rounded once for each term, in an order that nothing else may have:
threads cannot share it, and 2048 + 1 is 2048. In f32 it is one of a row group, with
what follows, as the division of an average pool. It is rounded once, which references
allow. What starts the sum is widened too, a constant at once.

What adds up what two inputs give when multiplied is left unchanged: contractions have
accumulators of f32 anyhow. So are memrefs.

Runs after the passes that know poolings by their names, and before element-wise ops are
inlined. Reads no attributes; those of this project stay on the sum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from alcop_mlir.analysis.ir.loops import defining_op, filled
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.linalg.view import LinalgView, linalg_view
from alcop_mlir.bindings import arith, ir, linalg
from alcop_mlir.passes import edit
from alcop_mlir.passes.base import Pass
from alcop_mlir.transforms.tensors.generic_ops import (
    empty_like,
    generic_on_tensors,
    keep_marks,
)

_SUM, _PRODUCT = "arith.addf", "arith.mulf"
_NARROW = (ir.F16Type, ir.BF16Type)


@dataclass(frozen=True)
class WidenTotals(Pass):
    name = "alcop-widen-totals"
    anchor = "func.func"

    def run(self, op: ir.Operation) -> None:
        top = walk(op, enter=lambda one: not one.name.startswith("linalg."))
        for one in top:
            view = linalg_view(one) if one.name.startswith("linalg.") else None
            if view is not None and _is_narrow_sum(view):
                _widen(view)


def _is_narrow_sum(view: LinalgView) -> bool:
    if len(view.outputs) != 1 or not view.reductions or view.block is None:
        return False
    (output,) = view.outputs
    if not output.is_tensor or not isinstance(output.value.type.element_type, _NARROW):
        return False
    term = _term(view)
    made = None if term is None else defining_op(term)
    return term is not None and (made is None or made.name != _PRODUCT)


def _term(view: LinalgView) -> Any | None:
    """What each iteration adds to the output; None where it is no such sum."""
    total = view.outputs[0].argument
    (result,) = view.block.operations[-1].operation.operands
    add = defining_op(result)
    if add is None or add.name != _SUM or total not in list(add.operands):
        return None
    if sum(1 for _ in total.uses) != 1:
        return None
    (term,) = (one for one in add.operands if one != total)
    return term


def _widen(view: LinalgView) -> None:
    op, (output,) = view.op, view.outputs
    inputs = [one.value for one in view.inputs]
    with op.location, ir.InsertionPoint(op):
        start = _widened(output.value)
        made = generic_on_tensors(inputs, [start], view.maps, view.reductions)
        keep_marks(op, made)
        _add_up(view, made)
        narrow = _cast(made.results[0], output.value.type.element_type, arith.truncf)
    op.results[0].replace_all_uses_with(narrow)
    op.erase()


def _add_up(view: LinalgView, made: ir.Operation) -> None:
    """The body of `made`: that of the op, but for the sum, which is in f32."""
    *kinds, _ = [one.type for one in view.block.arguments]
    wide, here = ir.F32Type.get(), ir.Location.current
    block = made.regions[0].blocks.append(
        *kinds, wide, arg_locs=[here] * (len(kinds) + 1)
    )
    *own, add, _ = [one.operation for one in view.block.operations]
    known = dict(zip(view.block.arguments, block.arguments, strict=True))
    with ir.InsertionPoint(block):
        for op in own:
            edit.clone(op, known)
        term = _term(view)
        extended = arith.extf(wide, known.get(term, term))
        total = arith.addf(
            extended, block.arguments[-1], fastmath=add.attributes["fastmath"]
        )
        linalg.YieldOp([total])


def _widened(start: ir.Value) -> Any:
    """What the sum starts from, in f32."""
    wide, number = ir.F32Type.get(), filled(start)
    if number is None:
        return _cast(start, wide, arith.extf)
    constant = arith.constant(wide, ir.FloatAttr.get(wide, number))
    return linalg.fill(constant, outs=[empty_like(start, wide)])


def _cast(value: ir.Value, kind: ir.Type, cast: Any) -> Any:
    """Each element as another float."""
    identity = ir.AffineMap.get_identity(value.type.rank)
    made = generic_on_tensors([value], [empty_like(value, kind)], [identity] * 2)
    here = ir.Location.current
    given = value.type.element_type
    block = made.regions[0].blocks.append(given, kind, arg_locs=[here] * 2)
    with ir.InsertionPoint(block):
        linalg.YieldOp([cast(kind, block.arguments[0])])
    return made.results[0]
