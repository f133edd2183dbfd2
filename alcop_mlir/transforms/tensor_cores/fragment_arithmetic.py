"""Builders of arithmetic on fragments: mma.sync, and conversions with a faster way."""

from __future__ import annotations

from typing import Any

from alcop_mlir.analysis.layout.fragment_layout import FragmentLayout
from alcop_mlir.bindings import arith, ir, llvm, nvgpu, nvvm, vector
from alcop_mlir.element_types import EIGHT_BIT_FLOATS, ELEMENT_TYPES
from alcop_mlir.passes import build
from alcop_mlir.target import mma_shape
from alcop_mlir.transforms.tensor_cores.fragment_access import (
    Pieces,
    elements,
    words,
)

# The last bit of a f16 from 1024 on means 1: 0x6400 + n are the bits of 1024 + n.
_HALF_OF_WHOLE = 0x6400
_SIGN = 0x80
# The bits of a float whose last bit means 1, and its value.
_WHOLE = {"f16": (_HALF_OF_WHOLE, 1024.0), "bf16": (0x4300, 128.0)}
_NIBBLE, _NIBBLE_SIGN = 0xF, 0x8
_BOTH = 0x00010001  # both halves of a word
_APART = 12  # bits by which a shift brings the upper nibble to the upper half


def multiply(a: ir.Value, b: ir.Value, accumulators: ir.Value) -> Any:
    """One mma.sync: a piece of a times half a piece of b, added to `accumulators`."""
    element = a.type.element_type
    if isinstance(element, ir.IntegerType):
        return _multiply_bytes(a, b, accumulators)
    if str(element) in EIGHT_BIT_FLOATS:
        return _multiply_eight_bits(a, b, accumulators)
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


def operand_of(held: Pieces, layout: FragmentLayout) -> Pieces:
    """Accumulators of 16 bits as the operand `layout`, see `is_held_as`.

    Two neighbouring pieces make one of the operand: of a its rows come first, of b,
    where they are columns, the halves of k of the first eight.
    """
    along, across = ("m", "n")
    order = [0, 1, 2, 3] if layout.role == "a" else [0, 2, 1, 3]
    kept = "m" if layout.role == "a" else "n"
    counts = {kept: held.counts[along], "k": held.counts[across] // 2}
    found = {
        (row, k): vector.shuffle(
            held.at(**{along: row, across: 2 * k}),
            held.at(**{along: row, across: 2 * k + 1}),
            order,
        )
        for row in range(counts[kept])
        for k in range(counts["k"])
    }
    first, second = layout.dims
    values = [
        found[(i, j) if first == kept else (j, i)]
        for i in range(counts[first])
        for j in range(counts[second])
    ]
    return Pieces(layout, counts, tuple(values))


def _multiply_bytes(a: ir.Value, b: ir.Value, accumulators: ir.Value) -> Any:
    """Additions wrap around, as in arith.addi; those of nvgpu.mma.sync saturate."""
    wrapped = ir.Attribute.parse("#nvvm.mma_int_overflow<wrapped>")
    return _multiply_words(a, b, accumulators, wrapped)


def _multiply_eight_bits(a: ir.Value, b: ir.Value, accumulators: ir.Value) -> Any:
    """Of two types, perhaps; nvgpu.mma.sync takes none of them."""
    return _multiply_words(a, b, accumulators)


def _multiply_words(
    a: ir.Value, b: ir.Value, accumulators: ir.Value, overflow: Any = None
) -> Any:
    """The mma.sync of operands with elements of one byte, by its registers."""
    element = accumulators.type.element_type
    m, n, k = mma_shape(1)
    kind_of_a, kind_of_b = (
        ir.Attribute.parse(
            f"#nvvm.mma_type<{ELEMENT_TYPES[str(one.type.element_type)].ptx}>"
        )
        for one in (a, b)
    )
    updated = nvvm.mma_sync(
        ir.Type.parse(f"!llvm.struct<({', '.join([str(element)] * 4)})>"),
        ir.Attribute.parse(f"#nvvm.shape<m = {m}, n = {n}, k = {k}>"),
        ir.Attribute.parse("#nvvm.mma_layout<row>"),
        ir.Attribute.parse("#nvvm.mma_layout<col>"),
        words(a),
        words(b),
        elements(accumulators),
        int_overflow_behavior=overflow,
        multiplicand_a_ptx_type=kind_of_a,
        multiplicand_b_ptx_type=kind_of_b,
    )
    parts = [llvm.extractvalue(element, updated, [number]) for number in range(4)]
    return vector.from_elements(accumulators.type, parts)


def convert(op: ir.Operation, piece: ir.Value) -> Any | None:
    """The result of the conversion `op` on a fragment; None if not one of these."""
    if str(_element(op.operands[0])) == "i4":
        return _of_nibbles(op, piece)
    if op.name == "arith.truncf" and _is(op.results[0], ir.FloatTF32Type):
        return _to_tf32(piece)
    is_byte = op.name == "arith.sitofp" and piece.type.element_type.width == 8
    if is_byte and _is(op.results[0], ir.F16Type) and piece.type.shape[-1] % 2 == 0:
        return _byte_to_half(piece)
    return None


def _is(value: ir.Value, element: type) -> bool:
    return isinstance(value.type.element_type, element)


def _element(value: ir.Value) -> Any:
    return getattr(value.type, "element_type", None)


def _of_nibbles(op: ir.Operation, piece: ir.Value) -> Any:
    """Both nibbles of each byte of a fragment, as elements of the result's type.

    By bits and a subtraction of two elements, see `_byte_to_half`: as n has one of the
    last four bits, the upper byte of a word holds those of 1024 + n, or of 128 + n as
    bf16. Of signed ones the highest bit is flipped, which makes it n + 8.
    """
    element, signed = (
        _element(op.results[0]),
        op.name in ("arith.sitofp", "arith.extsi"),
    )
    i32, flipped = build.integer(32), _NIBBLE_SIGN if signed else 0
    magic, value = _WHOLE.get(str(element), (0, 0.0))
    magic = build.i32((magic | flipped) * _BOTH)
    found = []
    for number in range(piece.type.shape[0]):
        byte = arith.extui(i32, vector.extract(piece, [], [number, 0]))
        apart = arith.ori(byte, arith.shli(byte, build.i32(_APART)))
        bits = arith.andi(apart, build.i32(_NIBBLE * _BOTH))
        found.append(arith.xori(bits, magic))
    words = vector.from_elements(ir.VectorType.get([len(found), 1], i32), found)
    shape = [len(found), 2]
    if not value:
        return _whole_nibbles(op, words, shape, flipped)
    kind = ir.VectorType.get(shape, element)
    offset = ir.FloatAttr.get(element, value + flipped)
    return arith.subf(vector.bitcast(kind, words), build.splat(kind, offset))


def _whole_nibbles(
    op: ir.Operation, words: ir.Value, shape: list[int], flipped: int
) -> Any:
    """Other types by way of i16, which halves of the words are."""
    i16, element = build.integer(16), _element(op.results[0])
    kind, result = ir.VectorType.get(shape, i16), ir.VectorType.get(shape, element)
    whole = vector.bitcast(kind, words)
    whole = arith.subi(whole, build.splat(kind, ir.IntegerAttr.get(i16, flipped)))
    if isinstance(element, ir.FloatType):
        return arith.sitofp(result, whole)
    if element.width == i16.width:
        return whole
    return (arith.trunci if element.width < i16.width else arith.extsi)(result, whole)


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
