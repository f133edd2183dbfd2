"""Give each result of a function a buffer of its own.

Before:  func.return %x, %x : memref<4x8xf32>, memref<4x8xf32>
After:   %y = memref.alloc() : memref<4x8xf32>
         memref.copy %x, %y
         func.return %x, %y : memref<4x8xf32>, memref<4x8xf32>

The results of a compiled function become output arguments, one for each, so that a
buffer that is returned twice has to be copied. Upstream's buffer-results-to-out-params
crashes on one that the function allocates.

Runs after bufferization and before buffer-results-to-out-params. Reads and writes no
attributes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from alcop_mlir.bindings import ir
from alcop_mlir.passes import build
from alcop_mlir.passes.base import Pass


@dataclass(frozen=True)
class SeparateResults(Pass):
    name = "alcop-separate-results"
    anchor = "func.func"

    def run(self, op: ir.Operation) -> None:
        for block in op.regions[0].blocks:
            last = list(block.operations)[-1].operation
            if last.name == "func.return":
                _separate(last)


def _separate(returned: ir.Operation) -> None:
    seen: list[Any] = []
    for number, value in enumerate(list(returned.operands)):
        if value in seen and isinstance(value.type, ir.MemRefType):
            with ir.InsertionPoint(returned), returned.location:
                returned.operands[number] = build.copied(value)
        seen.append(value)
