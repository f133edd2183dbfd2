"""Give each op that starts from an empty or a filled tensor one of its own.

Before:  %e = tensor.empty() : tensor<64xf32>
         %f = linalg.fill ins(%zero) outs(%e)
         %a = linalg.reduce ins(%x) outs(%f)
         %b = linalg.reduce ins(%y) outs(%f)
After:   %e = tensor.empty() : tensor<64xf32>
         %f = linalg.fill ins(%zero) outs(%e)
         %a = linalg.reduce ins(%x) outs(%f)
         %g = tensor.empty() : tensor<64xf32>
         %h = linalg.fill ins(%zero) outs(%g)
         %b = linalg.reduce ins(%y) outs(%h)

Common subexpressions have been eliminated in most programs, which leaves one empty
tensor of each shape. Bufferization would ask of each two ops that write it whether they
are in conflict, which takes time cubic in their number.

What starts from a fill are linalg ops that write it, and pieces that are inserted. One
fill for several is a buffer with several lives to bufferization, or is copied for each:
then no fill stands just above its op, where it becomes the accumulator's initial value,
and ops that share nothing but zeros cannot be one kernel with others.

Runs before bufferization. Reads and writes no attributes.
"""

from __future__ import annotations

from typing import Any

from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.bindings import ir
from alcop_mlir.frozen import frozen
from alcop_mlir.passes.base import Pass

_INTO = 1  # the operand of a tensor.insert_slice that it writes a piece into


@frozen
class SeparateEmpties(Pass):
    name = "alcop-separate-empties"
    anchor = "func.func"

    def run(self, op: ir.Operation) -> None:
        for made in (*walk(op, "linalg.fill"), *walk(op, "tensor.empty")):
            if len(made.results):
                _separate(made)


def _separate(made: ir.Operation) -> None:
    """Give each op that writes what was made a copy, but one that has it for itself."""
    uses = list(made.results[0].uses)
    starts = [
        (use.owner.operation, use.operand_number) for use in uses if _is_written(use)
    ]
    # The first in the list of uses is the last that was made.
    for user, number in starts[:-1] if len(starts) == len(uses) else starts:
        with ir.InsertionPoint(user):
            user.operands[number] = made.clone().results[0]


def _is_written(use: Any) -> bool:
    """Whether the op starts from the tensor: writes all of it, or a part."""
    user, number = use.owner.operation, use.operand_number
    if user.name == "tensor.insert_slice":
        return number == _INTO
    is_init = number >= len(user.operands) - len(user.results)
    return user.name.startswith("linalg.") and is_init
