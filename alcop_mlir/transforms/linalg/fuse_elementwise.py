"""Let element-wise ops on the output of a product run in the product's kernel.

Before:  linalg.matmul {alcop.contraction = ...} ins(%A, %B) outs(%C)
         linalg.generic ins(%C, %bias) outs(%D) { ... }
After:   linalg.matmul {alcop.contraction = ...} ins(%A, %B) outs(%C)
         linalg.generic {alcop.contraction = #alcop.contraction<{role = "epilogue"}>}
             ins(%C, %bias) outs(%D) { ... }

The marked ops stand just behind the product, in order; the program is right as it
stands. alcop-tile-to-blocks computes them on the accumulators. C is still stored where
something else needs it. Of ops in a row each can be taken whose inputs are there; an op
that reads C and cannot be taken is left alone, with a remark that says why.

Arrays given as arguments may overlap, which forbids to write one while another is read,
unless `assume-noalias-args` is given: the launcher refuses such arrays.

Writes `alcop.contraction` on the ops it takes; alcop-tile-to-blocks erases them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from alcop_mlir import diagnostics
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.linalg.epilogue_fusion import (
    Epilogue,
    dependencies,
    find_epilogue,
)
from alcop_mlir.dialects import alcop
from alcop_mlir.passes.base import Pass, option


@dataclass(frozen=True)
class FuseElementwise(Pass):
    name = "alcop-fuse-elementwise"
    anchor = "func.func"

    assume_noalias_args: bool = option(
        False, "an array that is written overlaps no other argument"
    )

    def run(self, op: Any) -> None:
        refused: list[tuple[Any, str]] = []
        # An op that reads two products can only run behind the second.
        for product in reversed(_products(op)):
            epilogue = find_epilogue(product, self.assume_noalias_args)
            _take(product, epilogue)
            refused += epilogue.refused
        for other, why in refused:
            if alcop.get(other, alcop.ContractionAttr) is None:
                diagnostics.remark(
                    other, f"'{other.name}' is not fused into the product: {why}"
                )


def _products(func: Any) -> list[Any]:
    """The marked products, in order."""
    marks = [(op, alcop.get(op, alcop.ContractionAttr)) for op in walk(func)]
    return [op for op, mark in marks if mark is not None and "init" in mark]


def _take(product: Any, epilogue: Epilogue) -> None:
    """Move the ops behind the product, what they are made of before it, and mark."""
    for element in epilogue.fused:
        for op in dependencies(element, product):
            op.move_before(product)
    last = product
    for element in epilogue.fused:
        element.op.move_after(last)
        alcop.put(element.op, alcop.ContractionAttr, {"role": "epilogue"})
        last = element.op
