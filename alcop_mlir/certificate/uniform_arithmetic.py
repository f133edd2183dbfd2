"""Integer instructions on unknowns that all threads share, as linear terms.

Where a result may leave the range of its type it is a new unknown: terms are those of
mathematics, and no fact about them holds modulo 2**32.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from alcop_mlir.certificate import linear
from alcop_mlir.certificate.exact_arithmetic import scalar_types
from alcop_mlir.certificate.linear import Linear, Symbols
from alcop_mlir.certificate.values import Uniform

_PAST = 1 << 64  # the bits of a register
_MOST_NUMERATOR = 64  # of a fraction that a high half multiplies by


def limits_of(width: int) -> tuple[int, int]:
    """The least and the largest signed number."""
    return -(1 << (width - 1)), (1 << (width - 1)) - 1


class NoTerm(Exception):
    """The result of an instruction is no linear term, or may not fit its type."""


class UniformArithmetic:
    """Makes the terms that instructions give."""

    def __init__(self, symbols: Symbols):
        self.symbols = symbols

    def compute(self, parts: tuple[str, ...], values: list[Uniform]) -> Uniform:
        """What the instruction gives; raises NoTerm where that is unknown."""
        types = scalar_types(parts)
        if not types or any(kind == "f" for kind, _ in types):
            raise NoTerm
        kind, width = types[-1]
        if parts[0] == "cvt":
            return self._converted(types, values[0])
        if parts[0] in ("mul", "mad"):
            return self._multiplied(parts, values, width, kind == "s")
        handler = getattr(self, f"_{parts[0]}", None)
        if handler is None:
            raise NoTerm
        return handler(values, width, kind == "s")

    def fitting(self, term: Linear, low: int, high: int, width: int) -> Uniform:
        """The term, where it surely fits."""
        low, high = self._within(term, low, high)
        least, most = limits_of(width)
        if low < least or high > most:
            raise NoTerm
        if low == high:
            term = linear.constant(low)
        return Uniform(term, low, high)

    def _within(self, term: Linear, low: int, high: int) -> tuple[int, int]:
        """The range, or that of a rest of a division, where the term is one."""
        for symbol, factor in term.terms.items():
            known = self.symbols.made.get(symbol)
            if isinstance(known, linear.Division) and known.is_rest:
                low = max(low, term.constant) if term.terms == {symbol: 1} else low
            if isinstance(known, linear.Quotient) and factor % known.divisor == 0:
                by, divisor = -factor // known.divisor, known.divisor
                left = term - (known.dividend - Linear({symbol: divisor})) * by
                if not left.terms:
                    ends = sorted((left.constant, left.constant + by * (divisor - 1)))
                    low, high = max(low, ends[0]), min(high, ends[1])
        return low, high

    def _add(self, v: list[Uniform], width: int, is_signed: bool) -> Uniform:
        a, b = v
        return self.fitting(a.term + b.term, a.low + b.low, a.high + b.high, width)

    def _sub(self, v: list[Uniform], width: int, is_signed: bool) -> Uniform:
        a, b = v
        return self.fitting(a.term - b.term, a.low - b.high, a.high - b.low, width)

    def _neg(self, v: list[Uniform], width: int, is_signed: bool) -> Uniform:
        (a,) = v
        return self.fitting(-a.term, -a.high, -a.low, width)

    def _not(self, v: list[Uniform], width: int, is_signed: bool) -> Uniform:
        (a,) = v
        return self.fitting(-a.term - 1, -a.high - 1, -a.low - 1, width)

    def _scaled(self, a: Uniform, factor: int, width: int) -> Uniform:
        low, high = sorted((a.low * factor, a.high * factor))
        return self.fitting(a.term * factor, low, high, width)

    def _multiplied(
        self, parts: tuple[str, ...], v: list[Uniform], width: int, is_signed: bool
    ) -> Uniform:
        a, b = sorted(v[:2], key=lambda one: one.low != one.high)
        # `a` is the constant, if any is.
        out = 2 * width if "wide" in parts else width
        if "hi" in parts:
            product = self._high_half(b, a, width, is_signed)
        elif a.low != a.high:
            raise NoTerm
        elif "wide" in parts and not is_signed and (a.low < 0 or b.low < 0):
            raise NoTerm
        else:
            product = self._scaled(b, a.low, out)
        if parts[0] == "mul":
            return product
        return self._add([product, v[2]], out, is_signed)

    def _high_half(
        self, a: Uniform, factor: Uniform, width: int, is_signed: bool
    ) -> Uniform:
        """a * c / 2**width, where compilers mean a * n / d: c * d - n * 2**width is
        small and not negative (Granlund and Montgomery, "Division by Invariant
        Integers using Multiplication", 1994, theorem 4.2).
        """
        if factor.low != factor.high or a.low < 0 or is_signed:
            raise NoTerm
        whole = 1 << width
        number = factor.low % whole
        for numerator in range(1, _MOST_NUMERATOR):
            divisor = -(-numerator * whole // max(number, 1))
            error = number * divisor - numerator * whole
            if divisor > 1 and 0 <= error and error * a.high < whole:
                term = self.symbols.quotient(a.term * numerator, divisor)
                low, high = (n * numerator // divisor for n in (a.low, a.high))
                return self.fitting(term, low, high, width)
        raise NoTerm

    def _shl(self, v: list[Uniform], width: int, is_signed: bool) -> Uniform:
        a, b = v
        if b.low != b.high or not 0 <= b.low < width:
            raise NoTerm
        return self._scaled(a, 1 << b.low, width)

    def _floor(self, a: Uniform, divisor: int, width: int) -> Uniform:
        term = self.symbols.quotient(a.term, divisor)
        return self.fitting(term, a.low // divisor, a.high // divisor, width)

    def _modulo(self, a: Uniform, divisor: int, width: int) -> Uniform:
        if 0 <= a.low and a.high < divisor:
            return self.fitting(a.term, a.low, a.high, width)
        term = a.term - self.symbols.quotient(a.term, divisor) * divisor
        if not term.terms:
            return Uniform(term, term.constant, term.constant)
        return self.fitting(term, 0, divisor - 1, width)

    def _shr(self, v: list[Uniform], width: int, is_signed: bool) -> Uniform:
        a, b = v
        if b.low != b.high or not 0 <= b.low < width:
            raise NoTerm
        if a.low < 0 and not is_signed:
            return self._shifted_in(a, b.low, width)
        return self._floor(a, 1 << b.low, width)

    def _shifted_in(self, a: Uniform, count: int, width: int) -> Uniform:
        """`shr` that shifts zeros in, of what may be negative: 2**width is added there.

        Of few bits the quotient is itself what says so, -1 or 0.
        """
        by = 1 << count
        cut = self.symbols.quotient(a.term, by)
        is_small = -by <= a.low and a.high < by
        sign = cut if is_small else self.symbols.quotient(a.term, 1 << (width - 1))
        most = (1 << (width - count)) - 1
        return self.fitting(cut - sign * (most + 1), 0, most, width)

    def _and(self, v: list[Uniform], width: int, is_signed: bool) -> Uniform:
        mask, a = sorted(v, key=lambda one: one.low != one.high)
        bits = mask.low
        if bits != mask.high:
            raise NoTerm
        if bits >= 0 and not bits & (bits + 1):
            return self._modulo(a, bits + 1, width)
        if bits < 0 and not -bits & (-bits - 1):
            rounded = self._floor(a, -bits, width)
            return self._scaled(rounded, -bits, width)
        lowest = bits & -bits
        if bits > 0 and not (bits + lowest) & (bits + lowest - 1):  # ones in a row
            cut = self._modulo(a, bits + lowest, width)
            return self._scaled(self._floor(cut, lowest, width), lowest, width)
        raise NoTerm

    def _or(self, v: list[Uniform], width: int, is_signed: bool) -> Uniform:
        """`or` of numbers that share no bit is an addition."""
        pairs = ((a, _room(a.term, b.term)) for a, b in (v, v[::-1]))
        if not any(0 <= a.low and a.high < most for a, most in pairs):
            raise NoTerm
        return self._add(v, width, is_signed)

    def _div(self, v: list[Uniform], width: int, is_signed: bool) -> Uniform:
        a, b = v
        if b.low != b.high or b.low <= 0 or a.low < 0:
            raise NoTerm
        return self._floor(a, b.low, width)

    def quotient(self, a: Uniform, b: Uniform) -> Uniform:
        """Of a division by what is not known."""
        if a.low < 0 or b.low < 1:
            raise NoTerm
        term, rest = (self.symbols.division(a.term, b.term, r) for r in (False, True))
        low, high = 0, a.high // b.low
        for symbol, most in ((*term.terms, high), (*rest.terms, a.high)):
            known = self.symbols.ranges.get(symbol, (0, most))
            self.symbols.ranges[symbol] = 0, max(most, known[1])
        return Uniform(term, low, high)

    def whole(self, a: Uniform, b: Uniform) -> Uniform:
        """A quotient times what was divided by: what was divided, but for the rest."""
        for one, by in ((a, b), (b, a)):
            known = self.symbols.made.get(next(iter(one.term.terms), ""))
            if not isinstance(known, linear.Division) or known.by != by.term:
                continue
            if one.term == self.symbols.division(known.dividend, known.by, False):
                rest = self.symbols.division(known.dividend, known.by, True)
                if (ends := _ends(rest, self.symbols.ranges)) is not None:
                    return Uniform(known.dividend - rest, *ends)
        raise NoTerm

    def _rem(self, v: list[Uniform], width: int, is_signed: bool) -> Uniform:
        a, b = v
        if b.low != b.high or b.low <= 0 or a.low < 0:
            raise NoTerm
        return self._modulo(a, b.low, width)

    def _bfe(self, v: list[Uniform], width: int, is_signed: bool) -> Uniform:
        a, place, length = v
        known = place.low == place.high and length.low == length.high
        if not known or a.low < 0 or is_signed:
            raise NoTerm
        if place.low not in range(width) or length.low not in range(width):
            raise NoTerm
        shifted = self._floor(a, 1 << place.low, width)
        return self._modulo(shifted, 1 << length.low, width)

    def _min(self, v: list[Uniform], width: int, is_signed: bool) -> Uniform:
        a, b = v
        if not is_signed and min(a.low, b.low) < 0:
            raise NoTerm
        return self.chosen(linear.at_least(b.term - a.term), a, b, min)

    def _max(self, v: list[Uniform], width: int, is_signed: bool) -> Uniform:
        a, b = v
        if not is_signed and min(a.low, b.low) < 0:
            raise NoTerm
        return self.chosen(linear.at_least(a.term - b.term), a, b, max)

    def chosen(
        self,
        condition: linear.Condition,
        a: Uniform,
        b: Uniform,
        of: Callable[[int, int], int] | None = None,
    ) -> Uniform:
        """`a` where the condition holds, else `b`; of: min or max, if it is that."""
        if not of:
            a, b = _where(a, condition.true), _where(b, condition.false)
        low = of(a.low, b.low) if of else min(a.low, b.low)
        high = of(a.high, b.high) if of else max(a.high, b.high)
        if of and (a.high <= b.low or b.high <= a.low):
            return a if (of is min) == (a.high <= b.low) else b
        ceiling = self._carry(condition, a, b)
        term = ceiling or self.symbols.choice(condition, a.term, b.term)
        return Uniform(term, low, high)

    def _carry(
        self, condition: linear.Condition, a: Uniform, b: Uniform
    ) -> Linear | None:
        """1 where x % c is not zero, else 0: ceil(x / c) - floor(x / c)."""
        is_not = (a.low, a.high, b.low, b.high) == (1, 1, 0, 0)
        zero = condition.false if is_not else condition.true
        if not is_not and (a.low, a.high, b.low, b.high) != (0, 0, 1, 1):
            return None
        if len(zero) != 1 or len(zero[0]) != 2 or zero[0][1] != -zero[0][0]:
            return None
        rest = zero[0][0]
        for symbol in rest.terms:
            known = self.symbols.made.get(symbol)
            if not isinstance(known, linear.Quotient):
                continue
            x, c = known.dividend, known.divisor
            if x - Linear({symbol: c}) in (rest, -rest):
                return self.symbols.quotient(x + (c - 1), c) - Linear({symbol: 1})
        return None

    def _converted(self, types: list[tuple[str, int]], a: Uniform) -> Uniform:
        (_, to), (kind, of) = types[0], types[-1]
        least, most = limits_of(of) if kind == "s" else (0, (1 << of) - 1)
        if to > of and not least <= a.low <= a.high <= most:
            raise NoTerm
        return self.fitting(a.term, a.low, a.high, to)


def _where(value: Uniform, clause: linear.Clause) -> Uniform:
    """The value in the range that it has where the facts of one alternative hold."""
    return limited(value, clause[0], {}) if len(clause) == 1 else value


def limited(
    value: Uniform, facts: Iterable[Linear], ranges: Mapping[str, tuple[int, int]]
) -> Uniform:
    """The value in the range that facts leave: where it is `times` one of them, and a
    number or a symbol beside that, it is at least what is beside, or at most.
    """
    low, high = value.low, value.high
    for fact in facts:
        for symbol, factor in fact.terms.items():
            times, rest = divmod(value.term.terms.get(symbol, 0), factor)
            if rest or not times:
                continue
            ends = _ends(value.term - fact * times, ranges)
            if ends is not None and times > 0:
                low = max(low, ends[0])
            elif ends is not None:
                high = min(high, ends[1])
    return Uniform(value.term, low, high) if low <= high else value


def _ends(
    term: Linear, ranges: Mapping[str, tuple[int, int]]
) -> tuple[int, int] | None:
    """The range of a number, or of one symbol of which it is known."""
    if not term.terms.keys() <= ranges.keys() or len(term.terms) > 1:
        return None
    ends = [f * end for s, f in term.terms.items() for end in ranges[s]] or [0]
    return min(ends) + term.constant, max(ends) + term.constant


def _room(a: Linear, b: Linear) -> int:
    """A power of two: below it `a` has no bit that `b` has."""
    shared = _set_bits(a) & _set_bits(b)
    return shared & -shared or _PAST


def _set_bits(term: Linear) -> int:
    """All bits that a sum may have: a symbol's from its coefficient's lowest on, and
    what is carried in all above.
    """
    found = term.constant % _PAST
    for factor in term.terms.values():
        lowest = factor & -factor
        if found & (_PAST - lowest):
            lowest = min(lowest, found & -found)
        found |= _PAST - lowest
    return found
