"""Put columns of a weight in turn where an op combines several of a contraction.

Before:  %y = linalg.matmul ins(%x, %w) .. -> tensor<64x96xf16>     // %w is a weight
         %e = tensor.expand_shape %y -> tensor<64x3x32xf16>
         %l = tensor.extract_slice %e[0, 0, 0] [64, 3, 16] [1, 1, 1]
         %r = tensor.extract_slice %e[0, 0, 16] [64, 3, 16] [1, 1, 1]
         %z = linalg.generic ins(%l, %r, %cos) {
             arith.select ((linalg.index 2) == 0), .. }  // loops m, h, part, c
After:   %t = // of each block of 32 columns of %w, 16 of each half in turn
         %y = linalg.matmul ins(%x, %t)
         %d = linalg.generic ins(%y, %y, %cos) outs(.. : tensor<64x3x2x16xf16>) { .. }
             // maps (m, h, p, c) -> (m, h * 32 + c floordiv 16 * 32 + c mod 16 + ..)
         %z = // %d, in the order that %z had

So that what is read can be in one lane, and rotary embeddings are computed by the
contraction's kernel. Several rotations of one contraction that compute alike, as of
queries and keys, are one op, and columns that none of them reads pass through it, as
values, or what lies between blocks where some columns of each head are rotated. Blocks
are 2 or 4 parts of a multiple of 16 columns, and begin at multiples of their size;
nobody else reads what a rotation reads. Where it stays an op of its own a remark says
why.

Pairs of neighbouring columns are put in turn alike, the first of each and the second.
Results keep that order, without a transpose, where all that reads them are contractions
that sum over the columns of two such results (`contracted_orders.py`).

Runs before bufferization, after alcop-join-contractions, and before
alcop-prepare-weights, which puts columns in another order once per weights. Reads
`alcop.weight`; writes no `alcop` attributes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from alcop_mlir import diagnostics
from alcop_mlir.analysis.ir.loops import made_by
from alcop_mlir.analysis.ir.rejected import Rejected
from alcop_mlir.analysis.linalg.interleaved_columns import turned_column
from alcop_mlir.analysis.tensors.column_pairs import (
    Level,
    Pairing,
    Rotation,
    find_pairings,
)
from alcop_mlir.analysis.tensors.linear_indices import VIEWS
from alcop_mlir.bindings import arith, ir, linalg, tensor
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import edit
from alcop_mlir.passes.base import Pass
from alcop_mlir.transforms.tensors.generic_ops import generic_on_tensors
from alcop_mlir.transforms.tensors.static_views import (
    cut,
    shaped,
    taken_apart,
    transposed,
)
from alcop_mlir.transforms.tensors.turned_weights import is_rotated, turned


@frozen
class PairColumns(Pass):
    name = "alcop-pair-columns"
    anchor = "func.func"

    def run(self, op: ir.Operation) -> None:
        for found in list(find_pairings(op)):
            if isinstance(found, Rejected):
                what = "columns of a contraction are combined by an op of its own"
                diagnostics.remark(found.op, f"{what}: {found.reason}")
            else:
                _pair(found)


def _pair(found: Pairing) -> None:
    for level in found.levels:
        _turn_operands(level, found)
    contraction = found.levels[0].view.op
    for op in found.needed:  # as a kernel, which must have run before
        if contraction.is_before_in_block(op):
            op.move_before(contraction)
    with found.rotations[0].view.op.location, edit.after(found.columns):
        made = _Turning(found).built()
        users = [use.owner.operation for use in found.columns.uses]
        whole = _without_parts(made)
    for user in users:
        if user not in (made.owner.operation, whole.owner.operation):
            _replace(user, found.columns, whole)
    for one in found.rotations:
        _replace_rotation(one, whole, found.is_free)


def _replace(user: ir.Operation, old: ir.Value, new: ir.Value) -> None:
    for number, value in enumerate(user.operands):
        if value == old:
            user.operands[number] = new


def _turn_operands(level: Level, found: Pairing) -> None:
    """Put the columns of weights in turn."""
    op = level.view.op
    with op.location, ir.InsertionPoint(op):
        for number, dimension in level.along.items():
            op.operands[number] = turned(op.operands[number], dimension, found)


@frozen
class _Turning:
    """Builds the op that computes all columns, from columns in turn."""

    found: Pairing

    @property
    def first(self) -> Rotation:
        """That which all others are like."""
        return self.found.rotations[0]

    @property
    def rank(self) -> int:
        """Rows, blocks, parts, columns."""
        return self.found.columns.type.rank + 2

    def built(self) -> Any:
        """Its result."""
        first, columns = self.first, self.found.columns
        rotated = [self._map(number) for number in range(len(first.view.inputs))]
        values = [
            columns if number in first.reads else one.value
            for number, one in enumerate(first.view.inputs)
        ]
        if self.found.passes:
            rotated.append(self._columns(None))
            values.append(columns)
        *rows, width = columns.type.shape
        shape = [*rows, width // first.step, first.parts, first.length]
        kind = first.view.op.results[0].type.element_type
        out = tensor.empty(shape, kind)
        maps = [*rotated, ir.AffineMap.get_identity(self.rank)]
        made = generic_on_tensors(values, [out], maps)
        kinds = [one.type.element_type for one in (*values, out)]
        here = ir.Location.current
        block = made.regions[0].blocks.append(*kinds, arg_locs=[here] * len(kinds))
        with ir.InsertionPoint(block):
            linalg.YieldOp([self._body(list(block.arguments))])
        return made.results[0]

    def _body(self, arguments: list[Any]) -> Any:
        view = self.first.view
        inputs = [one.argument for one in view.inputs]
        known = dict(zip(inputs, arguments, strict=False))
        known[view.outputs[0].argument] = arguments[-1]
        for op in view.block.operations:
            if op.operation.name == "linalg.index":
                known[op.operation.results[0]] = linalg.IndexOp(self.rank - 2).result
        (rotated,) = edit.inline(view.block, known)
        if not self.found.passes:
            return rotated
        block = linalg.IndexOp(self.rank - 3).result
        is_read = is_rotated(block, self.found.rotations)
        return arith.select(is_read, rotated, arguments[-2])

    def _columns(self, part: int | None) -> Any:
        """The map of a part of the columns."""
        dims = [ir.AffineExpr.get_dim(n) for n in range(self.rank)]
        *rows, block, own, column = dims
        read = turned_column(
            (block, own, column), part, self.first.parts, self.first.length
        )
        return ir.AffineMap.get(self.rank, 0, [*rows, read])

    def _map(self, number: int) -> Any:
        """That of an input of the rotation."""
        first = self.first
        if number in first.reads:
            return self._columns(first.reads[number])
        loops = ir.AffineMap.get(
            self.rank, 0, [self._loop(loop) for loop in range(first.view.rank)]
        )
        results = [one.compose(loops) for one in first.view.inputs[number].map.results]
        return ir.AffineMap.get(self.rank, 0, results)

    def _loop(self, loop: int) -> Any:
        """A loop of the rotation, of those here."""
        first = self.first
        own = {
            first.block: self.rank - 3,
            first.part: self.rank - 2,
            first.column: self.rank - 1,
        }
        if first.extents[loop] == 1:
            return ir.AffineExpr.get_constant(0)
        if loop in own:
            return ir.AffineExpr.get_dim(own[loop])
        dimension, step = first.rows[loop]
        size = self.found.columns.type.shape[dimension]
        read = ir.AffineExpr.get_dim(dimension)
        if step > 1:
            read = ir.AffineExpr.get_floor_div(read, ir.AffineExpr.get_constant(step))
        return (
            read if step * first.extents[loop] == size else read % first.extents[loop]
        )


def _without_parts(made: ir.Value) -> Any:
    """The result with blocks, parts and columns as columns."""
    *rows, blocks, parts, length = made.type.shape
    rank = len(rows)
    groups = [*([n] for n in range(rank)), [rank, rank + 1, rank + 2]]
    kind = shaped(made, [*rows, blocks * parts * length])
    return tensor.collapse_shape(kind, made, groups)


def _replace_rotation(one: Rotation, whole: ir.Value, is_free: bool) -> None:
    """Let who reads a rotation's result read its columns of `whole`."""
    op = one.view.op
    with op.location, ir.InsertionPoint(op):
        op.results[0].replace_all_uses_with(_in_its_order(one, whole, is_free))
    sources = [made for operand in one.view.operands for made in _views(operand.value)]
    op.erase()
    # A view of views comes last.
    edit.erase_unused(list(dict.fromkeys(reversed(sources)))[::-1])


