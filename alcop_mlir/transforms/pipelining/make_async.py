"""Make copies into shared memory asynchronous where they are, without a pipeline.

Before:  %v = vector.load %Q[%i, %j]
         vector.store %v, %q[%i, %j]
         %w = ...                            // code that uses neither
         gpu.barrier
After:   %c = nvgpu.device_async_copy %Q[%i, %j], %q[%i, %j], 4
         %g = nvgpu.device_async_create_group
         %w = ...
         nvgpu.device_async_wait %g {numGroups = 0}
         gpu.barrier

For copies that no pipeline has: of a tile that is filled before a loop, or in a
program without a loop. The value takes no register, and what follows runs while the
copies are in flight. Copies in a row are one group; so are all that a loop makes, or
an scf.if, which does nothing else. The wait comes before the first op that may touch
what they fill or write what they read, before barriers, which show the buffer to other
threads, and at the end of the block.

Left unchanged: what cp.async cannot copy, a copy between whose load and store something
may write what it loads, a loop that may fill an element twice (its copies are awaited
in each iteration), tiles' copies in loops, and copies in loops that have groups of
their own: groups land in order, so that waiting for a young one would empty a pipeline.
Upstream's transform op `nvgpu.create_async_groups` is not used: it waits directly
behind the group, and asks neither for alignment nor for aliases.

Runs after alcop-place-waits, whose waits it does not change (one more group in flight
makes them no weaker), and before alcop-distribute-copies. alcop-compile does not need
it. Reads no `alcop` attributes; writes `alcop.group`, as alcop-place-waits does.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from alcop_mlir.analysis.ir import memory
from alcop_mlir.analysis.ir.code_motion import ops_before
from alcop_mlir.analysis.ir.kernels import kernels_in
from alcop_mlir.analysis.ir.loops import is_loop
from alcop_mlir.analysis.ir.slices import is_pure
from alcop_mlir.analysis.ir.synchronisation import BARRIER
from alcop_mlir.analysis.ir.walk import around, walk
from alcop_mlir.analysis.pipelining.commit_groups import COMMITS, younger_groups
from alcop_mlir.analysis.pipelining.copy_forms import CopyForm, copy_form
from alcop_mlir.analysis.pipelining.moves import (
    ASYNC,
    TILE,
    branch_address_ops,
    unsuited,
)
from alcop_mlir.analysis.pipelining.writes import meetings
from alcop_mlir.bindings import ir
from alcop_mlir.frozen import frozen
from alcop_mlir.passes.base import Pass, option
from alcop_mlir.transforms.pipelining.async_copies import (
    create_group,
    issue_copy,
    wait_for,
)


@frozen
class MakeAsync(Pass):
    name = "alcop-make-async"
    anchor = "any"

    assume_noalias_args: bool = option(False, "memref arguments never overlap")

    def run(self, op: ir.Operation) -> None:
        groups = [
            group
            for kernel in kernels_in(op)
            for block in _blocks(kernel)
            for group in _groups(block, self.assume_noalias_args)
        ]
        copies = {copy.op for group in groups for copy in group.copies}
        # What is inside of a guarded copy is no copy of its own.
        whole = [group for group in groups if copies.isdisjoint(around(group.end))]
        for group in whole:
            _make_async(group)


@frozen
class _Group:
    """Copies that are in flight together, and the op before which they have landed."""

    copies: tuple[CopyForm, ...]
    end: Any


def _blocks(kernel: ir.Operation) -> Iterator[ir.Block]:
    """The blocks in `kernel` in which waiting for a group delays no other."""
    pipelined = {
        outer
        for commit in walk(kernel, *COMMITS)
        for outer in around(commit)
        if is_loop(outer)
    }
    for op in walk(kernel):
        if len(op.regions) and pipelined.isdisjoint([op, *around(op)]):
            yield from (block for region in op.regions for block in region.blocks)


def _groups(block: ir.Block, noalias: bool) -> Iterator[_Group]:
    copies: list[CopyForm] = []
    ops = [op.operation for op in block.operations]
    for op in ops:
        form = _asynchronous(op, noalias)
        joins = form is not None and _is_apart(form, copies)
        if copies and not joins and (op == ops[-1] or _ends(op, copies, noalias)):
            yield _Group(tuple(copies), op)
            copies = []
        if form is not None:
            copies.append(form)


def _asynchronous(op: ir.Operation, noalias: bool) -> CopyForm | None:
    """The form of `op` if it is a copy that can be made asynchronous."""
    form = copy_form(op)
    if form is None or any(
        move.kind == ASYNC or unsuited(move) or branch_address_ops(move)
        for move in form.moves
    ):
        return None
    if form.is_region:
        is_tile = any(move.kind == TILE for move in form.moves)
        return None if is_tile or not _is_apart(form, []) else form
    return form if form.producer is None or _loads_late(form, noalias) else None


def _loads_late(form: CopyForm, noalias: bool) -> bool:
    """Whether the load reads the same where the store is."""
    for op in ops_before(form.op):
        if op == form.producer:
            return True
        if _has_barrier(op) or _may_write(op, form.sources, noalias):
            return False
    return False


def _is_apart(form: CopyForm, copies: list[CopyForm]) -> bool:
    """Whether `form` fills no element that `copies`, still in flight, fill."""
    return form.op not in meetings([*copies, form])


def _ends(op: ir.Operation, copies: list[CopyForm], noalias: bool) -> bool:
    """Whether the copies must have landed before `op`."""
    if is_pure(op):
        return False
    buffers = {buffer for copy in copies for buffer in copy.buffers}
    sources = [source for copy in copies for source in copy.sources]
    return (
        _has_barrier(op)
        or not buffers.isdisjoint(memory.shared_roots_in(op))
        or _may_write(op, sources, noalias)
    )


def _has_barrier(op: ir.Operation) -> bool:
    return bool(walk(op, BARRIER))


def _may_write(op: ir.Operation, memrefs: list[ir.Value], noalias: bool) -> bool:
    return any(
        target is None or memory.may_alias(target, memref, noalias)
        for _, target in memory.written_memrefs(op)
        for memref in memrefs
    )


def _make_async(group: _Group) -> None:
    for copy in group.copies:
        with copy.op.location, ir.InsertionPoint(copy.op):
            issue_copy(copy, {})
    last = group.copies[-1].op
    with last.location, ir.InsertionPoint(last):
        token = create_group()
    with last.location, ir.InsertionPoint(group.end):
        count = younger_groups(token, group.end)
        assert isinstance(count, int), "a group and its wait are in one block"
        wait_for(token, count)
    for copy in group.copies:
        producer = copy.producer
        copy.op.erase()
        if producer is not None:
            producer.erase()
