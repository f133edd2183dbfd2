"""Conversions of floats of eight bits, which upstream lowers for other GPUs only.

Before:  %w = arith.extf %x : vector<4x2xf8E4M3FN> to vector<4x2xf16>
         %y = arith.truncf %z : vector<2x2xf32> to vector<2x2xf8E4M3FN>
After:   %w0 = nvvm.convert.f8x2.to.f16x2 %x0 : vector<2xi8>  ->  vector<2xf16>, ...
         %y0 = nvvm.convert.f32x2.to.f8x2 %z1, %z0 {satfinite} : i16, ...

[PTX] cvt has both for two elements, from sm_89 on; for older targets they are made of
integers. What a type cannot hold becomes its largest number, infinities too, as `cvt`
does: `.satfinite` is all that [PTX] has. NaN becomes 0x7F. Values are rounded once, to
nearest, ties to even; those of f64 by way of an f32 rounded to odd.

Other arithmetic on such elements is done in f32, each op rounded, by upstream's passes.
What then is left only moves them, and does so as i8.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import frexp, log2, prod
from typing import Any

from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.bindings import arith, ir, nvvm, passmanager, vector
from alcop_mlir.element_types import EIGHT_BIT_FLOATS, ELEMENT_TYPES, ElementType
from alcop_mlir.passes import build, edit
from alcop_mlir.target import Target

_SINCE = 89  # compute capability; [PTX] cvt, .e4m3x2 and .e5m2x2
_WIDEN, _ROUND = "arith.extf", "arith.truncf"
_OF_INTEGERS = ("arith.sitofp", "arith.uitofp")
_TYPES = ",".join(EIGHT_BIT_FLOATS)
# Each op in f32 instead: a walk of all patterns, so done only where there is one.
_IN_F32 = (
    f"arith-emulate-unsupported-floats{{source-types={_TYPES} target-type=f32}}",
    "math-extend-to-supported-types{target-type=f32}",
)
_CONSTANT, _BITCAST = "arith.constant", "arith.bitcast"
_MOVING = (_BITCAST, "arith.select", _CONSTANT)
_TYPE_ATTRIBUTES = ("function_type", "type")  # of gpu.func, of memref.global
_F32_FRACTION, _F32_BIAS, _NAN = 23, 127, 0x7F
_F16_FRACTION, _F16_BIAS, _F16_INFINITY = 10, 15, 0x7C00


def lower_eight_bit_floats(kernels: ir.Operation, target: Target) -> None:
    """Replace all conversions from and to floats of eight bits in a `gpu.module`."""
    given = [op for op in walk(kernels) if _has_narrow(op)]
    if any(map(_computes, given)):
        _through_f32(given)
        passes = passmanager.PassManager.parse(f"gpu.module({','.join(_IN_F32)})")
        passes.run(kernels)
    has_cvt = target.compute_capability >= _SINCE
    for op in walk(kernels, _WIDEN, _ROUND):
        if not _has_narrow(op):
            continue
        with op.location, ir.InsertionPoint(op):
            convert = _widened if op.name == _WIDEN else _rounded
            result = _of_all(op.operands[0], op.results[0].type, convert, has_cvt)
            op.results[0].replace_all_uses_with(result)
        op.erase()
    if given:
        _hold_bytes(kernels)


def _hold_bytes(kernels: ir.Operation) -> None:
    """Let everything that is moved hold bytes: upstream's conversions make LLVM's types
    of those of operands, but some, as that of nvgpu.ldmatrix, not of what they make.
    """
    for op in walk(kernels):
        for block in (block for region in op.regions for block in region.blocks):
            for argument in block.arguments:
                argument.set_type(_of_bytes(argument.type))
        if op.name == _CONSTANT and _has_narrow(op):
            _read_as_bytes(op)
            continue
        for result in op.results:
            result.set_type(_of_bytes(result.type))
        for name in _TYPE_ATTRIBUTES:
            if name in op.attributes:
                kind = _of_bytes(op.attributes[name].value)
                op.attributes[name] = ir.TypeAttr.get(kind)
        if op.name == _BITCAST and op.operands[0].type == op.results[0].type:
            op.results[0].replace_all_uses_with(op.operands[0])
            op.erase()


def _read_as_bytes(constant: ir.Operation) -> None:
    """A bitcast of the constant, for all that use it; canonicalize folds it."""
    result = constant.results[0]
    with constant.location, ir.InsertionPoint.after(constant):
        cast = ir.Operation.create(_BITCAST, [_of_bytes(result.type)], [result])
    result.replace_all_uses_except(cast.results[0], cast)


def _of_bytes(kind: ir.Type) -> Any:
    """The type, with i8 for floats of eight bits."""
    i8 = build.integer(8)
    if isinstance(kind, ir.FunctionType):
        inputs, results = (
            [*map(_of_bytes, some)] for some in (kind.inputs, kind.results)
        )
        return ir.FunctionType.get(inputs, results)
    if isinstance(kind, ir.MemRefType) and str(kind.element_type) in EIGHT_BIT_FLOATS:
        return build.memref_like(kind, element=i8, layout=kind.layout)
    if _row(kind) is None:
        return kind
    return _like(kind, i8)


def _has_narrow(op: ir.Operation) -> bool:
    return any(_row(one.type) is not None for one in (*op.operands, *op.results))


def _row(kind: ir.Type) -> ElementType | None:
    """The row of a float of eight bits, or of those that a vector holds."""
    if not isinstance(kind, ir.VectorType | ir.FloatType):
        return None  # no text of it: that of wgmma's accumulators is long
    name = str(getattr(kind, "element_type", kind))
    return ELEMENT_TYPES[name] if name in EIGHT_BIT_FLOATS else None


def _computes(op: ir.Operation) -> bool:
    """Whether it is arithmetic, not a conversion between floats."""
    is_known = op.name.split(".")[0] in ("arith", "math")
    return is_known and op.name not in (_WIDEN, _ROUND, *_MOVING)


def _through_f32(ops: Iterable[ir.Operation]) -> None:
    """Integers to f32, which upstream does not change, and then to eight bits.

    Rounded once: what f32 does not hold is beyond the largest.
    """
    for op in ops:
        if op.name not in _OF_INTEGERS:
            continue
        with op.location, ir.InsertionPoint(op):
            kind = op.results[0].type
            wide = edit.like(op, [_like(kind, ir.F32Type.get())], list(op.operands))
            op.results[0].replace_all_uses_with(arith.truncf(kind, wide.results[0]))
        op.erase()


def _like(kind: ir.Type, element: ir.Type) -> Any:
    """`element`, or a vector of it of the shape of `kind`."""
    is_vector = isinstance(kind, ir.VectorType)
    return ir.VectorType.get(kind.shape, element) if is_vector else element


_Convert = Callable[[Any, Any, ElementType, bool], Any]


def _of_all(value: Any, kind: ir.Type, convert: Callable[..., Any], cvt: bool) -> Any:
    """The conversion of a scalar or a vector, two elements at a time."""
    row = _row(kind) or _row(value.type)
    assert row is not None
    if not isinstance(kind, ir.VectorType):
        both = vector.from_elements(ir.VectorType.get([2], value.type), [value, value])
        return vector.extract(convert(both, kind, row, cvt), [], [0])
    count = prod(kind.shape)
    flat = vector.shape_cast(ir.VectorType.get([count], value.type.element_type), value)
    made: list[Any] = []
    for first in range(0, count, 2):
        numbers = [first, min(first + 1, count - 1)]
        pair = vector.from_elements(
            ir.VectorType.get([2], value.type.element_type),
            [vector.extract(flat, [], [number]) for number in numbers],
        )
        converted = convert(pair, kind.element_type, row, cvt)
        made += [vector.extract(converted, [], [number]) for number in range(2)]
    result = ir.VectorType.get([count], kind.element_type)
    return vector.shape_cast(kind, vector.from_elements(result, made[:count]))


def _widened(pair: Any, element: ir.Type, row: ElementType, has_cvt: bool) -> Any:
    """Two elements as f16, which holds them, and then as `element`."""
    halves = ir.VectorType.get([2], ir.F16Type.get())
    bytes_ = vector.bitcast(ir.VectorType.get([2], build.integer(8)), pair)
    if has_cvt:
        kind = ir.TypeAttr.get(pair.type.element_type)
        found = nvvm.convert_f8x2_to_f16x2(halves, bytes_, kind)
    else:
        found = _half_by_bits(bytes_, row)
    wide = ir.VectorType.get([2], ir.F32Type.get())
    if isinstance(element, ir.F16Type):
        return found
    found = arith.extf(wide, found)
    kind = ir.VectorType.get([2], element)
    if element.width == wide.element_type.width:
        return found
    return (arith.extf if element.width > 32 else arith.truncf)(kind, found)


def _half_by_bits(bytes_: Any, row: ElementType) -> Any:
    """Two bytes as f16: each moved to the upper byte of its half of a word.

    With fewer fraction bits than f16's 10 they then stand in the right place, and the
    exponent is too small by the difference of the biases: multiplied, denormals too.
    The largest exponent of f8E4M3FN is one of numbers, but for NaN.
    """
    i16, i32 = build.integer(16), build.integer(32)
    halves = ir.VectorType.get([2], ir.F16Type.get())
    one = ir.VectorType.get([1], i16)
    word = arith.extui(i32, vector.extract(vector.bitcast(one, bytes_), [], [0]))
    apart = _both_and(arith.ori(word, arith.shli(word, build.i32(8))), 0x00FF)
    fraction, bias = _format(row)
    if bias == _F16_BIAS:
        return _as_pair(arith.shli(apart, build.i32(8)), halves)
    sign = arith.shli(_both_and(apart, 0x80), build.i32(8))
    size = _both_and(apart, 0x7F)
    moved = _as_pair(arith.shli(size, build.i32(_F16_FRACTION - fraction)), halves)
    scale = ir.FloatAttr.get(ir.F16Type.get(), 2.0 ** (_F16_BIAS - bias))
    value = arith.mulf(moved, build.splat(halves, scale))
    column = ir.VectorType.get([1], i32)
    bits = vector.extract(vector.bitcast(column, value), [], [0])
    # Of NaN alone adding 1 reaches the sign's bit: from there to all of the exponent's.
    nan = _both_and(arith.addi(size, build.i32(0x00010001)), 0x80)
    nan = arith.subi(arith.shli(nan, build.i32(8)), arith.shli(nan, build.i32(3)))
    return _as_pair(arith.ori(arith.ori(bits, sign), nan), halves)


def _both_and(word: Any, mask: int) -> Any:
    """Both halves of a word, masked."""
    return arith.andi(word, build.i32(mask << 16 | mask))


def _as_pair(word: Any, kind: ir.Type) -> Any:
    one = ir.VectorType.get([1], build.integer(32))
    return vector.bitcast(kind, vector.from_elements(one, [word]))


def _format(row: ElementType) -> tuple[int, int]:
    """Fraction bits and exponent bias, of the roundings that the row says."""
    fraction = -round(log2(row.rounding)) - 1
    least = frexp(row.tiny)[1]  # half of the least number is 2 ** (least - 1)
    return fraction, 1 - fraction - least


def _rounded(pair: Any, element: ir.Type, row: ElementType, has_cvt: bool) -> Any:
    """Two floats as bytes."""
    kind, i8 = ir.VectorType.get([2], element), build.integer(8)
    low, high = (_in_f32(vector.extract(pair, [], [number])) for number in range(2))
    if has_cvt:
        packed = nvvm.convert_f32x2_to_f8x2(
            build.integer(16),
            high,  # the upper byte
            low,
            ir.TypeAttr.get(element),
            rnd=ir.Attribute.parse("#nvvm.fp_rnd_mode<rn>"),
            sat=ir.Attribute.parse("#nvvm.sat_mode<satfinite>"),
        )
        one = ir.VectorType.get([1], build.integer(16))
        return vector.bitcast(kind, vector.from_elements(one, [packed]))
    bytes_ = [arith.trunci(i8, _byte_by_bits(value, row)) for value in (low, high)]
    return vector.bitcast(
        kind, vector.from_elements(ir.VectorType.get([2], i8), bytes_)
    )


def _byte_by_bits(value: Any, row: ElementType) -> Any:
    """An f32 as the bits of a byte, in i32.

    Of normal numbers the upper bits, rounded; of smaller ones the last bits of a sum
    with a number whose last bit is the least number of the type.
    """
    f32, i32 = ir.F32Type.get(), build.integer(32)
    fraction, bias = _format(row)
    bits = arith.bitcast(i32, value)
    sign = arith.andi(arith.shrui(bits, build.i32(24)), build.i32(0x80))
    magnitude = arith.bitcast(f32, arith.andi(bits, build.i32(0x7FFFFFFF)))
    is_nan = arith.cmpf(arith.CmpFPredicate.UNO, value, value)
    size = arith.minnumf(magnitude, _f32(row.largest))
    last = _F32_FRACTION - fraction  # the number of the last bit that is kept
    raw = arith.bitcast(i32, size)
    odd = arith.andi(arith.shrui(raw, build.i32(last)), build.i32(1))
    raised = arith.addi(arith.addi(raw, build.i32((1 << last - 1) - 1)), odd)
    normal = arith.subi(
        arith.shrui(raised, build.i32(last)),
        build.i32((_F32_BIAS - bias) << fraction),
    )
    magic = 2 * row.tiny * 2.0**_F32_FRACTION
    total = arith.bitcast(i32, arith.addf(size, _f32(magic)))
    small = arith.subi(total, arith.bitcast(i32, _f32(magic)))
    is_small = arith.cmpf(arith.CmpFPredicate.OLT, size, _f32(2.0 ** (1 - bias)))
    found = arith.ori(arith.select(is_small, small, normal), sign)
    return arith.select(is_nan, build.i32(_NAN), found)


def _f32(value: float) -> Any:
    kind = ir.F32Type.get()
    return arith.constant(kind, ir.FloatAttr.get(kind, value))


def _in_f32(value: Any) -> Any:
    """The value in f32, from which rounding to eight bits is rounding once."""
    f32 = ir.F32Type.get()
    if value.type.width < f32.width:
        return arith.extf(f32, value)
    return value if value.type == f32 else _odd_f32(value)


def _odd_f32(value: Any) -> Any:
    """An f64 as f32: exact, or one of its neighbours, that with an odd last bit."""
    f32, f64, i32 = ir.F32Type.get(), ir.F64Type.get(), build.integer(32)
    near = arith.truncf(f32, value)
    back = arith.extf(f64, near)
    bits = arith.bitcast(i32, near)
    is_exact = arith.cmpf(arith.CmpFPredicate.UEQ, back, value)
    is_odd = arith.trunci(build.integer(1), bits)
    is_beyond = _greater_size(back, value)
    step = arith.select(is_beyond, build.i32(-1), build.i32(1))
    moved = arith.bitcast(f32, arith.addi(bits, step))
    return arith.select(arith.ori(is_exact, is_odd), near, moved)


def _greater_size(one: Any, other: Any) -> Any:
    """Whether one of two numbers of one sign is further from zero."""
    zero = arith.constant(one.type, ir.FloatAttr.get(one.type, 0.0))
    is_greater = arith.cmpf(arith.CmpFPredicate.OGT, one, other)
    is_below = arith.cmpf(arith.CmpFPredicate.OLT, other, zero)
    return arith.xori(is_greater, is_below)
