"""Give every pipelined shared buffer one slot per stage.

Before:  %a = memref.alloc() : memref<128x32xf16, 3>
         scf.for %k ... { copy to %a ; use of %a } {alcop.pipeline = ...shared = 3...}
After:   %a = memref.alloc() : memref<3x128x32xf16, 3>
         scf.for %k ... iter_args(%slot = 0) {
           %av = memref.subview %a[%slot, 0, 0] [1, 128, 32] [1, 1, 1]
           copy to %av ; use of %av
           scf.yield %slot + 1 == 3 ? 0 : %slot + 1 }

The slot is counted by compare and select, so that no division is made and any trip
count is right. The program computes the same as before; its loop is not yet pipelined.

Reads `alcop.pipeline` on loops and copies; decides nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from alcop_mlir.analysis import memory
from alcop_mlir.analysis.copies import SHARED
from alcop_mlir.analysis.loops import (
    body,
    bounds,
    inits,
    is_inside,
    loops_in,
    terminator,
)
from alcop_mlir.bindings import ir, memref, scf
from alcop_mlir.dialects import alcop
from alcop_mlir.transforms import build
from alcop_mlir.transforms.base import Pass


@dataclass(frozen=True)
class MultiBuffer(Pass):
    name = "alcop-multi-buffer"
    anchor = "any"

    def run(self, op: Any) -> None:
        for loop in loops_in(op):
            plan = alcop.get(loop, alcop.PipelineAttr)
            if plan is not None and SHARED in plan:
                _multi_buffer(loop, plan[SHARED])


def _multi_buffer(loop: Any, slots: int) -> None:
    buffers = [memory.root(copy.operands[1]) for copy in _planned_copies(loop)]
    loop = _with_slot(loop, slots)
    slot = list(body(loop).arguments)[-1]
    for buffer in dict.fromkeys(buffers):
        _widen(buffer, loop, slot, slots)


def _planned_copies(loop: Any) -> list[Any]:
    planned: list[Any] = []
    for op in body(loop).operations:
        plan = alcop.get(op, alcop.PipelineAttr)
        if plan is not None and SHARED in plan:
            planned.append(op.operation)
    return planned


def _with_slot(loop: Any, slots: int) -> Any:
    """`loop` with one more carried value, the slot; its body is moved, not copied."""
    block = body(loop)
    with loop.location, ir.InsertionPoint(loop):
        wider = scf.ForOp(*bounds(loop), [*inits(loop), build.index(0)]).operation
    for name in list(loop.attributes):
        wider.attributes[name] = loop.attributes[name]
    arguments = list(body(wider).arguments)
    for old, new in zip(list(block.arguments), arguments[:-1], strict=True):
        old.replace_all_uses_with(new)
    for op in list(block.operations):
        body(wider).append(op.operation)
    last = terminator(wider).operation
    with last.location, ir.InsertionPoint(last):
        scf.YieldOp([*last.operands, build.cyclic_next(arguments[-1], slots)])
    last.erase()
    for old, new in zip(loop.results, list(wider.results)[:-1], strict=True):
        old.replace_all_uses_with(new)
    loop.erase()
    return wider


def _widen(buffer: Any, loop: Any, slot: Any, slots: int) -> None:
    """Replace `buffer` by one with `slots` slots, in `loop` seen through `slot`."""
    single = buffer.type
    wide_type = ir.MemRefType.get(
        [slots, *single.shape],
        single.element_type,
        memory_space=single.memory_space,
    )
    alloc = buffer.owner.operation
    # A buffer made anew in each iteration must outlive it now.
    before = loop if is_inside(alloc, loop) else alloc
    with alloc.location, ir.InsertionPoint(before):
        wide = memref.alloc(wide_type, [], [])
    with alloc.location, ir.InsertionPoint.at_block_begin(body(loop)):
        view = _slot_view(wide, slot, single.shape)
    buffer.replace_all_uses_with(view)
    alloc.erase()


def _slot_view(wide: Any, slot: Any, shape: Sequence[int]) -> Any:
    """The slot as a memref of the rank it had before."""
    rank = len(shape)
    row_major = [1]
    for extent in reversed(list(shape)[1:]):
        row_major.insert(0, row_major[0] * extent)
    layout = ir.StridedLayoutAttr.get(ir.ShapedType.get_dynamic_size(), row_major)
    kind = ir.MemRefType.get(
        list(shape),
        wide.type.element_type,
        layout=layout,
        memory_space=wide.type.memory_space,
    )
    return memref.subview(
        wide,
        [slot, *[0] * rank],
        [1, *shape],
        [1] * (rank + 1),
        result_type=kind,
    )
