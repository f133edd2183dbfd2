"""Numbers of one thread, and what integer instructions make of them.

A number is a term; where it leaves the range of its register that holds it modulo
2**width, which additions and multiplications keep.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import gcd
from typing import Any

import numpy as np

from alcop_mlir.checker.bounds.products import ProductFacts
from alcop_mlir.checker.logic import terms
from alcop_mlir.checker.logic.terms import Choice, Clause, Quotient, Term
from alcop_mlir.checker.machine import arithmetic
from alcop_mlir.checker.machine.arithmetic import Same, Unknown, Value, limits
from alcop_mlir.checker.machine.bits import room
from alcop_mlir.checker.machine.mixed import MOST_TOLD_APART
from alcop_mlir.checker.machine.registers import Registers
from alcop_mlir.checker.ptx.text import Kernel

_MOST_FACTORS, _MOST_TERMS = 4, 40
_LARGE = 1 << 62


@dataclass
class Way:
    """Registers, facts and clauses where a thread is, the last two by their text."""

    registers: dict[str, Value] = field(default_factory=dict)
    facts: dict[Any, Term] = field(default_factory=dict)
    clauses: dict[Any, Clause] = field(default_factory=dict)

    def fork(self) -> Way:
        """One that goes another way."""
        return Way(dict(self.registers), dict(self.facts), dict(self.clauses))

    def assume(self, clause: Clause) -> None:
        """One of the alternatives holds."""
        if not clause:
            return
        self.know([f for f in clause[0] if all(f in one for one in clause[1:])])
        if len(clause) > 1:
            self.clauses[terms.clause_text(clause)] = clause

    def know(self, facts: list[Term]) -> None:
        """These hold."""
        self.facts.update({terms.text(f): f for f in facts})


class Numbers(Registers):
    """Computes where a thread is on its `way`.

    noted: what is known of the last result besides its term
    """

    facts: ProductFacts

    def __init__(self, kernel: Kernel, threads: int, facts: ProductFacts):
        super().__init__(kernel, threads, 0, {}, {}, facts=facts)
        self.way = Way()
        self.rests: dict[str, Term] = {}
        self.noted: list[Term] = []

    @property
    def way(self) -> Way:
        """Where the thread is."""
        return self._way

    @way.setter
    def way(self, way: Way) -> None:
        self._way, self.state.registers = way, way.registers

    def symbol(self, name: str, low: int, high: int) -> Same:
        """A number of that range."""
        if low == high:
            return Same(terms.number(low), low, low)
        self.facts.limit(name, low, high)
        return Same({name: 1}, low, high)

    def named(self, value: Value, width: int) -> Value:
        """Numbers of threads by name, as those of a register of that width."""
        if not isinstance(value, np.ndarray) or width == 1:
            return value
        numbers = arithmetic.signed(value, width)
        if int(numbers.max()) - int(numbers.min()) >= _LARGE:
            return None
        term = self.facts.of_threads(numbers)
        return Same(term, int(numbers.min()), int(numbers.max()))

    def settled(self, value: Same, width: int) -> Value:
        """Numbers of threads, where it is nothing else."""
        found = self.facts.in_threads(value.term)
        if found is None:
            return value
        return self.numbers(arithmetic.unsigned(found.astype(np.uint64), width))

    def known(self, fact: Term) -> bool:
        """Whether a fact surely holds."""
        facts, clauses = [*self.way.facts.values()], [*self.way.clauses.values()]
        return self.facts.follows(fact, facts, clauses)

    def never(self, clause: Clause) -> bool:
        """Whether no alternative can hold."""
        facts, clauses = [*self.way.facts.values()], [*self.way.clauses.values()]
        return self.facts.excludes(clause, facts, clauses)

    def number(self, v: Same, width: int) -> Same:
        """The value as the number that a register holds, with a sign."""
        least, most = limits(width)
        low, high = v.low, v.high
        if least <= low <= high <= most:
            return v
        named = {s for fact in self.way.facts.values() for s in fact}
        if any(s[:1] in ("h", "u") and s not in named for s in v.term):
            raise Unknown  # nothing is known of it
        if low < least:
            floors = (x for x in (0, least) if self.known(_less(v.term, x)))
            low = next(floors, least - 1)
        if high > most:
            above = terms.minus(terms.number(most), v.term)
            high = most if self.known(above) else most + 1
        if low < least or high > most:
            raise Unknown
        return Same(v.term, low, high)

    def natural(self, v: Same) -> Same:
        """The value as one that is not negative."""
        if v.low < 0 and not self.known(v.term):
            raise Unknown
        return Same(v.term, max(v.low, 0), v.high)

    def made(
        self, parts: list[str], v: list[Same], kinds: list[tuple[str, int]]
    ) -> Same:
        (kind, width), name = kinds[-1], parts[0]
        is_ring = name in ("add", "sub", "neg", "shl", "mul", "mad")
        if is_ring and "hi" not in parts:
            try:
                return self._ring(parts, v, width, kind == "s")
            except Unknown:
                pass
        if name == "cvt" and kinds[0][1] <= width:
            return v[0]
        v = [self.number(one, width) for one in v]
        if kind != "s" and name in ("div", "rem", "shr", "bfe", "min", "max", "cvt"):
            v = [self._large(one) for one in v]
        if name in ("div", "rem") and v[1].low != v[1].high:
            return self._divided(name, v)
        if name == "xor":
            return self._inside(v)
        if name == "or":
            return self._either(v)
        if name == "and" and self._is_told_apart(v):
            raise Unknown
        try:
            made = arithmetic.linear(parts, v)
        except Unknown:
            if parts[:2] != ["mul", "hi"] or kind == "s":
                raise
            made = self._high(v, width)
        return Same(self.facts.folded(made.term), made.low, made.high)

    def _is_told_apart(self, v: list[Same]) -> bool:
        """Whether it is low bits of a size: a term with a quotient could be of the next
        row as well, and on each way that asks for them they are a number.
        """
        mask, a = sorted(v, key=lambda one: one.low != one.high)
        is_mask = 0 <= mask.low == mask.high < MOST_TOLD_APART
        return is_mask and any(n[0] == "." for n in terms.inside(a.term))

    def _large(self, v: Same) -> Same:
        try:
            return self.natural(v)
        except Unknown:
            return v

    def _ring(self, parts: list[str], v: list[Same], width: int, signed: bool) -> Same:
        name = parts[0]
        if name == "neg":
            return self._sum(_ZERO, v[0], -1)
        if name in ("add", "sub"):
            return self._sum(v[0], v[1], 1 if name == "add" else -1)
        if name == "shl":
            if v[1].low != v[1].high or not 0 <= v[1].low < width:
                raise Unknown
            by = 1 << v[1].low
            return self._product(v[0], Same(terms.number(by), by, by))
        if "wide" in parts:
            v = [*(self.number(one, width) for one in v[:2]), *v[2:]]
            if not signed and min(v[0].low, v[1].low) < 0:
                v = [*map(self.natural, v[:2]), *v[2:]]
        found = self._product(v[0], v[1])
        return found if name == "mul" else self._sum(found, v[2], 1)

    def _sum(self, a: Same, b: Same, sign: int) -> Same:
        low, high = sorted((sign * b.low, sign * b.high))
        term = terms.plus(a.term, b.term, sign)
        if len(term) > _MOST_TERMS:
            raise Unknown
        least, most = self.facts.span(term)
        return Same(term, max(a.low + low, least), min(a.high + high, most))

    def _product(self, a: Same, b: Same) -> Same:
        counts = [max(len(terms.factors(s)) for s in v.term) for v in (a, b)]
        if sum(counts) > _MOST_FACTORS:
            raise Unknown
        term = terms.number(0)
        for symbol, factor in terms.product(a.term, b.term).items():
            known = self.rests.get(symbol, {symbol: 1})
            term = terms.plus(term, known, factor)
        ends = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
        return _plain(Same(term, min(ends), max(ends)))

    def _either(self, v: list[Same]) -> Same:
        """`or`: a sum, where the one is below all bits that both may have."""
        for a, b in (v, v[::-1]):
            most = room(a.term, b.term, self.facts.range)
            if a.low >= 0 and (a.high < most or self._is_below(a, most)):
                return self._sum(a, b, 1)
        return self._filled(v)

    def _is_below(self, a: Same, most: int) -> bool:
        if most == 1 or self.facts.in_threads(a.term) is not None:
            return False
        return self.known(_less(terms.minus(terms.number(most), a.term), 1))

    def _filled(self, v: list[Same]) -> Same:
        """`or`, where one is each thread's own, and the other has few of its bits."""
        for a, b in (v, v[::-1]):
            bits = self.facts.in_threads(b.term)
            if bits is None or bits.min() < 0:
                continue
            above = 1 << int(bits.max()).bit_length()
            while True:
                low = {s: c for s, c in a.term.items() if s and c % above}
                low[""] = a.term.get("", 0) % above
                own = self.facts.in_threads(low)
                if own is None or own.min() < 0:
                    break
                if own.max() < above:
                    least, most = int(own.min()), int(own.max())
                    term = terms.minus(a.term, low)
                    rest = Same(term, a.low - most, a.high - least)
                    both = own | bits
                    term = self.facts.of_threads(both)
                    more = Same(term, int(both.min()), int(both.max()))
                    return self._sum(rest, more, 1)
                above = 1 << int(own.max()).bit_length()
        raise Unknown

    def _inside(self, v: list[Same]) -> Same:
        """`xor` with a number that has all bits of the other: a difference."""
        mask, a = sorted(v, key=lambda one: one.low != one.high)
        if mask.low != mask.high or min(mask.low, a.low) < 0:
            raise Unknown
        step = gcd(*a.term.values())
        if ((1 << a.high.bit_length()) - (step & -step)) & ~mask.low:
            raise Unknown
        return self._sum(mask, a, -1)

    def _high(self, v: list[Same], width: int) -> Same:
        fixed, a = sorted(v[:2], key=lambda one: one.low != one.high)
        if fixed.low != fixed.high or a.low < 0:
            raise Unknown
        by = fixed.low % 2**width
        term = terms.quotient(terms.plus({}, a.term, by), 2**width)
        return Same(term, 0, a.high * by >> width)

    def _divided(self, name: str, v: list[Same]) -> Same:
        """By what is not known: names for the quotient and the rest."""
        a, b = map(self.natural, v)
        if not self.known(_less(b.term, 1)):
            raise Unknown
        every = terms.division(a.term, b.term)
        quotient = self.symbol(every[0], 0, max(self.facts.span(a.term)[1], 0))
        own = [s for s in b.term if s]
        if terms.frozen(b.term) != ((own[0], 1),):
            rest = terms.minus(a.term, terms.product(b.term, quotient.term))
        else:
            most = max(self.facts.span(b.term)[1] - 1, 0)
            rest = self.symbol(every[1], 0, most).term
            symbol = terms.times(own[0], every[0])
            self.rests[symbol] = terms.minus(a.term, rest)
        self.noted += [rest, _less(terms.minus(b.term, rest), 1)]
        if name == "rem":
            return Same(rest, 0, min(a.high, b.high - 1))
        self._note_most(a.term, b.term, quotient.term)
        return quotient

    def _note_most(self, a: Term, b: Term, quotient: Term) -> None:
        """Of `a <= s * c - 1` that m times a / b is below c, where b is m times s; both
        have to be s where b is one of two.
        """
        if len([s for s in b if s]) != 1 or b.get("", 0):
            return
        ((symbol, many),) = [(s, c) for s, c in b.items() if s]
        last = terms.minus(terms.number(self.facts.span(a)[1]), a)
        for fact in (*self.way.facts.values(), last):
            total = terms.plus(terms.plus(fact, a), terms.number(1))
            times, rest = terms.split(total, symbol)
            if not any(rest.values()):
                by = gcd(many, *times.values())
                most = {s: c // by for s, c in times.items()}
                self._note_below(terms.plus(most, quotient, -many // by))
            elif isinstance(symbol, Choice) and many == 1:
                most = self._most_of_both(symbol, total, a)
                if most is not None:
                    self._note_below(terms.minus(most, quotient))

    def _most_of_both(self, made: Choice, total: Term, a: Term) -> Term | None:
        """c, where `total` is c times one side, a number, and a is below c times the
        other.
        """
        for one, other in ((made.first, made.second), (made.second, made.first)):
            side = one.get("", 0)
            is_number = terms.is_constant(one) and side > 0
            if not is_number or gcd(*total.values()) % side:
                continue
            most = {s: c // side for s, c in total.items()}
            above = terms.minus(terms.product(other, most), a)
            if self.known(_less(above, 1)):
                return most
        return None

    def _note_below(self, left: Term) -> None:
        """That it is at least 1; of a quotient in it, that what it divides is as large
        as the rest says.
        """
        self.noted.append(_less(left, 1))
        for one in left:
            if isinstance(one, Quotient) and left[one] == 1:
                rest = terms.minus(left, {one: 1})
                more = terms.plus(one.dividend, _less(rest, 1), one.divisor)
                self.noted.append(more)


_ZERO = Same(terms.number(0), 0, 0)


def _less(term: Term, by: int) -> Term:
    return terms.plus(term, terms.number(-by))


def _plain(v: Same) -> Same:
    number = v.term.get("", 0)
    return Same(v.term, number, number) if terms.is_constant(v.term) else v
