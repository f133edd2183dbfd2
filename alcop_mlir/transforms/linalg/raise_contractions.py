"""Mark each matrix product that the passes below handle, and say why others are not.

Before:  linalg.fill ins(%zero) outs(%C)
         linalg.matmul ins(%A, %B) outs(%C)
After:   linalg.matmul {alcop.contraction = #alcop.contraction<{
             init = "zero", lhs = "mk", rhs = "kn"}>} ins(%A, %B) outs(%C)

`lhs` and `rhs` name the loops that index the inputs, in the operand's order: "m" rows,
"n" columns, "k" the sum, "b" a batch. A vector is a matrix of one row and lacks "m".
`out` does so for C where that is not "mn"; a "b" that it lacks is summed over. `init`
says what the sum starts from:

  "zero"  nothing: a zero fill just above is folded in and erased
  "read"  what C holds
  "copy"  another array, which an op just above copies to C, or broadcasts: as a bias
          may come; that op is moved next to the product and marked `{role = "init"}`
          for alcop-tile-to-blocks

Products of f32 are marked only with `allow-tf32`, and then `precision = "tf32"`.

A `linalg.generic` whose inputs stand in the order B, A gets them in the order A, B; an
op that cannot have them so is marked `swapped = true`. Of any other linalg op that sums
up, a remark says why it is none and runs as a plain SIMT kernel (alcop-launch-loops),
or is left alone. An op that is marked already keeps its mark.

Writes `alcop.contraction`; alcop-tile-to-blocks erases it. Stands first: all passes
below find their work by that attribute.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from alcop_mlir import diagnostics
from alcop_mlir.analysis.ir.rejected import Rejected
from alcop_mlir.analysis.linalg import contractions, loop_nests
from alcop_mlir.analysis.linalg.accumulator_init import (
    AccumulatorInit,
    find_accumulator_init,
)
from alcop_mlir.analysis.linalg.contractions import Contraction
from alcop_mlir.analysis.linalg.loop_nests import Nest
from alcop_mlir.bindings import ir
from alcop_mlir.dialects import alcop
from alcop_mlir.passes.base import Pass, option


@dataclass(frozen=True)
class RaiseContractions(Pass):
    name = "alcop-raise-contractions"
    anchor = "func.func"

    allow_tf32: bool = option(False, "products of f32, with inputs rounded to tf32")
    assume_noalias_args: bool = option(
        False, "an array that is written overlaps no other argument"
    )

    def run(self, op: Any) -> None:
        answers = [
            contractions.classify(candidate, self.allow_tf32)
            for candidate in contractions.structured_ops(op)
            if candidate.name != "linalg.fill"
            and alcop.get(candidate, alcop.ContractionAttr) is None
        ]
        for answer in answers:
            if isinstance(answer, Rejected):
                _say_why_not(answer)
            else:
                _mark(answer, find_accumulator_init(answer, self.assume_noalias_args))


def _say_why_not(answer: Rejected) -> None:
    """A remark on what tensor cores do not do; none on what nobody expects them to."""
    if not loop_nests.is_structured(answer.op):
        return
    nest = loop_nests.read(answer.op)
    runs = isinstance(nest, Nest) and answer.op.parent.operation.name == "func.func"
    if isinstance(nest, Nest) and runs and not nest.inner:
        return
    what = "runs as a plain SIMT kernel" if runs else "is left unchanged"
    diagnostics.remark(answer.op, f"'{answer.op.name}' {what}: {answer.reason}")


def _mark(product: Contraction, init: AccumulatorInit) -> None:
    parameters: dict[str, str | bool] = {
        "lhs": product.lhs,
        "rhs": product.rhs,
        "init": init.kind,
    }
    if product.out_loops != "mn":
        parameters["out"] = product.out_loops
    can_swap = "indexing_maps" in product.op.attributes and not product.is_computed
    if product.swapped and can_swap:
        _swap_inputs(product.op)
    elif product.swapped:
        parameters["swapped"] = True
    if product.precision is not None:
        parameters["precision"] = product.precision
    alcop.put(product.op, alcop.ContractionAttr, parameters)
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
