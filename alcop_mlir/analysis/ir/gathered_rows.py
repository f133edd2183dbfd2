"""Matrices that are never made: what their rows hold of another memref."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from alcop_mlir.analysis.ir.alignment import stride_divisor
from alcop_mlir.analysis.ir.loops import made_by
from alcop_mlir.bindings import ir
from alcop_mlir.dialects import alcop


@dataclass(frozen=True)
class GatheredRows:
    """The rows of an `alcop.im2col` or `alcop.take`.

    source: the memref that they are read from
    run:    elements of a row that are neighbours in the source: the channels of a tap,
            or a row of the table; None where that is known at run time only
    """

    op: Any
    source: Any
    run: int | None

    @property
    def distance(self) -> int:
        """Divides the distance, in elements, of any two runs of elements."""
        outer = range(self.source.type.rank - 1)
        strides = (stride_divisor(self.source, number) for number in outer)
        return math.gcd(self.run or 1, *strides)


def gathered_rows(matrix: ir.Value) -> GatheredRows | None:
    """What the rows of `matrix` hold, if it is one that is never made."""
    op = made_by(matrix, "alcop.im2col", "alcop.take")
    if op is None:
        return None
    source = op.operands[0]
    kind, last = source.type, source.type.rank - 1
    run = None if kind.is_dynamic_dim(last) else kind.shape[last]
    window = alcop.get(op, alcop.WindowAttr)
    if run is not None and window is not None:
        run //= window["groups"]
    return GatheredRows(op, source, run)
