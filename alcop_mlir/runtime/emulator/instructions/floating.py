"""f32, f64, f16(x2) and bf16(x2) arithmetic, and the approximate functions.

PTX ISA "Floating Point Instructions", "Half Precision Floating Point Instructions".
A *format* decodes register bits to float32 (or float64) and encodes results back; the
16-bit formats work on one value or on the two halves of a packed register.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from alcop_mlir.runtime.emulator.arithmetic import floats as num
from alcop_mlir.runtime.emulator.arithmetic.storage import F32, F64, U16, U32
from alcop_mlir.runtime.emulator.instructions.translator import (
    Handler,
    Op,
    Translator,
    rounding,
)
from alcop_mlir.runtime.emulator.ptx.syntax import Instruction, unsupported

Array = np.ndarray
Function = Callable[..., Array]


def on_halves(fn: Function) -> Function:
    """Lifts a function on uint16 arrays to packed uint32 arrays."""

    def apply(*values: Array) -> Array:
        split = [np.ascontiguousarray(v)[..., None].view(U16) for v in values]
        return np.ascontiguousarray(fn(*split)).view(U32)[..., 0]

    return apply


def _float_op(t: Translator, ins: Instruction, fn: Function, count: int) -> Op:
    """`fn` on floats: float64 for .f64, otherwise float32, with .ftz and .sat."""
    scalar = ins.type
    flushes, saturates = "ftz" in ins.parts, "sat" in ins.parts
    relu = "relu" in ins.parts

    def finish(x: Array) -> Array:
        if saturates:
            x = num.saturate(x)
        if relu:
            x = np.where(x > 0, x, np.where(np.isnan(x), x, x.dtype.type(0)))
        return x

    if not scalar.is_decoded:
        inner = fn
        if flushes:

            def inner(*values: Array) -> Array:
                return num.flush(fn(*map(num.flush, values)))

        whole = inner
        if saturates:

            def whole(*values: Array) -> Array:
                return finish(inner(*values))
    else:
        decode, encode = scalar.decode, scalar.encode

        def on_bits(*values: Array) -> Array:
            floats = [decode(v) for v in values]
            if flushes:  # f16 subnormals lie below 2^-14
                floats = [_flush_half(x) for x in floats]
            out = finish(fn(*floats))
            bits = encode(out, "rn")
            return _flush_half_bits(bits) if flushes else bits

        whole = on_halves(on_bits) if scalar.half is not None else on_bits
    reads = [t.read(o, scalar, ins) for o in ins.operands[1 : count + 1]]
    return t.compute(ins, ins.operands[0], scalar.dtype, whole, *reads)


def _flush_half(x: Array) -> Array:
    return np.where(np.abs(x) < 2.0**-14, np.copysign(np.float32(0), x), x)


def _flush_half_bits(bits: Array) -> Array:
    return np.where(bits & U16.type(0x7C00) == 0, bits & U16.type(0x8000), bits)


def _directed(a: Array, b: Array, c: Array, mode: str) -> Array:
    total = num.fma_to_odd(a, b, c)
    total = num.sum_of_zero(a.astype(F64) * b, c.astype(F64), total, mode)
    return num.narrow(total, F32, mode)


def _add(a: Array, b: Array) -> Array:
    return a + b


def _subtract(a: Array, b: Array) -> Array:
    return a - b


def _multiply(a: Array, b: Array) -> Array:
    return a * b


_ONE = np.ones((1, 1, 1), F32)


def add_sub_mul(t: Translator, ins: Instruction) -> Op:
    name, scalar, mode = ins.parts[0], ins.type, rounding(ins)
    plain = {"add": _add, "sub": _subtract, "mul": _multiply}[name]
    if mode == "rn":
        return _float_op(t, ins, plain, 2)
    if scalar.name == "f64":
        return _float_op(t, ins, _double(name, plain, mode), 2)
    if scalar.name != "f32":
        raise unsupported(ins, "rounding modes other than .rn are for f32 and f64")

    def fn(a: Array, b: Array) -> Array:
        if name == "mul":
            # a * b is exact in float64; adding zero would lose its sign.
            return num.narrow(a.astype(F64) * b, F32, mode)
        return _directed(a, _ONE, b if name == "add" else -b, mode)

    return _float_op(t, ins, fn, 2)


def _double(name: str, plain: Function, mode: str) -> Function:
    """An f64 operation with a directed rounding."""

    def fn(*values: Array) -> Array:
        near = plain(*values)
        out = num.in_fractions(plain, near, mode, *values)
        if name in ("mul", "div"):
            return out
        x, y = values[0], values[-1]
        if name == "fma":
            # A result that underflows, or whose a * b does, is no exact zero.
            exact = num.vanishes(plain, *values)
            x = np.where(exact, x * values[1], np.nan)
        return num.sum_of_zero(x, -y if name == "sub" else y, out, mode)

    return fn


def _multiply_add(a: Array, b: Array, c: Array) -> Array:
    return a * b + c


def _double_fma(mode: str) -> Function:
    rounded = _double("fma", _multiply_add, mode)

    def fn(a: Array, b: Array, c: Array) -> Array:
        out = rounded(a, b, c)
        # An overflow of a * b alone is not one of the result.
        keep = np.isinf(c) & np.isfinite(a) & np.isfinite(b)
        return np.where(keep, c, out)

    return fn


def fma(t: Translator, ins: Instruction) -> Op:
    scalar, mode = ins.type, rounding(ins)
    if scalar.is_decoded:
        if mode != "rn":
            raise unsupported(ins, "rounding modes other than .rn are for f32 and f64")
        fused = num.fma_to_odd
    elif scalar.name == "f64":
        fused = _double_fma(mode)
    elif mode == "rn":
        fused = num.fma_f32
    else:

        def fused(a: Array, b: Array, c: Array) -> Array:
            return _directed(a, b, c, mode)

    return _float_op(t, ins, fused, 3)


def min_or_max(t: Translator, ins: Instruction) -> Op:
    pick = num.minimum if ins.parts[0] == "min" else num.maximum
    keep_nan, xorsign = "NaN" in ins.parts, "xorsign" in ins.parts
    count = len(ins.operands) - 1

    def fn(*values: Array) -> Array:
        out = values[0] if not xorsign else np.abs(values[0])
        for v in values[1:]:
            out = pick(out, np.abs(v) if xorsign else v, keep_nan)
        if xorsign:
            sign = np.signbit(values[0])
            for v in values[1:]:
                sign = sign ^ np.signbit(v)
            out = np.where(sign, -out, out)
        return out

    return _float_op(t, ins, fn, count)


def _through_double(fn: Function, exact: Function | None) -> Handler:
    """div, rcp and sqrt with any rounding.

    For f32 the float64 result, rounded again, is right: a quotient or root that is not
    a float32 number lies further from all of them than float64 can err. `exact` is
    the function on fractions that corrects f64 results (None: only .rn).
    """

    def translate(t: Translator, ins: Instruction) -> Op:
        mode, scalar = rounding(ins), ins.type
        count = len(ins.operands) - 1
        if mode == "rn":  # .approx and .full are rounded to nearest too
            return _float_op(t, ins, fn, count)
        if scalar.name == "f64":
            if exact is None:
                raise unsupported(ins, "only .rn")

            function = exact

            def apply(*values: Array) -> Array:
                near = fn(*values)
                done = num.in_fractions(function, near, mode, *_no_zero(values))
                return np.where(values[-1] == 0, near, done)
        else:

            def apply(*values: Array) -> Array:
                return num.narrow(fn(*(v.astype(F64) for v in values)), F32, mode)

        return _float_op(t, ins, apply, count)

    return translate


def _no_zero(values: tuple[Array, ...]) -> tuple[Array, ...]:
    """The operands of a division with divisors of 0 replaced by 1."""
    last = values[-1]
    return (*values[:-1], np.where(last == 0, last.dtype.type(1), last))


def _reciprocal(x: Array) -> Array:
    return 1 / x


def _reciprocal_root(x: Array) -> Array:
    return (1.0 / np.sqrt(x.astype(F64))).astype(x.dtype)


def _unary(fn: Function) -> Handler:
    def translate(t: Translator, ins: Instruction) -> Op:
        return _float_op(t, ins, fn, 1)

    return translate


def _sign_op(clear: bool) -> Handler:
    """abs and neg act on the sign bit alone (NaN included)."""

    def translate(t: Translator, ins: Instruction) -> Op:
        scalar = ins.type
        sign = 1 << (scalar.bits - 1)
        if scalar.half is not None:
            sign |= 1 << 15
        bit = scalar.unsigned.type(sign)
        flushes = "ftz" in ins.parts and scalar.name == "f32"

        def fn(x: Array) -> Array:
            if flushes:
                x = num.flush(x)
            bits = x.view(scalar.unsigned)
            out = bits & ~bit if clear else bits ^ bit
            return out.view(scalar.dtype)

        source = t.read(ins.operands[1], scalar, ins)
        return t.compute(ins, ins.operands[0], scalar.dtype, fn, source)

    return translate


def copy_sign(t: Translator, ins: Instruction) -> Op:
    """copysign d, a, b: the sign of a on the magnitude of b."""
    return _float_op(t, ins, lambda a, b: np.copysign(b, a), 2)


_TESTS: dict[str, Callable[[Array], Array]] = {
    "finite": np.isfinite,
    "infinite": np.isinf,
    "notanumber": np.isnan,
    "number": lambda x: ~np.isnan(x),
    "normal": lambda x: np.isfinite(x) & (np.abs(x) >= np.finfo(x.dtype).tiny),
    "subnormal": lambda x: (x != 0) & (np.abs(x) < np.finfo(x.dtype).tiny),
}


def test_property(t: Translator, ins: Instruction) -> Op:
    test = _TESTS.get(ins.parts[1])
    if test is None:
        raise unsupported(ins)
    source = t.read(ins.operands[1], ins.type, ins)
    return t.compute(ins, ins.operands[0], np.dtype(np.bool_), test, source)


# Those that are one function on lanes.
divide = _through_double(np.divide, lambda a, b: a / b)
reciprocal = _through_double(_reciprocal, lambda a: 1 / a)
root = _through_double(np.sqrt, None)
reciprocal_root = _unary(_reciprocal_root)
power_of_two = _unary(num.in_double(np.exp2))
log_of_two = _unary(num.in_double(np.log2))
sine = _unary(num.in_double(np.sin))
cosine = _unary(num.in_double(np.cos))
tanh = _unary(num.in_double(np.tanh))
absolute = _sign_op(True)
negative = _sign_op(False)
