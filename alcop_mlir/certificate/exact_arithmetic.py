"""Integer instructions on exact values, lane by lane (PTX ISA "Integer Arithmetic")."""

from __future__ import annotations

from functools import cache

import numpy as np

from alcop_mlir.certificate.comparisons import COMPARISONS, UNSIGNED
from alcop_mlir.certificate.values import Exact, Lanes, masked, signed

# What may stand in an opcode beside its types and a comparison: of `.sat`, `.relu` and
# all others nothing is known.
_KNOWN = {"lo", "hi", "wide", "cc", "to", "shared", "global", "pred"}
_KNOWN |= COMPARISONS.keys() | UNSIGNED.keys()


@cache
def scalar_types(parts: tuple[str, ...]) -> list[tuple[str, int]]:
    """The types in an opcode: kind (one of s, u, b, f) and bits; none where it has a
    modifier that changes what the instruction does.
    """
    types = [p for p in parts[1:] if p[0] in "subf" and p[1:].isdigit()]
    if not _KNOWN.issuperset(set(parts[1:]) - set(types)):
        return []
    return [(part[0], int(part[1:])) for part in types]


def bits_read(parts: tuple[str, ...], count: int, width: int) -> list[int]:
    """How many bits of each operand an instruction reads: counts of bits have 32, and
    what is added to a wide multiplication as many as that.
    """
    counts = {"shl": 1, "shr": 1, "bfe": 1, "bfi": 2}.get(parts[0], count)
    added = 2 * width if "wide" in parts else width
    read = [width if place < 2 else added for place in range(count)]
    return [bits if place < counts else 32 for place, bits in enumerate(read)]


def compute(parts: tuple[str, ...], values: list[Lanes]) -> Exact | None:
    """What the instruction gives, or None where it is none of these."""
    types = scalar_types(parts)
    if not types or any(kind == "f" for kind, _ in types):
        return None
    kind, width = types[-1]
    is_signed = kind == "s"
    with np.errstate(all="ignore"):
        if parts[0] in _BITWISE:
            return Exact(masked(_BITWISE[parts[0]](*values), width))
        if parts[0] in ("mul", "mad"):
            return _multiplied(parts, values, width, is_signed)
        if parts[0] == "cvt":
            return _converted(types, values[0])
        reader = signed if is_signed else masked
        numbers = [reader(one, width) for one in values]
        found = _OTHER.get(parts[0])
        result = None if found is None else found(numbers, values, width, is_signed)
        return None if result is None else Exact(masked(result, width))


_BITWISE = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "not": lambda a: ~a,
    "neg": lambda a: ~a + np.uint64(1),
    "cnot": lambda a: (a == 0).astype(np.uint64),
}


def _multiplied(
    parts: tuple[str, ...], values: list[Lanes], width: int, is_signed: bool
) -> Exact:
    """`mul` and `mad`, low, high or wide half."""
    reader = signed if is_signed else masked
    first, second = (reader(one, width) for one in values[:2])
    out = width
    if "wide" in parts:
        result, out = (first * second).astype(np.uint64), 2 * width
    elif "hi" in parts:
        result = _high_half(first, second, width)
    else:
        result = values[0] * values[1]
    if parts[0] == "mad":
        result = result + values[2]
    return Exact(masked(result, out))


def _high_half(first: np.ndarray, second: np.ndarray, width: int) -> np.ndarray:
    """The upper half of `first * second`, of wide numbers by halves of these."""
    if width < 64:
        return (first * second >> width).astype(np.uint64)
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    a, b = first.astype(np.uint64), second.astype(np.uint64)
    upper, lower = (a >> half) * (b & low), (a & low) * (b & low)
    middle = upper + (lower >> half)
    other = (a & low) * (b >> half) + (middle & low)
    found = (a >> half) * (b >> half) + (middle >> half) + (other >> half)
    if first.dtype == np.int64:
        found = found - np.where(first < 0, b, 0) - np.where(second < 0, a, 0)
    return found


def _converted(types: list[tuple[str, int]], lanes: Lanes) -> Exact:
    """`cvt` between integers: cut, or extended by the sign."""
    (_, to), (kind, of) = types[0], types[-1]
    source = signed(lanes, of).astype(np.uint64) if kind == "s" else masked(lanes, of)
    return Exact(masked(source, to))


def _shift_left(numbers, values, width, is_signed):
    count = values[1] & np.uint64(0xFFFFFFFF)
    shifted = values[0] << np.minimum(count, np.uint64(63))
    return np.where(count >= width, np.uint64(0), shifted)


def _shift_right(numbers, values, width, is_signed):
    count = np.minimum(values[1] & np.uint64(0xFFFFFFFF), np.uint64(width))
    if is_signed:
        return numbers[0] >> np.minimum(count, np.uint64(width - 1)).astype(np.int64)
    shifted = numbers[0] >> np.minimum(count, np.uint64(63))
    return np.where(count >= width, np.uint64(0), shifted)


def _divided(numbers, values, width, is_signed):
    first, second = numbers
    if (second == 0).any():
        return None
    if not is_signed:
        return first // second
    # Without a sign the least number has an opposite too.
    quotient = abs(first).view(np.uint64) // abs(second).view(np.uint64)
    quotient = quotient.view(np.int64)
    return np.where((first < 0) == (second < 0), quotient, -quotient)


def _remainder(numbers, values, width, is_signed):
    quotient = _divided(numbers, values, width, is_signed)
    return None if quotient is None else numbers[0] - quotient * numbers[1]


def _only(lanes: Lanes) -> int | None:
    """The lowest byte, where all lanes have the same number."""
    return int(lanes.flat[0]) & 0xFF if (lanes == lanes.flat[0]).all() else None


def _extracted(numbers, values, width, is_signed):
    """`bfe` with the same place and length in all lanes."""
    place, length = _only(values[1]), _only(values[2])
    if place is None or length is None:
        return None
    if place + length > width:
        return None
    field = (masked(values[0], width) >> np.uint64(place)) & np.uint64(
        (1 << length) - 1
    )
    return signed(field, length) if is_signed and length else field


def _inserted(numbers, values, width, is_signed):
    """`bfi` with the same place and length in all lanes."""
    place, length = _only(values[2]), _only(values[3])
    if place is None or length is None:
        return None
    if place + length > width:
        return None
    mask = np.uint64(((1 << length) - 1) << place)
    return (values[1] & ~mask) | ((values[0] << np.uint64(place)) & mask)


def _logic(numbers, values, width, is_signed):
    """`lop3`: any function of three bits, by its table of eight."""
    a, b, c = values[:3]
    table = int(values[3].flat[0])
    result = np.zeros(np.broadcast(a, b, c).shape, np.uint64)
    for row in range(8):
        if table >> row & 1:
            x = a if row & 4 else ~a
            y = b if row & 2 else ~b
            result |= x & y & (c if row & 1 else ~c)
    return result


_OTHER = {
    "shl": _shift_left,
    "shr": _shift_right,
    "min": lambda n, *_: np.minimum(*n),
    "max": lambda n, *_: np.maximum(*n),
    "abs": lambda n, *_: np.abs(n[0]),
    "div": _divided,
    "rem": _remainder,
    "bfe": _extracted,
    "bfi": _inserted,
    "lop3": _logic,
}
