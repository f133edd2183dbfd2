"""What an instruction leaves in a register: the kinds of it, and terms that all share.

PTX ISA "Integer Arithmetic Instructions", "Comparison and Selection Instructions",
"Logic and Shift Instructions".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from math import gcd
from typing import Any

import numpy as np

from alcop_mlir.checker.logic import terms
from alcop_mlir.checker.logic.terms import Clause, Division, Quotient, Term
from alcop_mlir.checker.machine.bits import room


@dataclass(frozen=True)
class Same:
    """A number that all threads share: low <= term <= high."""

    term: Term
    low: int
    high: int


@dataclass(frozen=True)
class Holds:
    """A predicate that all threads share: where `true` holds, and where `false`."""

    true: Clause
    false: Clause


@dataclass(frozen=True, eq=False)
class Mixed:
    """In each thread `constant` plus symbols times coefficients, modulo 2**width."""

    parts: dict[Any, np.ndarray]
    constant: np.ndarray
    low: int
    high: int
    width: int

    @property
    def is_number(self) -> bool:
        """Whether the sum surely is what the register holds, with a sign."""
        half = 1 << (self.width - 1)
        return -half <= self.low and self.high < half


Value = np.ndarray | Same | Holds | Mixed | None


class Unknown(Exception):
    """Nothing is known but that all threads share the result."""


_KNOWN = set("lo hi wide cc to shared global pred".split())
_KNOWN |= set("lt le gt ge eq ne lo ls hi hs".split())


def types_of(parts: list[str]) -> list[tuple[str, int]]:
    """The types that an opcode names: a letter and bits; none where it has a modifier
    of which nothing is known, as `.sat`.
    """
    return _types(".".join(parts[1:]))


@cache
def _types(modifiers: str) -> list[tuple[str, int]]:
    parts = modifiers.split(".") if modifiers else []
    types = [p for p in parts if p[0] in "subf" and p[1:].isdigit()]
    is_known = _KNOWN.issuperset(set(parts) - set(types))
    return [(p[0], int(p[1:])) for p in types] if is_known else []


# From which operand on they are numbers of bits, which have 32 themselves.
_COUNTS = {"shl": 1, "shr": 1, "bfe": 1, "bfi": 2}


def bits_read(parts: list[str], place: int, width: int) -> int:
    """How many bits of an operand an instruction reads, by its number; width: of the
    type that the opcode ends with.
    """
    if place >= _COUNTS.get(parts[0], place + 1):
        return 32
    return 2 * width if "wide" in parts and place > 1 else width


def limits(width: int) -> tuple[int, int]:
    """The range of numbers with a sign."""
    return -(1 << (width - 1)), (1 << (width - 1)) - 1


def unsigned(lanes: np.ndarray, width: int) -> np.ndarray:
    """The lowest bits."""
    found = lanes.astype(np.uint64, copy=False)
    return found if width == 64 else found & np.uint64(2**width - 1)


def signed(lanes: np.ndarray, width: int) -> np.ndarray:
    """The lowest bits as a number with a sign."""
    found = unsigned(lanes, width)
    if width < 64:
        sign = np.uint64(1 << (width - 1))
        found = (found ^ sign) - sign
    return found.view(np.int64)


def is_equal(lanes: np.ndarray) -> bool:
    """Whether all threads have the same."""
    return bool((lanes == lanes.flat[0]).all())


def same(value: Value, width: int) -> Same | None:
    """The value as one that all threads share, if they surely do."""
    if isinstance(value, np.ndarray) and is_equal(value):
        found = int(signed(value[:1], width)[0])
        return Same(terms.number(found), found, found)
    return value if isinstance(value, Same) else None


def linear(parts: list[str], v: list[Same]) -> Same:
    """The instruction on what all threads share; raises Unknown."""
    kinds = types_of(parts)
    if not kinds or any(k == "f" for k, _ in kinds):
        raise Unknown
    (kind, width), name = kinds[-1], parts[0]
    a, b = v[0], v[1] if len(v) > 1 else v[0]
    fixed = b.low if b.low == b.high else None
    if name == "cvt":
        least, most = limits(width) if kind == "s" else (0, 2**width - 1)
        if kinds[0][1] > width and not least <= a.low <= a.high <= most:
            raise Unknown
        return fitting(a.term, a.low, a.high, kinds[0][1])
    if name in ("mul", "mad"):
        return _product(parts, v, width, kind == "s")
    if name == "add":
        return _sum(a, b, 1, width)
    if name == "sub":
        return _sum(a, b, -1, width)
    if name in ("neg", "not"):
        return _sum(_constant(-(name == "not")), a, -1, width)
    if name in ("min", "max"):
        if kind != "s" and min(a.low, b.low) < 0:
            raise Unknown
        return _extreme(a, b, name == "min")
    if name == "or":
        pairs = ((x, room(x.term, y.term)) for x, y in (v, v[::-1]))
        if not any(0 <= x.low and x.high < most for x, most in pairs):
            raise Unknown
        return _sum(a, b, 1, width)
    if name == "and":
        return _masked(v, width)
    if name == "bfe" and kind != "s" and a.low >= 0 and fixed is not None:
        if v[2].low == v[2].high and fixed in range(width) and v[2].low in range(width):
            cut = _floor(a, 1 << fixed, width)
            return _modulo(cut, 1 << v[2].low, width)
    if fixed is None:
        raise Unknown
    if name == "shl" and 0 <= fixed < width:
        return _times(a, 1 << fixed, width)
    if name == "shr" and 0 <= fixed < width:
        is_signed = kind == "s" or a.low >= 0
        return (_floor if is_signed else _shifted_in)(a, 1 << fixed, width)
    if name in ("div", "rem") and fixed > 0 and a.low >= 0:
        return (_floor if name == "div" else _modulo)(a, fixed, width)
    raise Unknown


def fitting(term: Term, low: int, high: int, width: int) -> Same:
    """The term, where it surely is a number of that width."""
    low, high = _within(term, low, high)
    if low < -(1 << (width - 1)) or high >= 1 << (width - 1):
        raise Unknown
    return _constant(low) if low == high else Same(term, low, high)


def _within(term: Term, low: int, high: int) -> tuple[int, int]:
    """The range, or that of the rest of a division, if the term is one."""
    for symbol, factor in term.items():
        if isinstance(symbol, Division) and symbol.is_rest:
            one = terms.minus(term, {symbol: 1})
            low = max(low, one.get("", 0)) if terms.is_constant(one) else low
        if isinstance(symbol, Quotient) and factor % symbol.divisor == 0:
            times, divisor = -factor // symbol.divisor, symbol.divisor
            rest = terms.plus(symbol.dividend, {symbol: 1}, -divisor)
            left = terms.plus(term, rest, -times)
            if terms.is_constant(left):
                one = left.get("", 0)
                other = one + times * (divisor - 1)
                low, high = max(low, min(one, other)), min(high, max(one, other))
    return low, high


def _constant(value: int) -> Same:
    return Same(terms.number(value), value, value)


def _sum(a: Same, b: Same, sign: int, width: int) -> Same:
    low, high = sorted((sign * b.low, sign * b.high))
    term = terms.plus(a.term, b.term, sign)
    return fitting(term, a.low + low, a.high + high, width)


def _times(a: Same, factor: int, width: int) -> Same:
    low, high = sorted((a.low * factor, a.high * factor))
    return fitting(terms.plus({}, a.term, factor), low, high, width)


def _floor(a: Same, by: int, width: int) -> Same:
    return fitting(terms.quotient(a.term, by), a.low // by, a.high // by, width)


def _shifted_in(a: Same, by: int, width: int) -> Same:
    """A quotient without a sign: where `a` is negative 2**width is added to it."""
    cut, above = terms.quotient(a.term, by), 2**width // by
    is_small = -by <= a.low and a.high < by
    # -1 or 0; of small numbers the quotient is.
    sign = cut if is_small else terms.quotient(a.term, 2 ** (width - 1))
    return fitting(terms.plus(cut, sign, -above), 0, above - 1, width)


def _modulo(a: Same, by: int, width: int) -> Same:
    if 0 <= a.low and a.high < by:
        return fitting(a.term, a.low, a.high, width)
    term = terms.plus(a.term, terms.quotient(a.term, by), -by)
    if terms.is_constant(term):
        return _constant(term.get("", 0))
    return fitting(term, 0, by - 1, width)


def _masked(v: list[Same], width: int) -> Same:
    mask, a = sorted(v, key=lambda one: one.low != one.high)
    bits = mask.low
    if bits != mask.high or not bits:
        raise Unknown
    lowest = bits & -bits
    if bits < 0 and bits == -lowest:
        return _times(_floor(a, lowest, width), lowest, width)
    if bits > 0 and not (bits + lowest) & (bits + lowest - 1):  # ones in a row
        cut = _modulo(a, bits + lowest, width)
        return _times(_floor(cut, lowest, width), lowest, width)
    raise Unknown


def _product(parts: list[str], v: list[Same], width: int, has_sign: bool) -> Same:
    fixed, a = sorted(v[:2], key=lambda one: one.low != one.high)
    by = fixed.low
    if by != fixed.high:
        raise Unknown
    if "hi" in parts:
        found = _high(a, by % 2**width, width, has_sign)
    elif "wide" in parts and not has_sign and (a.low < 0 or by < 0):
        raise Unknown
    else:
        found = _times(a, by, 2 * width if "wide" in parts else width)
    if parts[0] == "mul":
        return found
    return _sum(found, v[2], 1, 2 * width if "wide" in parts else width)


def _high(a: Same, by: int, width: int, has_sign: bool) -> Same:
    """floor(a * by / 2**width) = floor(a * n / d), if by * d is just above
    n * 2**width: the difference times a is less than 2**width.
    """
    if a.low < 0 or has_sign or not by:
        raise Unknown
    for n in range(1, 64):
        d = -(-n * 2**width // by)
        if d > 1 and 0 <= (by * d - n * 2**width) * a.high < 2**width:
            whole = terms.quotient(terms.plus({}, a.term, n), d)
            return fitting(whole, a.low * n // d, a.high * n // d, width)
    raise Unknown


def _extreme(a: Same, b: Same, is_min: bool) -> Same:
    if a.high <= b.low or b.high <= a.low:
        return a if is_min == (a.high <= b.low) else b
    less = terms.minus(b.term, a.term) if is_min else terms.minus(a.term, b.term)
    of = min if is_min else max
    test = at_least(less)
    term = terms.choice(test.true, test.false, a.term, b.term)
    return Same(term, of(a.low, b.low), of(a.high, b.high))


def at_least(term: Term) -> Holds:
    """Where a term is not negative."""
    divisor = common([c for s, c in term.items() if s != ""])
    term = {s: c // divisor for s, c in term.items()}
    return Holds([[term]], [[terms.opposite(term)]])


def common(numbers: list[int]) -> int:
    """What divides them all."""
    return gcd(*numbers) or 1


def chosen(test: Holds, a: Same, b: Same) -> Same:
    """`a` where the predicate holds, else `b`."""
    a, b = _where(a, test.true), _where(b, test.false)
    term = _carry(test, a, b) or terms.choice(test.true, test.false, a.term, b.term)
    return Same(term, min(a.low, b.low), max(a.high, b.high))


def _where(value: Same, clause: Clause) -> Same:
    """The value in the range that it has where the facts of one alternative hold."""
    return limited(value, clause[0], {}) if len(clause) == 1 else value


def limited(
    value: Same, facts: Iterable[Term], ranges: Mapping[str, tuple[Any, Any]]
) -> Same:
    """The value in the range that facts leave: where it is n times one of them plus c,
    a number or a symbol, it is at least c, or at most, if n is negative.
    """
    low, high = value.low, value.high
    for fact in facts:
        for symbol in [s for s, c in fact.items() if s and c]:
            times, rest = divmod(value.term.get(symbol, 0), fact[symbol])
            beside = terms.plus(value.term, fact, -times)
            names = [s for s, c in beside.items() if s and c]
            if rest or not times or len(names) > 1 or not set(names) <= ranges.keys():
                continue
            ends = [beside[s] * end for s in names for end in ranges[s]] or [0]
            if times > 0:
                low = max(low, beside.get("", 0) + min(ends))
            else:
                high = min(high, beside.get("", 0) + max(ends))
    return Same(value.term, low, high) if low <= high else value


def _carry(test: Holds, a: Same, b: Same) -> Term | None:
    """1 where x has a rest on division by d, else 0: ceil(x / d) - floor(x / d)."""
    values = (a.low, a.high, b.low, b.high)
    zero = {(1, 1, 0, 0): test.false, (0, 0, 1, 1): test.true}.get(values)
    if zero is None or len(zero) != 1 or len(zero[0]) != 2:
        return None
    fact, other = zero[0]
    if terms.frozen(terms.plus(fact, other)):
        return None
    divisor = common(list(fact.values()))
    for symbol in fact:
        if isinstance(symbol, Quotient):
            x, d = symbol.dividend, symbol.divisor
            rest = terms.frozen(terms.plus(x, {symbol: 1}, -d))
            for sign in (1, -1):
                scaled = {s: sign * c // divisor for s, c in fact.items()}
                if terms.frozen(scaled) == rest:
                    up = terms.quotient(terms.plus(x, terms.number(d - 1)), d)
                    return terms.minus(up, {symbol: 1})
    return None
