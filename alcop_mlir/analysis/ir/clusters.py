"""Clusters of a `gpu.launch`, and what all blocks of one have alike.

The blocks of a cluster have the same cluster number, and a number each of their own in
it (`gpu.cluster_block_id`). `is_of_cluster` answers whether a value is the same in all
of them; nothing is changed here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from alcop_mlir.analysis.ir.loops import (
    bounds,
    constant,
    init_args,
    is_inside,
    is_loop,
    yielded,
)
from alcop_mlir.analysis.ir.slices import captured, is_repeatable
from alcop_mlir.bindings import ir

_DIMENSIONS = 3
# Block arguments of a launch: block ids, thread ids, grid sizes, block sizes; with
# clusters, their ids and sizes.
LAUNCH_ARGUMENTS = 4 * _DIMENSIONS
CLUSTER_ARGUMENTS = 2 * _DIMENSIONS
_OF_A_BLOCK = frozenset(
    "gpu.cluster_block_id gpu.block_id gpu.thread_id gpu.lane_id gpu.global_id "
    "gpu.subgroup_id".split()
)
_SIZES = range(2 * _DIMENSIONS, LAUNCH_ARGUMENTS)  # of the grid, and of blocks


def has_clusters(launch: ir.Operation) -> bool:
    """Whether a launch has clusters."""
    return launch.operation.opview.clusterSizeX is not None


def cluster_sizes(launch: ir.Operation) -> tuple[int, ...] | None:
    """Blocks of a cluster along x, y and z; None without clusters, or where unknown."""
    if not has_clusters(launch):
        return None
    view = launch.operation.opview
    given = (view.clusterSizeX, view.clusterSizeY, view.clusterSizeZ)
    sizes = [constant(one) for one in given]
    return None if None in sizes else tuple(one for one in sizes if one is not None)


def cluster_size(launch: ir.Operation) -> int:
    """Blocks of a cluster of a `gpu.launch` along x; 1 without clusters."""
    sizes = cluster_sizes(launch)
    return 1 if sizes is None else sizes[0]


def is_of_cluster(values: Iterable[Any], launch: ir.Operation) -> bool:
    """Whether each value is the same in all blocks of a cluster.

    Numbers that are no values are. Values are followed through loops to where they
    come from; what is read from memory counts as of one block.
    """
    return all(_is_alike(value, launch) for value in made_of(values, launch))


def made_of(values: Iterable[Any], kernel: ir.Operation) -> Iterator[Any]:
    """All that values are computed of in a kernel, themselves first.

    Through loops, to their bounds and to what they carry; numbers that are no values
    are left out. What is made outside of the kernel is given, and not followed.
    """
    pending = [one for one in values if isinstance(one, ir.Value)]
    seen: set[Any] = set()
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        yield value
        owner = value.owner
        if isinstance(owner, ir.Block):
            pending += _carried_by(value, kernel)
        elif is_inside(owner.operation, kernel):
            pending += captured(owner)


def _carried_by(value: Any, kernel: ir.Operation) -> list[Any]:
    """What the argument of a loop of the kernel is computed of; none of others."""
    loop = value.owner.owner.operation
    if loop == kernel or not is_inside(loop, kernel) or not is_loop(loop):
        return []
    number = value.arg_number - 1
    carried = [init_args(loop)[number], yielded(loop, number)] if number >= 0 else []
    return [*bounds(loop), *carried]


def _is_alike(value: Any, launch: ir.Operation) -> bool:
    """Whether a value is the same in all blocks, where all that it is made of is."""
    owner = value.owner
    if not isinstance(owner, ir.Block):
        if not is_inside(owner.operation, launch):
            return True
        return owner.operation.name not in _OF_A_BLOCK and is_repeatable(owner)
    holder, number = owner.owner.operation, value.arg_number
    if holder == launch:
        return number in _SIZES or number >= LAUNCH_ARGUMENTS
    return is_loop(holder) or not is_inside(holder, launch)
