"""Mark each supported contraction, and say why other ops are not supported.

Before:  linalg.fill ins(%zero) outs(%C)
         linalg.matmul ins(%A, %B) outs(%C)
After:   linalg.matmul {alcop.contraction = #alcop.contraction<{
             init = "zero", lhs = "mk", rhs = "kn"}>} ins(%A, %B) outs(%C)

`lhs` and `rhs` name the loops that index the inputs, in the operand's order: "m" rows,
"n" columns, "k" the reduction, "b" a batch; "c", "d" and "e" are further loops of the
batch. An input may lack some: it is the same along these. A vector is a matrix of one
row and lacks "m". `out` does so for C where that is not "mn"; a batch that it lacks
is reduced. `init`
is the accumulator initialisation:

  "zero"  zero: a zero fill just above is folded in and erased
  "read"  what C holds
  "copy"  another buffer, such as a bias, which an op just above copies or broadcasts
          to C; that op is moved next to the contraction and marked
          `{role = "init"}` for alcop-tile-to-blocks

Contractions of f32 are marked only with `allow-tf32`, and then `precision = "tf32"`.
Of floats of eight bits on a target whose tensor cores do not multiply them by mma.sync,
`multiplied` is the type that they are widened to, with a remark: exact, but at half the
rate. On one with wgmma, which multiplies them as they are, that is for schedules of
mma.sync alone, and alcop-select-schedule says why it chooses one.

Where a `linalg.generic` has its inputs in the order B, A, they are exchanged; an op
whose inputs cannot be exchanged is marked `swapped = true`. An unsupported linalg op
with a reduction and two inputs runs as a SIMT fallback (alcop-launch-loops) or is left
unchanged, with a remark that says why, the `alcop.reason` of an earlier pass if it has
one. An op that is marked already keeps its mark.

Runs before all passes that read `alcop.contraction`, and after alcop-fuse-producers and
alcop-collapse-loops, which change what is a contraction. Writes `alcop.contraction`;
alcop-tile-to-blocks erases it. Reads `alcop.reason`, and writes it on unsupported ops,
for alcop-launch-loops and for messages.
"""

from __future__ import annotations

from collections.abc import Sequence

from alcop_mlir import diagnostics
from alcop_mlir.analysis.ir.rejected import Rejected
from alcop_mlir.analysis.linalg import contractions, loop_nests
from alcop_mlir.analysis.linalg.accumulator_init import (
    AccumulatorInit,
    find_accumulator_init,
)
from alcop_mlir.analysis.linalg.contractions import Contraction
from alcop_mlir.analysis.linalg.loop_nests import Nest
from alcop_mlir.analysis.linalg.view import LinalgView, linalg_view
from alcop_mlir.bindings import ir
from alcop_mlir.dialects import alcop
from alcop_mlir.frozen import frozen
from alcop_mlir.passes.base import NOALIAS, Pass, option
from alcop_mlir.target import DEFAULT_TARGET, TARGETS, Target, find_target


@frozen
class RaiseContractions(Pass):
    name = "alcop-raise-contractions"
    anchor = "func.func"

    allow_tf32: bool = option(False, "contractions of f32, with inputs rounded to tf32")
    assume_noalias_args: bool = option(False, NOALIAS)
    target: str = option(DEFAULT_TARGET, "GPU to compile for, such as sm_80")

    def __post_init__(self) -> None:
        find_target(self.target)

    def run(self, op: ir.Operation) -> None:
        target = find_target(self.target)
        answers = [
            contractions.classify(candidate, self.allow_tf32, target.multiplied)
            for candidate in contractions.structured_ops(op)
            if candidate.name != "linalg.fill"
            and alcop.get(candidate, alcop.ContractionAttr) is None
        ]
        for answer in answers:
            if isinstance(answer, Rejected):
                _say_why_not(answer)
            else:
                _say_what_is_widened(answer, target)
                _mark(answer, find_accumulator_init(answer, self.assume_noalias_args))


def _say_why_not(answer: Rejected) -> None:
    """A remark and the reason on an unsupported op that might be a contraction.

    Others become rows (alcop-launch-rows) or loops (alcop-launch-loops) of threads, and
    these passes say why, if they do not take them.
    """
    view = linalg_view(answer.op)
    is_outside = answer.op.parent.operation.name == "func.func"
    if view is None or (is_outside and not _multiplies(view)):
        return
    runs = is_outside and isinstance(loop_nests.read(answer.op), Nest)
    alcop.give_reason(answer.op, answer.reason)
    what = "runs as a SIMT fallback" if runs else "is left unchanged"
    reason = alcop.reason(answer.op)
    diagnostics.remark(answer.op, f"'{answer.op.name}' {what}: {reason}")


def _say_what_is_widened(contraction: Contraction, target: Target) -> None:
    if contraction.narrow and not target.has_wgmma:
        diagnostics.remark(
            contraction.op,
            f"'{contraction.op.name}' multiplies {' by '.join(contraction.narrow)} as "
            f"{contraction.lhs_type}, at half the rate: behind mma.sync, the tensor "
            f"cores of {target.name} multiply no {' or '.join(contraction.narrow)}, "
            f"those of {' or '.join(_names_that_multiply(contraction.narrow))} do",
        )


def _names_that_multiply(kinds: Sequence[str]) -> list[str]:
    return [one.name for one in TARGETS if {*kinds} <= {*one.multiplied}]


def _multiplies(view: LinalgView) -> bool:
    """Whether an op has what a contraction has: a reduction, and two inputs."""
    return bool(view.reductions) and len(view.inputs) > 1


def _mark(contraction: Contraction, init: AccumulatorInit) -> None:
    parameters: dict[str, str | bool] = {
        "lhs": contraction.lhs,
        "rhs": contraction.rhs,
        "init": init.kind,
    }
    if contraction.out_loops != "mn":
        parameters["out"] = contraction.out_loops
    can_swap = (
        "indexing_maps" in contraction.op.attributes and not contraction.is_computed
    )
    if contraction.swapped and can_swap:
        _swap_inputs(contraction.op)
    elif contraction.swapped:
        parameters["swapped"] = True
    if contraction.precision is not None:
        parameters["precision"] = contraction.precision
    if contraction.narrow:
        parameters["multiplied"] = contraction.lhs_type
    alcop.put(contraction.op, alcop.ContractionAttr, parameters)
    if init.kind == "zero":
        init.writer.operation.erase()
    if init.kind == "copy":
        init.writer.operation.move_before(contraction.op)
        alcop.put(init.writer, alcop.ContractionAttr, {"role": "init"})


def _swap_inputs(op: ir.Operation) -> None:
    """Exchange A and B and their maps; the multiplication commutes.

    Inputs that nothing reads may follow.
    """
    left, right = list(op.operands)[:2]
    op.operands[0], op.operands[1] = right, left
    left_map, right_map, *others = op.attributes["indexing_maps"]
    op.attributes["indexing_maps"] = ir.ArrayAttr.get([right_map, left_map, *others])
