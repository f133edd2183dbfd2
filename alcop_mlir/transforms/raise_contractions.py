"""Mark each matrix product that the passes below handle, and say why others are not.

Before:  linalg.fill ins(%zero) outs(%C)
         linalg.matmul ins(%A, %B) outs(%C)
After:   linalg.matmul {alcop.contraction = #alcop.contraction<{
             init = "zero", lhs = "mk", rhs = "kn"}>} ins(%A, %B) outs(%C)

`lhs` and `rhs` name the loops that index the inputs, in the operand's order. `init`
says what the sum starts from:

  "zero"  nothing: a zero fill just above is folded in and erased
  "read"  what C holds
  "copy"  another array, which the `memref.copy` just above copies to C; that op is
          moved next to the product and marked `{role = "init"}` for
          alcop-tile-to-blocks

A `linalg.generic` whose inputs stand in the order B, A gets them in the order A, B. Any
other linalg op but a fill is left alone, with a remark that names op and reason. An op
that is marked already keeps its mark.

Writes `alcop.contraction`; alcop-tile-to-blocks erases it. Stands first: all passes
below find their work by that attribute.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from alcop_mlir import diagnostics
from alcop_mlir.analysis import contractions
from alcop_mlir.analysis.contractions import Contraction, Init, Rejected
from alcop_mlir.bindings import ir
from alcop_mlir.dialects import alcop
from alcop_mlir.transforms.base import Pass


@dataclass(frozen=True)
class RaiseContractions(Pass):
    name = "alcop-raise-contractions"
    anchor = "func.func"

    def run(self, op: Any) -> None:
        answers = [
            contractions.classify(candidate)
            for candidate in contractions.structured_ops(op)
            if candidate.name != "linalg.fill"
            and alcop.get(candidate, alcop.ContractionAttr) is None
        ]
        for answer in answers:
            if isinstance(answer, Rejected):
                diagnostics.remark(
                    answer.op, f"'{answer.op.name}' is left alone: {answer.reason}"
                )
            else:
                _mark(answer, contractions.find_init(answer))


def _mark(product: Contraction, init: Init) -> None:
    parameters = {"lhs": product.lhs, "rhs": product.rhs, "init": init.kind}
    alcop.put(product.op, alcop.ContractionAttr, parameters)
    if product.swapped:
        _swap_inputs(product.op)
    if init.kind == "zero":
        init.writer.operation.erase()
    if init.kind == "copy":
        init.writer.operation.move_before(product.op)
        alcop.put(init.writer, alcop.ContractionAttr, {"role": "init"})


def _swap_inputs(op: Any) -> None:
    """Exchange the inputs and their maps; the body's product commutes."""
    left, right, _ = op.operands
    op.operands[0], op.operands[1] = right, left
    left_map, right_map, out_map = op.attributes["indexing_maps"]
    maps = ir.ArrayAttr.get([right_map, left_map, out_map])
    op.attributes["indexing_maps"] = maps
