"""How many commit groups are younger than the one that a wait is for.

`cp.async.wait_group N` waits until at most N of the thread's youngest groups are in
flight (PTX ISA, cp.async.wait_group). So the N for a given group is the number of
groups that are committed after it. The number is counted along the uses of the group's
token, through loops and branches, as the least over all paths. A smaller N only waits
longer, so that counting too few groups is safe.
"""

from __future__ import annotations

from typing import Any

from alcop_mlir.analysis.ir.code_motion import ops_before
from alcop_mlir.analysis.ir.loops import (
    ancestor_in,
    body,
    branch_values,
    defining_op,
    init_args,
    is_loop,
    terminator,
    trip_count,
    yielded,
)
from alcop_mlir.analysis.ir.synchronisation import GROUP
from alcop_mlir.bindings import ir
from alcop_mlir.frozen import frozen

COMMITS = frozenset(["alcop.producer_commit", GROUP])


@frozen
class Unknown:
    """A token that cannot be followed to its commit, because of `op`."""

    op: Any


def younger_groups(token: ir.Value, point: ir.Operation) -> int | Unknown:
    """The least number of groups committed after `token`'s, before the op `point`."""
    return _younger(token, point.operation, frozenset())


def _younger(
    token: ir.Value, point: ir.Operation, seen: frozenset[Any]
) -> int | Unknown:
    made_by = defining_op(token)
    if made_by is None:
        return _younger_than_argument(token, point, seen)
    since = _commits_between(made_by, point)
    if made_by.name in COMMITS:
        return since
    if is_loop(made_by):
        number = token.result_number
        ways = [_younger(yielded(made_by, number), terminator(made_by), seen)]
        if not trip_count(made_by):
            ways.append(_younger(init_args(made_by)[number], made_by, seen))
        return _least(ways, since)
    if made_by.name == "scf.if":
        ends = [region.blocks[0].operations[-1] for region in made_by.regions]
        values = branch_values(made_by, token.result_number)
        pairs = zip(values, ends, strict=True)
        return _least([_younger(v, end.operation, seen) for v, end in pairs], since)
    return Unknown(made_by)


def _younger_than_argument(
    token: ir.Value, point: ir.Operation, seen: frozenset[Any]
) -> int | Unknown:
    """Of a loop-carried token: an init arg, or yielded by the iteration before."""
    loop = token.owner.owner.operation
    if not is_loop(loop):
        return Unknown(loop)
    if token in seen:
        # A token that is carried unchanged only gets older: the init arg decides.
        return _NO_WAY
    number = token.arg_number - 1
    first = body(loop).operations[0].operation
    since = _commits_between(first, point) + int(first.name in COMMITS)
    seen = seen | {token}
    ways = [
        _younger(init_args(loop)[number], loop, seen),
        _younger(yielded(loop, number), terminator(loop), seen),
    ]
    return _least(ways, since)


_NO_WAY = 1 << 30  # more groups than any program has in flight


def _least(ways: list[int | Unknown], since: int) -> int | Unknown:
    for way in ways:
        if isinstance(way, Unknown):
            return way
    return min(way for way in ways if isinstance(way, int)) + since


def _commits_between(start: Any, point: ir.Operation) -> int:
    """The least number of commits after `start`, before `point`, which it dominates."""
    top = ancestor_in(point, start.block)
    assert top is not None, "a token is used where it is not defined"
    ops = [op.operation for op in start.block.operations]
    count = sum(map(_commits_in, ops[ops.index(start) + 1 : ops.index(top)]))
    while point != top:  # from the entry of the regions down to the point
        count += sum(map(_commits_in, ops_before(point)))
        point = point.parent.operation
    return count


def _commits_in(op: ir.Operation) -> int:
    """The least number of commits in `op`."""
    if op.name in COMMITS:
        return 1
    if is_loop(op):
        return (trip_count(op) or 0) * _commits_of_block(body(op))
    if op.name == "scf.if" and len(list(op.regions[1].blocks)):
        return min(_commits_of_block(region.blocks[0]) for region in op.regions)
    return 0


def _commits_of_block(block: ir.Block) -> int:
    return sum(_commits_in(op.operation) for op in block.operations)
