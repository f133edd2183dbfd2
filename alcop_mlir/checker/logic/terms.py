"""Linear terms, and what their symbols stand for.

A term is a dict from symbols to whole numbers, with the constant under "". A symbol
is a name, or stands for a quotient or a choice, by the text of which it is known. A
fact is a term that is not negative; a clause is a list of alternatives, lists of facts.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import gcd

Term = dict[str, int]
Clause = list[list[Term]]


class Made(str):
    """A symbol that is computed of others; `names` are those inside."""

    names: frozenset[str]


class Quotient(Made):
    """`dividend` divided by a number and rounded down."""

    dividend: Term
    divisor: int


class Choice(Made):
    """`first` where the clause `true` holds, else, where `false` does, `second`."""

    true: Clause
    false: Clause
    first: Term
    second: Term


class Product(Made):
    """`factors`, none of them a `Product`, multiplied."""

    factors: tuple[str, ...]


class Division(Made):
    """A quotient or a rest of a division by what is not known."""

    dividend: Term
    by: Term
    is_rest: bool


def number(value: int) -> Term:
    """A constant."""
    return {"": value}


def plus(a: Term, b: Term, times: int = 1) -> Term:
    """a + times * b."""
    found = dict(a)
    for symbol, factor in b.items():
        found[symbol] = found.get(symbol, 0) + times * factor
    if 0 not in found.values():
        return found
    return {s: c for s, c in found.items() if c or not s}


def minus(a: Term, b: Term) -> Term:
    """a - b."""
    return plus(a, b, -1)


def negative(a: Term) -> Term:
    """-a."""
    return {s: -c for s, c in a.items()}


def opposite(fact: Term) -> Term:
    """The fact that holds where that one does not."""
    return plus(number(-1), fact, -1)


def frozen(a: Term) -> tuple[tuple[str, int], ...]:
    """The same for equal terms."""
    return tuple(sorted([one for one in a.items() if one[1]]))


def is_constant(a: Term) -> bool:
    """Whether no symbol is in it."""
    return not any(c for s, c in a.items() if s)


def inside(*every: Term) -> set[str]:
    """All names in terms, also inside of others."""
    found: set[str] = set()
    for symbol in (s for term in every for s in term):
        if isinstance(symbol, Made):
            found |= symbol.names
        elif symbol:
            found.add(symbol)
    return found


def text(a: Term) -> str:
    """The same for equal terms."""
    return "+".join(f"{c} {s}" for s, c in frozen(a))


def clause_text(clause: Clause) -> str:
    """The same for clauses with equal facts in the same order.

    Without alternatives it never holds; a fact of 0, as none, always does.
    """
    return "|".join("&".join(map(text, one)) for one in clause) if clause else "never"


def quotient(a: Term, divisor: int) -> Term:
    """a divided by a number and rounded down."""
    outer = {s: c // divisor for s, c in a.items() if not s or not c % divisor}
    inner = {s: c for s, c in a.items() if s and c % divisor}
    if not inner:
        return outer
    common = gcd(divisor, *inner.values())
    by = divisor // common
    inner = {s: c // common for s, c in inner.items()}
    rest = a.get("", 0) % divisor // common
    if by == 1:
        return plus(outer, {**inner, "": rest})
    if len(inner) == 1:
        ((known, factor),) = inner.items()
        if factor == 1 and isinstance(known, Quotient):
            whole = plus(known.dividend, number(rest * known.divisor))
            return plus(outer, quotient(whole, known.divisor * by))
    inner[""] = rest
    made = Quotient(f"({text(inner)})/{by}")
    made.dividend, made.divisor = inner, by
    made.names = frozenset(inside(inner))
    return plus(outer, {made: 1})


def division(a: Term, b: Term) -> tuple[Division, Division]:
    """Names for the quotient and the rest of a / b."""
    text_ = f"[{frozen(a)}/{frozen(b)}]"
    every = Division(f"q{text_}"), Division(f"r{text_}")
    for one in every:
        one.dividend, one.by, one.is_rest = a, b, one is every[1]
        one.names = frozenset(inside(a, b))
    return every


def names_division(symbol: str) -> bool:
    """Whether it is a `Division`, or one is inside: no other names have brackets."""
    return "[" in symbol


def choice(true: Clause, false: Clause, first: Term, second: Term) -> Term:
    """`first` where the clause `true` holds, else `second`."""
    if frozen(first) == frozen(second):
        return first
    sides = f"{clause_text(true)}?{clause_text(false)}"
    made = Choice(f"({sides}?{text(first)}?{text(second)})")
    made.true, made.false, made.first, made.second = true, false, first, second
    facts = (f for one in (*true, *false) for f in one)
    made.names = frozenset(inside(first, second, *facts))
    return {made: 1}


def factors(symbol: str) -> tuple[str, ...]:
    """What multiplied a symbol is; "" is 1."""
    if isinstance(symbol, Product):
        return symbol.factors
    return (symbol,) if symbol else ()


def times(*symbols: str) -> str:
    """The symbol that stands for symbols multiplied."""
    every = tuple(sorted(f for s in symbols for f in factors(s)))
    if len(every) < 2:
        return every[0] if every else ""
    made = Product(f"({'*'.join(every)})")
    made.factors, made.names = every, frozenset(inside(dict.fromkeys(every, 1)))
    return made


def product(a: Term, b: Term) -> Term:
    """a * b."""
    found = number(0)
    for s, c in a.items():
        for t, d in b.items():
            found = plus(found, {times(s, t): c * d})
    return found


def split(fact: Term, by: str) -> tuple[Term, Term]:
    """What a symbol multiplies in a term, and the rest."""
    found, rest = number(0), number(0)
    for symbol, factor in fact.items():
        left = list(factors(symbol))
        for one in factors(by):
            if one not in left:
                rest = plus(rest, {symbol: factor})
                break
            left.remove(one)
        else:
            found = plus(found, {times(*left): factor})
    return found, rest


def replaced(a: Term, values: Mapping[str, Term]) -> Term:
    """The term with values for symbols, also inside of others."""
    named = [s for s in a if s in values or _is_of(s, values)]
    if not named:
        return a if "" in a else {**a, "": 0}
    found = {"": 0, **{s: c for s, c in a.items() if s not in named}}
    for symbol in named:
        for s, c in _value(symbol, values).items():
            found[s] = found.get(s, 0) + c * a[symbol]
    return {s: c for s, c in found.items() if c or s == ""}


def _is_of(symbol: str, values: Mapping[str, Term]) -> bool:
    return isinstance(symbol, Made) and not symbol.names.isdisjoint(values)


def replaced_in(clause: Clause, values: Mapping[str, Term]) -> Clause:
    """The clause with values for symbols."""
    return [[replaced(f, values) for f in one] for one in clause]


def _value(symbol: str, values: Mapping[str, Term]) -> Term:
    if symbol in values:
        return values[symbol]
    if _is_of(symbol, values):
        if isinstance(symbol, Quotient):
            return quotient(replaced(symbol.dividend, values), symbol.divisor)
        if isinstance(symbol, Division):
            parts = replaced(symbol.dividend, values), replaced(symbol.by, values)
            return {division(*parts)[symbol.is_rest]: 1}
        if isinstance(symbol, Product):
            found = number(1)
            for factor in symbol.factors:
                found = product(found, _value(factor, values))
            return found
        if isinstance(symbol, Choice):
            true, false = (
                replaced_in(side, values) for side in (symbol.true, symbol.false)
            )
            first, second = (
                replaced(term, values) for term in (symbol.first, symbol.second)
            )
            return choice(true, false, first, second)
    return {symbol: 1}
