"""Divisions by what is not known: names for the quotient and the rest.

Ranges are known of both, as where they are computed. A register holds one only where
that was computed: no certificate may say so of another (`listed_states.py`).
"""

from __future__ import annotations

from collections.abc import Callable

from alcop_mlir.checker.logic import terms
from alcop_mlir.checker.logic.facts import Facts
from alcop_mlir.checker.logic.terms import Division
from alcop_mlir.checker.machine.arithmetic import Same


def of(parts: list[str]) -> Callable[[Same, Same, Facts], Same | None] | None:
    """What an opcode of integers does."""
    if parts[0] == "div" and len(parts) == 2 and parts[1][0] in "us":
        return quotient
    return whole if parts[:2] == ["mul", "lo"] else None


def quotient(a: Same, b: Same, facts: Facts) -> Same | None:
    """a / b, if that is a division of numbers without a sign."""
    if a.low < 0 or b.low < 1:
        return None
    name, rest = terms.division(a.term, b.term)
    most = a.high // b.low
    facts.limit(name, 0, most)
    facts.limit(rest, 0, a.high)
    return Same({name: 1}, 0, most)


def whole(a: Same, b: Same, facts: Facts) -> Same | None:
    """a * b, if one is a quotient by the other: what was divided, without the rest."""
    for one, by in ((a, b), (b, a)):
        for name in one.term:
            if not isinstance(name, Division) or name.is_rest:
                continue
            is_alone = terms.frozen(one.term) == ((name, 1),)
            if is_alone and terms.frozen(name.by) == terms.frozen(by.term):
                _, rest = terms.division(name.dividend, name.by)
                term = terms.minus(name.dividend, {rest: 1})
                if rest in facts.ranges:
                    return Same(term, *facts.ranges[rest])
    return None
