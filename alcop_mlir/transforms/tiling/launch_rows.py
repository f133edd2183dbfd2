"""Launch each row group as one kernel, whose threads share rows.

Before:  linalg.generic ... ins(%x : memref<64x96xf32>) outs(%max : memref<64xf32>)
         linalg.generic ... ins(%x, %max) outs(%e : memref<64x96xf32>)  // exp(x - max)
         linalg.generic ... ins(%e) outs(%sum : memref<64xf32>)
         linalg.generic ... ins(%e, %sum) outs(%y : memref<64x96xf32>)  // e / sum
After:   gpu.launch blocks(8, 1, 1) threads(256, 1, 1) {
           // a warp for each row, three columns for each lane
           %x0 = memref.load %x[%row, %lane] ...
           gpu.shuffle ... of the largest of them
           memref.store %y0, %y[%row, %lane] ... } {alcop.kernel = "rows"}

`analysis/rows/row_groups.py` says what a group is, `row_layouts.py` how threads share
rows. What only the group reads is not written at all. A warp has a row of up to 1024
elements, and a block of up to 16 warps a longer one; less where several rows are alive
at once: such rows are read once, and held in registers. Where there are few, each may
have more threads, and a block fewer rows (`row_threads.py`). Longer rows, and those of
a length known at run time only, a block reads in parts, once for the reductions that
need no other's result, and once more for the outputs. Of rows whose elements are not
neighbours in memory, each thread has one, or several warps the same 32.

Reductions are computed in the type that they have, by each thread in the order of its
columns, by shuffles within a warp, and over the warps of a block through shared memory,
always in the same order. The largest element and where it is are one reduction. A
reduction that threads cannot share stays, with a remark where others read its result.

It runs on memrefs, after contractions have become launches: bias, residual and
activation that these can compute are theirs, and what is left is free to be grouped.
Groups made on tensors would have to know this before. Upstream has no such pass: the
transform dialect's fuse_into_containing_op needs a tiled loop, and a script.

Runs after alcop-tile-to-blocks, before alcop-launch-loops, which takes all other ops.
Writes `alcop.kernel` and `alcop.fallback`, as that does.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from alcop_mlir import diagnostics
from alcop_mlir.analysis.ir.rejected import Rejected
from alcop_mlir.analysis.ir.walk import host_blocks
from alcop_mlir.analysis.rows.combinations import Extreme
from alcop_mlir.analysis.rows.row_groups import RowGroup, row_groups
from alcop_mlir.analysis.rows.row_members import Member
from alcop_mlir.analysis.rows.row_threads import spread
from alcop_mlir.bindings import ir
from alcop_mlir.dialects import alcop
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import build
from alcop_mlir.passes.base import Pass, option
from alcop_mlir.target import DEFAULT_TARGET, find_target
from alcop_mlir.transforms.tiling.nest_elements import loop_sizes
from alcop_mlir.transforms.tiling.row_code import RowCode
from alcop_mlir.transforms.tiling.row_parts import Columns
from alcop_mlir.transforms.tiling.row_reductions import MOST_COLUMNS
from alcop_mlir.transforms.tiling.size_checks import assert_sizes
from alcop_mlir.transforms.tiling.thread_points import (
    launch_over,
    launch_tiles,
    product,
)

_NAME = "rows"

Sizes = list[Any]  # of loops: ints or index values


@frozen
class LaunchRows(Pass):
    name = "alcop-launch-rows"
    anchor = "func.func"

    target: str = option(DEFAULT_TARGET, "GPU that rows are shared out for")

    def run(self, op: ir.Operation) -> None:
        target = find_target(self.target)
        for block in host_blocks(op):
            for found in row_groups(block):
                if isinstance(found, Rejected):
                    what = f"'{found.op.name}' is not computed row by row with others"
                    diagnostics.remark(found.op, f"{what}: {found.reason}")
                    continue
                last = found.ops[-1]
                with last.location, ir.InsertionPoint(last):
                    _launch(replace(found, layout=spread(found, target)))
                for member in found.ops:
                    member.erase()


def _launch(group: RowGroup) -> None:
    how = group.layout
    rows: list[Any] = []
    columns: list[Any] = []
    for member in group.members:
        sizes = loop_sizes(member.nest)
        assert_sizes(member.nest, sizes)
        rows = [sizes[loop] for loop in member.rows]
        columns = columns or [sizes[loop] for loop in member.columns]
    if how.count is None and any(_counts_columns(one) for one in group.members):
        build.assert_at_most(product(columns), MOST_COLUMNS)
    launch = _launch_along if not how.across else _launch_across
    launch(group, rows, columns, _why(group))


def _launch_along(group: RowGroup, rows: Sizes, columns: Sizes, why: str) -> None:
    """One or several warps for each row."""
    how = group.layout

    def row(point: list[ir.Value]) -> None:
        *where, thread = point
        RowCode(group, where, Columns(how, columns, thread)).compute()

    launch_over([*rows, how.threads], _NAME, row, why, how.in_block)


def _launch_across(group: RowGroup, rows: Sizes, columns: Sizes, why: str) -> None:
    """A thread for each row, or in each of several warps one."""
    how = group.layout

    def row(point: list[ir.Value]) -> None:
        RowCode(group, point, Columns(how, columns, build.index(0))).compute()

    def shared_row(number: ir.Value, thread: ir.Value, lane: ir.Value) -> None:
        is_row = build.less(number, count)
        some = build.least(number, build.sub(count, 1))
        where = build.coordinates(some, rows)
        RowCode(group, where, Columns(how, columns, thread), lane, is_row).compute()

    if how.threads == 1:
        launch_over(rows, _NAME, row, why)
        return
    count = product(rows)
    launch_tiles(count, how.threads, _NAME, shared_row, why)


def _counts_columns(member: Member) -> bool:
    return isinstance(member.combine, Extreme)


def _why(group: RowGroup) -> str:
    """Why a reduction that is alone is no contraction."""
    reductions = [one.nest.op for one in group.members if one.combine is not None]
    return alcop.reason(reductions[0]) if len(group.members) == 2 else ""
