"""The columns that a block goes over, and what of them needs no mask.

Tiles in which every row sees every column, and which exist as a whole, come first.
"""

from __future__ import annotations

from typing import Any

from alcop_mlir.analysis.chains.visible_columns import Columns, Linear, compared
from alcop_mlir.analysis.ir.loops import constant, defining_op
from alcop_mlir.bindings import ir
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import build
from alcop_mlir.passes.sizes import Number
from alcop_mlir.transforms.chains.tiled_chain import TiledChain


@frozen
class Span:
    """Columns that a loop goes over in tiles; all exist and are seen if `is_whole`."""

    first: Any
    end: Any
    is_whole: bool


def divides(tile: int, size: Number) -> bool:
    """Whether tiles surely have no rest."""
    return isinstance(size, int) and size % tile == 0


def spans(chain: TiledChain, n: Number, block_row: ir.Value) -> list[Span]:
    """The columns, of n, that some row of a block has weights in, in turn.

    Those of whole tiles, which all rows see and which exist, come first.
    """
    tile = chain.tiles.columns
    lower, upper = build.index(0), build.value(n)
    if chain.last is not None:
        last = build.add(block_row, chain.last + chain.tiles.block_rows)
        upper = build.least(build.most(last, 0), n)
    if chain.first is not None:
        least = build.most(build.add(block_row, chain.first), 0)
        return [Span(_whole(least, tile), upper, False)]
    if chain.last is None and divides(tile, n):
        return [Span(lower, upper, True)]
    middle = _whole(n, tile)
    if chain.last is not None:
        seen = build.most(build.add(block_row, chain.last + 1), 0)
        middle = build.least(_whole(seen, tile), middle)
    elif middle == 0:
        return [Span(lower, upper, False)]
    middle = build.value(middle)
    return [Span(lower, middle, True), Span(middle, upper, False)]


def in_part(whole: list[Span], chain: TiledChain, part: ir.Value) -> list[Span]:
    """What a part of the columns has of these; parts begin with the first span."""
    first = build.mul(part, chain.part_columns)
    if chain.first is not None:
        first = build.add(whole[0].first, first)
    end = build.add(first, chain.part_columns)
    begins = [first, *(build.most(one.first, first) for one in whole[1:])]
    return [
        Span(begin, build.least(one.end, end), one.is_whole)
        for begin, one in zip(begins, whole, strict=True)
    ]


def _whole(size: Number, tile: int) -> Any:
    """As much of a size as are whole tiles."""
    if isinstance(size, int):
        return size // tile * tile
    return build.mul(build.div(size, tile), tile)


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
