"""Mark totals of rows that a loop carries, for lanes to exchange behind it.

Before:  %t = scf.for ... iter_args(%c = %zero) -> vector<16xf32> {
           %d = arith.mulf %c, %s
           %n = vector.multi_reduction <add>, %w, %d [1] : vector<16x64xf32>
After:     %d = arith.mulf %c, %s {alcop.by_lane}
           %n = vector.multi_reduction <add>, %w, %d [1] {alcop.by_lane}

A row is distributed to some lanes of a warp. With the mark each of these may add up
what it holds of it, over all iterations, and what lanes have is added where the total
of the row is read: the shuffles are behind the loop. What must hold of the loop says
`analysis/layout/carried_totals.py`; others are left unchanged. The mark is written
while loops are whole, so that what pipelines make of one loop adds in one order,
however many stages there are.

Runs on kernels of tile code, before alcop-plan-pipelines. Writes `alcop.by_lane`, which
alcop-lower-mma reads and erases.
"""

from __future__ import annotations

from alcop_mlir.analysis.ir import loops
from alcop_mlir.analysis.ir.kernels import enclosing
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.layout.carried_totals import carried_total
from alcop_mlir.analysis.layout.fragments import CONTRACT
from alcop_mlir.bindings import ir
from alcop_mlir.dialects import alcop
from alcop_mlir.frozen import frozen
from alcop_mlir.passes.base import Pass


@frozen
class DeferTotals(Pass):
    name = "alcop-defer-totals"

    def run(self, op: ir.Operation) -> None:
        distributed = {enclosing(one) for one in walk(op, CONTRACT)}
        found = [
            one
            for loop in loops.loops_in(op)
            if enclosing(loop) in distributed
            for number in range(len(loops.init_args(loop)))
            for one in carried_total(loop, number)
        ]
        for one in found:
            one.attributes[alcop.BY_LANE] = ir.UnitAttr.get()
