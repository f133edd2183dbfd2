"""Integer instructions on the numbers of one thread, as terms that multiply sizes.

A number whose range leaves that of its register is what the register holds modulo its
width. Additions, differences and multiplications keep that, whatever they pass on the
way: so addresses need no proof that nothing in between wraps around. All else asks for
the number itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import gcd

import numpy as np

from alcop_mlir.certificate import exact_arithmetic
from alcop_mlir.certificate.bounds.terms import ProductSymbols
from alcop_mlir.certificate.exact_arithmetic import scalar_types
from alcop_mlir.certificate.linear import Choice, Linear, Quotient, constant
from alcop_mlir.certificate.uniform_arithmetic import (
    NoTerm,
    UniformArithmetic,
    limits_of,
    room,
)
from alcop_mlir.certificate.values import Uniform, signed

_MOST_FACTORS = 4  # symbols that are multiplied
_MOST_TERMS = 40  # of a sum

# They depend on whether numbers have a sign.
_OF_SIZE = ("div", "rem", "shr", "bfe", "min", "max", "cvt")

# Whether a fact follows from what is known at the instruction.
Follows = Callable[[Linear], bool]


class ThreadArithmetic(UniformArithmetic):
    """Makes the terms that instructions give.

    facts: what is known at the instruction
    noted: facts about what the instruction makes, which its term does not say
    """

    symbols: ProductSymbols

    def __init__(
        self,
        symbols: ProductSymbols,
        follows: Follows,
        facts: Callable[[], Iterable[Linear]],
    ):
        super().__init__(symbols)
        self.follows, self.facts = follows, facts
        self.noted: list[Linear] = []

    def compute(self, parts: tuple[str, ...], values: list[Uniform]) -> Uniform:
        """What the instruction gives; raises NoTerm where that is unknown."""
        self.noted = []
        types = scalar_types(parts)
        if not types or any(kind == "f" for kind, _ in types):
            raise NoTerm
        if self._is_ring(parts):
            try:
                return self._ring(parts, values, types[-1][1])
            except NoTerm:
                pass
        kind, width = types[-1]
        own = self._in_threads(parts, values, types[0][1])
        if own is not None:
            return own
        if parts[0] == "cvt" and types[0][1] <= width:
            return values[0]  # lower bits
        numbers = [self.number(v, width) for v in values]
        if kind != "s" and parts[0] in _OF_SIZE:
            numbers = [self._large(v) for v in numbers]
        if parts[0] in ("div", "rem") and numbers[1].low != numbers[1].high:
            return self._divided(parts[0], numbers, width, kind == "s")
        found = super().compute(parts, numbers)
        self._note_range(found)
        return found

    def limits(self, parts: tuple[str, ...], values: list[Uniform]) -> tuple[int, int]:
        """The range of what an instruction gives, where its term is not known."""
        types = scalar_types(parts)
        least, most = limits_of(types[-1][1]) if types else (0, -1)
        if parts[0] == "and":
            masks = [v.low for v in values if v.low == v.high and v.low >= 0]
            return (0, min(masks)) if masks else (least, most)
        return least, most

    def _note_range(self, found: Uniform) -> None:
        """Notes a range that symbols do not say."""
        if len(found.term.terms) > 1:
            low, high = self.symbols.range_of_term(found.term)
            self.noted += [found.term - found.low] if low < found.low else []
            self.noted += [-found.term + found.high] if high > found.high else []

    def of_threads(self, numbers: np.ndarray) -> Uniform:
        """The value that is these numbers, one of each thread."""
        term = self.symbols.of_threads(numbers)
        return Uniform(term, int(numbers.min()), int(numbers.max()))

    def _in_threads(
        self, parts: tuple[str, ...], values: list[Uniform], width: int
    ) -> Uniform | None:
        """What only the thread decides, computed in each."""
        found = [self.symbols.in_threads(v.term) for v in values]
        numbers = [one for one in found if one is not None]
        if len(numbers) < len(values):
            return None
        lanes = [one.astype(np.uint64) for one in numbers]
        exact = exact_arithmetic.compute(parts, lanes)
        if exact is None:
            return None
        return self.of_threads(signed(exact.lanes, width))

    def number(self, value: Uniform, width: int) -> Uniform:
        """The value as a number of that width with a sign; NoTerm where it may be none.

        What no range shows, facts may.
        """
        least, most = limits_of(width)
        low, high = value.low, value.high
        if least <= low <= high <= most:
            return value
        unknown = {s for s in value.term.terms if s[0] in "hu"}
        if unknown - {s for fact in self.facts() for s in fact.terms}:
            raise NoTerm  # nothing is known of it
        if low < least:
            low = next((x for x in (0, least) if self.follows(value.term - x)), None)
        if high > most:
            high = most if self.follows(-value.term + most) else None
        if low is None or high is None:
            raise NoTerm
        return Uniform(value.term, low, high)

    def _is_ring(self, parts: tuple[str, ...]) -> bool:
        is_product = parts[0] in ("mul", "mad") and "hi" not in parts
        return is_product or parts[0] in ("add", "sub", "neg", "shl")

    def _ring(self, parts: tuple[str, ...], v: list[Uniform], width: int) -> Uniform:
        name = parts[0]
        if name == "neg":
            return self._made(-v[0].term, -v[0].high, -v[0].low)
        if name == "shl":
            if v[1].low != v[1].high or not 0 <= v[1].low < width:
                raise NoTerm
            return self._times(v[0], _number(1 << v[1].low))
        if name == "add":
            return self._plus(v[0], v[1])
        if name == "sub":
            less = Uniform(-v[1].term, -v[1].high, -v[1].low)
            return self._plus(v[0], less)
        if "wide" in parts:
            v = [*(self.number(one, width) for one in v[:2]), *v[2:]]
            is_signed = any(p[0] == "s" and p[1:].isdigit() for p in parts[1:])
            if not is_signed and min(v[0].low, v[1].low) < 0:
                v = [*map(self._not_negative, v[:2]), *v[2:]]
        product = self._times(v[0], v[1])
        return product if name == "mul" else self._plus(product, v[2])

    def _not_negative(self, value: Uniform) -> Uniform:
        if value.low >= 0:
            return value
        if not self.follows(value.term):
            raise NoTerm
        return Uniform(value.term, 0, value.high)

    def _large(self, value: Uniform) -> Uniform:
        """The value, as one that is not negative where facts say so."""
        try:
            return self._not_negative(value)
        except NoTerm:
            return value

    def _plus(self, a: Uniform, b: Uniform) -> Uniform:
        return self._made(a.term + b.term, a.low + b.low, a.high + b.high)

    def _times(self, a: Uniform, b: Uniform) -> Uniform:
        ends = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
        factors = [
            max((len(self.symbols.factors(s)) for s in v.term.terms), default=0)
            for v in (a, b)
        ]
        if sum(factors) > _MOST_FACTORS:
            raise NoTerm
        term = self.symbols.product(a.term, b.term)
        return self._made(term, min(ends), max(ends))

    def _made(self, term: Linear, low: int, high: int) -> Uniform:
        if len(term.terms) > _MOST_TERMS:
            raise NoTerm
        least, most = self.symbols.range_of_term(term)
        return Uniform(term, max(low, least), min(high, most))

    def fitting(self, term: Linear, low: int, high: int, width: int) -> Uniform:
        """The term, where it surely fits."""
        least, most = limits_of(width)
        if low < least or high > most:
            return self.number(Uniform(term, low, high), width)
        return super().fitting(term, low, high, width)

    def _or(self, v: list[Uniform], width: int, is_signed: bool) -> Uniform:
        """An addition, where no bit is in both."""
        for a, b in (v, v[::-1]):
            most = room(a.term, b.term, self.symbols.range_of) - 1
            if a.low >= 0 and (a.high <= most or self._is_at_most(a, most)):
                return self._add(v, width, is_signed)
        for a, b in (v, v[::-1]):
            found = self._filled(a, b)
            if found is not None:
                return self.fitting(found.term, found.low, found.high, width)
        raise NoTerm

    def _is_at_most(self, a: Uniform, most: int) -> bool:
        if not most or self.symbols.in_threads(a.term) is not None:
            return False
        return self.follows(-a.term + most)

    def _filled(self, a: Uniform, b: Uniform) -> Uniform | None:
        """`a | b` where `b` is of the thread alone, and what else `a` is a sum of has
        none of its bits.
        """
        bits = self.symbols.in_threads(b.term)
        if bits is None or b.low < 0:
            return None
        above = 1 << int(bits.max()).bit_length()
        while True:
            low = Linear({s: c for s, c in a.term.terms.items() if c % above})
            low += a.term.constant % above
            own = self.symbols.in_threads(low)
            if own is None or own.min() < 0:
                return None
            if own.max() < above:
                break
            above = 1 << int(own.max()).bit_length()
        result = own | bits
        rest = Uniform(a.term - low, a.low - int(own.max()), a.high - int(own.min()))
        return self._plus(rest, self.of_threads(result))

    def _xor(self, v: list[Uniform], width: int, is_signed: bool) -> Uniform:
        """A difference, where all bits of the one are in the other."""
        mask, a = sorted(v, key=lambda one: one.low != one.high)
        if mask.low != mask.high or min(mask.low, a.low) < 0:
            raise NoTerm
        step = gcd(a.term.constant, *a.term.terms.values())
        bits = (1 << a.high.bit_length()) - (step & -step)
        if bits & ~mask.low:
            raise NoTerm
        return self._plus(mask, Uniform(-a.term, -a.high, -a.low))

    def _high_half(
        self, a: Uniform, factor: Uniform, width: int, is_signed: bool
    ) -> Uniform:
        """The upper half of a multiplication by a number: a quotient."""
        try:
            return super()._high_half(a, factor, width, is_signed)
        except NoTerm:
            if factor.low != factor.high or a.low < 0 or is_signed:
                raise
        number = factor.low % (1 << width)
        term = self.symbols.quotient(a.term * number, 1 << width)
        return self.fitting(term, 0, a.high * number >> width, width)

    def _divided(
        self, name: str, v: list[Uniform], width: int, is_signed: bool
    ) -> Uniform:
        """By what is not known: a new symbol, of which facts say what it is."""
        a, b = map(self._not_negative, v)
        if b.low < 1 and not self.follows(b.term - 1):
            raise NoTerm
        if self.follows(b.term - a.term - 1):
            return _number(0) if name == "div" else a
        quotient, rest = self.symbols.divided(a.term, b.term)
        self.noted += [rest, b.term - 1 - rest]
        if name == "rem":
            return Uniform(rest, 0, min(a.high, b.high - 1))
        self.noted += self._most(a.term, b.term, quotient)
        return Uniform(quotient, 0, a.high)

    def _most(self, a: Linear, b: Linear, quotient: Linear) -> list[Linear]:
        """What a known fact `a <= s * c - 1` says of `a / b` where b is m times s: that
        m times that is below c. Where b is one of two, both have to be s.
        """
        if len(b.terms) != 1 or b.constant:
            return []
        found: list[Linear] = []
        ((symbol, many),) = b.terms.items()
        made = self.symbols.made.get(symbol)
        _, most = self.symbols.range_of_term(a)
        for fact in (*self.facts(), -a + most):
            times, rest = self.symbols.split(fact + a + 1, symbol)
            if not rest.terms and not rest.constant:
                by = gcd(many, times.constant, *times.terms.values())
                found += self._below(times // by - quotient * (many // by))
            elif isinstance(made, Choice) and many == 1:
                both = self._most_of_both(made, fact + a + 1, a)
                found += [] if both is None else self._below(both - quotient)
        return found

    def _most_of_both(self, made: Choice, total: Linear, a: Linear) -> Linear | None:
        """c, where `total` is c times one side, a number, and `a` is below c times the
        other.
        """
        for one, other in ((made.first, made.second), (made.second, made.first)):
            by = gcd(total.constant, *total.terms.values())
            if one.terms or one.constant < 1 or by % one.constant:
                continue
            most = total // one.constant
            if self.follows(self.symbols.product(other, most) - a - 1):
                return most
        return None

    def _below(self, left: Linear) -> list[Linear]:
        """That it is at least 1; where `x / d` is in it, also that d times what it is
        above is below x.
        """
        found = [left - 1]
        for name, factor in left.terms.items():
            made = self.symbols.made.get(name)
            if factor == 1 and isinstance(made, Quotient):
                others = Linear({name: 1}) - left + 1
                found.append(made.dividend - others * made.divisor)
        return found


def _number(value: int) -> Uniform:
    return Uniform(constant(value), value, value)
