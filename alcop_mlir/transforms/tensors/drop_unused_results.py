"""Drop results of `linalg.generic` on tensors that nothing uses.

Before:  %max, %arg = linalg.generic ins(%x : tensor<8x32xf32>)
             outs(%a, %b : tensor<8xf32>, tensor<8xi64>) {
           %i = linalg.index 1 ... linalg.yield %m, %j }     // %arg is unused
After:   %max = linalg.generic ins(%x : tensor<8x32xf32>) outs(%a : tensor<8xf32>) {
           linalg.yield %m }

A result stays where another one that is used is computed from what it held before, or
where only it tells how often a loop runs.
What only the dropped results were computed from goes too, unless it has effects, as an
assertion has. Frontends compute maximum and arg-max together, as for a softmax, which
needs the first only.

An op that does not read what it starts from starts from an empty tensor, and no longer
from a fill, which would be a kernel.

Runs before bufferization, which would allocate a buffer for the result. Reads and
writes no `alcop` attributes.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from alcop_mlir.analysis.ir.loops import made_by
from alcop_mlir.analysis.ir.slices import backward_slice, is_pure
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.linalg.view import LinalgView, view_of
from alcop_mlir.bindings import ir, linalg
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import edit
from alcop_mlir.passes.base import Pass
from alcop_mlir.transforms.tensors.generic_ops import generic_on_tensors


@frozen
class DropUnusedResults(Pass):
    name = "alcop-drop-unused-results"
    anchor = "func.func"

    def run(self, op: ir.Operation) -> None:
        # Those that use results come first, so that what these used is unused then.
        for generic in reversed(walk(op, "linalg.generic")):
            results = list(generic.results)
            _drop_fills(generic)
            if all(any(True for _ in one.uses) for one in results):
                continue
            view = view_of(generic)
            kept = _needed(view)
            if 0 < len(kept) < len(results) and _has_sizes(view, kept):
                _replace(view, kept)


def _drop_fills(generic: ir.Operation) -> None:
    """Start from empty tensors where the body does not read what fills made."""
    for output in view_of(generic).outputs:
        fill = made_by(output.value, "linalg.fill")
        if fill is not None and output.is_tensor and not output.is_read:
            number = output.argument.arg_number
            generic.operands[number] = fill.operands[1]
            edit.erase_unused([fill])


def _needed(view: LinalgView) -> list[int]:
    """Numbers of the outputs that used results are computed from."""
    first = len(view.inputs)
    yielded = list(view.block.operations)[-1].operation.operands
    used = [
        number
        for number, result in enumerate(view.op.results)
        if any(True for _ in result.uses)
    ]
    effects = [op for op in _body(view) if not is_pure(op)]
    needed: set[int] = set()
    while used:
        number = used.pop()
        needed.add(number)
        values = [yielded[number], *(v for op in effects for v in op.operands)]
        _, arguments = backward_slice(values, view.block)
        held = {one.arg_number - first for one in arguments if one.arg_number >= first}
        used += sorted(held - needed - {*used})
    return sorted(needed)


def _has_sizes(view: LinalgView, kept: Collection[int]) -> bool:
    """Whether the other operands still tell how often each loop runs."""
    operands = (*view.inputs, *(view.outputs[number] for number in kept))
    return {*range(view.rank)} <= {loop for one in operands for loop in one.loops}


def _body(view: LinalgView) -> list[Any]:
    """The ops of the body but the last."""
    return [op.operation for op in view.block.operations][:-1]


def _replace(view: LinalgView, kept: Collection[int]) -> None:
    """Replace the op by one with the outputs `kept`."""
    op, block, first = view.op, view.block, len(view.inputs)
    outputs = [view.outputs[number] for number in kept]
    operands = [*view.inputs, *outputs]
    end = list(block.operations)[-1].operation
    yielded = [end.operands[number] for number in kept]
    with op.location:
        with ir.InsertionPoint(end):
            linalg.YieldOp(yielded)
        end.erase()
        edit.erase_unused(one for one in reversed(_body(view)) if is_pure(one))
        with ir.InsertionPoint(op):
            made = generic_on_tensors(
                [one.value for one in view.inputs],
                [one.value for one in outputs],
                [one.map for one in operands],
                view.reductions,
            )
    for number in reversed(range(len(view.outputs))):
        if number not in kept:
            block.erase_argument(first + number)
    block.append_to(made.regions[0])
    for number, result in zip(kept, made.results, strict=True):
        op.results[number].replace_all_uses_with(result)
    op.erase()
