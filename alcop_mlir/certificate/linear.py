"""Linear terms over integers, conditions on them, and the symbols that they name.

A *symbol* is the name of an unknown integer: a parameter, a special register, the turn
of a loop. A quotient by a constant is a symbol too, with the two facts that define it;
so is a choice between two values, with one clause of two alternatives. Names of both
say what they stand for: the same value has the same name wherever it is computed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import gcd


class Linear:
    """A sum of symbols with integer coefficients, plus a constant; never changed."""

    __slots__ = ("_text", "constant", "terms")

    def __init__(self, terms: Mapping[str, int], constant: int = 0):
        self.terms = {s: c for s, c in terms.items() if c}
        self.constant = constant
        self._text = ""

    def __add__(self, other: Linear | int) -> Linear:
        if isinstance(other, int):
            return Linear(self.terms, self.constant + other)
        terms = dict(self.terms)
        for symbol, factor in other.terms.items():
            terms[symbol] = terms.get(symbol, 0) + factor
        return Linear(terms, self.constant + other.constant)

    def __mul__(self, factor: int) -> Linear:
        terms = {s: c * factor for s, c in self.terms.items()}
        return Linear(terms, self.constant * factor)

    def __floordiv__(self, divisor: int) -> Linear:
        """Each of its numbers divided and rounded down."""
        terms = {s: c // divisor for s, c in self.terms.items()}
        return Linear(terms, self.constant // divisor)

    def __neg__(self) -> Linear:
        return self * -1

    def __sub__(self, other: Linear | int) -> Linear:
        return self + (-other)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Linear) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __str__(self) -> str:
        if not self._text:
            parts = [f"{c}*{s}" for s, c in sorted(self.terms.items())]
            self._text = " + ".join([*parts, str(self.constant)])
        return self._text


def constant(value: int) -> Linear:
    """The term without symbols."""
    return Linear({}, value)


def tightened(fact: Linear) -> Linear:
    """The same fact, with the least coefficients that integers allow."""
    divisor = gcd(*fact.terms.values())
    return fact // divisor if divisor > 1 else fact


# Alternatives, each of facts that all hold.
Clause = tuple[tuple[Linear, ...], ...]


@dataclass(frozen=True)
class Condition:
    """One of the alternatives holds, each a conjunction; `negated` says when none does.

    Both are clauses: () is never true, ((),) always.
    """

    true: Clause
    false: Clause

    @cached_property
    def text(self) -> str:
        """What is true where it holds; another text for never than for always."""
        every = " | ".join(" & ".join(map(str, one)) for one in self.true)
        return every if self.true else "never"


def at_least(term: Linear) -> Condition:
    """The condition `term >= 0`."""
    term = tightened(term)
    return Condition(((term,),), ((-term - 1,),))


def is_zero(term: Linear) -> Condition:
    """The condition `term == 0`."""
    common = gcd(term.constant, *term.terms.values()) or 1
    term = Linear(
        {s: c // common for s, c in term.terms.items()}, term.constant // common
    )
    return Condition(((term, -term),), ((term - 1,), (-term - 1,)))


def negated(one: Condition) -> Condition:
    """Holds where `one` does not."""
    return Condition(one.false, one.true)


def both(one: Condition, other: Condition) -> Condition:
    """Holds where both hold."""
    true = tuple(a + b for a in one.true for b in other.true)
    return Condition(true, one.false + other.false)


@dataclass(frozen=True)
class Quotient:
    """`dividend // divisor`, rounded down."""

    dividend: Linear
    divisor: int


@dataclass(frozen=True)
class Division:
    """The quotient or the rest of a division by what is not known."""

    dividend: Linear
    by: Linear
    is_rest: bool


@dataclass(frozen=True)
class Choice:
    """`first` where the condition holds, else `second`."""

    condition: Condition
    first: Linear
    second: Linear


@dataclass
class Symbols:
    """All symbols that a proof knows.

    ranges: least and most of those that are nothing else
    """

    ranges: dict[str, tuple[int, int]] = field(default_factory=dict)
    made: dict[str, Quotient | Division | Choice] = field(default_factory=dict)

    def quotient(self, dividend: Linear, divisor: int) -> Linear:
        """`dividend // divisor`; what `divisor` divides is taken out."""
        whole = {s: c // divisor for s, c in dividend.terms.items() if not c % divisor}
        rest = {s: c for s, c in dividend.terms.items() if c % divisor}
        outer = Linear(whole, dividend.constant // divisor)
        if not rest:
            return outer
        common = gcd(divisor, *rest.values())
        divisor //= common
        rest = {s: c // common for s, c in rest.items()}
        left = Linear(rest, dividend.constant % (divisor * common) // common)
        if divisor == 1:
            return outer + left
        if len(rest) == 1:
            (symbol, factor) = next(iter(rest.items()))
            known = self.made.get(symbol)
            if factor == 1 and isinstance(known, Quotient):
                inner = known.dividend + left.constant * known.divisor
                return outer + self.quotient(inner, known.divisor * divisor)
        name = f"[{left}]/{divisor}"
        self.made[name] = Quotient(left, divisor)
        return outer + Linear({name: 1})

    def division(self, dividend: Linear, by: Linear, is_rest: bool) -> Linear:
        """`dividend / by` rounded down, or what is left."""
        name = f"[{dividend}]{'%' if is_rest else '/'}[{by}]"
        self.made[name] = Division(dividend, by, is_rest)
        return Linear({name: 1})

    def choice(self, condition: Condition, first: Linear, second: Linear) -> Linear:
        """The value that the condition chooses."""
        if first == second:
            return first
        name = f"[{condition.text} ? {first} : {second}]"
        self.made[name] = Choice(condition, first, second)
        return Linear({name: 1})

    def plain(self, name: str, low: int, high: int) -> Linear:
        """A symbol that is between two numbers."""
        self.ranges[name] = (low, high)
        return Linear({name: 1})

    def inside(self, name: str) -> set[str]:
        """The symbol, and those that it is made of."""
        found = {name}
        made = self.made.get(name)
        if isinstance(made, Quotient):
            found |= self.symbols(made.dividend)
        if isinstance(made, Division):
            found |= self.symbols(made.dividend) | self.symbols(made.by)
        if isinstance(made, Choice):
            every = [f for one in made.condition.true for f in one]
            for term in (*every, made.first, made.second):
                found |= self.symbols(term)
        return found

    def symbols(self, term: Linear) -> set[str]:
        """All symbols of a term, also inside of others."""
        return set().union(*(self.inside(name) for name in term.terms))

    def replaced(self, term: Linear, values: Mapping[str, Linear]) -> Linear:
        """The term with values for symbols, also inside of others."""
        result = constant(term.constant)
        for name, factor in term.terms.items():
            result += self._value(name, values) * factor
        return result

    def _value(self, name: str, values: Mapping[str, Linear]) -> Linear:
        if name in values:
            return values[name]
        made = self.made.get(name)
        if made is None or not (self.inside(name) & values.keys()):
            return Linear({name: 1})
        if isinstance(made, Quotient):
            return self.quotient(self.replaced(made.dividend, values), made.divisor)
        if isinstance(made, Division):
            dividend = self.replaced(made.dividend, values)
            return self.division(dividend, self.replaced(made.by, values), made.is_rest)
        condition = Condition(
            self.replaced_clause(made.condition.true, values),
            self.replaced_clause(made.condition.false, values),
        )
        parts = (self.replaced(t, values) for t in (made.first, made.second))
        return self.choice(condition, *parts)

    def replaced_clause(self, clause: Clause, values: Mapping[str, Linear]) -> Clause:
        """The clause with values for symbols."""
        return tuple(tuple(self.replaced(f, values) for f in one) for one in clause)

    def definition(self, name: str) -> tuple[list[Linear], list[Clause]]:
        """What is known of a symbol by what it stands for."""
        made = self.made.get(name)
        value = Linear({name: 1})
        if isinstance(made, Quotient):
            rest = made.dividend - value * made.divisor
            return [rest, -rest + (made.divisor - 1)], []
        if isinstance(made, Choice):
            clause = (
                *(
                    (*one, value - made.first, made.first - value)
                    for one in made.condition.true
                ),
                *(
                    (*one, value - made.second, made.second - value)
                    for one in made.condition.false
                ),
            )
            return [], [clause]
        if name in self.ranges:
            low, high = self.ranges[name]
            return [value - low, -value + high], []
        return [], []
