"""Integer arithmetic of PTX on NumPy arrays: exact at every width, never via floats.

PTX ISA "Integer Arithmetic Instructions" and "Logic and Shift Instructions". Every
function takes and returns arrays of the operand's own type; nothing widens silently.
"""

from __future__ import annotations

import numpy as np

from alcop_mlir.runtime.emulator.arithmetic.storage import (
    S64,
    SIGNED,
    U8,
    U32,
    U64,
    UNSIGNED,
    Array,
    joined,
    parts,
)

_LOW32, _32 = np.uint64(0xFFFFFFFF), np.uint64(32)
BYTE_BITS = np.array([bin(n).count("1") for n in range(256)], dtype=np.uint32)
REVERSED_BYTE = np.array([int(f"{n:08b}"[::-1], 2) for n in range(256)], dtype=np.uint8)


def unsigned(x: Array) -> Array:
    """The same bits as unsigned numbers."""
    return x.view(UNSIGNED[x.dtype.itemsize])


def signed(x: Array) -> Array:
    """The same bits as signed numbers."""
    return x.view(SIGNED[x.dtype.itemsize])


def magnitude(x: Array) -> Array:
    """|x| as unsigned; the most negative number is its own magnitude."""
    u = unsigned(x)
    return u if x.dtype.kind == "u" else np.where(x < 0, negative(u), u)


def absolute(a: Array) -> Array:
    """|x| in its own type."""
    return magnitude(a).view(a.dtype)


def negative(a: Array) -> Array:
    """-x, which wraps around."""
    return ~a + a.dtype.type(1)


def add_difference(a: Array, b: Array, c: Array) -> Array:
    """sad: c + |a - b|."""
    x, y = unsigned(a), unsigned(b)
    return (unsigned(c) + np.where(a < b, y - x, x - y)).view(c.dtype)


def divide(a: Array, b: Array) -> Array:
    """Quotient towards zero; all bits set where b is 0 (as NVIDIA hardware gives)."""
    size = magnitude(a) // _divisor(b)
    if a.dtype.kind == "i":
        size = np.where((a < 0) != (b < 0), negative(size), size)
    return np.where(b == 0, ~size.dtype.type(0), size).view(a.dtype)


def remainder(a: Array, b: Array) -> Array:
    """Remainder with the sign of a; a itself where b is 0."""
    size = magnitude(a) % _divisor(b)
    if a.dtype.kind == "i":
        size = np.where(a < 0, negative(size), size)
    return np.where(b == 0, unsigned(a), size).view(a.dtype)


def _divisor(b: Array) -> Array:
    """|b|, and 1 in place of 0."""
    size = magnitude(b)
    return np.maximum(size, size.dtype.type(1))


def multiply_high(a: Array, b: Array) -> Array:
    """The upper half of a * b at full width, signed or unsigned."""
    size = a.dtype.itemsize
    if size < 8:
        wide = np.dtype(f"{a.dtype.kind}{2 * size}")
        product = a.astype(wide) * b.astype(wide)
        return (product >> wide.type(8 * size)).astype(a.dtype)
    ua, ub = unsigned(a), unsigned(b)
    high = _high64(ua, ub)
    if a.dtype.kind == "i":
        zero = U64.type(0)
        high = high - np.where(a < 0, ub, zero) - np.where(b < 0, ua, zero)
    return high.view(a.dtype)


def _high64(a: Array, b: Array) -> Array:
    a0, a1, b0, b1 = a & _LOW32, a >> _32, b & _LOW32, b >> _32
    middle = a1 * b0 + (a0 * b0 >> _32)
    cross = a0 * b1 + (middle & _LOW32)
    return a1 * b1 + (middle >> _32) + (cross >> _32)


def multiply_wide(a: Array, b: Array) -> Array:
    """a * b in twice the width."""
    wide = np.dtype(f"{a.dtype.kind}{2 * a.dtype.itemsize}")
    return a.astype(wide) * b.astype(wide)


def multiply_24(a: Array, b: Array, high: bool) -> Array:
    """mul24: the low or high 32 bits of a * b, 48 bits, for 24-bit operands."""
    wide = S64 if a.dtype.kind == "i" else U64
    shift = wide.type(wide.itemsize * 8 - 24)
    product = (a.astype(wide) << shift >> shift) * (b.astype(wide) << shift >> shift)
    return (product >> wide.type(16) if high else product).astype(a.dtype)


