"""Builders of arithmetic on fragments: mma.sync, and conversions with a faster way."""

from __future__ import annotations

from typing import Any

from alcop_mlir.bindings import arith, ir, llvm, nvgpu, nvvm, vector
from alcop_mlir.element_types import ELEMENT_TYPES
from alcop_mlir.passes import build
from alcop_mlir.target import mma_shape
from alcop_mlir.transforms.tensor_cores.fragment_access import words

# The last bit of a f16 from 1024 on means 1: 0x6400 + n are the bits of 1024 + n.
_HALF_OF_WHOLE = 0x6400
_SIGN = 0x80


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
    parts = [
        llvm.extractvalue(build.integer(32), updated, [number]) for number in range(4)
    ]
    return vector.from_elements(accumulators.type, parts)


def convert(op: ir.Operation, piece: ir.Value) -> Any | None:
    """The result of the conversion `op` on a fragment; None if not one of these."""
    if op.name == "arith.truncf" and _is(op.results[0], ir.FloatTF32Type):
        return _to_tf32(piece)
    is_byte = op.name == "arith.sitofp" and piece.type.element_type.width == 8
    if is_byte and _is(op.results[0], ir.F16Type) and piece.type.shape[-1] % 2 == 0:
        return _byte_to_half(piece)
    return None


def _is(value: ir.Value, element: type) -> bool:
    return isinstance(value.type.element_type, element)


def _to_tf32(piece: ir.Value) -> Any:
    """Each element rounded to nearest, ties away from zero: the only way on sm_80.

    [PTX] cvt.rna.tf32.f32. mma.sync would read f32 and ignore its last bits.
    """
    f32, rounding = ir.F32Type.get(), ir.Attribute.parse("#nvvm.fp_rnd_mode<rna>")
    rounded = []
    for word in range(piece.type.shape[0]):
        element = vector.extract(piece, [], [word, 0])
        bits = nvvm.convert_float_to_tf32(element, rnd=rounding)
        rounded.append(arith.bitcast(f32, bits))
    return vector.from_elements(piece.type, rounded)


def _byte_to_half(piece: ir.Value) -> Any:
    """By bits, and one subtraction of two elements; cvt takes four cycles for one.

    Flipping the sign of a byte n makes it n + 128; with 0x64 before it, it has the bits
    of 1024 + n + 128.
    """
    i16, half = build.integer(16), ir.F16Type.get()
    words = ir.VectorType.get(piece.type.shape, i16)
    halves = ir.VectorType.get(piece.type.shape, half)
    magic = ir.IntegerAttr.get(i16, _HALF_OF_WHOLE | _SIGN)
    bits = arith.xori(arith.extui(words, piece), build.splat(words, magic))
    offset = ir.FloatAttr.get(half, 1024.0 + _SIGN)
    return arith.subf(vector.bitcast(halves, bits), build.splat(halves, offset))
