"""Fuse element-wise ops on the output of a contraction into it (epilogue fusion).

Before:  linalg.matmul {alcop.contraction = ...} ins(%A, %B) outs(%C)
         linalg.generic ins(%C, %bias) outs(%D) { ... }
After:   linalg.matmul {alcop.contraction = ...} ins(%A, %B) outs(%C)
         linalg.generic {alcop.contraction = #alcop.contraction<{role = "epilogue"}>}
             ins(%C, %bias) outs(%D) { ... }

The marked ops follow the contraction directly, in order; the program computes the same
with or without the marks. alcop-tile-to-blocks computes these ops on the accumulators.
C is still stored where another op needs it. In a chain of ops, each is fused whose
inputs are available, but what a row group can compute from less than would be stored
for it, as the squares in front of a sum. An op that reads interleaved columns of C, and
has fewer of its own, is fused where a warp has all that it reads. Other ops that read C
are left unchanged, with a remark that says why.

Arguments may overlap, so that one must not be written while another is read, unless
`assume-noalias-args` is given: the launcher refuses overlapping arguments.

Runs after alcop-split-k, as what reads the C of a split contraction reads the sum of
its parts, and before alcop-tile-to-blocks. Writes `alcop.contraction` on the fused ops;
alcop-tile-to-blocks erases it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from alcop_mlir import diagnostics
from alcop_mlir.analysis.ir.walk import host_blocks, walk
from alcop_mlir.analysis.linalg.elementwise import Elementwise
from alcop_mlir.analysis.linalg.epilogue_fusion import dependencies, find_epilogue
from alcop_mlir.analysis.rows.row_epilogues import WHY, for_rows
from alcop_mlir.analysis.rows.row_groups import RowGroup, row_groups
from alcop_mlir.bindings import ir
from alcop_mlir.dialects import alcop
from alcop_mlir.frozen import frozen
from alcop_mlir.passes.base import NOALIAS, Pass, option


@frozen
class FuseElementwise(Pass):
    name = "alcop-fuse-elementwise"
    anchor = "func.func"

    assume_noalias_args: bool = option(False, NOALIAS)

    def run(self, op: ir.Operation) -> None:
        refused: list[tuple[Any, str]] = []
        # An op that reads two contractions can only run after the second.
        grouped = _in_row_groups(op)
        for contraction in reversed(_contractions(op)):
            epilogue = find_epilogue(contraction, self.assume_noalias_args)
            left = for_rows(contraction, epilogue.fused, grouped)
            refused += [(element.op, WHY) for element in left]
            _fuse(contraction, [one for one in epilogue.fused if one not in left])
            refused += epilogue.refused
        for other, why in refused:
            if alcop.get(other, alcop.ContractionAttr) is None:
                diagnostics.remark(
                    other, f"'{other.name}' is not fused into the contraction: {why}"
                )


def _contractions(func: ir.Operation) -> list[Any]:
    """The marked contractions, in order."""
    marks = [(op, alcop.get(op, alcop.ContractionAttr)) for op in walk(func)]
    return [op for op, mark in marks if mark is not None and "init" in mark]


def _in_row_groups(func: ir.Operation) -> set[Any]:
    """The ops that are kernels of rows, unless contractions compute them."""
    every = (found for block in host_blocks(func) for found in row_groups(block))
    return {op for one in every if isinstance(one, RowGroup) for op in one.ops}


def _fuse(contraction: ir.Operation, fused: Sequence[Elementwise]) -> None:
    """Move the ops after the contraction, their operands before it; mark the ops."""
    for element in fused:
        for op in dependencies(element, contraction):
            op.move_before(contraction)
    last = contraction
    for element in fused:
        element.op.move_after(last)
        alcop.put(element.op, alcop.ContractionAttr, {"role": "epilogue"})
        last = element.op
