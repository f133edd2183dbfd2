"""Give each op that starts from an empty tensor a `tensor.empty` of its own.

Before:  %e = tensor.empty() : tensor<64xf32>
         %a = linalg.exp ins(%x) outs(%e)
         %b = linalg.add ins(%a, %y) outs(%e)
After:   %e = tensor.empty() : tensor<64xf32>
         %a = linalg.exp ins(%x) outs(%e)
         %f = tensor.empty() : tensor<64xf32>
         %b = linalg.add ins(%a, %y) outs(%f)

Common subexpressions have been eliminated in most programs, which leaves one empty
tensor of each shape. Bufferization would ask of each two ops that write it whether they
are in conflict, which takes time cubic in their number.

Runs before bufferization. Reads and writes no attributes.
"""

from __future__ import annotations

from dataclasses import dataclass

from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.bindings import ir
from alcop_mlir.passes.base import Pass


@dataclass(frozen=True)
class SeparateEmpties(Pass):
    name = "alcop-separate-empties"
    anchor = "func.func"

    def run(self, op: ir.Operation) -> None:
        for empty in walk(op, "tensor.empty"):
            uses = [
                (one.owner.operation, one.operand_number)
                for one in empty.results[0].uses
            ]
            # The first in the list of uses is the last that was made.
            for user, number in uses[:-1]:
                with ir.InsertionPoint(user):
                    user.operands[number] = empty.clone().results[0]
