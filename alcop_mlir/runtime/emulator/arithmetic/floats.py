"""Floating-point arithmetic with the rounding of PTX, on NumPy arrays.

PTX ISA "Floating Point Instructions", "Half Precision ..." and "cvt". 16-bit values
travel as `uint16` bits. To round once and correctly: compute in float64
*rounded to odd* (the last bit remembers that something was lost), then round once to
the narrow format in the wanted direction. Boldo and Melquiond showed that this gives
the correctly rounded result as long as float64 keeps two bits more than the target.

The `.approx` functions are computed accurately and rounded to nearest; hardware may
differ in its last bits, so results are to be compared with a tolerance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from alcop_mlir.runtime.emulator.arithmetic.integers import magnitude
from alcop_mlir.runtime.emulator.arithmetic.storage import (
    F16,
    F32,
    F64,
    S64,
    U8,
    U16,
    U32,
    U64,
    Array,
)

F32_MIN_NORMAL = np.float32(2.0**-126)
F16_FROM_BITS = np.arange(1 << 16, dtype=U16).view(F16).astype(F32)
NAN_16 = U16.type(0x7FFF)  # PTX: NaN results of f16 and bf16 are canonical
NAN_32 = np.array([0x7FFFFFFF], U32).view(F32)  # and of f32 min and max
NAN_64 = np.array([np.nan])
_EXPONENT, _SIGN = np.uint32(0x7F800000), np.uint32(0x80000000)
_EXPONENT_64, _SIGN_64 = np.uint64(0x7FF << 52), np.uint64(1 << 63)
_TIE_FIELD, _TIE = np.uint64(0x1FFFFFFF), np.uint64(0x10000000)


def decode_f16(bits: Array) -> Array:
    """f16 bits (uint16) -> float32."""
    return F16_FROM_BITS.take(bits)


def decode_bf16(bits: Array) -> Array:
    """bf16 bits (uint16) -> float32."""
    return (bits.astype(U32) << np.uint32(16)).view(F32)


def decode_tf32(bits: Array) -> Array:
    """tf32 bits (uint32) -> float32: tensor cores ignore the low 13 bits."""
    return (bits & U32.type(0xFFFFE000)).view(F32)


def flush(x: Array) -> Array:
    """Floats with subnormal numbers replaced by zeros of the same sign (.ftz)."""
    wide = x.dtype == F64
    bits = x.view(U64 if wide else U32)
    exponent, sign = (_EXPONENT_64, _SIGN_64) if wide else (_EXPONENT, _SIGN)
    small = (bits & exponent) == 0
    if not small.any():
        return x
    return np.where(small, bits & sign, bits).view(x.dtype)


def flush_half(x: Array) -> Array:
    """The same for the values of f16, whose subnormal numbers lie below 2^-14."""
    return np.where(np.abs(x) < 2.0**-14, np.copysign(np.float32(0), x), x)


def upper_half(x: Array) -> Array:
    """float64 without the lower 32 bits; NaN stay so."""
    kept = (x.view(U64) & np.uint64(0xFFFFFFFF00000000)).view(F64)
    return np.where(np.isnan(x), x, kept)


def saturate(x: Array) -> Array:
    """Clamps to [0, 1]; NaN becomes +0 (.sat)."""
    return np.where(x > 0, np.minimum(x, x.dtype.type(1)), x.dtype.type(0))


def relu(x: Array) -> Array:
    """Negative numbers become +0 (.relu)."""
    return np.where(x > 0, x, np.where(np.isnan(x), x, x.dtype.type(0)))


def add_to_odd(x: Array, y: Array) -> Array:
    """x + y in float64, rounded to odd."""
    total = x + y
    part = total - x
    error = (x - (total - part)) + (y - part)
    bits = np.atleast_1d(total).view(S64).reshape(total.shape)
    fix = (error != 0) & np.isfinite(total) & ((bits & 1) == 0)
    if not fix.any():
        return total
    step = np.where((error > 0) == (total > 0), S64.type(1), S64.type(-1))
    return np.where(fix, bits + step, bits).view(F64)


def fma_f32(a: Array, b: Array, c: Array) -> Array:
    """float32 a * b + c, rounded once to nearest even."""
    product = a.astype(F64) * b
    total = product + c
    # Rounding float64 to float32 goes wrong only if the first rounding landed on a
    # tie of the second, or the result is subnormal; then do it the long way.
    doubtful = (total.view(U64) & _TIE_FIELD) == _TIE
    doubtful |= (np.abs(total) < F32_MIN_NORMAL) & (total != 0)
    if doubtful.any():
        total = add_to_odd(*np.broadcast_arrays(product, c.astype(F64)))
    return total.astype(F32)


def sum_of_zero(x: Array, y: Array, total: Array, mode: str) -> Array:
    """The sign of an exact zero sum: x - x is -0 when rounding down (IEEE 754)."""
    if mode != "rm":
        return total
    negative = (total == 0) & (x == -y) & (np.signbit(x) | np.signbit(y))
    return np.where(negative, total.dtype.type(-0.0), total)


def fma_to_odd(a: Array, b: Array, c: Array) -> Array:
    """a * b + c in float64 rounded to odd; a * b must be exact in float64."""
    product = a.astype(F64) * b.astype(F64)
    return add_to_odd(*np.broadcast_arrays(product, c.astype(F64)))


Exact = Callable[..., Any]  # Fractions to a Fraction


def in_fractions(exact: Exact, near: Array, mode: str, *operands: Array) -> Array:
    """`near` (float64) corrected to the rounding of `exact(*operands)` in `mode`.

    Element by element in rational arithmetic: slow, for the rare f64 instructions.
    Elements that are not finite, or whose exact result is 0, keep `near`.
    """
    shape = np.broadcast_shapes(*(x.shape for x in operands))
    out = np.array(np.broadcast_to(near, shape))
    for at, value in _fractions(exact, operands):
        if value:
            out[at] = _round_fraction(value, mode)
    return out


def root_in_fractions(x: Array, mode: str) -> Array:
    """The square root of float64, rounded rz, rm or rp: its square tells the side."""
    near = np.sqrt(x)
    out = np.array(near)
    for i in np.argwhere(np.isfinite(near) & (x > 0)):
        at = tuple(i)
        root = float(near[at])
        error = Fraction(root) ** 2 - Fraction(float(x[at]))
        if error > 0 and mode != "rp":
            out[at] = math.nextafter(root, 0.0)
        elif error < 0 and mode == "rp":
            out[at] = math.nextafter(root, math.inf)
    return out


def vanishes(exact: Exact, *operands: Array) -> Array:
    """Which elements of `exact(*operands)` are zero before any rounding."""
    out = np.zeros(np.broadcast_shapes(*(x.shape for x in operands)), bool)
    for at, value in _fractions(exact, operands):
        out[at] = value == 0
    return out


def _fractions(
    exact: Exact, operands: tuple[Array, ...]
) -> Iterator[tuple[tuple[int, ...], Fraction]]:
    """Index and exact value of each element whose operands are all finite."""
    operands = tuple(np.broadcast_arrays(*operands))
    finite = np.logical_and.reduce([np.isfinite(x) for x in operands])
    for i in np.argwhere(finite):
        at = tuple(i)
        yield at, exact(*[Fraction(float(x[at])) for x in operands])


def _round_fraction(value: Fraction, mode: str) -> float:
    try:
        near = float(value)
    except OverflowError:
        near = math.inf if value > 0 else -math.inf
    if mode == "rn":
        return near
    # Python compares a float with a Fraction exactly.
    if mode == "rm" or (mode == "rz" and value > 0):
        return math.nextafter(near, -math.inf) if near > value else near
    return math.nextafter(near, math.inf) if near < value else near


def narrow(x: Array, dtype: np.dtype, mode: str) -> Array:
    """float64 (rounded to odd) -> float32 or float16, mode rn, rz, rm or rp."""
    near = x.astype(dtype)
    if mode == "rn":
        return near
    back = near.astype(F64)
    if mode == "rz":
        beyond, end = np.abs(back) > np.abs(x), 0.0
    elif mode == "rm":
        beyond, end = back > x, -np.inf
    else:
        beyond, end = back < x, np.inf
    return np.where(beyond, np.nextafter(near, dtype.type(end)), near)


def _eight_bits(largest: int, nan: int, fraction: int, bias: int) -> Array:
    """What each byte of an f8 type is, as float32.

    largest: the last finite number, as bits; infinity follows it if it is not the NaN
    """
    bits = np.arange(128)
    exponent, low = bits >> fraction, bits & ((1 << fraction) - 1)
    normal = exponent > 0
    value = (low + (normal << fraction)) * 2.0 ** (
        np.maximum(exponent, 1) - bias - fraction
    )
    value[bits > largest] = np.nan
    if largest + 1 < nan:
        value[largest + 1] = np.inf
    return np.concatenate([value, -value]).astype(F32)


E4M3_FROM_BITS = _eight_bits(0x7E, 0x7F, 3, 7)
E5M2_FROM_BITS = _eight_bits(0x7B, 0x7D, 2, 15)


def decode_e4m3(bits: Array) -> Array:
    """e4m3 bits (uint8) -> float32."""
    return E4M3_FROM_BITS.take(bits)


def decode_e5m2(bits: Array) -> Array:
    """e5m2 bits (uint8) -> float32."""
    return E5M2_FROM_BITS.take(bits)


def encode_e4m3(x: Array, mode: str = "rn") -> Array:
    """float32 -> e4m3 bits (uint8), to nearest; beyond the largest: 0x7F, a NaN."""
    return _encode_eight_bits(x, 3, 7)


def encode_e5m2(x: Array, mode: str = "rn") -> Array:
    """float32 -> e5m2 bits (uint8), to nearest; beyond the largest: no number."""
    return _encode_eight_bits(x, 2, 15)


def _encode_eight_bits(x: Array, fraction: int, bias: int) -> Array:
    size = np.abs(x.astype(F64))
    exponent = np.maximum(np.frexp(size)[1] - 1, 1 - bias)
    exponent = np.where(size == 0, 1 - bias, exponent)
    steps = np.rint(np.ldexp(size, fraction - exponent))
    # A subnormal number has exponent 1 - bias and fewer steps than 2^fraction.
    bits = ((exponent + bias - 1) << fraction) + np.where(np.isfinite(x), steps, 0)
    bits = np.where(np.isfinite(x), np.minimum(bits, 0x7F), 0x7F).astype(U8)
    sign = np.where(np.signbit(x) & ~np.isnan(x), U8.type(0x80), U8.type(0))
    return bits | sign


def encode_f16(x: Array, mode: str = "rn") -> Array:
    """float32 or float64 (rounded to odd) -> f16 bits."""
    if mode == "rn":
        bits = x.astype(F16).view(U16)
    else:
        bits = narrow(x.astype(F64), F16, mode).view(U16)
    return np.where(np.isnan(x), NAN_16, bits)


def encode_bf16(x: Array, mode: str = "rn") -> Array:
    """float32 or float64 (rounded to odd) -> bf16 bits."""
    nan = np.isnan(x)
    bits = (_odd_f32(x) if x.dtype == F64 else x).view(U32)
    low = bits & np.uint32(0xFFFF)
    high = bits >> np.uint32(16)
    if mode == "rn":
        up = low + (high & np.uint32(1)) > np.uint32(0x8000)
    elif mode == "rz":
        up = np.zeros_like(low, dtype=bool)
    else:
        negative = (bits & _SIGN) != 0
        up = (low != 0) & (negative if mode == "rm" else ~negative)
    up &= (bits & ~_SIGN) != _EXPONENT
    return np.where(nan, NAN_16, (high + up).astype(U16))


def _odd_f32(x: Array) -> Array:
    """float64 rounded to odd -> float32 rounded to odd."""
    down = narrow(x, F32, "rz")
    inexact = (down.astype(F64) != x) & ~np.isnan(x)
    return (down.view(U32) | inexact.astype(U32)).view(F32)


def encode_f32(x: Array, mode: str = "rn") -> Array:
    """float32, or float64 rounded to odd -> float32."""
    return x if x.dtype == F32 else narrow(x, F32, mode)


def encode_f64(x: Array, mode: str = "rn") -> Array:
    """float32 or float64 -> float64, exactly."""
    return x.astype(F64)


def encode_tf32(x: Array, mode: str = "rn") -> Array:
    """float32 -> tf32 bits in a uint32: 10 fraction bits, rna, rn or rz."""
    bits = x.astype(F32).view(U32)
    if mode == "rna":
        out = bits + np.uint32(0x1000)
    elif mode == "rn":
        out = bits + np.uint32(0x0FFF) + ((bits >> np.uint32(13)) & np.uint32(1))
    else:
        out = bits
    special = (bits & _EXPONENT) == _EXPONENT
    return np.where(special, bits, out & np.uint32(0xFFFFE000))


def minimum(a: Array, b: Array, keep_nan: bool) -> Array:
    """min with PTX rules: -0 < +0; one NaN gives the other operand, unless .NaN."""
    pick_a = (a < b) | ((a == b) & np.signbit(a))
    return _choose(pick_a, a, b, keep_nan)


def maximum(a: Array, b: Array, keep_nan: bool) -> Array:
    """max with PTX rules, see `minimum`."""
    pick_a = (a > b) | ((a == b) & ~np.signbit(a))
    return _choose(pick_a, a, b, keep_nan)


def _choose(pick_a: Array, a: Array, b: Array, keep_nan: bool) -> Array:
    out = np.where(pick_a, a, b)
    nan_a, nan_b = np.isnan(a), np.isnan(b)
    if not (nan_a.any() or nan_b.any()):
        return out
    nan = NAN_32 if out.dtype == F32 else NAN_64
    if keep_nan:
        return _place_nan(out, nan_a | nan_b, nan)
    out = np.where(nan_b, a, np.where(nan_a, b, out))
    return _place_nan(out, nan_a & nan_b, nan)


def _place_nan(x: Array, where: Array, nan: Array) -> Array:
    out = np.array(np.broadcast_to(x, where.shape))
    out[where] = nan[0]
    return out


def wide_integer_to_odd(x: Array) -> Array:
    """64-bit integers -> float64 rounded to odd (exact when it fits)."""
    negative, size = x < 0, magnitude(x)
    lost = (size & U64.type(0x7FF)) != 0
    wide = size >= U64.type(1 << 53)
    high = (size & ~U64.type(0x7FF)) | (lost.astype(U64) << U64.type(11))
    out = np.where(wide, high, size).astype(F64)
    return np.where(negative, -out, out)


ROUND_TO_INTEGER: dict[str, Callable[[Array], Array]] = {
    "rni": np.rint,
    "rzi": np.trunc,
    "rmi": np.floor,
    "rpi": np.ceil,
}


def integer_to_double(x: Array, mode: str) -> Array:
    """64-bit integers -> float64 with any rounding."""
    near = x.astype(F64)
    if mode == "rn":
        return near
    negative, size = x < 0, magnitude(x)
    grown = np.abs(near)
    over = grown >= 2.0**64
    back = np.where(over, 0.0, grown).astype(U64)
    over |= back > size
    under = ~over & (back < size)
    toward_zero = (mode == "rz") | (negative if mode == "rp" else ~negative)
    grown = np.where(over & toward_zero, np.nextafter(grown, 0.0), grown)
    grown = np.where(under & ~toward_zero, np.nextafter(grown, np.inf), grown)
    return np.where(negative, -grown, grown)


def float_to_integer(x: Array, dtype: np.dtype, mode: str, nan: Array) -> Array:
    """Rounds and clamps to the range of `dtype`; NaN becomes `nan` (PTX ISA, cvt)."""
    info = np.iinfo(dtype)
    whole = ROUND_TO_INTEGER[mode](x.astype(F64))
    # The largest float64 below 2^63 or 2^64 converts; above it the limit is stored.
    top = whole >= float(info.max) if dtype.itemsize == 8 else whole > info.max
    bottom = whole < info.min
    safe = np.where(top | bottom | np.isnan(whole), 0.0, whole)
    out = safe.astype(dtype)
    out = np.where(top, dtype.type(info.max), out)
    out = np.where(bottom, dtype.type(info.min), out)
    return np.where(np.isnan(whole), nan, out)
