"""Give accesses of `alcop.rows` the indices of the memref that it is a view of.

Before:  %C = alcop.rows %y : (memref<2x7x7x48xf32, strided<[9408, 1344, 96, 1]>>)
             -> memref<98x48xf32>
         vector.store %v, %C[%row, %column]
After:   %n = %row / 49 ; %h = %row / 7 % 7 ; %w = %row % 7
         vector.store %v, %y[%n, %h, %w, %column]

So written where rows of C have no one distance, as in what a phase of a transposed
convolution writes. A thread divides, by constants where sizes are known, once per row
that it accesses after its loops. A size of the matrix becomes one of what it views.

Where the rows of a matrix are in the order of rectangles, the number of the row is
computed as `rectangles.py` says; where some have no place, under a condition:

Before:  %C = alcop.rows %y {alcop.rectangles = {places = [7, 7], sides = [2, 8]}}
         vector.store %v, %C[%number, %column]
After:   %p = ... ; %q = ... ; %row = (%n * 7 + %p) * 7 + %q
         scf.if %p < 7 and %q < 7 { vector.store %v, %y[%row, %column] }

A load gives zero else.

Runs after alcop-lower-mma, which makes accesses of transfers, and before
fold-memref-alias-ops. Reads and erases `alcop.rectangles`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from alcop_mlir.analysis.ir.loops import constant
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.bindings import ir
from alcop_mlir.dialects import alcop
from alcop_mlir.errors import PassError
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import build, edit, sizes
from alcop_mlir.passes.base import Pass
from alcop_mlir.rectangles import Rectangles

# The number of the operand that is accessed; indices follow.
_ACCESSES = {
    "memref.load": 0,
    "vector.load": 0,
    "memref.store": 1,
    "vector.store": 1,
}


@frozen
class LowerRows(Pass):
    name = "alcop-lower-rows"
    anchor = "func.func"

    def run(self, op: ir.Operation) -> None:
        # Those in kernels, which come last, may be views of others.
        for rows in reversed([*walk(op, "alcop.rows")]):
            for use in list(rows.results[0].uses):
                access = use.owner.operation
                if access.name == "memref.dim":
                    _lower_size(access, rows.operands[0])
                    continue
                if access.name not in _ACCESSES:
                    raise PassError(
                        access,
                        f"accesses 'alcop.rows' by '{access.name}', expected "
                        f"{', '.join(_ACCESSES)}",
                    )
                _lower(access, rows.operands[0], alcop.rectangles(rows))
            rows.erase()


def _lower_size(op: ir.Operation, source: ir.Value) -> None:
    """Replace a size of the matrix: how many rows there are, or how long they are."""
    number = constant(op.operands[1])
    with op.location, ir.InsertionPoint(op):
        *outer, last = sizes.sizes_of(source)
        size = build.value(sizes.product(outer) if number == 0 else last)
    op.results[0].replace_all_uses_with(size)
    op.erase()


def _lower(access: ir.Operation, source: ir.Value, order: Rectangles | None) -> None:
    """Replace an access of rows by one of `source`; they may be in another order."""
    number = _ACCESSES[access.name]
    *before, _, row, column = access.operands
    assert len(before) == number, access
    with access.location, ir.InsertionPoint(access):
        row, exists = (row, None) if order is None else _place(row, order)
        where = build.coordinates(row, sizes.sizes_of(source)[:-1])
        kinds = [one.type for one in access.results]

        def there() -> list[Any]:
            operands = [*before, source, *where, column]
            return list(edit.like(access, kinds, operands).results)

        new = there() if exists is None else _if(exists, there, kinds)
    for old, result in zip(access.results, new, strict=True):
        old.replace_all_uses_with(result)
    access.erase()


def _place(number: ir.Value, order: Rectangles) -> tuple[Any, Any | None]:
    """The row of a position, and whether there is one; None where there always is."""
    row, bounds = order.row(number, build)
    exists = None
    for position, size in bounds:
        exists = build.both(exists, build.less(position, size))
    return row, exists


def _if(
    exists: ir.Value, there: Callable[[], list[Any]], kinds: list[ir.Type]
) -> list[Any]:
    """What `there` gives where a row exists, else zeros."""
    none = (lambda: [build.zero(kind) for kind in kinds]) if kinds else None
    return build.branch(exists, there, none, kinds)
