"""That facts contradict each other: Fourier and Motzkin, row by row."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from alcop_mlir.certificate.search.steps import Row, total

_MOST_ROWS = 160


def eliminated(rows: list[Row], outer_first: bool = False) -> Row | None:
    """A contradiction: by values for symbols where two facts say one, else by adding
    each lower bound of a symbol to each upper one.

    outer_first: what is made of other symbols goes before these, else what costs least.
        Sums are rounded to whole numbers: what contradicts depends on the order.
    """
    while True:
        rows, equal, found = _strictest(rows)
        if found is not None or not rows or len(rows) > _MOST_ROWS:
            return found
        if equal is not None:
            rows = _solved(rows, *equal)
        else:
            rows = _combined(rows, outer_first=outer_first)


def left_of(rows: list[Row], own: Collection[str]) -> list[Row]:
    """What facts say of some symbols, by elimination of all others; or nothing."""
    while True:
        rows, equal, found = _strictest(rows, own)
        if found is not None:
            return [found]
        if len(rows) > _MOST_ROWS:
            return []
        if equal is not None:
            rows = _solved(rows, *equal, own)
        elif any(s not in own for r in rows for s in r.term if s):
            rows = _combined(rows, own)
        else:
            return rows


def _strictest(
    rows: list[Row], own: Collection[str] = ()
) -> tuple[list[Row], tuple[Row, Row] | None, Row | None]:
    """Each direction once; two facts that say the value of a symbol that is none of
    `own`; and a contradiction.
    """
    kept: dict[Any, Row] = {}
    equal: tuple[Row, Row] | None = None
    for row in rows:
        constant = row.term.get("", 0)
        key = row.direction
        if not key and constant < 0:
            return rows, None, row
        if not key or (key in kept and kept[key].term.get("", 0) <= constant):
            continue
        kept[key] = row
        other = kept.get(row.against)
        if other is None or other.term.get("", 0) + constant > 0:
            continue
        if other.term.get("", 0) + constant < 0:
            return rows, None, total((row, 1), (other, 1))
        if equal is None and any(abs(c) == 1 and s not in own for s, c in key):
            equal = row, other
    return list(kept.values()), equal, None


def _solved(
    rows: list[Row], equal: Row, other: Row, own: Collection[str] = ()
) -> list[Row]:
    """Without a symbol that `equal`, which is 0, gives the value of."""
    every = ((s, c) for s, c in equal.term.items() if s and s not in own)
    symbol = next(s for s, c in every if abs(c) == 1)
    if equal.term[symbol] < 0:
        equal, other = other, equal
    found = []
    for row in rows:
        factor = row.term.get(symbol, 0)
        if factor:
            row = total((row, 1), (other if factor > 0 else equal, abs(factor)))
        found.append(row)
    return found


def _combined(
    rows: list[Row], own: Collection[str] = (), outer_first: bool = False
) -> list[Row]:
    """Without the symbol that costs least, of those that are not `own`; or the one with
    the longest name, which has those of all that it is made of in it.
    """
    counts: dict[str, list[int]] = {}
    for row in rows:
        for symbol, factor in row.term.items():
            counts.setdefault(symbol, [0, 0])[factor > 0] += 1
    counts.pop("", None)
    costs = {s: (a * b - a - b, s) for s, (a, b) in counts.items() if s not in own}
    if outer_first:
        costs = {s: (-len(s), s) for s in costs}
    symbol = min(costs, key=lambda s: costs[s])
    found = [r for r in rows if symbol not in r.term]
    lows = [r for r in rows if r.term.get(symbol, 0) > 0]
    highs = [r for r in rows if r.term.get(symbol, 0) < 0]
    for low in lows:
        for high in highs:
            a, b = low.term[symbol], -high.term[symbol]
            found.append(total((low, b), (high, a)))
    return found
