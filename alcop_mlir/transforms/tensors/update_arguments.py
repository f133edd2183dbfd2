"""Let what a function returns as the new value of an argument be computed in it.

Before:  func.func @f(%x: tensor<8xf16> {alcop.in_place = 0 : i64}, ...)
         %e = tensor.empty() : tensor<8xf16>
         %y = linalg.generic ins(%c, %v, %x) outs(%e) { arith.select }
         return %y
After:   func.func @f(%x: tensor<8xf16> {.., bufferization.writable = true}, ...)
         %y = linalg.generic ins(%c, %v) outs(%x) { arith.select }
         return %y

An element-wise op that reads the argument where it writes its result starts from the
argument: bufferization then writes there, unless something reads the argument later.
Integers that ops make for it, as a mask, it computes itself, so that it is seen which
elements change. A slice that is inserted into the argument is so by itself. What is
computed elsewhere is copied by alcop-place-results.

Runs before alcop-protect-arguments. Reads `alcop.in_place`; writes
`bufferization.writable`. An attribute that no result fits is an error.
"""

from __future__ import annotations

from alcop_mlir.analysis.ir.loops import made_by
from alcop_mlir.analysis.ir.updates import updated_arguments, wrong_update
from alcop_mlir.analysis.linalg.view import LinalgView, view_of
from alcop_mlir.bindings import ir
from alcop_mlir.errors import PassError
from alcop_mlir.frozen import frozen
from alcop_mlir.passes.base import Pass
from alcop_mlir.passes.edit import set_argument_attribute
from alcop_mlir.transforms.tensors.generic_ops import generic_on_tensors
from alcop_mlir.transforms.tensors.inlining import with_integers

_WRITABLE = "bufferization.writable"


@frozen
class UpdateArguments(Pass):
    name = "alcop-update-arguments"
    anchor = "func.func"

    def run(self, op: ir.Operation) -> None:
        why = wrong_update(op)
        if why is not None:
            raise PassError(op, why)
        updates = updated_arguments(op)
        if not updates:
            return
        (block,) = op.regions[0].blocks
        returned = block.operations[-1].operation
        for result, number in updates.items():
            argument = block.arguments[number]
            if not isinstance(argument.type, ir.RankedTensorType):
                continue
            set_argument_attribute(op, number, _WRITABLE, ir.BoolAttr.get(True))
            generic = made_by(returned.operands[result], "linalg.generic")
            if generic is not None and _reads_in_place(view_of(generic), argument):
                _start_from(view_of(with_integers(generic)), argument)


def _reads_in_place(view: LinalgView, argument: ir.Value) -> bool:
    """Whether it reads the argument at the elements of its result, and starts from
    nothing.
    """
    if len(view.outputs) != 1 or view.reductions or view.outputs[0].is_read:
        return False
    (output,) = view.outputs
    maps = [one.map for one in view.inputs if one.value == argument]
    return output.is_permutation and bool(maps) and all(m == output.map for m in maps)


def _start_from(view: LinalgView, argument: ir.Value) -> None:
    """Replace the op by one whose output starts from the argument."""
    (output,) = view.outputs
    kept = [one for one in view.inputs if one.value != argument]
    with view.op.location, ir.InsertionPoint(view.op):
        made = generic_on_tensors(
            [one.value for one in kept],
            [argument],
            [*(one.map for one in kept), output.map],
        )
    for number, one in reversed(list(enumerate(view.inputs))):
        if one.value == argument:
            one.argument.replace_all_uses_with(output.argument)
            view.block.erase_argument(number)
    view.block.append_to(made.regions[0])
    view.op.results[0].replace_all_uses_with(made.results[0])
    view.op.erase()
