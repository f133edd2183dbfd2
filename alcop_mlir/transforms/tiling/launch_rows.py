"""Launch each row group as one kernel, the threads of a row holding it in registers.

Before:  linalg.generic ... ins(%x : memref<64x96xf32>) outs(%max : memref<64xf32>)
         linalg.generic ... ins(%x, %max) outs(%e : memref<64x96xf32>)  // exp(x - max)
         linalg.generic ... ins(%e) outs(%sum : memref<64xf32>)
         linalg.generic ... ins(%e, %sum) outs(%y : memref<64x96xf32>)  // e / sum
After:   gpu.launch blocks(8, 1, 1) threads(256, 1, 1) {
           // a warp for each row, three columns for each lane
           %x0 = memref.load %x[%row, %lane] ...
           gpu.shuffle ... of the largest of them
           memref.store %y0, %y[%row, %lane] ... } {alcop.kernel = "rows"}

`analysis/rows/row_groups.py` says what a group is. Each row is read once and written
once; what only the group reads is not written at all. A warp has a row of up to 1024
elements, and a block of up to 16 warps a longer one; less where several rows are alive
at once. Reductions are computed in the type that they have, by each thread in the order
of its columns, by shuffles within a warp, and over the warps of a block through shared
memory, always in the same order. Where rows are too long, or of a length known at run
time only, the ops stay, with a remark that says so.

It runs on memrefs, after contractions have become launches: bias, residual and
activation that these can compute are theirs, and what is left is free to be grouped.
Groups made on tensors would have to know this before. Upstream has no such pass: the
transform dialect's fuse_into_containing_op needs a tiled loop, and a script.

Runs after alcop-tile-to-blocks, before alcop-launch-loops, which takes all other ops.
Writes `alcop.kernel` and `alcop.fallback`, as that does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from alcop_mlir import diagnostics
from alcop_mlir.analysis.ir.rejected import Rejected
from alcop_mlir.analysis.ir.walk import host_blocks
from alcop_mlir.analysis.rows.row_groups import RowGroup, row_groups
from alcop_mlir.bindings import ir
from alcop_mlir.passes.base import Pass
from alcop_mlir.target import WARP_SIZE
from alcop_mlir.transforms.tiling.nest_elements import loop_sizes
from alcop_mlir.transforms.tiling.row_code import RowCode
from alcop_mlir.transforms.tiling.size_checks import assert_sizes
from alcop_mlir.transforms.tiling.thread_points import THREADS, launch_over


@dataclass(frozen=True)
class LaunchRows(Pass):
    name = "alcop-launch-rows"
    anchor = "func.func"

    def run(self, op: ir.Operation) -> None:
        for block in host_blocks(op):
            for found in row_groups(block):
                if isinstance(found, Rejected):
                    what = f"'{found.op.name}' is not computed row by row with others"
                    diagnostics.remark(found.op, f"{what}: {found.reason}")
                else:
                    _launch(found)


def _launch(group: RowGroup) -> None:
    last = group.ops[-1]
    with last.location, ir.InsertionPoint(last):
        rows: list[Any] = []
        for member in group.members:
            sizes = loop_sizes(member.nest)
            assert_sizes(member.nest, sizes)
            rows = [sizes[loop] for loop in member.nest.points[: group.rows]]

        def row(point: list[Any]) -> None:
            *where, thread = point
            RowCode(group, where, thread).compute()

        threads = WARP_SIZE * group.warps
        per_block = THREADS if group.warps == 1 else threads
        launch_over([*rows, threads], "rows", row, threads=per_block)
    for op in group.ops:
        op.erase()
