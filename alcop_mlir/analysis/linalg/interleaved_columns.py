"""Element-wise ops that read several columns of a contraction for each of their own.

Contractions whose results one element-wise op combines can be one contraction with
their columns interleaved, in groups of 16, here of two:

    D[m, n] = f(C[m, n floordiv 16 * 32 + n mod 16],
                C[m, n floordiv 16 * 32 + n mod 16 + 16])

A warp whose part of C has a multiple of 32 columns holds both elements in one lane: a
lane has the same columns of each accumulator fragment, and a group is two fragments of
8 columns ([PTX] mma.m16n8k16, accumulators), stored side by side. Changes nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

from alcop_mlir.analysis.linalg.elementwise import (
    Elementwise,
    has_plain_indices,
    is_scalar_code,
)
from alcop_mlir.analysis.linalg.view import Operand, linalg_view
from alcop_mlir.bindings import ir

GROUP = 16  # neighbouring columns of one contraction


@dataclass(frozen=True)
class Interleaved(Elementwise):
    """An element-wise op, some of whose inputs have its columns interleaved.

    Their maps here are as if they had the columns of the output. Columns are the last
    dimension.

    parts:   how many groups are in turn
    part_of: by their elements in the body, which group of a turn each reads
    """

    parts: int = 1
    part_of: dict[Any, int] = field(default_factory=dict)

    @property
    def parts_read(self) -> list[Operand]:
        """The inputs with interleaved columns."""
        return [one for one in self.inputs if one.argument in self.part_of]

    @property
    def span(self) -> int:
        """Columns of a turn."""
        return self.parts * GROUP


def interleaved_column(column: ir.AffineExpr, parts: int, part: int) -> Any:
    """Which column of the interleaved ones is that of a part."""
    group = ir.AffineExpr.get_constant(GROUP)
    turn = ir.AffineExpr.get_floor_div(column, group) * (parts * GROUP)
    return turn + column % group + part * GROUP


def interleaved(op: ir.Operation) -> Interleaved | None:
    """The op where it reads interleaved columns of memrefs; None for all others."""
    view = linalg_view(op)
    if view is None or view.block is None or len(view.outputs) != 1:
        return None
    (output,) = view.outputs
    if output.loops != tuple(range(view.rank)) or not output.is_memref:
        return None
    found = [(one, _parts(one, output)) for one in view.inputs]
    counts = {parts[0] for _, parts in found if parts is not None}
    plain = [one for one, parts in found if parts is None]
    if len(counts) != 1 or not all(map(has_plain_indices, plain)):
        return None
    if not is_scalar_code(view.block):
        return None
    inputs = tuple(one if parts is None else _plain(one) for one, parts in found)
    part_of = {one.argument: parts[1] for one, parts in found if parts is not None}
    (count,) = counts
    rest = (view.op, view.rank, inputs, view.outputs, view.block)
    return Interleaved(*rest, parts=count, part_of=part_of)


def columns_together(memref: ir.Value) -> int:
    """Columns of a memref that one warp must hold for all ops that read interleaved
    ones; 1 where none does.
    """
    users = (interleaved(use.owner.operation) for use in memref.uses)
    return math.lcm(
        *(
            one.span
            for one in users
            if one is not None
            if any(memref == read.value for read in one.parts_read)
        )
    )


def _parts(operand: Operand, output: Operand) -> tuple[int, int] | None:
    """How many parts an input has interleaved, and which is read; None of others."""
    rank = len(output.loops)
    if not operand.is_memref or not operand.indices:
        return None
    *rows, _ = operand.loops
    if len(operand.loops) != rank or rows != list(range(rank - 1)):
        return None
    wide, narrow = operand.static_size(rank - 1), output.static_size(rank - 1)
    if wide is None or not narrow or wide % narrow or narrow % GROUP:
        return None
    column, parts = ir.AffineExpr.get_dim(rank - 1), wide // narrow
    if parts == 1:
        return None
    read = operand.indices[-1].expression
    numbers = (n for n in range(parts) if interleaved_column(column, parts, n) == read)
    part = next(numbers, None)
    return None if part is None else (parts, part)


def _plain(operand: Operand) -> Operand:
    rank = operand.map.n_dims
    return replace(
        operand, map=ir.AffineMap.get_identity(rank, context=operand.map.context)
    )