def shift_left(a: Array, n: Array) -> Array:
    """Amounts of the width and above give 0 (NumPy clamps them as PTX does)."""
    return np.left_shift(a, np.minimum(n, U32.type(127)).astype(a.dtype))


def shift_right(a: Array, n: Array) -> Array:
    """Arithmetic for signed types; amounts of the width and above clamp."""
    return np.right_shift(a, np.minimum(n, U32.type(127)).astype(a.dtype))


def funnel_left(a: Array, b: Array, n: Array, wrap: bool) -> Array:
    """shf.l: the upper 32 bits of (b:a) << n."""
    n = _up_to_word(n, wrap)
    high = (_joined(b, a) << n.astype(U64)) >> _32
    return np.where(n == 32, a, high.astype(U32))


def funnel_right(a: Array, b: Array, n: Array, wrap: bool) -> Array:
    """shf.r: the lower 32 bits of (b:a) >> n."""
    return (_joined(b, a) >> _up_to_word(n, wrap).astype(U64)).astype(U32)


def _up_to_word(n: Array, wrap: bool) -> Array:
    """An amount of bits modulo 32, or 32 at most."""
    return n & U32.type(31) if wrap else np.minimum(n, U32.type(32))


def _joined(high: Array, low: Array) -> Array:
    return (high.astype(U64) << _32) | low


def low_mask(length: Array, dtype: np.dtype) -> Array:
    """`length` ones from bit 0, all ones from the width on."""
    bits = 8 * dtype.itemsize
    short = np.minimum(length, U32.type(bits - 1)).astype(dtype)
    ones = (dtype.type(1) << short) - dtype.type(1)
    return np.where(length >= bits, ~dtype.type(0), ones)


def extract_field(a: Array, position: Array, length: Array) -> Array:
    """bfe: zero- or sign-extended field; the sign bit is the field's last inside a."""
    u = unsigned(a)
    bits = 8 * u.dtype.itemsize
    position, length = position & U32.type(255), length & U32.type(255)
    mask = low_mask(length, u.dtype)
    field = shift_right(u, position) & mask
    if a.dtype.kind == "u":
        return field
    last = np.minimum(position + length - U32.type(1), U32.type(bits - 1))
    sign = (shift_right(u, last) & u.dtype.type(1)) != 0
    sign &= length != 0
    # Bits above the width read as the sign too, so fill from where the field stops.
    inside = np.minimum(length, U32.type(bits) - np.minimum(position, U32.type(bits)))
    return np.where(sign, field | ~low_mask(inside, u.dtype), field).view(a.dtype)


def insert_field(a: Array, b: Array, position: Array, length: Array) -> Array:
    """bfi: b with `length` bits from `position` replaced by the low bits of a."""
    position, length = position & U32.type(255), length & U32.type(255)
    mask = shift_left(low_mask(length, a.dtype), position)
    return (b & ~mask) | (shift_left(a, position) & mask)


def count_ones(a: Array) -> Array:
    """How many bits are set, as uint32."""
    return BYTE_BITS.take(parts(a, U8)).sum(-1, dtype=U32)


def reverse_bits(a: Array) -> Array:
    """The bits in the opposite order."""
    return joined(REVERSED_BYTE.take(parts(a, U8)[..., ::-1]), a.dtype)


def fill_below(a: Array) -> Array:
    """Every bit below the highest set bit is set too."""
    a = unsigned(a)
    shift = 1
    while shift < 8 * a.dtype.itemsize:
        a = a | (a >> a.dtype.type(shift))
        shift *= 2
    return a


def leading_zeros(a: Array) -> Array:
    """How many bits above the highest set bit are zero, as uint32."""
    return U32.type(8 * a.dtype.itemsize) - count_ones(fill_below(a))


def find_highest(a: Array, as_shift: bool) -> Array:
    """bfind: position of the highest set (for signed: non-sign) bit, or all ones."""
    u = unsigned(a)
    if a.dtype.kind == "i":
        u = np.where(a < 0, ~u, u)
    top = U32.type(8 * a.dtype.itemsize - 1)
    place = top - leading_zeros(u)
    out = top - place if as_shift else place
    return np.where(u == 0, U32.type(0xFFFFFFFF), out)


