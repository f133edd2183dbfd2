"""Write what a function returns as the new value of an argument there.

Before:  func.func @f(%x: memref<8xf16> {alcop.in_place = 0 : i64})
             -> (memref<8xf16>, memref<8xf32>)
         func.return %y, %z
After:   func.func @f(%x: memref<8xf16>) -> memref<8xf32>
         memref.copy %y, %x
         func.return %z

Nothing is copied where `%y` is `%x`: alcop-update-arguments and bufferization see to it
that it mostly is. Another result that is in such an argument is copied first.

Upstream's drop-equivalent-buffer-results drops results that happen to be arguments, so
that what a function returns would depend on what bufferization decided.

Runs after bufferization and before alcop-separate-results. Reads and erases
`alcop.in_place`.
"""

from __future__ import annotations

from collections.abc import Mapping

from alcop_mlir.analysis.ir.memory import root
from alcop_mlir.analysis.ir.updates import IN_PLACE, updated_arguments
from alcop_mlir.bindings import func, ir, memref
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import build, edit
from alcop_mlir.passes.base import Pass


@frozen
class PlaceResults(Pass):
    name = "alcop-place-results"
    anchor = "func.func"

    def run(self, op: ir.Operation) -> None:
        updates = updated_arguments(op)
        if not updates:
            return
        (block,) = op.regions[0].blocks
        returned = block.operations[-1].operation
        targets = {result: block.arguments[n] for result, n in updates.items()}
        with returned.location, ir.InsertionPoint(returned):
            _write(returned, targets)
            left = [
                value
                for number, value in enumerate(returned.operands)
                if number not in targets
            ]
            func.ReturnOp(left)
        returned.erase()
        kind = ir.FunctionType(op.attributes["function_type"].value)
        kept = ir.FunctionType.get(kind.inputs, [value.type for value in left])
        op.attributes["function_type"] = ir.TypeAttr.get(kept)
        if "res_attrs" in op.attributes:
            every = enumerate(op.attributes["res_attrs"])
            rest = [one for number, one in every if number not in targets]
            op.attributes["res_attrs"] = ir.ArrayAttr.get(rest)
        for number in updates.values():
            edit.set_argument_attribute(op, number, IN_PLACE, None)


def _write(returned: ir.Operation, targets: Mapping[int, ir.Value]) -> None:
    """Copy results into their arguments, those that these hold to elsewhere before."""
    written = set(targets.values())
    final = list(returned.operands)
    for number, value in enumerate(final):
        is_there = number in targets and targets[number] == value
        if not is_there and root(value) in written:
            final[number] = returned.operands[number] = build.copied(value)
    for number, target in targets.items():
        if final[number] != target:
            memref.copy(final[number], target)
