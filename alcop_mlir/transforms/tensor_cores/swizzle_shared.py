"""Swizzle the columns of shared buffers, so that warps have no bank conflicts.

Before:  %v = nvgpu.ldmatrix %buffer[%slot, %row, %column]   (rows of 64 bytes)
After:   %phase = (%row / 2) & 3
         %swizzled = %column ^ (%phase * 8)
         %v = nvgpu.ldmatrix %buffer[%slot, %row, %swizzled]

All accesses of a buffer are swizzled alike, so that the program computes the same.
Chunks of 16 bytes move within their row only; chunks of 32 where single words are read
instead of matrices. A buffer with a use other than ldmatrix, asynchronous copies, and
loads and stores inside a chunk is left unchanged, with a remark; a buffer whose rows do
not conflict is left unchanged without one. Views of a whole buffer by another element
type are swizzled alike.

What threads read of tiles that TMA has swizzled (`alcop.boxes`), as those that A of a
wgmma is computed of, is swizzled by the engine's pattern: here only their accesses
change, and one that cannot is an error.

Runs after upstream's fold-memref-alias-ops, as accesses through views hide their rows,
and before alcop-unroll-steady-state and LLVM, which fold the constant part of the
arithmetic. Reads `alcop.boxes`; writes and erases no attributes.
"""

from __future__ import annotations

from typing import Any

from alcop_mlir.analysis.layout.swizzle import (
    Swizzle,
    SwizzledAccess,
    SwizzlePlan,
    buffers,
    is_of_boxes,
    plan,
)
from alcop_mlir.bindings import arith, ir
from alcop_mlir.diagnostics import remark
from alcop_mlir.errors import PassError
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import build
from alcop_mlir.passes.base import Pass


@frozen
class SwizzleShared(Pass):
    name = "alcop-swizzle-shared"

    def run(self, op: ir.Operation) -> None:
        answers = [(buffer, plan(buffer)) for buffer in buffers(op)]
        for buffer, answer in answers:
            if isinstance(answer, SwizzlePlan):
                for access in answer.accesses:
                    _swizzle(access, access.swizzle)
            elif answer is not None and is_of_boxes(buffer):
                why = f"accesses a tile that TMA has swizzled: {answer.reason}"
                raise PassError(answer.op, why)
            elif answer is not None:
                remark(answer.op, f"shared buffer is not swizzled: {answer.reason}")


def _swizzle(access: SwizzledAccess, swizzle: Swizzle) -> None:
    op = access.op
    row, column = op.operands[access.row], op.operands[access.column]
    with op.location, ir.InsertionPoint(op):
        op.operands[access.column] = _swizzled_column(row, column, swizzle)


def _swizzled_column(row: ir.Value, column: ir.Value, swizzle: Swizzle) -> Any:
    """All numbers are powers of two: shifts and masks, which LLVM can simplify."""
    if swizzle.rows > 1:
        row = arith.shrui(row, build.index(swizzle.rows.bit_length() - 1))
    if swizzle.folds:
        half = build.index(swizzle.phases // 2)
        above = arith.andi(arith.shrui(row, build.index(1)), half)
        row = arith.xori(row, above)
    phase = arith.andi(row, build.index(swizzle.phases - 1))
    chunk = arith.shli(phase, build.index(swizzle.elements.bit_length() - 1))
    return arith.xori(column, chunk)
