"""What values and clauses surely are."""

from __future__ import annotations

from math import gcd

from alcop_mlir.certificate.bounds.thread import Held
from alcop_mlir.certificate.linear import Clause, Linear
from alcop_mlir.certificate.values import Truth, Uniform


def is_unequal(clause: Clause) -> bool:
    """Whether it says that a number is less or more than another."""
    if len(clause) != 2 or any(len(one) != 1 for one in clause):
        return False
    return not (clause[0][0] + clause[1][0]).terms


def divided(terms: list[Linear]) -> tuple[int, list[Linear]]:
    """What divides all numbers in terms, and what it leaves."""
    by = gcd(*(c for t in terms for c in (t.constant, *t.terms.values()))) or 1
    return by, [
        Linear({s: c // by for s, c in t.terms.items()}, t.constant // by)
        for t in terms
    ]


def number_of(value: Held) -> int | None:
    """The number that a value surely is; 0 or 1 of a predicate."""
    if isinstance(value, Truth):
        condition = value.condition
        known = {((),): 1, (): 0}.get(condition.true)
        return known if condition.false == (((),) if known == 0 else ()) else None
    if isinstance(value, Uniform) and not value.term.terms:
        return value.term.constant
    return None


def is_same(one: Held, other: Held) -> bool:
    if one is other:
        return True
    if isinstance(one, Uniform) and isinstance(other, Uniform):
        return one.term == other.term
    if isinstance(one, Truth) and isinstance(other, Truth):
        return one.condition == other.condition
    return False
