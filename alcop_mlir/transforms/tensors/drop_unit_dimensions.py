"""Drop dimensions of extent 1 that reductions keep, and ops that read these pass on.

Before:  %s = linalg.generic {indexing_maps = [(i, j) -> (i, j), (i, j) -> (i, 0)]}
             ins(%x : tensor<8x64xf32>) outs(%f : tensor<8x1xf32>) { arith.addf }
         %m = linalg.generic {indexing_maps = [(i, j) -> (i, j), (i, j) -> (i, j)]}
             ins(%s : tensor<8x1xf32>) outs(%e : tensor<8x1xf32>) { arith.divf }
         %r = linalg.generic {indexing_maps = [.., (i, j) -> (i, 0), ..]}
             ins(%x, %m : tensor<8x64xf32>, tensor<8x1xf32>) outs(%d) { arith.subf }
After:   %s = linalg.generic {indexing_maps = [(i, j) -> (i, j), (i, j) -> (i)]}
             ins(%x : tensor<8x64xf32>) outs(%f1 : tensor<8xf32>) { arith.addf }
         %m = linalg.generic {indexing_maps = [(i) -> (i), (i) -> (i)]}
             ins(%s : tensor<8xf32>) outs(%e1 : tensor<8xf32>) { arith.divf }
         %r = linalg.generic {indexing_maps = [.., (i, j) -> (i), ..]}
             ins(%x, %m : tensor<8x64xf32>, tensor<8xf32>) outs(%d) { arith.subf }

A result that is written at the index 0 of a dimension loses it. A
`tensor.expand_shape` gives it back to what reads it; a `linalg.generic` reads what was
expanded, and loses loops that nothing else indexes, and so dimensions of its own
results. Softmax and layer norm become what they would be without dimensions that are
kept; bodies that ask for the number of a loop get that of the same loop, or 0. Other
dimensions of extent 1, as of batches of one image, are left unchanged: upstream's
`linalg-fold-unit-extent-dims` drops all, those of `tensor.pad` too, in which
convolutions look for their zeros.

Runs before bufferization. Reads and writes no `alcop` attributes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from alcop_mlir.analysis.ir.loops import made_by
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.linalg.view import LinalgView, Operand, view_of
from alcop_mlir.analysis.tensors.unit_dimensions import (
    Narrowed,
    narrowed,
    unit_groups,
)
from alcop_mlir.bindings import ir, linalg, tensor
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import build, edit
from alcop_mlir.passes.base import Pass
from alcop_mlir.transforms.tensors.generic_ops import generic_on_tensors, size_of


@frozen
class DropUnitDimensions(Pass):
    name = "alcop-drop-unit-dimensions"
    anchor = "func.func"

    def run(self, op: ir.Operation) -> None:
        for generic in walk(op, "linalg.generic"):
            if not len(generic.results):
                continue  # on memrefs
            view = view_of(generic)
            found = narrowed(view)
            if found is not None:
                with generic.location, ir.InsertionPoint(generic):
                    _replace(view, found)
        expanded = walk(op, "tensor.expand_shape")
        edit.erase_unused(reversed(expanded))


def _replace(view: LinalgView, found: Narrowed) -> None:
    """Replace the op by one of fewer dimensions, and by what expands its results."""
    numbers = {loop: number for number, loop in enumerate(found.loops)}
    zero = ir.AffineExpr.get_constant(0)
    renumbered = [
        zero if loop not in numbers else ir.AffineExpr.get_dim(numbers[loop])
        for loop in range(view.rank)
    ]
    change = ir.AffineMap.get(len(found.loops), 0, renumbered)
    maps = [
        ir.AffineMap.get(
            len(found.loops), 0, [operand.map.results[n].compose(change) for n in kept]
        )
        for operand, kept in zip(view.operands, found.kept, strict=True)
    ]
    outs = found.kept[len(view.inputs) :]
    inits = [_init(one, kept) for one, kept in zip(view.outputs, outs, strict=True)]
    reductions = [numbers[loop] for loop in view.reductions if loop in numbers]
    made = generic_on_tensors(found.sources, inits, maps, reductions)
    _renumber(view.block, numbers)
    view.block.append_to(made.regions[0])
    for old, new, kept in zip(view.op.results, made.results, outs, strict=True):
        old.replace_all_uses_with(_expanded(new, old.type, kept))
    view.op.erase()


def _renumber(block: ir.Block, numbers: dict[int, int]) -> None:
    """Let the body ask for the numbers of the loops that are left; others are at 0."""
    for op in [one.operation for one in block.operations]:
        if op.name != "linalg.index":
            continue
        loop = op.attributes["dim"].value
        with op.location, ir.InsertionPoint(op):
            number = (
                linalg.IndexOp(numbers[loop]).result
                if loop in numbers
                else build.index(0)
            )
        op.results[0].replace_all_uses_with(number)
        op.erase()


def _init(output: Operand, kept: Sequence[int]) -> Any:
    """What an output starts from, with the dimensions `kept`."""
    value, kind = output.value, output.value.type
    if len(kept) == kind.rank:
        return value
    filled = made_by(value, "linalg.fill")
    if filled is not None:
        init = _init(Operand(filled.operands[1], None, output.map), kept)
        return linalg.fill(filled.operands[0], outs=[init])
    if made_by(value, "tensor.empty") is not None:
        return tensor.empty([size_of(value, n) for n in kept], kind.element_type)
    narrow = ir.RankedTensorType.get([kind.shape[n] for n in kept], kind.element_type)
    return tensor.collapse_shape(narrow, value, unit_groups(kept, kind.rank))


def _expanded(value: ir.Value, kind: Any, kept: Sequence[int]) -> Any:
    """The value again, with all its dimensions."""
    if len(kept) == kind.rank:
        return value
    sizes = [
        tensor.dim(value, build.index(number))
        for number, dimension in enumerate(kept)
        if kind.is_dynamic_dim(dimension)
    ]
    groups = unit_groups(kept, kind.rank)
    return tensor.expand_shape(kind, value, groups, sizes, list(kind.shape))
