"""Compute element-wise ops where other ops look up some of their elements.

Before:  %t = linalg.generic ins(%x, %m : tensor<48x64xf32>, tensor<48xf32>)
             outs(%e : tensor<48x64xf32>) { arith.subf }
         %y = linalg.generic ins(%i : tensor<48xi64>) outs(%f : tensor<48xf32>) {
           %v = tensor.extract %t[%row, %column] .. }
After:   %y = linalg.generic ins(%i, %m : tensor<48xi64>, tensor<48xf32>)
             outs(%f : tensor<48xf32>) {
           %a = tensor.extract %x[%row, %column] ; %v = arith.subf %a, %b .. }

What is looked up at the numbers of loops is an input. So the loss of a row looks up the
scores of one column, and no row of logarithms of probabilities is made. Not where a
contraction can compute the op, which then stores no other result; nor where more
elements are looked up than there are; nor where what the op reads is overwritten in
place. A remark says so.

Runs before alcop-inline-elementwise, which removes what nothing reads any more, and
before bufferization. Reads `alcop.in_place`; writes no `alcop` attributes.
"""

from __future__ import annotations

from typing import Any

from alcop_mlir import diagnostics
from alcop_mlir.analysis.ir.loops import made_by
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.linalg.elementwise import INDEX
from alcop_mlir.analysis.linalg.view import LinalgView, view_of
from alcop_mlir.analysis.tensors.elementwise_pairs import overwritten_tensors
from alcop_mlir.analysis.tensors.gathered_elements import (
    EXTRACT,
    LookUp,
    look_ups,
    why_not_computed,
)
from alcop_mlir.bindings import ir, linalg, tensor
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import build, edit
from alcop_mlir.passes.base import Pass
from alcop_mlir.transforms.tensors.generic_ops import generic_on_tensors, keep_marks


@frozen
class InlineGathered(Pass):
    name = "alcop-inline-gathered"
    anchor = "func.func"

    def run(self, op: ir.Operation) -> None:
        readers = dict.fromkeys(one.parent for one in walk(op, EXTRACT))
        found = [one for one in readers if one.name == "linalg.generic"]
        overwritten = overwritten_tensors(op) if found else set[Any]()
        for reader in found:
            _inline(reader, overwritten)


def _inline(reader: ir.Operation, overwritten: set[Any]) -> None:
    """Compute what the op looks up, and what that is computed of, where possible."""
    pending, stays = look_ups(reader), dict[Any, str]()
    while pending:
        found = pending.pop()
        why_not = why_not_computed(found, overwritten)
        if why_not is None:
            _compute(found)
            pending = look_ups(reader)
        else:
            stays[found.maker.op] = why_not
    for maker, why_not in stays.items():
        what = "not computed where its elements are looked up"
        diagnostics.remark(maker, f"{what}: {why_not}")
    at_loops = [one for one in walk(reader, EXTRACT) if _loops(one) is not None]
    if at_loops:
        _read_as_inputs(view_of(reader), at_loops)


def _compute(found: LookUp) -> None:
    """Replace an element that is looked up by what it is computed of."""
    extract, maker = found.extract, found.maker
    _, *indices = extract.operands
    loops = (one.loop for one in maker.output.indices)
    index_of = dict(zip(loops, indices, strict=True))
    with extract.location, ir.InsertionPoint(extract):
        known: dict[Any, Any] = {
            one.argument: one.value
            if not one.is_tensor
            else tensor.extract(
                one.value,
                [build.index(0) if n is None else index_of[n] for n in one.loops],
            )
            for one in maker.reads
        }
        for op in walk(maker.op, INDEX):
            known[op.results[0]] = index_of[op.attributes["dim"].value]
        (element,) = edit.inline(maker.block, known)
    extract.results[0].replace_all_uses_with(element)
    extract.erase()
    edit.erase_unused([maker.op])


def _loops(extract: ir.Operation) -> list[int] | None:
    """The loops whose numbers are all indices; None where others are, or one twice."""
    makers = [made_by(index, INDEX) for index in list(extract.operands)[1:]]
    found = [one.attributes["dim"].value for one in makers if one is not None]
    is_plain = len({*found}) == len(makers) and _top(extract)
    return found if is_plain else None


def _top(extract: ir.Operation) -> bool:
    """Whether it is in the body of the op itself, not of one in it."""
    return extract.parent.name == "linalg.generic"


def _read_as_inputs(view: LinalgView, extracts: list[Any]) -> None:
    """Replace the op by one with inputs for what it looks up at its loops."""
    maps = [
        ir.AffineMap.get(
            view.rank, 0, [ir.AffineExpr.get_dim(loop) for loop in _loops(one) or ()]
        )
        for one in extracts
    ]
    inputs = [*(one.value for one in view.inputs), *(e.operands[0] for e in extracts)]
    outputs = [one.value for one in view.outputs]
    every = [*(o.map for o in view.inputs), *maps, *(o.map for o in view.outputs)]
    with view.op.location, ir.InsertionPoint(view.op):
        made = generic_on_tensors(inputs, outputs, every, view.reductions)
        kinds = [
            getattr(value.type, "element_type", value.type)
            for value in (*inputs, *outputs)
        ]
        places = [view.op.location] * len(kinds)
        block = made.regions[0].blocks.append(*kinds, arg_locs=places)
        arguments = list(block.arguments)
        count = len(view.inputs)
        known = {
            one.argument: argument
            for one, argument in zip(
                view.operands,
                [*arguments[:count], *arguments[count + len(extracts) :]],
                strict=True,
            )
        }
        known |= {
            one.results[0]: argument
            for one, argument in zip(extracts, arguments[count:], strict=False)
        }
        with ir.InsertionPoint(block):
            linalg.YieldOp(edit.inline(view.block, known))
    keep_marks(view.op, made)
    for old, new in zip(view.op.results, made.results, strict=True):
        old.replace_all_uses_with(new)
    view.op.erase()
