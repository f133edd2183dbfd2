"""Tiles of columns in which every row sees every column, so that no mask is needed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from alcop_mlir.analysis.chains.visible_columns import Columns, Linear, compared
from alcop_mlir.analysis.ir.loops import constant, defining_op
from alcop_mlir.bindings import ir
from alcop_mlir.transforms.chains.tiled_chain import TiledChain


@dataclass(frozen=True)
class Span:
    """Columns that a loop goes over in tiles; all exist and are seen if `is_whole`."""

    first: Any
    end: Any
    is_whole: bool


def is_true(op: ir.Operation, chain: TiledChain) -> bool:
    """Whether a comparison is true for all columns up to row + `chain.last`.

    It is where it says no more than that a column is at most as far right.
    """
    if op.name != "arith.cmpi" or chain.last is None:
        return False
    sides = [_linear(one, chain.batch) for one in op.operands]
    if sides[0] is None or sides[1] is None:
        return False
    found = compared(op.attributes["predicate"].value, sides[0], sides[1])
    if found is None or found == Columns():
        return False
    return found.first is None and found.last is not None and found.last >= chain.last


def _linear(value: ir.Value, batch: int) -> Linear | None:
    """How often a number in a body has that of the row, that of the column, and 1."""
    number = constant(value)
    if number is not None:
        return 0, 0, number
    op = defining_op(value)
    if op is None:
        return None
    if op.name == "linalg.index":
        loop = op.attributes["dim"].value - batch
        return {0: (1, 0, 0), 1: (0, 1, 0)}.get(loop)
    if op.name == "arith.index_cast":
        return _linear(op.operands[0], batch)
    if op.name not in ("arith.addi", "arith.subi"):
        return None
    one, other = (_linear(side, batch) for side in op.operands)
    if one is None or other is None:
        return None
    sign = 1 if op.name == "arith.addi" else -1
    a, b, c = (x + sign * y for x, y in zip(one, other, strict=True))
    return a, b, c
