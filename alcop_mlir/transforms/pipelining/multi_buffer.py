"""Give every pipelined shared buffer one slot per stage (multi-buffering).

Before:  %a = memref.alloc() : memref<128x32xf16, 3>
         scf.for %k ... { copy to %a ; use of %a } {alcop.pipeline = ...slots = 3...}
After:   %a = memref.alloc() : memref<3x128x32xf16, 3>
         scf.for %k ... iter_args(%slot = 0) {
           %av = memref.subview %a[%slot, 0, 0] [1, 128, 32] [1, 1, 1]
           copy to %av ; use of %av
           scf.yield %slot + 1 == 3 ? 0 : %slot + 1 }

The ring counter is advanced by compare and select: this needs no division, and supports
any trip count. Views of the buffer become views of the slot; those made before the loop
are made again in it. A workgroup attribution of a `gpu.func` changes its type. The
program computes the same as before; its loop is not pipelined yet.

Upstream's `memref.multibuffer` is not used: it requires the buffer to be allocated in
the loop, fails where a view was hoisted, and divides.

Runs after alcop-plan-pipelines, whose decisions it carries out, and before
alcop-expand-pipelines. Reads `alcop.pipeline` on loops. A plan that a user wrote in a
short form (docs/embedding.md) is checked by the rules of alcop-plan-pipelines, and
becomes the value that alcop-plan-pipelines would have written.
"""

from __future__ import annotations

from typing import Any

from alcop_mlir.analysis.ir import loops, memory
from alcop_mlir.analysis.ir.slices import backward_slice
from alcop_mlir.analysis.pipelining.copy_forms import copy_form
from alcop_mlir.analysis.pipelining.plans.bound_plan import BoundPlan
from alcop_mlir.analysis.pipelining.plans.bound_plans import bound_plan
from alcop_mlir.analysis.pipelining.plans.plan_check import (
    check_as_planned,
    check_stored,
)
from alcop_mlir.analysis.pipelining.plans.plan_slots import stored_buffers
from alcop_mlir.analysis.pipelining.plans.stream_plan import FILL, STORE
from alcop_mlir.analysis.pipelining.ring_counters import period
from alcop_mlir.bindings import ir, memref
from alcop_mlir.errors import PassError
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import build, edit
from alcop_mlir.passes.base import Pass
from alcop_mlir.transforms.pipelining.plan_attributes import write_plan


@frozen
class MultiBuffer(Pass):
    name = "alcop-multi-buffer"
    anchor = "any"

    def run(self, op: ir.Operation) -> None:
        for loop in loops.loops_in(op):
            bound = bound_plan(loop)
            if bound is None:
                continue
            targets = _targets(bound)
            slots = _slots(bound)
            has_slots = bool(targets) and _has_slots(loop, targets, slots)
            if not bound.is_value:
                if not has_slots:
                    check_as_planned(bound)
                write_plan(bound)
            if targets and not has_slots:
                check_stored(bound)
                _multi_buffer(loop, targets, slots)


def _targets(bound: BoundPlan) -> list[Any]:
    """What the copies and stores of the plan fill."""
    targets: list[Any] = []
    for _, op in bound.named(FILL):
        form = copy_form(op)
        if form is None:
            raise PassError(op, f"'{op.name}' is planned, expected a copy")
        for buffer in form.buffers:
            _check_buffer(op, buffer)
        targets += form.targets
    for _, op in bound.named(STORE):
        for buffer in stored_buffers(op):
            _check_buffer(op, buffer)
        written = (target for _, target in memory.written_memrefs(op))
        targets += [target for target in written if target is not None]
    return [target for target in targets if memory.is_workgroup(target.type)]


def _slots(bound: BoundPlan) -> int:
    """The number of slots of all buffers of the plan; 1 where it has no ring."""
    numbers = sorted({ring.slots for ring in bound.plan.rings})
    if len(numbers) > 1:
        texts = " and ".join(map(str, numbers))
        raise PassError(bound.loop, f"has rings of {texts} slots, expected one number")
    return numbers[0] if numbers else 1


def _has_slots(loop: ir.Operation, targets: list[ir.Value], slots: int) -> bool:
    """Whether the copies of `loop` fill slot after slot already."""
    _, arguments = backward_slice(targets, loops.body(loop))
    numbers = [argument.arg_number - 1 for argument in arguments]
    return any(period(loop, n) == slots for n in numbers if n >= 0)


