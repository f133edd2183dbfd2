"""Element-wise ops that read several columns of a contraction for each of their own.

Contractions whose results one element-wise op combines can be one contraction with
their columns interleaved, in groups of 16, here of two:

    D[m, n] = f(C[m, n floordiv 16 * 32 + n mod 16],
                C[m, n floordiv 16 * 32 + n mod 16 + 16])

A warp whose part of C has a multiple of 32 columns holds both elements in one lane: a
lane has the same columns of each accumulator fragment, and a group is two fragments of
8 columns ([PTX] mma.m16n8k16, accumulators), stored side by side.

The columns of one contraction can be in turn, too, as the halves of each head are that
rotary embeddings combine, here with two parts of L columns in a block:

    D[m, h, p, c] = f(C[m, t(h, c, 0)], C[m, t(h, c, 1)], other elements, h, p)
    t(h, c, p) = h * 2 * L + c floordiv 16 * 32 + c mod 16 + p * 16

Such an op is *turned*: it has as many elements as C. Changes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any

from alcop_mlir.analysis.linalg.elementwise import (
    Elementwise,
    elementwise,
    has_plain_indices,
    is_scalar_code,
)
from alcop_mlir.analysis.linalg.view import Index, Operand, linalg_view
from alcop_mlir.bindings import ir
from alcop_mlir.frozen import frozen

GROUP = 16  # neighbouring columns of one contraction


@frozen
class Interleaved(Elementwise):
    """An element-wise op, some of whose inputs have its columns interleaved.

    Their maps here are as if they had the columns of the output. Columns are the last
    dimension.

    parts:   how many groups are in turn
    part_of: by their elements in the body, which group of a turn each reads
    """

    parts: int = 1
    part_of: Mapping[Any, int | None] = field(default_factory=dict)

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


@frozen
class Turned(Interleaved):
    """An op whose last three loops are blocks of columns, parts, and columns of a part.

    part_of: None for what reads the part of its own iteration
    """

    @property
    def length(self) -> int:
        """Columns of a part."""
        return self.output.static_size(self.rank - 1) or 0

    @property
    def others(self) -> list[Operand]:
        """What it reads besides columns."""
        return [one for one in self.inputs if one.argument not in self.part_of]

    @property
    def moves_with_strips(self) -> bool:
        """Whether of what else it reads 16 rows are neighbours, or one."""
        return all(_moves_with_strips(one, self.rank) for one in self.others)


def turned_column(
    loops: tuple[Any, Any, Any], part: int | None, parts: int, length: int
) -> Any:
    """Where columns of a contraction are in turn, that of a block's part.

    loops: of blocks, parts and columns, as expressions
    part: None for that of the loop
    """
    block, own, column = loops
    group = ir.AffineExpr.get_constant(GROUP)
    turn = ir.AffineExpr.get_floor_div(column, group) * (parts * GROUP)
    first = own * GROUP if part is None else ir.AffineExpr.get_constant(part * GROUP)
    return block * (parts * length) + turn + column % group + first


def turned(op: ir.Operation) -> Turned | None:
    """The op where it reads parts of columns that are in turn; None for all others."""
    view = linalg_view(op)
    if view is None or view.block is None or len(view.outputs) != 1 or view.rank < 4:
        return None
    (output,) = view.outputs
    shape = [output.static_size(number) for number in range(len(output.loops))]
    if output.loops != tuple(range(view.rank)) or not output.is_memref:
        return None
    parts, length = shape[-2:]
    if not parts or not length or length % GROUP or output.is_read:
        return None
    part_of = {
        one.argument: part
        for one in view.inputs
        for part in _turned_parts(one, view.rank, parts, length)
    }
    if not part_of or not is_scalar_code(view.block, with_index=True):
        return None
    return Turned(
        view.op, view.rank, view.inputs, view.outputs, view.block,
        parts=parts, part_of=part_of,
    )  # fmt: skip


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
    found = 1
    for op in (use.owner.operation for use in memref.uses):
        one = interleaved(op) or turned(op)
        if one is not None and any(memref == read.value for read in one.parts_read):
            found = math.lcm(found, one.span)
        plain = elementwise(op)
        if plain is not None and plain.output.value != memref:
            found = math.lcm(found, columns_together(plain.output.value))
    return found


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


def _turned_parts(
    operand: Operand, rank: int, parts: int, length: int
) -> list[int | None]:
    """Which part an input reads of columns in turn, or None; nothing of others."""
    if not operand.is_memref or len(operand.indices) != rank - 2:
        return []
    *rows, _ = operand.loops
    if rows != list(range(rank - 3)):
        return []
    block, own, column = (ir.AffineExpr.get_dim(rank - n) for n in (3, 2, 1))
    read = operand.indices[-1].expression
    return [
        part
        for part in (None, *range(parts))
        if turned_column((block, own, column), part, parts, length) == read
    ]


def _moves_with_strips(operand: Operand, rank: int) -> bool:
    """Whether elements of 16 rows, and of a group's columns, are neighbours or one.

    Of a row that may be its number, or a digit of this.
    """
    indices = [index for index in operand.indices if index.constant != 0]
    for index in indices:
        is_inner = any(loop > rank - 4 for loop in index.loops)
        if index.loop is None and (is_inner or not is_row_digit(index.expression)):
            return False
    single = [index.loop for index in indices if index.loop is not None]
    rows = [index for index in indices if index.loops and index.loops[0] == rank - 4]
    return len(single) == len({*single}) and sum(map(has_rows, rows)) <= 1


def is_row_digit(expression: Any) -> bool:
    """Whether it is `d mod a` or `d floordiv b mod a`, of multiples of 16."""
    if isinstance(expression, ir.AffineModExpr):
        return _is_multiple(expression.rhs) and (
            isinstance(expression.lhs, ir.AffineDimExpr) or _is_divided(expression.lhs)
        )
    return _is_divided(expression)


def has_rows(index: Index) -> bool:
    """Whether neighbouring rows have neighbouring indices, not the same one."""
    read = index.expression
    return not _is_divided(read) and not (
        isinstance(read, ir.AffineModExpr) and _is_divided(read.lhs)
    )


def _is_divided(expression: Any) -> bool:
    return (
        isinstance(expression, ir.AffineFloorDivExpr)
        and isinstance(expression.lhs, ir.AffineDimExpr)
        and _is_multiple(expression.rhs)
    )


def _is_multiple(expression: Any) -> bool:
    is_number = isinstance(expression, ir.AffineConstantExpr)
    return is_number and expression.value % GROUP == 0
