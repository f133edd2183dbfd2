"""What decides which elements of its buffers a copy fills: its footprint.

A loop may be pipelined only if each iteration fills the same elements, whenever the
loop runs: in a slot of its own it would else read what an older tile left there. Or if
what it fills under a condition it reads under the same condition. Nothing is changed
here.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator
from typing import Any

from alcop_mlir.analysis.ir import memory
from alcop_mlir.analysis.ir.kernels import may_repeat, nest_in_kernel
from alcop_mlir.analysis.ir.loops import (
    bounds,
    defining_op,
    init_args,
    is_inside,
    is_loop,
    yielded,
)
from alcop_mlir.analysis.ir.slices import captured, is_repeatable
from alcop_mlir.analysis.ir.uniformity import varies
from alcop_mlir.analysis.pipelining.copy_forms import REGIONS, CopyForm
from alcop_mlir.analysis.pipelining.moves import Move
from alcop_mlir.analysis.pipelining.writes import branches_around, writes_of
from alcop_mlir.bindings import ir
from alcop_mlir.frozen import frozen


@frozen
class Footprint:
    """What decides which elements a form fills: values from outside of it.

    targets:  of the addresses that it writes to
    bounds:   of how often its loops run
    branches: its scf.if that do not fill the same elements otherwise
    """

    targets: tuple[Any, ...]
    bounds: tuple[Any, ...] = ()
    branches: tuple[Any, ...] = ()


def footprint(form: CopyForm) -> Footprint:
    """What decides which elements `form` fills."""
    targets = [v for move in form.moves for v in (move.target, *move.target_indices)]
    if not form.is_region:
        return Footprint(tuple(targets))
    targets += [v for fill in form.fills for v in list(fill.operands)[1:]]
    found = _Deciding(form)
    found.of_op(form.op)
    return Footprint(
        tuple(from_outside(targets, form.op)),
        tuple(from_outside(found.bounds, form.op)),
        tuple(found.branches),
    )


def leaves_older(form: CopyForm, loop: ir.Operation) -> bool:
    """Whether reads may find what an earlier iteration filled, for its conditions.

    Where one that may change does not hold, and reads are not under it alike.
    """
    return any(
        may_change(from_outside([branch.operands[0]], form.op), loop, form.buffers)
        and not _is_read_alike(form, branch)
        for branch in footprint(form).branches
    )


def _is_read_alike(form: CopyForm, branch: ir.Operation) -> bool:
    """Whether what `form` fills in `branch`, and no more, is read where it is filled.

    Each read is under the same value of the same iteration, so that no thread reads
    what it did not fill; nor what another one did not, as all have the same value.
    """
    condition = branch.operands[0]
    if varies(condition):
        return False
    filled: dict[Any, set[int]] = {}
    for write in writes_of(form):
        for holder, way in branches_around(write.op):
            if holder == branch:
                filled.setdefault(write.buffer, set()).add(way)
    return all(
        len(ways) == 1 and _is_read_under(buffer, condition, *ways)
        for buffer, ways in filled.items()
    )


def _is_read_under(buffer: ir.Value, condition: ir.Value, way: int) -> bool:
    """Whether all reads of `buffer` are in this region of an scf.if of `condition`."""
    accesses = memory.accesses(buffer)
    return isinstance(accesses, list) and all(
        any(
            holder.operands[0] == condition and number == way
            for holder, number in branches_around(access.op)
        )
        for access in accesses
        if access.reads
    )


def may_change(
    values: Iterable[ir.Value], loop: ir.Operation, buffers: Collection[ir.Value]
) -> bool:
    """Whether one of the values may differ between iterations of `loop`.

    Also between those of loops around it that the buffers outlive. Buffers, and what is
    known to be alike besides, are not followed.
    """
    pending = list(values)
    return any(_differs(pending, outer, buffers) for outer in _repeating(loop, buffers))


def _repeating(loop: ir.Operation, buffers: Collection[ir.Value]) -> Iterator[Any]:
    """The loop, and what may run it again around it, with the same buffers."""
    yield loop
    for op in nest_in_kernel(loop)[1:]:
        makers = [defining_op(buffer) for buffer in buffers]
        if all(maker is not None and is_inside(maker, op) for maker in makers):
            return
        if may_repeat(op):
            yield op


def _differs(
    values: Iterable[ir.Value], loop: ir.Operation, known: Container[Any]
) -> bool:
    """Whether one of the values may differ between iterations of this one loop."""
    pending, seen = list(values), set[Any]()
    while pending:
        value = pending.pop()
        if value in seen or value in known:
            continue
        seen.add(value)
        owner = value.owner
        is_argument = isinstance(owner, ir.Block)
        holder = (owner.owner if is_argument else owner).operation
        if holder != loop and not is_inside(holder, loop):
            continue
        if is_argument or not is_repeatable(holder):
            return True
        pending += captured(holder)
    return False


class _Deciding:
    """Bounds of a region's loops, and its scf.if that decide what is filled."""

    def __init__(self, form: CopyForm):
        self.filled = {write.op: write.elements for write in writes_of(form)}
        self.guarded = {m.op.parent.operation for m in form.moves if _is_guarded(m)}
        self.bounds: list[Any] = []
        self.branches: list[Any] = []

    def of_op(self, op: ir.Operation) -> frozenset[Any]:
        """What tells the elements that `op` fills from those of others."""
        if op in self.filled:
            return frozenset([self.filled[op]])
        if op.name not in REGIONS:
            return frozenset()
        branches = [self._of_block(b) for region in op.regions for b in region.blocks]
        if not any(branches):
            return frozenset()
        if op.name != "scf.if":
            self.bounds += bounds(op) if is_loop(op) else op.operands
            return frozenset([op])
        if op in self.guarded or (len(branches) > 1 and branches[0] == branches[1]):
            return branches[0]
        self.branches.append(op)
        return frozenset([op])

    def _of_block(self, block: ir.Block) -> frozenset[Any]:
        return frozenset().union(*(self.of_op(o.operation) for o in block.operations))


def _is_guarded(move: Move) -> bool:
    """Whether it is under an scf.if that stores zero otherwise."""
    return move.guard is not None and move.branch is None


def from_outside(values: Iterable[ir.Value], op: ir.Operation) -> Iterator[Any]:
    """The values from outside of `op` that `values` inside are computed from."""
    pending, seen = list(values), set[Any]()
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        owner = value.owner
        holder = owner.owner if isinstance(owner, ir.Block) else owner.operation
        holder = holder.operation
        if holder != op and not is_inside(holder, op):
            yield value
        elif isinstance(owner, ir.Block):
            pending += _origins(value, holder)
        else:
            pending += captured(holder)


def _origins(argument: ir.Value, holder: ir.Operation) -> list[Any]:
    """What an argument of a loop's block is computed from."""
    if not is_loop(holder):
        return list(holder.operands)
    number = argument.arg_number - 1
    carried = (
        [init_args(holder)[number], yielded(holder, number)] if number >= 0 else []
    )
    return [*bounds(holder), *carried]
