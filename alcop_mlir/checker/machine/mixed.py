"""Numbers of threads plus symbols: `constant + symbols * coefficients` in each.

A register holds such a sum modulo 2**width. Where the sum surely is in the range of
that width, it is the number itself. All functions raise Unknown where they cannot tell.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from alcop_mlir.checker.logic import terms
from alcop_mlir.checker.logic.terms import Term
from alcop_mlir.checker.machine.arithmetic import (
    Mixed,
    Same,
    Unknown,
    Value,
    bits_read,
    signed,
    unsigned,
)

_LARGE = 1 << 61
Residues = dict[Any, tuple[Any, int]]  # of symbols, each modulo a power of two
MOST_TOLD_APART = 8


def mixed(value: Value, width: int, threads: int) -> Mixed:
    """Any number, read as one of that width."""
    if isinstance(value, Mixed):
        if value.width < width and not value.is_number:
            raise Unknown
        return Mixed(value.parts, value.constant, value.low, value.high, width)
    if isinstance(value, Same):
        factors = {s: np.full(threads, _small(c)) for s, c in value.term.items()}
        constant = factors.pop("", np.zeros(threads, np.int64))
        return Mixed(factors, constant, value.low, value.high, width)
    if not isinstance(value, np.ndarray):
        raise Unknown
    lanes = np.broadcast_to(signed(value, width), (threads,))
    return Mixed({}, lanes, int(lanes.min()), int(lanes.max()), width)


def _small(number: int) -> int:
    if abs(number) > _LARGE:
        raise Unknown
    return number


def simplest(value: Mixed) -> Value:
    """Numbers where no symbol is left, a term where all threads share it."""
    parts = {s: c for s, c in value.parts.items() if c.any()}
    if not parts:
        return unsigned(value.constant, value.width)
    if value.is_number and all(
        (c == c[0]).all() for c in (*parts.values(), value.constant)
    ):
        term: Term = {s: int(c[0]) for s, c in parts.items()}
        return Same({**term, "": int(value.constant[0])}, value.low, value.high)
    return Mixed(parts, value.constant, value.low, value.high, value.width)


def either(mask: np.ndarray | None, one: Value, other: Value) -> Value:
    """`one` in the threads of the mask, `other` in the rest; None if unknown."""
    if one is other:
        return one
    if mask is None:
        return None
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return np.where(mask, one, other)
    width = min(v.width if isinstance(v, Mixed) else 64 for v in (one, other))
    try:
        a, b = mixed(one, width, len(mask)), mixed(other, width, len(mask))
    except Unknown:
        return None
    none = np.zeros(len(mask), np.int64)
    parts = {
        s: np.where(mask, a.parts.get(s, none), b.parts.get(s, none))
        for s in a.parts.keys() | b.parts.keys()
    }
    low, high = min(a.low, b.low), max(a.high, b.high)
    return simplest(
        Mixed(parts, np.where(mask, a.constant, b.constant), low, high, width)
    )


def computed(
    parts: list[str],
    kinds: list[tuple[str, int]],
    values: list[Value],
    threads: int,
    known: tuple[Residues, str],
) -> Value:
    """The integer instruction; known: residues, and a name for a * b."""
    if not kinds or any(k == "f" for k, _ in kinds):
        raise Unknown
    (kind, width), name = kinds[-1], parts[0]
    out = 2 * width if "wide" in parts else width
    read = (bits_read(parts, place, width) for place in range(len(values)))
    v = [mixed(one, bits, threads) for one, bits in zip(values, read, strict=True)]
    if name == "cvt":
        if kinds[0][1] > width and not _is_read(v[0], kind):
            raise Unknown
        a = v[0]
        return simplest(Mixed(a.parts, a.constant, a.low, a.high, kinds[0][1]))
    if name in ("mul", "mad"):
        if "hi" in parts or (out > width and not all(_is_read(x, kind) for x in v[:2])):
            raise Unknown
        found = product(v[0], v[1], out, known[1])
        return simplest(found if name == "mul" else total(found, v[2], 1, out))
    if name in ("add", "sub"):
        return simplest(total(v[0], v[1], 1 if name == "add" else -1, width))
    if name == "and":
        v = [_low(v[0], v[1], known[0]), _low(v[1], v[0], known[0])]
    if name in ("and", "or", "xor"):
        return simplest(_bitwise(name, v[0], v[1], width))
    if name == "bfe" and kind != "s":
        return simplest(_field(v[0], v[1], v[2], width))
    if name not in ("shl", "shr"):
        raise Unknown
    by = v[1].low
    if v[1].parts or by != v[1].high or not 0 <= by < min(width, 40):
        raise Unknown
    if name == "shl":
        power = Mixed({}, np.full(threads, 1 << by), 1 << by, 1 << by, width)
        return simplest(product(power, v[0], width))
    if not _is_read(v[0], kind) or not _divides(by, v[0], False):
        raise Unknown
    cut = {s: c >> by for s, c in v[0].parts.items()}
    low, high = v[0].low >> by, v[0].high >> by
    return simplest(Mixed(cut, v[0].constant >> by, low, high, width))


def _field(a: Mixed, place: Mixed, length: Mixed, width: int) -> Mixed:
    """Bits of a sum that no symbol changes."""
    low, count = place.low, length.low
    if any(x.parts or x.low != x.high or x.low < 0 for x in (place, length)):
        raise Unknown
    if low + count > width or not _divides(low + count, a, False):
        raise Unknown
    found = a.constant >> low & (1 << count) - 1
    return Mixed({}, found, int(found.min()), int(found.max()), width)


def _is_read(a: Mixed, kind: str) -> bool:
    """Whether the instruction reads the sum itself."""
    return a.is_number and (kind == "s" or a.low >= 0)


def _checked(a: Mixed) -> Mixed:
    if _largest(a) > _LARGE:
        raise Unknown
    return a


def _largest(a: Mixed) -> int:
    """The largest number in it without its sign: that of the least one is larger than
    all of 64 bits.
    """
    every = (*a.parts.values(), a.constant)
    return max(max(int(c.max()), -int(c.min())) for c in every)


def total(a: Mixed, b: Mixed, sign: int, width: int) -> Mixed:
    """a + sign * b."""
    parts = dict(a.parts)
    for s, c in b.parts.items():
        parts[s] = parts.get(s, 0) + sign * c
    ends = sign * b.low, sign * b.high
    low, high = a.low + min(ends), a.high + max(ends)
    return _checked(Mixed(parts, a.constant + sign * b.constant, low, high, width))


def product(a: Mixed, b: Mixed, width: int, fresh: str = "") -> Mixed:
    """a * b; two symbols that never change are one together, and `fresh` one
    other.
    """
    if _largest(a) * _largest(b) > _LARGE:
        raise Unknown
    parts: dict[Any, np.ndarray] = {}
    others = 0
    for s, x in (*a.parts.items(), ("", a.constant)):
        for t, y in (*b.parts.items(), ("", b.constant)):
            symbol = s or t
            if s and t and _is_fixed(s) and _is_fixed(t):
                symbol = "*".join(sorted((s, t)))
            elif s and t:
                symbol, others = fresh, others + 1
            parts[symbol] = parts.get(symbol, 0) + x * y
    if others > 1 or (others and not fresh):
        raise Unknown
    ends = [a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high]
    return _checked(Mixed(parts, parts.pop(""), min(ends), max(ends), width))


def _is_fixed(symbol: Any) -> bool:
    """Whether it is a parameter or a special register."""
    return symbol[0] in ".%"


def _is_mask(value: Mixed) -> bool:
    return not value.parts and 0 <= value.low and value.high < MOST_TOLD_APART


def open_symbols(a: Mixed, mask: Mixed, known: Residues) -> dict[Any, int]:
    """The symbols on which the lowest bits depend, where a mask asks for those, and
    modulo what.
    """
    if not _is_mask(mask):
        return {}
    by = 1 << mask.high.bit_length()
    found = {s: by // int(np.gcd(c, by).min()) for s, c in a.parts.items()}
    return {s: m for s, m in found.items() if m > known.get(s, (0, 1))[1]}


def _low(a: Mixed, mask: Mixed, residues: Residues) -> Mixed:
    """What has the lowest bits of a sum, by the residues of symbols."""
    if not _is_mask(mask):
        return a
    by = 1 << mask.high.bit_length()
    told = {s: r for s, (r, m) in residues.items() if s in a.parts}
    known = {s for s in told if not (a.parts[s] * residues[s][1] % by).any()}
    constant = a.constant + sum(a.parts[s] * told[s] for s in known)
    parts = {s: c for s, c in a.parts.items() if s not in known}
    return Mixed(parts, constant, a.low, a.high, a.width)


def _divides(bits: int, a: Mixed, with_constant: bool) -> bool:
    """Whether 2**bits divides all coefficients."""
    every = [*a.parts.values(), *([a.constant] if with_constant else [])]
    return bits < 60 and not any((c % (1 << bits)).any() for c in every)


def _bitwise(name: str, a: Mixed, b: Mixed, width: int) -> Mixed:
    """Where the one has low bits only, and those of the other are known."""
    for x, y in ((a, b), (b, a)):
        bits = y.high.bit_length()
        is_low = y.low >= 0 and bits <= width
        if is_low and name != "and" and _divides(bits, x, True):
            return total(x, y, 1, width)
        if y.parts:
            continue
        if y.high < 0 and name == "and":
            rest = Mixed({}, -1 - y.constant, -1 - y.high, -1 - y.low, width)
            return total(x, _bitwise("and", x, rest, width), -1, width)
        if not is_low:
            continue
        if _divides(bits, x, False):
            known = x.constant % (1 << bits)
            if name == "and":
                found = known & y.constant
                return Mixed({}, found, int(found.min()), int(found.max()), width)
            found = (known | y.constant if name == "or" else known ^ y.constant) - known
            more = Mixed({}, found, int(found.min()), int(found.max()), width)
            return total(x, more, 1, width)
        if name == "and" and y.low == y.high == (1 << bits) - 1:
            if x.low >= 0 and x.high <= y.low:
                return x
    raise Unknown


def replaced(value: Mixed, values: dict[Any, Term]) -> Mixed:
    """The sum with terms for symbols."""
    parts: dict[Any, np.ndarray] = {}
    constant = value.constant
    for symbol, factors in value.parts.items():
        term = terms.replaced({symbol: 1}, values)
        many = max(abs(c) for c in term.values())
        if many * int(np.abs(factors).max()) > _LARGE:
            raise Unknown
        for s, c in term.items():
            if s == "":
                constant = constant + factors * c
            else:
                parts[s] = parts.get(s, 0) + factors * c
    return _checked(Mixed(parts, constant, value.low, value.high, value.width))


def narrowed(value: Mixed, ranges: dict[str, tuple[int, int]]) -> tuple[int, int]:
    """The range of a sum, also by the ranges of its symbols."""
    low, high = int(value.constant.min()), int(value.constant.max())
    for symbol, factors in value.parts.items():
        if symbol not in ranges:
            return value.low, value.high
        every = [
            int(f) * x for f in (factors.min(), factors.max()) for x in ranges[symbol]
        ]
        low, high = low + min(every), high + max(every)
    return max(low, value.low), min(high, value.high)


def is_same(a: Mixed, b: Mixed) -> bool:
    """Whether two are the same."""
    if a.width != b.width or (a.constant != b.constant).any():
        return False
    none = np.zeros(1, np.int64)
    every = a.parts.keys() | b.parts.keys()
    return not any((a.parts.get(s, none) != b.parts.get(s, none)).any() for s in every)