def _views(value: ir.Value) -> list[Any]:
    """The views that lead to an operand, or the empty tensor that it is, last first."""
    found: list[Any] = []
    while (op := made_by(value, *VIEWS, "tensor.empty")) is not None:
        found.append(op)
        if not len(op.operands):
            break
        value = op.operands[0]
    return found


def _in_its_order(one: Rotation, whole: ir.Value, is_free: bool) -> Any:
    """The rotation's columns, with a dimension for each of its loops, in its order.

    is_free: whether the columns of a block may stay as they lie
    """
    *rows, _ = whole.type.shape
    rank = len(rows)
    # Rows as the rotation's loops have them, loops of one iteration first.
    ones = [loop for loop, size in one.extents.items() if size == 1]
    by_row = [
        sorted((loop for loop in one.rows if one.rows[loop][0] == dimension),
               key=lambda loop: -one.rows[loop][1])
        for dimension in range(rank)
    ]  # fmt: skip
    by_row[0] = [*ones, *by_row[0]]
    inner = [one.column, one.part] if is_free else [one.part, one.column]
    blocks = [] if one.block is None else [one.block]
    loops = [loop for part in by_row for loop in part] + blocks
    order = [*range(one.view.rank)]
    base = one.begin - one.begin % one.pitch
    value = _columns_of(whole, base, one.blocks * one.pitch)
    value = _expanded(value, by_row, [*blocks, None], one)
    value = _columns_of(value, one.begin - base, one.step)
    if order[-2:] != inner:
        return _transposed(_apart(value, inner, one), [*loops, *inner], order)
    value = _transposed(value, [*loops, None], [*order[:-2], None])
    return _apart(value, inner, one)


def _columns_of(value: ir.Value, begin: int, size: int) -> Any:
    """Some of the columns, which are the last dimension."""
    *rows, _ = value.type.shape
    return cut(value, [*((0, row) for row in rows), (begin, size)])


def _apart(value: ir.Value, inner: Sequence[int], one: Rotation) -> Any:
    """A value with its columns as two loops."""
    *rows, _ = value.type.shape
    columns = [one.extents[loop] for loop in inner]
    return taken_apart(value, [*([row] for row in rows), columns])


def _expanded(
    value: ir.Value,
    by_row: Sequence[Sequence[int]],
    inner: Sequence[int | None],
    one: Rotation,
) -> Any:
    """A dimension for each loop of rows and columns; None is from block to block."""
    sizes = {**one.extents, None: one.pitch}
    parts = [[sizes[loop] for loop in loops] or [1] for loops in [*by_row, inner]]
    return taken_apart(value, parts)


def _transposed(value: ir.Value, loops: Sequence[Any], order: Sequence[Any]) -> Any:
    """Dimensions that are these loops, in another order."""
    return transposed(value, [list(loops).index(loop) for loop in order])
