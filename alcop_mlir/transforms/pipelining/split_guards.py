"""Split a condition around a block of a loop's body, so that its copies are apart.

Before:  scf.for %k {
           %m = memref.load %mask[%k]
           %r = scf.if %m -> f32 {
             copy to %a ; gpu.barrier ; %x = use of %a ; gpu.barrier ; scf.yield %x
           } else { scf.yield %old } }
After:   scf.for %k {
           %m = memref.load %mask[%k]
           scf.if %m { copy to %a }
           gpu.barrier
           %r = scf.if %m -> f32 { %x = use of %a ; scf.yield %x }
                else { scf.yield %old }
           gpu.barrier }

An op that copies and does more cannot be pipelined; one that copies under a condition
can, if all reads are under the same one. What it holds stays in its order. A load that
an address of a copy needs gets an `scf.if` of its own; what one part makes and another
uses is a result, zero where the condition does not hold. Barriers, commit groups and
waits then run where it does not hold, too: a barrier more is right where all threads
reach it, and more groups make a wait longer, never too short.

So all threads must surely have the same condition: it is computed from indices, the
kernel's arguments and what is loaded at such addresses of global memory. Other guards
are left unchanged, alcop-plan-pipelines says why; and those of which a part would yield
a memref. Inner ones are split before those around them.

Runs before alcop-plan-pipelines, after canonicalize, which would merge what is split.
Reads and writes no `alcop` attributes.
"""

from __future__ import annotations

from alcop_mlir.analysis.ir.loops import is_inside
from alcop_mlir.analysis.ir.synchronisation import GROUP
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.pipelining.guards import (
    REST,
    SYNC,
    Part,
    guard_parts,
    is_alike,
    is_guard,
)
from alcop_mlir.bindings import ir, scf
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import build, edit
from alcop_mlir.passes.base import Pass


@frozen
class SplitGuards(Pass):
    name = "alcop-split-guards"
    anchor = "any"

    def run(self, op: ir.Operation) -> None:
        for guard in reversed(walk(op, "scf.if")):
            if not (is_guard(guard) and is_alike(guard)):
                continue
            parts = guard_parts(guard)
            if parts is not None:
                _split(guard, parts)


def _split(guard: ir.Operation, parts: list[Part]) -> None:
    """Put parts before and after the guard, which keeps the last of the rest."""
    condition, block = guard.operands[0], guard.regions[0].blocks[0]
    kept = max(number for number, part in enumerate(parts) if part.kind == REST)
    beside = [op.operation for op in guard.block.operations]
    following = beside[beside.index(guard) + 1]
    for number, part in enumerate(parts):
        point = guard if number <= kept else following
        for op in part.before:
            op.move_before(point)
        if part.kind == SYNC:
            _synchronise(part, point)
        elif number != kept:
            _put_under(condition, part, point)
    is_empty = len(block.operations) == 1 and not len(guard.regions[1].blocks)
    if is_empty and not len(guard.results):
        guard.erase()


def _synchronise(part: Part, point: ir.Operation) -> None:
    """Move barriers, groups and waits; a group is of all copies before it anyway."""
    for op in part.ops:
        op.move_before(point)
        if op.name == GROUP:
            with op.location, ir.InsertionPoint(op):
                group = edit.like(op, [op.results[0].type], [])
            op.results[0].replace_all_uses_with(group.results[0])
            op.erase()


def _put_under(condition: ir.Value, part: Part, point: ir.Operation) -> None:
    """Move the ops of a part into an scf.if of their own, before `point`."""
    kinds = [result.type for result in part.results]
    with part.ops[0].location, ir.InsertionPoint(point):
        choice = scf.IfOp(condition, kinds, has_else=bool(kinds))
        then = choice.regions[0].blocks[0]
        for op in part.ops:
            then.append(op)
        with ir.InsertionPoint(then):
            scf.YieldOp(list(part.results))
        if kinds:
            with ir.InsertionPoint(choice.regions[1].blocks[0]):
                scf.YieldOp(build.nothing(kinds))
    for value, result in zip(part.results, choice.results, strict=True):
        users = [use.owner.operation for use in value.uses]
        inside = [user for user in users if is_inside(user, choice.operation)]
        value.replace_all_uses_except(result, inside)
