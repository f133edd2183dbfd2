"""Terms of one thread's numbers: multiplied, and known in each thread.

What only the number of the thread decides is a symbol too, an *atom*, of which it is
known what it is in each thread; so `tid / 4 % 8` is no quotient, but a number from 0
to 7.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from math import gcd

import numpy as np

from alcop_mlir.certificate.linear import (
    Clause,
    Linear,
    Quotient,
    Symbols,
    constant,
)

_MOST_SIZE = 1 << 60  # of numbers in each thread


@dataclass(frozen=True)
class Product:
    """Symbols, none of them a `Product`, multiplied; in order."""

    factors: tuple[str, ...]


class ProductSymbols(Symbols):
    """Symbols of which some are others multiplied, by their names, and some atoms,
    with what they are in each thread.
    """

    def __init__(self, threads: int) -> None:
        super().__init__()
        self.threads = threads
        self.products: dict[str, Product] = {}
        self.atoms: dict[str, np.ndarray] = {}
        self.divisions: dict[str, set[str]] = {}
        self.dividends: dict[tuple[str, ...], Linear] = {}

    def of_threads(self, numbers: np.ndarray) -> Linear:
        """The term that is these numbers, one of each thread."""
        least = int(numbers.min())
        rest = numbers - least
        by = int(np.gcd.reduce(rest))
        if not by:
            return constant(least)
        rest = rest // by
        name = f"@{sha256(rest.tobytes()).hexdigest()[:16]}"
        self.atoms[name] = rest
        return self.plain(name, 0, int(rest.max())) * by + least

    def in_threads(self, term: Linear) -> np.ndarray | None:
        """What a term is in each thread, where it is of atoms only, and small."""
        if not self.atoms.keys() >= term.terms.keys():
            return None
        low, high = self.range_of_term(term)
        if low < -_MOST_SIZE or high > _MOST_SIZE:
            return None
        found = np.full(self.threads, term.constant, np.int64)
        for name, factor in term.terms.items():
            found += self.atoms[name] * factor
        return found

    def product(self, a: Linear, b: Linear) -> Linear:
        """`a * b`."""
        found = b * a.constant
        for first, factor in a.terms.items():
            found += Linear({first: b.constant * factor})
            for second, other in b.terms.items():
                factors = (*self.factors(first), *self.factors(second))
                known = self.dividends.get(tuple(sorted(factors)))
                if known is None:
                    known = Linear({self.multiplied(factors): 1})
                found += known * (factor * other)
        return found

    def divided(self, a: Linear, b: Linear) -> tuple[Linear, Linear]:
        """`a // b` and the rest, of numbers that are not negative; where `b` is one
        symbol the quotient times that is known to be `a` without the rest. Both are
        symbols in which nothing can be replaced.
        """
        most = max(self.range_of_term(a)[1], 0)
        names = self.symbols(a) | self.symbols(b)
        self.divisions |= {f"[{a}]{sign}[{b}]": names for sign in "/%"}
        quotient = self.plain(f"[{a}]/[{b}]", 0, most)
        if len(b.terms) != 1 or b.constant or set(b.terms.values()) != {1}:
            return quotient, a - self.product(b, quotient)
        rest = self.plain(f"[{a}]%[{b}]", 0, max(self.range_of_term(b)[1] - 1, 0))
        (symbol,) = b.terms
        (own,) = quotient.terms
        self.dividends[tuple(sorted((own, *self.factors(symbol))))] = a - rest
        return quotient, rest

    def multiplied(self, factors: tuple[str, ...]) -> str:
        """The symbol that stands for symbols multiplied."""
        if len(factors) == 1:
            return factors[0]
        factors = tuple(sorted(factors))
        name = f"[{' x '.join(factors)}]"
        self.products[name] = Product(factors)
        return name

    def factors(self, name: str) -> tuple[str, ...]:
        """What a symbol is, multiplied; another symbol alone."""
        made = self.products.get(name)
        return (name,) if made is None else made.factors

    def split(self, total: Linear, by: str) -> tuple[Linear, Linear]:
        """What a symbol multiplies, and the rest of a sum."""
        times, rest = constant(0), Linear({}, total.constant)
        for name, coefficient in total.terms.items():
            left = list(self.factors(name))
            for one in self.factors(by):
                if one not in left:
                    rest += Linear({name: coefficient})
                    break
                left.remove(one)
            else:
                own = Linear({self.multiplied(tuple(left)): 1}) if left else constant(1)
                times += own * coefficient
        return times, rest

    def is_size(self, name: str) -> bool:
        """Whether it is computed of parameters alone, and not negative."""
        plain = self.inside(name) - self.made.keys() - self.products.keys()
        is_given = all(one.startswith(".") for one in plain)
        return is_given and self.range_of(name)[0] >= 0

    def quotient(self, dividend: Linear, divisor: int) -> Linear:
        """`dividend // divisor`; a number or of each thread, where that is known."""
        found = super().quotient(dividend, divisor)
        for name in found.terms:
            made = self.made.get(name)
            if not isinstance(made, Quotient):
                continue
            low, high = self.range_of(name)
            numbers = self.in_threads(made.dividend)
            if low == high:
                found += Linear({name: -1}, low) * found.terms[name]
            else:
                value = self._coarse(made) or self._divided(made)
                if numbers is not None:
                    value = self.of_threads(numbers // made.divisor)
                if value is not None:
                    found += (value - Linear({name: 1})) * found.terms[name]
        return found

    def _coarse(self, made: Quotient) -> Linear | None:
        """Of `(32 * x + y) / 64` with y below 32: `x / 2`."""
        whole, by = made.dividend, made.divisor
        step = max(gcd(c, by) for c in whole.terms.values())
        fine = {s: c for s, c in whole.terms.items() if c % step}
        rest = Linear(fine, whole.constant % step)
        low, high = self.range_of_term(rest)
        if not (fine or rest.constant) or low < 0 or high >= step:
            return None
        return self.quotient(whole - rest, by)

    def _divided(self, made: Quotient) -> Linear | None:
        """Of `x * m / 2**32`, a division by d that is done with one by 2**32: `x / d`.

        As m * d is 2**32 + e, it is that as long as x * e is below 2**32.
        """
        many = gcd(made.dividend.constant, *made.dividend.terms.values())
        by = -(-made.divisor // many)
        whole = made.dividend // many
        low, high = self.range_of_term(whole)
        beyond = many * by - made.divisor
        if many < 2 or low < 0 or high * beyond >= made.divisor:
            return None
        return self.quotient(whole, by)

    def inside(self, name: str) -> set[str]:
        """The symbol, and those that it is made of."""
        if name in self.products:
            return {name}.union(*map(self.inside, self.factors(name)))
        return super().inside(name) | self.divisions.get(name, set())

    def _value(self, name: str, values: Mapping[str, Linear]) -> Linear:
        if name not in self.products or name in values:
            return super()._value(name, values)
        found = constant(1)
        for factor in self.factors(name):
            found = self.product(found, self._value(factor, values))
        return found

    def range_of(self, name: str) -> tuple[int, int]:
        """The least and the most that a symbol may be."""
        made = self.made.get(name)
        if isinstance(made, Quotient):
            low, high = self.range_of_term(made.dividend)
            return low // made.divisor, high // made.divisor
        if made is not None:
            sides = [self.range_of_term(t) for t in (made.first, made.second)]
            return min(a for a, _ in sides), max(b for _, b in sides)
        if name not in self.products:
            return self.ranges[name]
        low, high = 1, 1
        for factor in self.factors(name):
            ends = [x * y for x in (low, high) for y in self.range_of(factor)]
            low, high = min(ends), max(ends)
        return low, high

    def range_of_term(self, term: Linear) -> tuple[int, int]:
        """The least and the most that a term may be."""
        low = high = term.constant
        for name, factor in term.terms.items():
            ends = sorted(factor * x for x in self.range_of(name))
            low, high = low + ends[0], high + ends[1]
        for name, factor in term.terms.items():
            made = self.made.get(name)
            if not isinstance(made, Quotient) or factor >= 0 or factor % made.divisor:
                continue
            many = -factor // made.divisor
            whole = made.dividend * many
            if whole.terms.items() <= term.terms.items():
                # So many times the rest of a division.
                left = term - whole + Linear({name: many * made.divisor})
                ends = self.range_of_term(left)
                low = max(low, ends[0])
                high = min(high, ends[1] + many * (made.divisor - 1))
        return low, high

    def definition(self, name: str) -> tuple[list[Linear], list[Clause]]:
        """What is known of a symbol by what it stands for."""
        if name not in self.products:
            return super().definition(name)
        found: list[Linear] = []
        value, factors = Linear({name: 1}), self.factors(name)
        for place, factor in enumerate(factors):
            rest = factors[:place] + factors[place + 1 :]
            if all(self.range_of(one)[0] >= 0 for one in rest):
                other = Linear({self.multiplied(rest): 1})
                low, high = self.range_of(factor)
                found += [value - other * low, other * high - value]
        return found, []
