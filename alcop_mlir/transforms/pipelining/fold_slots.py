"""Make one slot of several that a program has numbered itself, where one is enough.

Before:  %a = memref.alloc() : memref<3x64xf32, #gpu.address_space<workgroup>>
         scf.for %k ... { %slot = %k mod 3
           copy to %a[%slot, ...] ; gpu.barrier ; use of %a[%slot, ...] }
After:   %a = memref.alloc() : memref<1x64xf32, #gpu.address_space<workgroup>>
         scf.for %k ... {
           copy to %a[0, ...] ; gpu.barrier ; use of %a[0, ...] ; gpu.barrier }

A pipeline numbers slots of its own; without one, slots save a barrier at most.
Supported are buffers whose first index is the same value in all accesses, computed in
the loop and alike in all threads, as by `memref.multibuffer`, by a remainder, or by a
carried counter; also in views of one slot. All accesses must be in the loop, and each
iteration must read only what it has copied before, to the same elements of its slot. A
barrier is added where none is between the accesses of one iteration and the next. Other
buffers are left unchanged.

Runs before alcop-plan-pipelines, after canonicalize and cse. Reads and writes no
`alcop` attributes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from alcop_mlir.analysis.ir.loops import defining_op, loops_in, terminator
from alcop_mlir.analysis.ir.uniformity import may_diverge
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.pipelining.barriers import needs_barrier
from alcop_mlir.analysis.pipelining.own_slots import OwnSlots, slots_in
from alcop_mlir.bindings import gpu, ir
from alcop_mlir.passes import build
from alcop_mlir.passes.base import Pass


@dataclass(frozen=True)
class FoldSlots(Pass):
    name = "alcop-fold-slots"
    anchor = "any"

    def run(self, op: ir.Operation) -> None:
        for loop in loops_in(op):
            if not may_diverge(loop) or walk(loop, "gpu.barrier"):
                for slots in slots_in(loop):
                    _fold(slots, loop)


def _fold(slots: OwnSlots, loop: ir.Operation) -> None:
    if needs_barrier(loop, slots.accesses):
        with loop.location, ir.InsertionPoint(terminator(loop)):
            gpu.barrier()
    for op, number in slots.uses:
        with op.location, ir.InsertionPoint(op):
            op.operands[number] = build.index(0)
    _set_type(slots.buffer)


def _set_type(buffer: ir.Value) -> Any:
    """Give a buffer one slot."""
    kind = build.memref_like(buffer.type, [1, *buffer.type.shape[1:]])
    alloc = defining_op(buffer)
    if alloc is None:
        buffer.set_type(kind)
        return
    with alloc.location, ir.InsertionPoint(alloc):
        buffer.replace_all_uses_with(build.alloc(kind))
    alloc.erase()
