"""Pass numbers as tensors without dimensions, which kernels read.

Before:  func.func @f(%s: f32, %x: tensor<8x8xf32>) {
           %t = arith.mulf %s, %two : f32
           linalg.generic ins(%x : ..) outs(%e : ..) {
           ^bb0(%a: f32, %o: f32):
             %p = arith.mulf %a, %t : f32 ... } }
After:   func.func @f(%s: tensor<f32>, %x: tensor<8x8xf32>) {
           linalg.generic ins(%x, %s : .., tensor<f32>) outs(%e : ..) {
           ^bb0(%a: f32, %b: f32, %o: f32):
             %t = arith.mulf %b, %two : f32
             %p = arith.mulf %a, %t : f32 ... } }

What is computed of numbers alone is computed in the bodies that use it, so that no host
reads the tensors; also where a program reads them itself (`tensor.extract`). What other
ops use is read in front of all ops. In a function on memrefs alone, numbers become
memrefs. Integers of type `index` are left unchanged: what depends on them, as sizes do,
is computed on the host. So are arguments of functions that are called.

Runs first of all, so that later passes and references know tensors only. Reads and
writes no `alcop` attributes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from alcop_mlir.analysis.ir.loops import block_of, defining_op, is_inside
from alcop_mlir.analysis.ir.slices import is_pure
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.linalg.view import LinalgView, Operand, linalg_view
from alcop_mlir.bindings import ir, linalg, memref, tensor
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import edit
from alcop_mlir.passes.base import Pass
from alcop_mlir.transforms.tensors.generic_ops import generic_on_tensors, keep_marks

_READS = ("memref.load", "tensor.extract")


@frozen
class BoxScalars(Pass):
    name = "alcop-box-scalars"
    anchor = "builtin.module"

    def run(self, op: ir.Operation) -> None:
        called = {one.attributes["callee"].value for one in walk(op, "func.call")}
        for function in walk(op, "func.func"):
            is_called = function.attributes["sym_name"].value in called
            if len(function.regions[0].blocks) and not is_called:
                _box_all(function)


def _box_all(function: ir.Operation) -> None:
    """Make all numbers that the function is given tensors or memrefs."""
    entry = function.regions[0].blocks[0]
    scalars = [one for one in entry.arguments if _is_scalar(one)]
    boxes = {
        one.results[0]: one.operands[0]
        for one in walk(function, "tensor.extract")
        if not one.operands[0].type.rank
    }
    if not scalars and not boxes:
        return
    kinds = [one.type for one in entry.arguments]
    on_tensors = any(isinstance(one, ir.RankedTensorType) for one in kinds)
    is_on_memrefs = not on_tensors and any(isinstance(k, ir.MemRefType) for k in kinds)
    with function.location, ir.InsertionPoint.at_block_begin(entry):
        boxes.update((_box(one, is_on_memrefs), one) for one in scalars)
    edit.write_argument_types(function)
    for op in walk(function, enter=lambda one: not one.name.startswith("linalg.")):
        view = linalg_view(op) if op.name.startswith("linalg.") else None
        if view is not None:
            _read_in_body(view, boxes)
    numbers = [one.operation for one in entry.operations if _computes_number(one)]
    edit.erase_unused(reversed(numbers))


def _box(scalar: Any, is_on_memrefs: bool) -> Any:
    """Make an argument a tensor or memref; its element, which replaces it."""
    made = ir.MemRefType if is_on_memrefs else ir.RankedTensorType
    kind = made.get([], scalar.type)
    uses = list(scalar.uses)
    scalar.set_type(kind)
    element = (memref.load if is_on_memrefs else tensor.extract)(scalar, [])
    for use in uses:
        use.owner.operands[use.operand_number] = element
    return element


def _is_scalar(value: ir.Value) -> bool:
    return isinstance(value.type, (ir.IntegerType, ir.FloatType))


def _computes_number(op: ir.Operation) -> bool:
    is_known = is_pure(op.operation) or op.operation.name in _READS
    return is_known and len(op.results) == 1 and _is_scalar(op.results[0])


def _read_in_body(view: LinalgView, boxes: dict[Any, Any]) -> None:
    """Let the body compute what it uses of numbers, which the op reads."""
    scalars = [one for one in view.inputs if _is_scalar(one.value)]
    computed = {
        value: steps
        for value in dict.fromkeys((*(one.value for one in scalars), *_captured(view)))
        if (steps := _computation(value, boxes))
    }
    steps = dict.fromkeys(step for one in computed.values() for step in one)
    reads = [step.results[0] for step in steps if step.results[0] in boxes]
    if not reads:
        return
    kept = [one for one in view.inputs if one.value not in computed]
    made, arguments = _with_inputs(view, kept, [boxes[one] for one in reads])
    known: dict[Any, Any] = dict(zip(reads, arguments[len(kept) :], strict=False))
    operands = (*kept, *[None] * len(reads), *view.outputs)
    for operand, argument in zip(operands, arguments, strict=True):
        if operand is not None and operand.argument is not None:
            known[operand.argument] = argument
    with view.op.location, ir.InsertionPoint(arguments[0].owner):
        for step in steps:
            if step.results[0] not in boxes:
                edit.clone(step, known)
        for one in scalars:
            if one.value in computed:
                known[one.argument] = known[one.value]
        linalg.YieldOp(edit.inline(view.block, known))
    for old, new in zip(view.op.results, made.results, strict=True):
        old.replace_all_uses_with(new)
    view.op.erase()


def _captured(view: LinalgView) -> Iterator[Any]:
    """Numbers that the body uses, and does not compute."""
    for op in walk(view.op)[1:]:
        for value in op.operands:
            where = block_of(value).owner.operation
            is_own = where == view.op or is_inside(where, view.op)
            if _is_scalar(value) and not is_own:
                yield value


def _computation(value: Any, boxes: dict[Any, Any]) -> list[Any] | None:
    """The ops that compute a value of boxed numbers, in order; None where others do."""
    op = defining_op(value)
    if op is None or value in boxes:
        return None if op is None else [op]
    if op.name == "arith.constant":
        return []
    if not is_pure(op) or len(op.regions):
        return None
    steps: list[Any] = []
    for operand in op.operands:
        found = _computation(operand, boxes)
        if found is None:
            return None
        steps += found
    return [*steps, op] if steps else []


def _with_inputs(
    view: LinalgView, kept: Sequence[Operand], boxed: Sequence[Any]
) -> tuple[Any, list[Any]]:
    """The op with these inputs, and `boxed` behind them; its body's arguments."""
    outputs = view.outputs
    everywhere = [ir.AffineMap.get(view.rank, 0, [])] * len(boxed)
    inputs = [*(one.value for one in kept), *boxed]
    results = [one.value for one in outputs]
    maps = [*(one.map for one in kept), *everywhere, *(one.map for one in outputs)]
    with view.op.location as here, ir.InsertionPoint(view.op):
        made = generic_on_tensors(inputs, results, maps, view.reductions)
        keep_marks(view.op, made)
        kinds = [_element(one.type) for one in (*inputs, *results)]
        block = made.regions[0].blocks.append(*kinds, arg_locs=[here] * len(kinds))
    return made, list(block.arguments)


def _element(kind: ir.Type) -> Any:
    return kind.element_type if isinstance(kind, ir.ShapedType) else kind
