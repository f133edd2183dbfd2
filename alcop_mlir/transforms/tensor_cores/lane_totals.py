"""Builders on totals of rows of which each lane holds a part of its own.

The row's sum is that of the lanes which share the row, see `fragment_rows.py`. Which
values are held so, `analysis/layout/carried_totals.py` says.
"""

from __future__ import annotations

from typing import Any

from alcop_mlir.analysis.ir import loops
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.layout.carried_totals import PRODUCTS, lane_totals
from alcop_mlir.analysis.layout.fragments import Fragments
from alcop_mlir.analysis.layout.reshapes import REDUCE
from alcop_mlir.bindings import arith, ir
from alcop_mlir.dialects import alcop
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import build
from alcop_mlir.transforms.tensor_cores.fragment_access import (
    Pieces,
    accumulator_lane,
    pieces,
)


@frozen
class LaneTotals:
    """The values of a kernel that are lanes' own totals."""

    values: frozenset[Any]
    threads: int

    def is_taken(self, op: ir.Operation, operand: ir.Value) -> bool:
        """Whether an op that makes a lane's own sum takes an operand as one."""
        made = list(op.results)
        if len(made) != 1 or made[0] not in self.values:
            return False
        if op.name in PRODUCTS:  # else a multiplier of the row
            return operand in self.values
        if op.name == REDUCE:
            return operand == op.operands[1]
        return operand.type == made[0].type

    def is_read(self, value: ir.Value) -> bool:
        """Whether anything needs the row's sum of a lane's own one."""
        return any(not self._carries_on(use) for use in value.uses)

    def _carries_on(self, use: ir.OpOperand) -> bool:
        op, number = use.owner.operation, use.operand_number
        if op.name == "scf.for":
            return number >= len(loops.bounds(op))
        return op.name == "scf.yield" or self.is_taken(op, op.operands[number])

    def own(self, value: ir.Value, held: Pieces) -> Pieces:
        """The part of a row's sum that is a lane's own: all of it, of one lane.

        Others add -0, which changes no sum. All lanes may begin with the same zero.
        """
        if loops.splat(value) == 0:
            return held
        layout, kind = held.layout, value.type
        lane = accumulator_lane(self.threads, layout)
        mine = lane.lane_in_quad if layout.role == "rows" else lane.quad
        is_first = arith.cmpi(arith.CmpIPredicate.eq, mine, build.index(0))
        element = kind.element_type
        is_float = isinstance(element, ir.FloatType)
        nothing = (ir.FloatAttr if is_float else ir.IntegerAttr).get(
            element, -0.0 if is_float else 0
        )
        return pieces(
            layout,
            kind,
            [
                arith.select(is_first, one, build.splat(one.type, nothing))
                for one in held.values
            ],
        )


def lane_totals_of(body: ir.Block, fragments: Fragments, threads: int) -> LaneTotals:
    """Those of a kernel."""
    reductions = [
        op
        for one in body.operations
        for op in walk(one, REDUCE)
        if alcop.BY_LANE in op.attributes and fragments.of(op.results[0]) is not None
    ]
    found = lane_totals(reductions, alcop.BY_LANE)
    return LaneTotals(frozenset(found), threads)
