"""IEEE arithmetic in exact rationals: the independent model of the float instructions.

Values are decoded to Python floats (which hold every f16, bf16, tf32, f32 and f64
value), computed as `Fraction`, and rounded once into the wanted format. Slow, and
simple enough to be believed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Format:
    """A binary interchange format: widths of its exponent and fraction fields."""

    exponent_bits: int
    fraction_bits: int

    @property
    def bits(self) -> int:
        return 1 + self.exponent_bits + self.fraction_bits

    @property
    def bias(self) -> int:
        return (1 << (self.exponent_bits - 1)) - 1

    @property
    def sign_bit(self) -> int:
        return 1 << (self.bits - 1)

    @property
    def infinity(self) -> int:
        return ((1 << self.exponent_bits) - 1) << self.fraction_bits

    @property
    def quiet_nan(self) -> int:
        return self.infinity | (1 << (self.fraction_bits - 1))

    @property
    def canonical_nan(self) -> int:
        """What PTX instructions return for a NaN: every bit but the sign."""
        return self.sign_bit - 1

    @property
    def smallest_normal(self) -> Fraction:
        return Fraction(2) ** (1 - self.bias)


F16 = Format(5, 10)
BF16 = Format(8, 7)
F32 = Format(8, 23)
F64 = Format(11, 52)
TF32 = Format(8, 10)  # held in the upper 19 bits of a 32-bit register


def decode(fmt: Format, bits: int) -> float:
    """The value of a bit pattern. Exact: no format here is wider than f64."""
    sign = -1.0 if bits & fmt.sign_bit else 1.0
    exponent = (bits >> fmt.fraction_bits) & ((1 << fmt.exponent_bits) - 1)
    fraction = bits & ((1 << fmt.fraction_bits) - 1)
    if exponent == (1 << fmt.exponent_bits) - 1:
        return math.nan if fraction else sign * math.inf
    if exponent == 0:
        return sign * math.ldexp(fraction, 1 - fmt.bias - fmt.fraction_bits)
    fraction |= 1 << fmt.fraction_bits
    return sign * math.ldexp(fraction, exponent - fmt.bias - fmt.fraction_bits)


def is_nan_bits(fmt: Format, bits: int) -> bool:
    return (bits & (fmt.sign_bit - 1)) > fmt.infinity


def encode(fmt: Format, value: float | Fraction, mode: str = "rn") -> int:
    """Round a value into the format; `mode` is rn, rz, rm, rp or rna (ties away)."""
    if isinstance(value, float):
        if math.isnan(value):
            return fmt.canonical_nan
        sign = fmt.sign_bit if math.copysign(1.0, value) < 0 else 0
        if math.isinf(value):
            return sign | fmt.infinity
        if value == 0.0:
            return sign
        value = Fraction(value)
    if value == 0:
        return 0
    negative = value < 0
    magnitude = _encode_magnitude(
        fmt, Fraction(abs(value)), _unsigned_mode(mode, negative)
    )
    return magnitude | (fmt.sign_bit if negative else 0)


def _unsigned_mode(mode: str, negative: bool) -> str:
    """The rounding of a magnitude: `up`, `rz`, `rn` or `rna`."""
    if mode in ("rm", "rp"):
        return "up" if (mode == "rm") == negative else "rz"
    return mode


def _encode_magnitude(fmt: Format, value: Fraction, mode: str) -> int:
    exponent = max(_floor_log2(value), 1 - fmt.bias)
    unit = Fraction(2) ** (exponent - fmt.fraction_bits)
    steps = round_integer(value / unit, mode)
    # A carry out of the fraction runs into the exponent field by itself.
    if exponent == 1 - fmt.bias and steps < (1 << fmt.fraction_bits):
        bits = steps
    else:
        biased = exponent + fmt.bias - 1
        bits = (biased << fmt.fraction_bits) + steps
    if bits >= fmt.infinity:
        return fmt.infinity - 1 if mode == "rz" else fmt.infinity
    return bits


def _floor_log2(value: Fraction) -> int:
    guess = value.numerator.bit_length() - value.denominator.bit_length()
    return guess if Fraction(2) ** guess <= value else guess - 1


def round_integer(value: Fraction, mode: str) -> int:
    """Round to a whole number: rn (ties to even), rna, rz, rm, rp, or `up` (away)."""
    low = math.floor(value)
    rest = value - low
    if rest == 0 or mode == "rm":
        return low
    if mode == "rp":
        return low + 1
    if mode == "rz":
        return low if value > 0 else low + 1
    if mode == "up":
        return low + 1 if value > 0 else low
    half = Fraction(1, 2)
    if rest != half:
        return low + 1 if rest > half else low
    if mode == "rna":
        return low + 1 if value > 0 else low
    return low + (low & 1)


def flush(fmt: Format, value: float) -> float:
    """A subnormal becomes a zero of the same sign (.ftz)."""
    if value != 0 and abs(value) < fmt.smallest_normal:
        return math.copysign(0.0, value)
    return value


def fused(a: float, b: float, c: float, mode: str) -> float | Fraction:
    """a * b + c, exactly, or the IEEE special value."""
    if math.isnan(a) or math.isnan(b) or math.isnan(c):
        return math.nan
    sign = math.copysign(1.0, a) * math.copysign(1.0, b)
    if math.isinf(a) or math.isinf(b):
        if a == 0 or b == 0 or (math.isinf(c) and math.copysign(1.0, c) != sign):
            return math.nan
        return sign * math.inf
    if math.isinf(c):
        return c
    total = Fraction(a) * Fraction(b) + Fraction(c)
    if total != 0:
        return total
    product_is_zero = a == 0 or b == 0
    if product_is_zero and c == 0 and math.copysign(1.0, c) == sign:
        return math.copysign(0.0, sign)
    return -0.0 if mode == "rm" else 0.0


def add(a: float, b: float, mode: str) -> float | Fraction:
    return fused(a, 1.0, b, mode)


def subtract(a: float, b: float, mode: str) -> float | Fraction:
    return fused(a, 1.0, -b, mode)


def multiply(a: float, b: float, mode: str) -> float | Fraction:
    if math.isnan(a) or math.isnan(b):
        return math.nan
    sign = math.copysign(1.0, a) * math.copysign(1.0, b)
    if a == 0 or b == 0:
        return math.nan if math.isinf(a) or math.isinf(b) else sign * 0.0
    if math.isinf(a) or math.isinf(b):
        return sign * math.inf
    return Fraction(a) * Fraction(b)


def divide(a: float, b: float, mode: str) -> float | Fraction:
    if math.isnan(a) or math.isnan(b):
        return math.nan
    sign = math.copysign(1.0, a) * math.copysign(1.0, b)
    if math.isinf(a):
        return math.nan if math.isinf(b) else sign * math.inf
    if math.isinf(b):
        return sign * 0.0
    if b == 0:
        return math.nan if a == 0 else sign * math.inf
    return sign * 0.0 if a == 0 else Fraction(a) / Fraction(b)


def encode_sqrt(fmt: Format, value: float, mode: str) -> int:
    """The correctly rounded square root."""
    if math.isnan(value) or value < 0:
        return fmt.canonical_nan
    if value == 0 or math.isinf(value):
        return encode(fmt, value)
    exact = Fraction(value)
    # Enough bits that one sticky bit below them settles every rounding.
    shift = 2 * (fmt.fraction_bits + 4 + abs(_floor_log2(exact)))
    scaled = exact.numerator * (1 << shift)
    root = math.isqrt(scaled // exact.denominator)
    sticky = root * root * exact.denominator != scaled
    return encode(fmt, Fraction(2 * root + sticky, 2 << (shift // 2)), mode)


def finish(
    fmt: Format,
    value: float | Fraction,
    mode: str,
    *,
    ftz: bool = False,
    saturate: bool = False,
    relu: bool = False,
) -> int:
    """Round a result and apply .sat, .relu and .ftz."""
    bits = encode(fmt, value, mode)
    rounded = decode(fmt, bits)
    if math.isnan(rounded):
        return 0 if saturate else fmt.canonical_nan
    if saturate:
        rounded = min(rounded, 1.0) if rounded > 0 else 0.0
        return encode(fmt, flush(fmt, rounded) if ftz else rounded)
    if relu and rounded <= 0:
        return 0
    return encode(fmt, flush(fmt, rounded)) if ftz else bits


def tininess_unclear(fmt: Format, value: float | Fraction, mode: str) -> bool:
    """Whether rounding lifts a subnormal result to the smallest normal number.

    PTX does not say whether .ftz looks at the result before or after rounding.
    """
    if isinstance(value, float):
        return False
    rounded = decode(fmt, encode(fmt, value, mode))
    return abs(value) < fmt.smallest_normal and abs(rounded) == fmt.smallest_normal


def relu_unclear(fmt: Format, value: float | Fraction, mode: str) -> bool:
    """Whether the result is -0, which PTX calls neither negative nor not."""
    return encode(fmt, value, mode) == fmt.sign_bit


BINARY: dict[str, Callable[[float, float, str], float | Fraction]] = {
    "add": add,
    "sub": subtract,
    "mul": multiply,
    "div": divide,
}
