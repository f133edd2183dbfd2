"""Permute the columns of shared buffers so that warps meet no bank conflicts.

Before:  %v = nvgpu.ldmatrix %buffer[%slot, %row, %column]   (rows of 64 bytes)
After:   %phase = (%row / 2) & 3
         %place = %column ^ (%phase * 8)
         %v = nvgpu.ldmatrix %buffer[%slot, %row, %place]

The same for every access of the buffer, so nothing else changes. Chunks of 16 bytes
move within their row only; of 32, where single words are read instead of matrices. A
buffer with a use other than ldmatrix, asynchronous copies, loads and stores inside a
chunk is left alone, with a remark; so is, without one, a buffer whose rows do not
collide. Views of a whole buffer as other elements are permuted alike.

Reads, writes and erases no attribute. Stands after upstream's fold-memref-alias-ops, as
accesses through views hide their rows, and before alcop-unroll-steady-state and
LLVM, which fold the constant part of the arithmetic.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from alcop_mlir.analysis.layout.swizzle import (
    Swizzle,
    SwizzledAccess,
    SwizzlePlan,
    buffers,
    plan,
)
from alcop_mlir.bindings import arith, ir
from alcop_mlir.diagnostics import remark
from alcop_mlir.passes import build
from alcop_mlir.passes.base import Pass


@dataclass(frozen=True)
class SwizzleShared(Pass):
    name = "alcop-swizzle-shared"

    def run(self, op: Any) -> None:
        for answer in [plan(buffer) for buffer in buffers(op)]:
            if isinstance(answer, SwizzlePlan):
                for access in answer.accesses:
                    _permute(access, access.swizzle)
            elif answer is not None:
                remark(answer.op, f"shared buffer not swizzled: {answer.reason}")


def _permute(access: SwizzledAccess, swizzle: Swizzle) -> None:
    op = access.op
    row, column = op.operands[access.row], op.operands[access.column]
    with op.location, ir.InsertionPoint(op):
        op.operands[access.column] = _place(row, column, swizzle)


def _place(row: Any, column: Any, swizzle: Swizzle) -> Any:
    """Powers of two throughout, by shift and mask: LLVM sees through these."""
    if swizzle.rows > 1:
        row = arith.shrui(row, build.index(swizzle.rows.bit_length() - 1))
    if swizzle.folds:
        half = build.index(swizzle.phases // 2)
        above = arith.andi(arith.shrui(row, build.index(1)), half)
        row = arith.xori(row, above)
    phase = arith.andi(row, build.index(swizzle.phases - 1))
    chunk = arith.shli(phase, build.index(swizzle.elements.bit_length() - 1))
    return arith.xori(column, chunk)
