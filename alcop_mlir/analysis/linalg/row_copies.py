"""Which linalg ops copy rows of a table, whose numbers a memref has.

    linalg.generic ins(%indices) outs(%rows) {
    ^bb0(%index: i32, %out: f16):
      %k = linalg.index 1 : index
      %row = arith.index_cast %index : i32 to index
      %element = memref.load %table[%row, %k]
      linalg.yield %element }

Of several dimensions, a batch of tables may have indices of its own for each, and
indices may name whole matrices, as those of experts. Changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from alcop_mlir.analysis.ir.loops import made_by, without
from alcop_mlir.analysis.ir.memref_layouts import follows_shape
from alcop_mlir.analysis.ir.slices import backward_slice, is_pure
from alcop_mlir.analysis.linalg.view import linalg_view
from alcop_mlir.bindings import ir
from alcop_mlir.frozen import frozen


@frozen
class RowCopy:
    """An op that copies `table[number(indices[i])]` to `rows[i]`; i of any rank.

    Or `table[i, number(indices[i, j])]` to `rows[i, j]`.

    argument: an element of the indices in the body
    number:   of the row: the argument, or what `ops`, which are pure, compute of it
    """

    op: Any
    table: Any
    indices: Any
    rows: Any
    argument: Any
    number: Any
    ops: tuple[Any, ...] = ()


def row_copy(op: ir.Operation) -> RowCopy | None:
    """The copy of rows that a linalg op is; None for other ops."""
    view = linalg_view(op)
    if view is None or len(view.inputs) != 1 or len(view.outputs) != 1:
        return None
    (indices,), (rows,) = view.inputs, view.outputs
    loops = tuple(range(view.rank))
    if not (indices.is_memref and rows.is_memref) or view.block is None:
        return None
    if rows.loops != loops or indices.loops != loops[: len(indices.loops)]:
        return None
    (yielded,) = view.block.operations[-1].operation.operands
    load = made_by(yielded, "memref.load")
    if load is None:
        return None
    table, *places = load.operands
    inner = view.rank - len(indices.loops)
    outer = table.type.rank - inner - 1  # of dimensions that are a batch of tables
    if inner == 0 or (outer and (outer, len(indices.loops)) != (1, 2)):
        return None
    number = without(places.pop(outer), "arith.index_cast")
    kept = [*loops[:outer], *loops[-inner:]]
    ops, arguments = backward_slice([number], view.block)
    if arguments != {indices.argument} or not _is_number(number, ops):
        return None
    if list(map(_loop, places)) != kept or not _fits(table, rows.value, inner):
        return None
    if not follows_shape(indices.value.type):
        return None
    return RowCopy(
        view.op,
        table,
        indices.value,
        rows.value,
        indices.argument,
        number,
        tuple(ops),
    )


def _loop(place: ir.Value) -> int | None:
    """The loop that an index in the body is the number of."""
    own = made_by(place, "linalg.index")
    return None if own is None else own.attributes["dim"].value


def _is_number(number: ir.Value, ops: Sequence[Any]) -> bool:
    """Whether pure ops compute an integer, the same in all of a row."""
    is_plain = not ops or isinstance(number.type, ir.IntegerType)
    return is_plain and all(map(is_pure, ops))


def _fits(table: ir.Value, rows: ir.Value, inner: int) -> bool:
    """Whether rows, or matrices, of so many dimensions are whole ones of the table, and
    these have no gaps between them.
    """
    kind, wanted = table.type, rows.type
    sizes = zip(kind.shape[-inner:], wanted.shape[-inner:], strict=True)
    dynamic = ir.ShapedType.get_dynamic_size()
    return (
        follows_shape(kind)
        and kind.memory_space is None
        and all(size == other != dynamic for size, other in sizes)
        and kind.element_type == wanted.element_type
    )