def find_nth_set(mask: Array, base: Array, offset: Array) -> Array:
    """fns: the nth set bit of `mask`, from bit `base` on, or all ones.

    n is the size of `offset`, its sign the direction; 0 asks for bit `base` itself.
    """
    shape = np.broadcast_shapes(mask.shape, base.shape, offset.shape)
    found = np.full(shape, 0xFFFFFFFF, U32)
    step = np.where(offset < 0, -1, 1)
    left = np.maximum(np.abs(offset.astype(S64)), 1)  # set bits to go
    here = np.broadcast_to(base.astype(S64), shape)
    for _ in range(32):
        inside = (here >= 0) & (here < 32) & (left > 0)
        bit = (mask >> np.where(inside, here, 0).astype(U32)) & U32.type(1)
        left = left - (inside & (bit != 0))
        hit = inside & (bit != 0) & (left == 0)
        found = np.where(hit, here.astype(U32), found)
        left = np.where(offset == 0, 0, left)  # looks at one bit only
        here = here + step
    return found


def logical_not(a: Array) -> Array:
    """cnot: 1 where a is 0, else 0."""
    return (a == 0).astype(a.dtype)


def logic3(a: Array, b: Array, c: Array, table: int) -> Array:
    """lop3: the three-input function whose truth table is `table`."""
    out = np.zeros_like(a)
    for case in range(8):
        if table >> case & 1:
            x = a if case & 4 else ~a
            y = b if case & 2 else ~b
            z = c if case & 1 else ~c
            out = out | (x & y & z)
    return out


def permute_bytes(a: Array, b: Array, selector: Array) -> Array:
    """prmt, generic mode: each selector nibble picks a byte, or repeats its sign."""
    both = _joined(b, a)
    out = np.zeros(np.broadcast_shapes(both.shape, selector.shape), U32)
    for i in range(4):
        pick = (selector >> U32.type(4 * i)) & U32.type(15)
        byte = (both >> ((pick & U32.type(7)) * U32.type(8)).astype(U64)) & U64.type(
            255
        )
        sign = np.where(byte >> U64.type(7) != 0, U64.type(255), U64.type(0))
        byte = np.where(pick & U32.type(8) != 0, sign, byte)
        out |= byte.astype(U32) << U32.type(8 * i)
    return out


# PTX ISA, prmt: the generic selector that each special mode means for c = 0..3.
PERMUTE_MODES = {
    "f4e": (0x3210, 0x4321, 0x5432, 0x6543),
    "b4e": (0x5670, 0x6701, 0x7012, 0x0123),
    "rc8": (0x0000, 0x1111, 0x2222, 0x3333),
    "ecl": (0x3210, 0x3211, 0x3222, 0x3333),
    "ecr": (0x0000, 0x1110, 0x2210, 0x3210),
    "rc16": (0x1010, 0x3232, 0x1010, 0x3232),
}


def add_saturating(a: Array, b: Array, subtract: bool) -> Array:
    """add.sat.s32 / sub.sat.s32."""
    wide = a.astype(S64) - b if subtract else a.astype(S64) + b
    return np.clip(wide, -(1 << 31), (1 << 31) - 1).astype(a.dtype)


def add_with_carry(a: Array, b: Array, carry: Array) -> tuple[Array, Array]:
    """(a + b + carry, carry out as 0 or 1 of the same type), unsigned."""
    partial = a + b
    total = partial + carry
    out = (partial < a) | (total < partial)
    return total, out.astype(a.dtype)


def dot(a: Array, b: Array, upper: bool | None) -> Array:
    """Multiplies byte by byte and adds up, as int64: dp4a, or dp2a with half of b.

    dp4a (`upper` None) takes four bytes of each; dp2a two 16-bit parts of a and the
    lower or upper two bytes of b.
    """
    y = _terms(b, 1)
    if upper is None:
        return (_terms(a, 1) * y).sum(-1)
    return (_terms(a, 2) * (y[..., 2:] if upper else y[..., :2])).sum(-1)


def _terms(x: Array, size: int) -> Array:
    return parts(x, np.dtype(f"{x.dtype.kind}{size}")).astype(S64)


def extend_sign(a: Array, length: Array, wrap: bool) -> Array:
    """szext: the low `length` bits of a, sign- or zero-extended."""
    return extract_field(a, np.zeros((1, 1, 1), U32), _up_to_word(length, wrap))
