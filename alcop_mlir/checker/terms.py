"""Linear terms, what their symbols stand for, and facts that contradict each other.

A term is a dict from symbols to whole numbers, with the constant under "". A symbol
that is no name stands for a quotient (`("/", term, divisor)`) or a choice
(`("?", true, false, first, second)`). A fact is a term that is not negative; a clause
is a list of alternatives, lists of facts.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import gcd
from typing import Any

Term = dict[Any, int]
Clause = list[list[Term]]
_MOST_ROWS = 160
_MOST_SPLITS = 6


def number(value: int) -> Term:
    """A constant."""
    return {"": value}


def plus(a: Term, b: Term, times: int = 1) -> Term:
    """a + times * b."""
    found = dict(a)
    for symbol, factor in b.items():
        found[symbol] = found.get(symbol, 0) + times * factor
    return {s: c for s, c in found.items() if c or s == ""}


def minus(a: Term, b: Term) -> Term:
    """a - b."""
    return plus(a, b, -1)


def frozen(a: Term) -> tuple[Any, ...]:
    """The same for equal terms."""
    return tuple(sorted(((s, c) for s, c in a.items() if c), key=repr))


def is_constant(a: Term) -> bool:
    """Whether no symbol is in it."""
    return not any(c for s, c in a.items() if s != "")


def opposite(fact: Term) -> Term:
    """The fact that holds where that one does not."""
    return plus(number(-1), fact, -1)


def quotient(a: Term, divisor: int) -> Term:
    """a divided by a number and rounded down."""
    outer = {s: c // divisor for s, c in a.items() if s == "" or not c % divisor}
    inner = {s: c for s, c in a.items() if s != "" and c % divisor}
    if not inner:
        return outer
    common = gcd(divisor, *inner.values())
    by = divisor // common
    inner = {s: c // common for s, c in inner.items()}
    inner[""] = a.get("", 0) % divisor // common
    if by == 1:
        return plus(outer, inner)
    alone = [s for s in inner if s != ""]
    if len(alone) == 1 and inner[alone[0]] == 1 and not inner[""]:
        known = alone[0]
        if isinstance(known, tuple) and known[0] == "/":
            return plus(outer, quotient(dict(known[1]), known[2] * by))
    return plus(outer, {("/", frozen(inner), by): 1})


def choice(true: Clause, false: Clause, first: Term, second: Term) -> Term:
    """`first` where the clause `true` holds, else `second`."""
    if frozen(first) == frozen(second):
        return first
    key = ("?", _frozen(true), _frozen(false), frozen(first), frozen(second))
    return {key: 1}


def _frozen(clause: Clause) -> tuple[Any, ...]:
    return tuple(tuple(frozen(f) for f in one) for one in clause)


def replaced(a: Term, values: dict[Any, Term]) -> Term:
    """The term with values for symbols, also inside of others."""
    found = number(a.get("", 0))
    for symbol, factor in a.items():
        if symbol != "":
            found = plus(found, _value(symbol, values), factor)
    return found


def _value(symbol: Any, values: dict[Any, Term]) -> Term:
    if symbol in values:
        return values[symbol]
    if isinstance(symbol, str) or not inside({symbol: 1}) & values.keys():
        return {symbol: 1}
    if symbol[0] == "/":
        return quotient(replaced(dict(symbol[1]), values), symbol[2])
    true, false = (
        [[replaced(dict(f), values) for f in one] for one in side]
        for side in symbol[1:3]
    )
    first, second = (replaced(dict(t), values) for t in symbol[3:])
    return choice(true, false, first, second)


def inside(a: Term) -> set[Any]:
    """All names in a term, also inside of others."""
    found: set[Any] = set()
    for symbol in a:
        if isinstance(symbol, str):
            found |= {symbol} - {""}
        elif symbol[0] == "/":
            found |= inside(dict(symbol[1]))
        else:
            every = [f for side in symbol[1:3] for one in side for f in one]
            for part in (*every, *symbol[3:]):
                found |= inside(dict(part))
    return found


class Facts:
    """Decides what follows from facts, with the ranges of names."""

    def __init__(self) -> None:
        self.ranges: dict[str, tuple[int, int]] = {}
        self._known: dict[Any, bool] = {}

    def contradict(self, facts: Iterable[Term], clauses: Iterable[Clause]) -> bool:
        """Whether they surely have no solution."""
        rows, left = list(facts), list(clauses)
        met: set[Any] = {""}
        while fresh := ({s for f in rows for s in f} | _in_clauses(left)) - met:
            met |= fresh
            for symbol in fresh:
                more, clause = self._definition(symbol)
                rows += more
                left += clause
        key = (
            frozenset(map(frozen, rows)),
            frozenset(_frozen(c) for c in left),
        )
        if key not in self._known:
            self._known[key] = _contradict(rows, left, _MOST_SPLITS)
        return self._known[key]

    def follows(self, fact: Term, facts: list[Term], clauses: list[Clause]) -> bool:
        """Whether the fact holds wherever those do."""
        return self.excludes([[opposite(fact)]], facts, clauses)

    def excludes(
        self, clause: Clause, facts: list[Term], clauses: list[Clause]
    ) -> bool:
        """Whether no alternative of the clause can hold there."""
        for one in clause:
            if any(is_constant(f) and f.get("", 0) < 0 for f in one):
                continue
            near, around = _near(one, facts, clauses)
            if not self.contradict([*near, *one], around):
                return False
        return True

    def _definition(self, symbol: Any) -> tuple[list[Term], list[Clause]]:
        if isinstance(symbol, str):
            low, high = self.ranges.get(symbol, (None, None))
            if low is None or high is None:
                return [], []
            return [{symbol: 1, "": -low}, {symbol: -1, "": high}], []
        if symbol[0] == "/":
            rest = plus(dict(symbol[1]), {symbol: 1}, -symbol[2])
            return [rest, plus(number(symbol[2] - 1), rest, -1)], []
        sides = []
        for side, value in ((symbol[1], symbol[3]), (symbol[2], symbol[4])):
            same = minus({symbol: 1}, dict(value))
            equal = [same, plus({}, same, -1)]
            sides += [[*map(dict, one), *equal] for one in side]
        return [], [sides]


def _in_clauses(clauses: Iterable[Clause]) -> set[Any]:
    return {s for c in clauses for one in c for f in one for s in f}


def _near(
    query: list[Term], facts: list[Term], clauses: list[Clause]
) -> tuple[list[Term], list[Clause]]:
    """The facts that share names with the query, directly or over others."""
    names = set().union(*(inside(f) for f in query))
    rows = [(inside(f), f) for f in facts]
    sides = [(set().union(*(inside(f) for o in c for f in o)), c) for c in clauses]
    grows = True
    while grows:
        grows = False
        for met, _ in (*rows, *sides):
            if met & names and not met <= names:
                names |= met
                grows = True
    return [f for met, f in rows if met & names], [c for met, c in sides if met & names]


def _contradict(facts: list[Term], clauses: list[Clause], depth: int) -> bool:
    if _empty(facts):
        return True
    if not clauses or not depth:
        return False
    for place, clause in enumerate(clauses):
        left = [one for one in clause if not _empty([*facts, *one])]
        if len(left) < 2:
            others = clauses[:place] + clauses[place + 1 :]
            return not left or _contradict([*facts, *left[0]], others, depth)
    return all(_contradict([*facts, *o], clauses[1:], depth - 1) for o in clauses[0])


def _empty(facts: Iterable[Term]) -> bool:
    """No solution, by eliminating symbols; constants are rounded to integers."""
    rows = _rows(facts)
    while rows:
        rows = _solved(rows) if _pair(rows) else _combined(rows)
        if rows is not None and len(rows) > _MOST_ROWS:
            return False
    return rows is None


_Rows = dict[frozenset[tuple[Any, int]], int]  # direction: constant


def _rows(facts: Iterable[Term]) -> _Rows | None:
    found: _Rows = {}
    for fact in facts:
        terms = {s: c for s, c in fact.items() if s != "" and c}
        constant = fact.get("", 0)
        if not terms:
            if constant < 0:
                return None
            continue
        common = gcd(*terms.values())
        key = frozenset((s, c // common) for s, c in terms.items())
        found[key] = min(found.get(key, constant // common), constant // common)
    return found


def _pair(rows: _Rows) -> tuple[Any, Term] | None:
    """A symbol of which two rows together say the value."""
    for key, constant in rows.items():
        if rows.get(frozenset((s, -c) for s, c in key)) == -constant:
            for symbol, factor in key:
                if abs(factor) == 1:
                    rest = {s: -c * factor for s, c in key if s != symbol}
                    return symbol, {**rest, "": -constant * factor}
    return None


def _solved(rows: _Rows) -> _Rows | None:
    found = _pair(rows)
    assert found is not None
    symbol, value = found
    return _rows(
        plus(
            {**{s: c for s, c in key if s != symbol}, "": k},
            value,
            dict(key).get(symbol, 0),
        )
        for key, k in rows.items()
    )


def _combined(rows: _Rows) -> _Rows | None:
    """Without the symbol that costs least: each lower bound with each upper one."""
    counts: dict[Any, list[int]] = {}
    for key in rows:
        for symbol, factor in key:
            counts.setdefault(symbol, [0, 0])[factor > 0] += 1
    costs = {s: a * b - a - b for s, (a, b) in counts.items()}
    symbol = min(costs, key=lambda s: (costs[s], repr(s)))
    facts = [
        ({**dict(key), "": k}, dict(key).get(symbol, 0)) for key, k in rows.items()
    ]
    found = [f for f, c in facts if not c]
    for low, a in facts:
        for high, b in facts:
            if a > 0 > b:
                found.append(plus(plus({}, low, -b), high, a))
    return _rows(found)
