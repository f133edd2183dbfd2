"""Lower the four primitives of a pipeline to commit groups, waits and barriers.

Before:  alcop.consumer_release ; alcop.consumer_wait %old
         alcop.producer_acquire ; copies ; %new = alcop.producer_commit
After:   nvgpu.device_async_wait %old {numGroups = 1} ; gpu.barrier
         copies ; %new = nvgpu.device_async_create_group

The wait count is computed from the commit groups in the IR, foreign ones included: the
number of groups committed after the one waited for, on the path with the fewest. The
barrier of a wait makes the landed copies visible to all threads (each thread waits for
its own copies only), and keeps threads from refilling a slot that others still read. An
acquire needs a barrier of its own only where there is none between the last release and
it.

Runs after alcop-expand-pipelines, whose groups it counts, and before
alcop-distribute-copies: it does not look into copies. Erases all four primitives; reads
and writes no `alcop` attributes but `alcop.group`, which keeps the printed groups
readable.
"""

from __future__ import annotations

from alcop_mlir.analysis.ir.kernels import is_kernel
from alcop_mlir.analysis.ir.loops import is_loop
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.pipelining.barriers import meets
from alcop_mlir.analysis.pipelining.commit_groups import Unknown, younger_groups
from alcop_mlir.bindings import gpu, ir
from alcop_mlir.errors import PassError
from alcop_mlir.frozen import frozen
from alcop_mlir.passes.base import Pass
from alcop_mlir.transforms.pipelining.async_copies import create_group, wait_for

_ACQUIRE, _COMMIT = "alcop.producer_acquire", "alcop.producer_commit"
_WAIT, _RELEASE = "alcop.consumer_wait", "alcop.consumer_release"
_RUN_ONCE = ("func.func", "builtin.module")


@frozen
class PlaceWaits(Pass):
    name = "alcop-place-waits"
    anchor = "any"

    def run(self, op: ir.Operation) -> None:
        counts = {wait: _count(wait) for wait in walk(op, _WAIT)}
        acquires = walk(op, _ACQUIRE)
        for acquire in [one for one in acquires if not _is_separated(one)]:
            with acquire.location, ir.InsertionPoint(acquire):
                gpu.barrier()
        for wait, count in counts.items():
            _place_wait(wait, count)
        for commit in walk(op, _COMMIT):
            _place_commit(commit)
        for primitive in walk(op, _ACQUIRE, _RELEASE):
            primitive.erase()


def _count(wait: ir.Operation) -> int:
    count = younger_groups(wait.operands[0], wait)
    if isinstance(count, Unknown):
        raise PassError(
            wait,
            f"the group waited for comes from '{count.op.name}', expected an "
            f"{_COMMIT} reached through scf.for and scf.if only",
        )
    return count


def _is_separated(acquire: ir.Operation) -> bool:
    """Whether there is a barrier between the last release before `acquire` and it.

    In a loop's block the last release may be that of the previous iteration. Where a
    loop is further out, its previous iteration counts as not separated.
    """
    ops = [op.operation for op in acquire.block.operations]
    if is_loop(acquire.block.owner):
        at_entry = _separated_after(ops, True)
    else:
        at_entry = not _is_in_loop(acquire)
    return _separated_after(ops[: ops.index(acquire)], at_entry)


def _is_in_loop(op: ir.Operation) -> bool:
    """Whether an op around `op`, in its kernel, may run it again."""
    parent = op.parent
    while parent is not None and not _runs_once(parent):
        if parent.operation.name not in ("scf.if", "scf.execute_region"):
            return True
        parent = parent.operation.parent
    return False


def _runs_once(op: ir.Operation) -> bool:
    return is_kernel(op) or op.operation.name in _RUN_ONCE


def _separated_after(ops: list[ir.Operation], at_entry: bool) -> bool:
    separated = at_entry
    for op in ops:
        if op.name == _RELEASE:
            separated = False
        elif op.name == _WAIT or meets(op):
            separated = True
    return separated


def _place_wait(wait: ir.Operation, count: int) -> None:
    with wait.location, ir.InsertionPoint(wait):
        wait_for(wait.operands[0], count)
        gpu.barrier()
    wait.erase()


def _place_commit(commit: ir.Operation) -> None:
    with commit.location, ir.InsertionPoint(commit):
        group = create_group()
    commit.results[0].replace_all_uses_with(group)
    commit.erase()