def _multi_buffer(loop: ir.Operation, targets: list[ir.Value], slots: int) -> None:
    buffers = [memory.root(target) for target in targets]
    with loop.location, ir.InsertionPoint(loop):
        first = build.index(0)
    # A ring counter, as one more carried value.
    loop = edit.with_carried(
        loop, [first], lambda counter: [build.cyclic_next(counter[0], slots)]
    )
    slot = list(loops.body(loop).arguments)[-1]
    for buffer in dict.fromkeys(buffers):
        _widen(buffer, loop, slot, slots)


def _check_buffer(copy: ir.Operation, buffer: ir.Value) -> None:
    """PassError unless the buffer is the kernel's own, with a static shape."""
    if not memory.is_own_allocation(buffer) or not buffer.type.has_static_shape:
        raise PassError(
            copy,
            f"is planned, but its buffer {buffer.type} is not an allocation of "
            "constant size, expected memref.alloc or a workgroup attribution",
        )


def _widen(buffer: ir.Value, loop: ir.Operation, slot: ir.Value, slots: int) -> None:
    """Replace `buffer` by one with `slots` slots; `loop` uses a view of `slot`."""
    single = buffer.type
    wide_type = build.memref_like(single, [slots, *single.shape])
    uses = _uses(buffer)
    wide = _wide_buffer(buffer, wide_type, loop)
    rank = single.rank
    with loop.location, ir.InsertionPoint.at_block_begin(loops.body(loop)):
        view = memref.subview(
            wide,
            [slot, *[0] * rank],
            [1, *single.shape],
            [1] * (rank + 1),
            result_type=_at_any_offset(single),
        )
    _rebind(uses, view, loop, view.owner.operation)
    if loops.defining_op(buffer) is not None:
        buffer.owner.operation.erase()


def _wide_buffer(buffer: ir.Value, wide_type: ir.Type, loop: ir.Operation) -> Any:
    owner = loops.defining_op(buffer)
    if owner is None:  # a workgroup attribution
        buffer.set_type(wide_type)
        return buffer
    alloc = owner.operation
    # A buffer that each iteration allocates must outlive the iteration now.
    before = loop if loops.is_inside(alloc, loop) else alloc
    with alloc.location, ir.InsertionPoint(before):
        return build.alloc(wide_type)


def _uses(value: ir.Value) -> list[tuple[Any, int]]:
    """The ops that use `value`, and the numbers of their operands."""
    return [(use.owner.operation, use.operand_number) for use in value.uses]


def _rebind(
    uses: list[tuple[Any, int]],
    memref_: ir.Value,
    loop: ir.Operation,
    view_op: ir.Operation,
) -> None:
    """Let `uses` use `memref_`; views among them are built again, after `view_op`.

    A dealloc is dropped: all slots live until the kernel ends. So is an assumption of
    alignment, which may hold for the first slot only.
    """
    for op, number in uses:
        if op.name == "memref.dealloc":
            op.erase()
        elif op.name == "memref.assume_alignment":
            _rebind(_uses(op.results[0]), memref_, loop, view_op)
            op.erase()
        elif op.name in memory.DERIVED_VIEWS:
            _rebind_view(op, memref_, loop, view_op)
        else:
            op.operands[number] = memref_


def _rebind_view(
    view: ir.Operation, source: ir.Value, loop: ir.Operation, view_op: ir.Operation
) -> None:
    old = view.results[0]
    uses = _uses(old)
    operands = [source, *list(view.operands)[1:]]
    inside = loops.is_inside(view, loop)
    point = ir.InsertionPoint(view) if inside else ir.InsertionPoint.after(view_op)
    with view.location, point:
        copy = edit.like(view, [_at_any_offset(old.type)], operands)
    view_op = view_op if inside else copy
    _rebind(uses, copy.results[0], loop, view_op)
    view.erase()


def _at_any_offset(kind: ir.Type) -> Any:
    """The memref type `kind` with a dynamic offset."""
    strides, _ = kind.get_strides_and_offset()
    dynamic = ir.ShapedType.get_dynamic_stride_or_offset()
    return build.memref_like(kind, layout=ir.StridedLayoutAttr.get(dynamic, strides))
