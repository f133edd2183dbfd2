"""Merge loops of contractions whose operands have many dimensions.

Before:  linalg.generic ins(%A, %B : memref<2x8x64x32xf16>, memref<2x8x32x48xf16>)
             outs(%C : memref<2x8x64x48xf32>)       // loops b, h, m, n, k
After:   %a = memref.collapse_shape %A [[0, 1], [2], [3]] ... into memref<16x64x32xf16>
         linalg.generic ins(%a, %b) outs(%c)        // loops bh, m, n, k

Loops that index all operands together, and run over them without gaps, become one:
loops of the batch, of rows or columns, of the reduction. Only an op that thereby gets
the loops of a contraction (see `analysis.linalg.contractions`), or has fewer batch
loops, is changed; all others are left unchanged.

Runs before alcop-raise-contractions. Reads and writes no `alcop` attributes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from alcop_mlir.analysis.linalg.contraction_letters import BATCHES, loop_letters
from alcop_mlir.analysis.linalg.contractions import structured_ops
from alcop_mlir.analysis.linalg.loop_groups import loop_groups
from alcop_mlir.analysis.linalg.view import LinalgView, Loops, Operand, linalg_view
from alcop_mlir.bindings import ir
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import build
from alcop_mlir.passes.base import Pass
from alcop_mlir.transforms.linalg.collapsed_views import collapsed

_CHANGEABLE = ("linalg.generic", "linalg.contract")  # ops that may have any maps
_KINDS = "iterator_types"
_Groups = Sequence[Sequence[int]]


@frozen
class CollapseLoops(Pass):
    name = "alcop-collapse-loops"
    anchor = "func.func"

    def run(self, op: ir.Operation) -> None:
        for candidate in structured_ops(op):
            view = linalg_view(candidate) if candidate.name in _CHANGEABLE else None
            groups = None if view is None else _groups_that_help(view)
            if view is not None and groups is not None:
                with candidate.location, ir.InsertionPoint(candidate):
                    _collapse(view, groups)


def _groups_that_help(view: LinalgView) -> _Groups | None:
    """Groups by which an op gets the loops of a contraction; None if of no use."""
    letters = loop_letters(view.maps)
    if letters is not None and len({*"".join(letters)} & {*BATCHES}) < 2:
        return None
    if any(inner.operation.name == "linalg.index" for inner in view.block.operations):
        return None
    groups = loop_groups(view)
    if groups is None or all(len(group) == 1 for group in groups):
        return None
    maps = [attribute.value for attribute in _maps(view, groups)]
    return None if loop_letters(maps) is None else groups


def _maps(view: LinalgView, groups: _Groups) -> list[Any]:
    """The maps of the operands when each group is one loop."""
    every = [_grouped(operand.loops, groups) for operand in view.operands]
    return [build.loop_map(len(groups), loops) for loops in every]


def _grouped(loops: Loops, groups: _Groups) -> list[int]:
    """Numbers of the groups that index an operand."""
    first = {group[0]: number for number, group in enumerate(groups)}
    return [first[loop] for loop in loops if loop in first]


def _collapse(view: LinalgView, groups: _Groups) -> None:
    op = view.op
    for number, operand in enumerate(view.operands):
        op.operands[number] = _collapsed(operand, groups)
    op.attributes["indexing_maps"] = ir.ArrayAttr.get(_maps(view, groups))
    if _KINDS in op.attributes:
        kinds = list(op.attributes[_KINDS])
        op.attributes[_KINDS] = ir.ArrayAttr.get([kinds[group[0]] for group in groups])


def _collapsed(operand: Operand, groups: _Groups) -> Any:
    """A view of an operand with a dimension for each group."""
    loops = operand.loops
    parts = [
        [loops.index(loop) for loop in groups[group]]
        for group in _grouped(loops, groups)
    ]
    return collapsed(operand.value, parts)
