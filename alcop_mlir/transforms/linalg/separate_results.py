"""Give each result of a function an array of its own.

Before:  func.return %x, %x : memref<4x8xf32>, memref<4x8xf32>
After:   %y = memref.alloc() : memref<4x8xf32>
         memref.copy %x, %y
         func.return %x, %y : memref<4x8xf32>, memref<4x8xf32>

The results of a compiled function are arrays that the caller gives, one for each, so an
array that is returned twice has to be copied. Upstream's buffer-results-to-out-params
crashes on one that the function allocates.

Stands behind bufferization and before that pass. Reads and writes no attributes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from alcop_mlir.bindings import ir, memref
from alcop_mlir.passes import build
from alcop_mlir.passes.base import Pass


@dataclass(frozen=True)
class SeparateResults(Pass):
    name = "alcop-separate-results"
    anchor = "func.func"

    def run(self, op: Any) -> None:
        for block in op.regions[0].blocks:
            last = list(block.operations)[-1].operation
            if last.name == "func.return":
                _separate(last)


def _separate(returned: Any) -> None:
    seen: list[Any] = []
    for number, value in enumerate(list(returned.operands)):
        if value in seen and isinstance(value.type, ir.MemRefType):
            with ir.InsertionPoint(returned), returned.location:
                returned.operands[number] = _copied(value)
        seen.append(value)


def _copied(array: Any) -> Any:
    kind = array.type
    sizes = [
        memref.dim(array, build.index(number))
        for number in range(kind.rank)
        if kind.is_dynamic_dim(number)
    ]
    copy = memref.alloc(kind, sizes, [])
    memref.copy(array, copy)
    return copy
