"""Predicates that threads share, and what is in values."""

from __future__ import annotations

import numpy as np

from alcop_mlir.checker.logic import terms
from alcop_mlir.checker.logic.terms import Clause, Term
from alcop_mlir.checker.machine.arithmetic import (
    Holds,
    Mixed,
    Same,
    Unknown,
    Value,
    at_least,
    common,
    is_equal,
    same,
    types_of,
)
from alcop_mlir.checker.machine.exact import ORDER, TESTS
from alcop_mlir.checker.machine.mixed import is_same


def symbols_of(value: Value) -> set[str]:
    """The names of symbols in a value."""
    if isinstance(value, Same):
        return terms.inside(value.term)
    if isinstance(value, Holds):
        return terms.inside(*(f for one in (*value.true, *value.false) for f in one))
    return (
        terms.inside(dict.fromkeys(value.parts, 1))
        if isinstance(value, Mixed)
        else set()
    )


def is_same_value(one: Value, other: Value) -> bool:
    """Whether two are the same."""
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return np.array_equal(one, other)  # type: ignore[arg-type]
    if isinstance(one, Mixed) and isinstance(other, Mixed):
        return is_same(one, other)
    if isinstance(one, Same) and isinstance(other, Same):
        limits = (one.low, one.high) == (other.low, other.high)
        return limits and terms.frozen(one.term) == terms.frozen(other.term)
    return one == other


def is_shared(value: Value) -> bool:
    """Whether all threads surely hold the same."""
    if isinstance(value, np.ndarray):
        return is_equal(value)
    return isinstance(value, (Same, Holds))


def inverted(value: Value) -> Value:
    """The opposite of a predicate."""
    if isinstance(value, Holds):
        return Holds(value.false, value.true)
    return value ^ np.uint64(1) if isinstance(value, np.ndarray) else None


def logic(name: str, values: list[Value]) -> Value:
    """`and`, `or`, `not`, `mov` of predicates, of which one is no number."""
    decides = {"and": 0, "or": 1}.get(name)
    for one in values:
        if isinstance(one, np.ndarray) and is_equal(one) and int(one[0]) == decides:
            return one
    known = [_holds(v) for v in values]
    sides = [k for k in known if k is not None]
    if len(sides) < len(values):
        return None
    if name in ("not", "mov"):
        return inverted(sides[0]) if name == "not" else sides[0]
    if name not in ("and", "or"):
        raise Unknown
    if name == "or":
        sides = [Holds(s.false, s.true) for s in sides]
    a, b = sides
    found = Holds([x + y for x in a.true for y in b.true], a.false + b.false)
    return found if name == "and" else Holds(found.false, found.true)


def _holds(value: Value) -> Holds | None:
    if isinstance(value, np.ndarray) and is_equal(value):
        return Holds([[]], []) if value[0] & np.uint64(1) else Holds([], [[]])
    return value if isinstance(value, Holds) else None


def compared(parts: list[str], a: Value, b: Value) -> Value:
    """`setp` of integers that all threads share; raises Unknown."""
    kinds, name = types_of(parts), ORDER.get(parts[1], parts[1])
    if not kinds or kinds[-1][0] == "f" or name not in TESTS:
        raise Unknown
    kind, width = kinds[-1]
    has_sign = kind == "s" and parts[1] not in ORDER
    x, y = same(a, width), same(b, width)
    if x is None or y is None:
        return None
    if not has_sign and name not in ("eq", "ne") and min(x.low, y.low) < 0:
        return _above_all(name, x.term, y.term)
    low, high = x.low - y.high, x.high - y.low
    less = terms.minus(x.term, y.term)
    if terms.is_constant(less):
        low = high = less.get("", 0)
    if name in ("eq", "ne"):
        divisor = common(list(less.values()))
        less = {s: c // divisor for s, c in less.items()}
        zero = Holds([[less, terms.negative(less)]], _apart(less))
        sure = None if low <= 0 <= high and low != high else low == high == 0
        found = zero if name == "eq" else Holds(zero.false, zero.true)
        sure = sure if name == "eq" or sure is None else not sure
    else:
        found = _ordered(name, less)
        at_low, at_high = TESTS[name](low, 0), TESTS[name](high, 0)
        sure = at_low if at_low == at_high else None
    return found if sure is None else np.full(1, int(sure), np.uint64)


def _above_all(name: str, x: Term, y: Term) -> Holds:
    """The order of numbers without a sign: negative ones stand for the largest."""
    if name in ("gt", "le"):
        x, y = y, x
    less, below = terms.opposite(terms.minus(x, y)), terms.opposite
    less_or_not = (less, terms.minus(x, y))
    true, false = (
        [[order, x, y], [order, below(x), below(y)], apart]
        for order, apart in zip(
            less_or_not, ([x, below(y)], [below(x), y]), strict=True
        )
    )
    return Holds(true, false) if name in ("lt", "gt") else Holds(false, true)


def _apart(less: Term) -> Clause:
    one = terms.number(1)
    return [[terms.minus(less, one)], [terms.plus(terms.number(-1), less, -1)]]


def _ordered(name: str, less: Term) -> Holds:
    if name in ("ge", "lt"):
        found = at_least(less)
    else:
        found = at_least(terms.negative(less))
    return found if name in ("ge", "le") else Holds(found.false, found.true)
