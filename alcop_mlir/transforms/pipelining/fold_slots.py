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
carried counter; also in views of one slot. A flat buffer of which iteration k uses the
part from `256 * k` on is given a dimension for its parts first. All accesses must be in
the loop, and each iteration must read only what it has copied before, to the same
elements of its slot. A barrier is added where none is between the accesses of one
iteration and the next. Other buffers are left unchanged.

Runs before alcop-plan-pipelines, after canonicalize and cse. Reads and writes no
`alcop` attributes.
"""

from __future__ import annotations

from typing import Any

from alcop_mlir.analysis.ir.index_terms import Terms
from alcop_mlir.analysis.ir.loops import body, bounds, defining_op, loops_in, terminator
from alcop_mlir.analysis.pipelining.barriers import is_run_by_all, needs_barrier
from alcop_mlir.analysis.pipelining.own_parts import OwnParts, parts_in
from alcop_mlir.analysis.pipelining.own_slots import OwnSlots, slots_in
from alcop_mlir.bindings import gpu, ir, memref
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import build
from alcop_mlir.passes.base import Pass


@frozen
class FoldSlots(Pass):
    name = "alcop-fold-slots"
    anchor = "any"

    def run(self, op: ir.Operation) -> None:
        for loop in loops_in(op):
            if is_run_by_all(loop):
                for parts in parts_in(loop):
                    _number(parts, loop)
                for slots in slots_in(loop):
                    _fold(slots, loop)


def _number(parts: OwnParts, loop: ir.Operation) -> None:
    """Give a flat buffer a dimension for its parts, and accesses a view of theirs."""
    kind = parts.buffer.type
    count = kind.shape[0] // parts.size
    buffer = _with_type(parts.buffer, build.memref_like(kind, [count, parts.size]))
    moving = ir.Attribute.parse("strided<[1], offset: ?>")
    with loop.location, ir.InsertionPoint.at_block_begin(body(loop)):
        slot = build.div(body(loop).arguments[0], bounds(loop)[2])
        own = build.memref_like(kind, [parts.size], layout=moving)
        view = memref.subview(
            buffer, [slot, 0], [1, parts.size], [1, 1], result_type=own
        )
    for use in parts.uses:
        # Where the index was made: `_fold` takes no address of a fill made deeper.
        made = defining_op(use.op.operands[use.number + 1])
        begin = ir.InsertionPoint.at_block_begin(body(loop))
        use.op.operands[use.number] = view
        with use.op.location, begin if made is None else ir.InsertionPoint(made):
            use.op.operands[use.number + 1] = _sum(use.within)


def _sum(terms: Terms) -> Any:
    """The value of an index in linear form, of values only."""
    found: Any = terms.constant
    for part, times in terms.multiples:
        found = build.add(found, build.mul(part, times))
    return build.value(found)


def _fold(slots: OwnSlots, loop: ir.Operation) -> None:
    if needs_barrier(loop, slots.accesses):
        with loop.location, ir.InsertionPoint(terminator(loop)):
            gpu.barrier()
    for op, number in slots.uses:
        with op.location, ir.InsertionPoint(op):
            op.operands[number] = build.index(0)
    kind = slots.buffer.type
    _with_type(slots.buffer, build.memref_like(kind, [1, *kind.shape[1:]]))


def _with_type(buffer: ir.Value, kind: ir.Type) -> Any:
    """`buffer`, of another type; uses of what is no attribution are of a new one."""
    alloc = defining_op(buffer)
    if alloc is None:
        buffer.set_type(kind)
        return buffer
    with alloc.location, ir.InsertionPoint(alloc):
        new = build.alloc(kind)
        buffer.replace_all_uses_with(new)
    alloc.erase()
    return new
