"""Builders of mma.sync on fragments."""

from __future__ import annotations

from typing import Any

from alcop_mlir.bindings import ir, llvm, nvgpu, nvvm, vector
from alcop_mlir.element_types import ELEMENT_TYPES
from alcop_mlir.passes import build
from alcop_mlir.target import mma_shape
from alcop_mlir.transforms.tensor_cores.fragment_access import words


def multiply(a: ir.Value, b: ir.Value, accumulators: ir.Value) -> Any:
    """One mma.sync: a piece of a times half a piece of b, added to `accumulators`."""
    element = a.type.element_type
    if isinstance(element, ir.IntegerType):
        return _multiply_bytes(a, b, accumulators)
    shape = mma_shape(element.width // 8)
    is_tf32 = True if isinstance(element, ir.F32Type) else None
    return nvgpu.mma_sync(
        accumulators.type, a, b, accumulators, shape, tf32_enabled=is_tf32
    )


def halves(piece: ir.Value) -> tuple[Any, Any]:
    """The operands of two mma.sync, of neighbouring n, in a piece of b."""
    rows, columns = piece.type.shape
    lane_type = ir.VectorType.get([rows // 2, columns], piece.type.element_type)
    first, second = (
        vector.extract_strided_slice(
            lane_type, piece, [start, 0], [rows // 2, columns], [1, 1]
        )
        for start in (0, rows // 2)
    )
    return first, second


def _multiply_bytes(a: ir.Value, b: ir.Value, accumulators: ir.Value) -> Any:
    """Additions wrap around, as in arith.addi; those of nvgpu.mma.sync saturate."""
    i32 = build.integer(32)
    result = ir.Type.parse("!llvm.struct<(i32, i32, i32, i32)>")
    m, n, k = mma_shape(1)
    spelling = ELEMENT_TYPES[str(a.type.element_type)].ptx
    signed = ir.Attribute.parse(f"#nvvm.mma_type<{spelling}>")
    updated = nvvm.mma_sync(
        result,
        ir.Attribute.parse(f"#nvvm.shape<m = {m}, n = {n}, k = {k}>"),
        ir.Attribute.parse("#nvvm.mma_layout<row>"),
        ir.Attribute.parse("#nvvm.mma_layout<col>"),
        words(a),
        words(b),
        words(accumulators),
        int_overflow_behavior=ir.Attribute.parse("#nvvm.mma_int_overflow<wrapped>"),
        multiplicand_a_ptx_type=signed,
        multiplicand_b_ptx_type=signed,
    )
    parts = [llvm.extractvalue(i32, updated, [number]) for number in range(4)]
    return vector.from_elements(accumulators.type, parts)
