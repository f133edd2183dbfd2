"""Give accesses of `alcop.rows` the indices of the memref that it is a view of.

Before:  %C = alcop.rows %y : (memref<2x7x7x48xf32, strided<[9408, 1344, 96, 1]>>)
             -> memref<98x48xf32>
         vector.store %v, %C[%row, %column]
After:   %n = %row / 49 ; %h = %row / 7 % 7 ; %w = %row % 7
         vector.store %v, %y[%n, %h, %w, %column]

So written where rows of C have no one distance, as in what a phase of a transposed
convolution writes. A thread divides, by constants, once per row that it accesses after
its loops.

Runs after alcop-lower-mma, which makes accesses of transfers, and before
fold-memref-alias-ops. Reads and writes no attributes.
"""

from __future__ import annotations

from dataclasses import dataclass

from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.bindings import ir
from alcop_mlir.errors import PassError
from alcop_mlir.passes import build
from alcop_mlir.passes.base import Pass

# The number of the operand that is accessed; indices follow.
_ACCESSES = {
    "memref.load": 0,
    "vector.load": 0,
    "memref.store": 1,
    "vector.store": 1,
}


@dataclass(frozen=True)
class LowerRows(Pass):
    name = "alcop-lower-rows"
    anchor = "func.func"

    def run(self, op: ir.Operation) -> None:
        for rows in walk(op, "alcop.rows"):
            for use in list(rows.results[0].uses):
                access = use.owner.operation
                if access.name not in _ACCESSES:
                    raise PassError(
                        access,
                        f"accesses 'alcop.rows' by '{access.name}', expected "
                        f"{', '.join(_ACCESSES)}",
                    )
                _lower(access, rows.operands[0])
            rows.erase()


def _lower(access: ir.Operation, source: ir.Value) -> None:
    """Replace an access of rows by one of `source`."""
    number = _ACCESSES[access.name]
    *before, _, row, column = access.operands
    assert len(before) == number, access
    with access.location, ir.InsertionPoint(access):
        where = build.coordinates(row, source.type.shape[:-1])
        kinds = [one.type for one in access.results]
        new = build.like(access, kinds, [*before, source, *where, column])
    for old, result in zip(access.results, new.results, strict=True):
        old.replace_all_uses_with(result)
    access.erase()
