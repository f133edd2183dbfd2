"""f32, f64, f16(x2) and bf16(x2) arithmetic, and the approximate functions.

PTX ISA "Floating Point Instructions", "Half Precision Floating Point Instructions".
A *format* decodes register bits to float32 (or float64) and encodes results back; the
16-bit formats work on one value or on the two halves of a packed register.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import reduce

import numpy as np

from alcop_mlir.runtime.emulator.arithmetic import floats as num
from alcop_mlir.runtime.emulator.arithmetic.storage import (
    BOOL,
    F32,
    F64,
    U16,
    U64,
    Array,
    joined,
    on_halves,
    parts,
)
from alcop_mlir.runtime.emulator.instructions.translator import (
    Function,
    Handler,
    Op,
    Translator,
    rounding,
)
from alcop_mlir.runtime.emulator.ptx.scalars import B64, Scalar
from alcop_mlir.runtime.emulator.ptx.syntax import Instruction, unsupported


def _float_op(t: Translator, ins: Instruction, fn: Function, count: int) -> Op:
    """`fn` on `count` floats: float64 for .f64, otherwise float32; with its modifiers.

    Modifiers are .ftz, .sat and .relu.
    """
    scalar, flushes = ins.type, "ftz" in ins.parts
    whole = fn
    if "sat" in ins.parts:
        whole = _then(num.saturate, whole)
    if "relu" in ins.parts:
        whole = _then(num.relu, whole)
    if scalar.is_decoded:
        whole = _on_bits(whole, scalar, flushes)
        if scalar.half is not None:
            whole = on_halves(whole)
    elif flushes:
        inner = whole
        whole = lambda *values: num.flush(inner(*map(num.flush, values)))
    return t.compute(ins, scalar.dtype, whole, *[scalar] * count)


def on_singles(fn: Function, count: int) -> Handler:
    """A handler of `fn` on both f32 in registers of 64 bits, the lower one first."""

    def translate(t: Translator, ins: Instruction) -> Op:
        flushed = num.flush if "ftz" in ins.parts else lambda x: x

        def both(*values: Array) -> Array:
            singles = (flushed(parts(value, F32)) for value in values)
            return joined(flushed(fn(*singles)), U64)

        return t.compute(ins, U64, both, *[B64] * count)

    return translate


def _then(last: Callable[[Array], Array], first: Function) -> Function:
    return lambda *values: last(first(*values))


def _on_bits(fn: Function, scalar: Scalar, flushes: bool) -> Function:
    """`fn` on the bits of a type that is decoded."""

    def apply(*values: Array) -> Array:
        floats = [scalar.decode(v) for v in values]
        if not flushes:
            return scalar.encode(fn(*floats), "rn")
        return _flush_half_bits(scalar.encode(fn(*map(num.flush_half, floats)), "rn"))

    return apply


def _flush_half_bits(bits: Array) -> Array:
    return np.where(bits & U16.type(0x7C00) == 0, bits & U16.type(0x8000), bits)


def _directed(a: Array, b: Array, c: Array, mode: str) -> Array:
    total = num.fma_to_odd(a, b, c)
    total = num.sum_of_zero(a.astype(F64) * b, c.astype(F64), total, mode)
    return num.narrow(total, F32, mode)


_ONE = np.ones((1, 1, 1), F32)
_PLAIN = {"add": operator.add, "sub": operator.sub, "mul": operator.mul}


def add_sub_mul(t: Translator, ins: Instruction) -> Op:
    name, scalar, mode = ins.parts[0], ins.type, rounding(ins)
    plain = _PLAIN[name]
    if mode == "rn":
        return _float_op(t, ins, plain, 2)
    if scalar.name not in ("f32", "f64"):
        raise unsupported(ins, "rounding modes other than .rn are for f32 and f64")

    def directed(a: Array, b: Array) -> Array:
        if name == "mul":
            # a * b is exact in float64; adding zero would lose its sign.
            return num.narrow(a.astype(F64) * b, F32, mode)
        return _directed(a, _ONE, b if name == "add" else -b, mode)

    def double(a: Array, b: Array) -> Array:
        out = num.in_fractions(plain, plain(a, b), mode, a, b)
        if name == "mul":
            return out
        return num.sum_of_zero(a, -b if name == "sub" else b, out, mode)

    return _float_op(t, ins, double if scalar.name == "f64" else directed, 2)


def _multiply_add(a: Array, b: Array, c: Array) -> Array:
    return a * b + c


def _double_fma(a: Array, b: Array, c: Array, mode: str) -> Array:
    out = num.in_fractions(_multiply_add, _multiply_add(a, b, c), mode, a, b, c)
    # A result that underflows, or whose a * b does, is no exact zero.
    exact = num.vanishes(_multiply_add, a, b, c)
    out = num.sum_of_zero(np.where(exact, a * b, np.nan), c, out, mode)
    # An overflow of a * b alone is not one of the result.
    return np.where(np.isinf(c) & np.isfinite(a) & np.isfinite(b), c, out)


def fma(t: Translator, ins: Instruction) -> Op:
    scalar, mode = ins.type, rounding(ins)
    if "oob" in ins.parts:
        raise unsupported(ins, "which NaN it takes for 0 is not documented")
    if scalar.is_decoded:
        if mode != "rn":
            raise unsupported(ins, "rounding modes other than .rn are for f32 and f64")
        fused: Function = num.fma_to_odd
    elif scalar.name == "f64":
        fused = lambda a, b, c: _double_fma(a, b, c, mode)
    elif mode == "rn":
        fused = num.fma_f32
    else:
        fused = lambda a, b, c: _directed(a, b, c, mode)
    return _float_op(t, ins, fused, 3)


def min_or_max(t: Translator, ins: Instruction) -> Op:
    pick = num.minimum if ins.parts[0] == "min" else num.maximum
    keep_nan = "NaN" in ins.parts

    def fn(*values: Array) -> Array:
        return reduce(lambda a, b: pick(a, b, keep_nan), values)

    def xorsign(*values: Array) -> Array:
        """Picks by magnitude; the sign is the XOR of all signs."""
        out = fn(*map(np.abs, values))
        return np.where(reduce(np.logical_xor, map(np.signbit, values)), -out, out)

    count = len(ins.operands) - 1
    return _float_op(t, ins, xorsign if "xorsign" in ins.parts else fn, count)


def through_double(fn: Function, is_rational: bool = True) -> Handler:
    """div, rcp and sqrt with any rounding.

    For f32 the float64 result, rounded again, is right: a quotient or root that is not
    a float32 number lies further from all of them than float64 can err. f64 results
    are corrected in fractions, on which `fn` has to work (else: only .rn).
    """

    def translate(t: Translator, ins: Instruction) -> Op:
        mode, scalar = rounding(ins), ins.type
        count = len(ins.operands) - 1
        if mode == "rn":  # .approx and .full are rounded to nearest too
            return _float_op(t, ins, fn, count)
        if scalar.name == "f64" and not is_rational:
            return _float_op(t, ins, lambda x: num.root_in_fractions(x, mode), 1)

        def corrected(*values: Array) -> Array:
            near, zero = fn(*values), values[-1] == 0
            divisor = np.where(zero, 1.0, values[-1])
            done = num.in_fractions(fn, near, mode, *values[:-1], divisor)
            return np.where(zero, near, done)

        def narrowed(*values: Array) -> Array:
            return num.narrow(fn(*(v.astype(F64) for v in values)), F32, mode)

        return _float_op(t, ins, corrected if scalar.name == "f64" else narrowed, count)

    return translate


def gross_double(fn: Callable[[Array], Array]) -> Handler:
    """rcp.approx.ftz.f64 and its like: the upper 32 bits of the operand and the result.

    PTX ISA: the lower 32 bits are ignored, and zeros in the result, which has 20 bits;
    subnormal operands and results become zeros.
    """

    def gross(x: Array) -> Array:
        upper = num.flush(num.upper_half(x))
        return num.flush(num.upper_half(fn(upper)))

    return lambda t, ins: t.compute(ins, F64, gross, ins.type)


def plain(fn: Function, count: int) -> Handler:
    """A handler of what is one function on `count` floats."""
    return lambda t, ins: _float_op(t, ins, fn, count)


def in_double(fn: Callable[[Array], Array]) -> Handler:
    """A function of one float, evaluated in float64 and rounded to nearest."""
    return plain(lambda x: fn(x.astype(F64)).astype(x.dtype), 1)


def sign_op(clear: bool) -> Handler:
    """abs and neg act on the sign bit alone (NaN included)."""

    def translate(t: Translator, ins: Instruction) -> Op:
        scalar = ins.type
        sign = 1 << (scalar.bits - 1)
        if scalar.half is not None:
            sign |= 1 << 15
        bit = scalar.unsigned.type(sign)
        flushes = "ftz" in ins.parts and scalar.name == "f32"

        def fn(x: Array) -> Array:
            bits = (num.flush(x) if flushes else x).view(scalar.unsigned)
            return (bits & ~bit if clear else bits ^ bit).view(scalar.dtype)

        return t.compute(ins, scalar.dtype, fn, scalar)

    return translate


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
    return t.compute(ins, BOOL, test, ins.type)
