"""Let as many blocks as run at once go through all tiles of a kernel with roles.

Before:  gpu.launch blocks(%bx, %by, %bz) in (16, 32, 1) {
           %a = memref.alloc() ; tile(%bx, %by, %bz) }
After:   gpu.launch blocks(%b, %y, %z) in (132, 1, 1) {
           %a = memref.alloc()
           scf.for %tile = %b to 512 step 132 {
             %bx = %tile % 16 ; %by = %tile / 16 ; tile(%bx, %by, 0) } }

In clusters of two blocks, clusters go through pairs of tiles: the loop has the numbers
of clusters, and a block computes the same one of each pair.

Warps that copy then begin with the next tile while others still store the one before,
and a block sets up its mbarriers once. Only launches of which no two blocks fit on an
SM, as those of two and more warpgroups that compute, and which have more blocks than
the target has SMs. Of blocks whose number is known at run time only there are as many
as SMs, too: the kernel computes it as the host does, and who finds no tile ends.

Runs after alcop-tile-to-blocks, whose order of blocks stays that of tiles, and before
alcop-plan-pipelines. Reads `alcop.schedule`, and writes no attributes.
"""

from __future__ import annotations

import math
from functools import reduce
from typing import Any

from alcop_mlir.analysis.ir.clusters import LAUNCH_ARGUMENTS, cluster_sizes
from alcop_mlir.analysis.ir.loops import constant
from alcop_mlir.analysis.ir.memory import ALLOCATIONS
from alcop_mlir.analysis.ir.slices import backward_slice
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.bindings import arith, ir
from alcop_mlir.dialects import alcop
from alcop_mlir.errors import ConfigError, PassError
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import build, edit
from alcop_mlir.passes.base import Pass, option
from alcop_mlir.schedule import WGMMA, Schedule
from alcop_mlir.target import DEFAULT_TARGET, WARP_SIZE, WARPGROUP, find_target

_DIMENSIONS = 3
_ALONE = 2  # warpgroups that compute: with the one that copies they fill an SM


@frozen
class MakePersistent(Pass):
    name = "alcop-make-persistent"
    anchor = "func.func"

    target: str = option(DEFAULT_TARGET, "GPU whose SMs the blocks are for")

    def __post_init__(self) -> None:
        find_target(self.target)

    def run(self, op: ir.Operation) -> None:
        sms = find_target(self.target).sms
        for launch in walk(op, "gpu.launch"):
            grid = [_folded(size) for size in list(launch.operands)[:_DIMENSIONS]]
            known = [count for count in grid if isinstance(count, int)]
            is_open = len(known) < len(grid) and 0 not in known
            if _fills_an_sm(launch) and (is_open or math.prod(known) > sms):
                _loop_over_tiles(launch, grid, sms)


def _folded(size: ir.Value) -> Any:
    number = constant(size)
    return size if number is None else number


def _fills_an_sm(launch: ir.Operation) -> bool:
    """Whether registers leave no room for a second block."""
    parameters = alcop.get(launch, alcop.ScheduleAttr)
    if parameters is None:
        return False
    try:
        schedule = Schedule.from_dict(parameters)
    except ConfigError as error:
        raise PassError(launch, str(error)) from error
    threads = schedule.threads * schedule.turns
    is_large = threads >= _ALONE * WARPGROUP * WARP_SIZE
    return schedule.engine == WGMMA and is_large


def _loop_over_tiles(launch: ir.Operation, grid: list[Any], sms: int) -> None:
    """Give each block, or each cluster, the tiles that are so many numbers apart.

    grid: blocks along each dimension, as ints where they are known
    """
    block = launch.regions[0].blocks[0]
    arguments = list(block.arguments)
    sizes = arguments[2 * _DIMENSIONS : 3 * _DIMENSIONS]
    cluster = cluster_sizes(launch)
    first = 0 if cluster is None else LAUNCH_ARGUMENTS
    ids = arguments[first : first + _DIMENSIONS]
    apart = cluster or (1,) * _DIMENSIONS
    ops = [op.operation for op in block.operations][:-1]
    with launch.location:
        with ir.InsertionPoint(launch):
            at_once = sms // math.prod(apart)
            blocks = at_once * math.prod(apart)
            counts = [build.index(blocks), build.index(1), build.index(1)]
        for number, count in enumerate(counts):
            launch.operands[number] = count
        with ir.InsertionPoint.at_block_begin(block):
            own = _in_kernel(grid, launch)
            for size, count in zip(sizes, own, strict=True):
                size.replace_all_uses_with(build.value(count))
            tiles = [_part(n, one) for n, one in zip(own, apart, strict=True)]
            moved = [op for op in ops if op.name not in ALLOCATIONS]
            places: list[Any] = []

            def tile(number: ir.Value, _: list[Any]) -> None:
                index = arith.index_castui(ir.IndexType.get(), number)
                places.extend(_coordinates(index, tiles))

            begin = _word(ids[0])
            bounds = (begin, _word(_product(tiles)), build.i32(at_once))
            loop = build.for_loop(bounds, [], tile)
        for old, new in zip(ids, places, strict=True):
            old.replace_all_uses_with(new)
        # What the loop itself begins with.
        begin.owner.operands[0] = ids[0]
        end = list(loop.body.operations)[-1]
        for op in moved:
            op.move_before(end)
        loop.operation.move_before(list(block.operations)[-1])


def _part(count: Any, by: int) -> Any:
    return count // by if isinstance(count, int) else build.div(count, by)


def _word(number: Any) -> Any:
    """In 32 bits, where a launch has room for 2^31 - 1 blocks: ptxas divides 64 bits by
    a call, and keeps slots in registers of a thread then.
    """
    if isinstance(number, int):
        return build.i32(number)
    return arith.index_castui(build.integer(32), number)


def _coordinates(number: ir.Value, grid: list[Any]) -> list[Any]:
    """Of a tile, along x, y and z: outer dimensions of one block need no division."""
    used = list(grid)
    while used and used[-1] == 1:
        used.pop()
    found = build.coordinates(number, list(reversed(used)))
    return [*reversed(found), *(build.index(0) for _ in grid[len(used) :])]


def _product(grid: list[Any]) -> Any:
    known = math.prod(one for one in grid if isinstance(one, int))
    values = [one for one in grid if not isinstance(one, int)]
    return build.mul(reduce(build.mul, values), known) if values else known


def _in_kernel(grid: list[Any], launch: ir.Operation) -> list[Any]:
    """Numbers of blocks, computed again in the kernel of what it is given: sizes."""
    mapped: dict[Any, Any] = {}
    values = [one for one in grid if not isinstance(one, int)]
    ops, _ = backward_slice(values, launch.operation.block)
    for op in ops:
        if op.name.startswith("arith."):
            edit.clone(op, mapped)
    return [mapped.get(one, one) if one in values else one for one in grid]
