"""Predicates that threads share, and what is in values."""

from __future__ import annotations

import numpy as np

from alcop_mlir.checker import terms
from alcop_mlir.checker.arithmetic import Holds, Same, Unknown, Value, is_equal


def symbols_of(value: Value) -> set[str]:
    """The names of symbols in a value."""
    if isinstance(value, Same):
        return terms.inside(value.term)
    if isinstance(value, Holds):
        every = [f for one in (*value.true, *value.false) for f in one]
        return set().union(*map(terms.inside, every))
    return set()


def is_shared(value: Value) -> bool:
    """Whether all threads surely hold the same."""
    return is_equal(value) if isinstance(value, np.ndarray) else value is not None


def inverted(value: Value) -> Value:
    """The opposite of a predicate."""
    if isinstance(value, Holds):
        return Holds(value.false, value.true)
    return value ^ np.uint64(1) if isinstance(value, np.ndarray) else None


def logic(name: str, values: list[Value]) -> Value:
    """`and`, `or`, `xor`, `not`, `mov` of predicates."""
    lanes = [v for v in values if isinstance(v, np.ndarray)]
    if len(lanes) == len(values):
        if name in ("not", "mov"):
            return inverted(lanes[0]) if name == "not" else lanes[0]
        found = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
        return found[name](*lanes)
    decides = {"and": 0, "or": 1}.get(name)
    for one in lanes:
        if is_equal(one) and int(one[0]) == decides:
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
