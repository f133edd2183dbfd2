"""Which columns of a row of elements may be more than -inf, as masks of indices say.

A causal mask leaves columns up to the number of the row, a window those near it. What
is -inf has a weight of zero, so that its tile of keys and values need not be visited.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from alcop_mlir.analysis.chains.elements import Element
from alcop_mlir.frozen import frozen

# arith.cmpi: predicates as MLIR numbers them, as bounds of the left side less the
# right side: (least, greatest), None for none.
_BOUNDS = {
    0: (0, 0),
    2: (None, -1),
    3: (None, 0),
    4: (1, None),
    5: (0, None),
}


# How often a number has that of the row, that of the column, and 1.
Linear = tuple[int, int, int]


@frozen
class Columns:
    """Bounds of the number of a column less that of its row; None for none."""

    first: int | None = None
    last: int | None = None

    def within(self, first: int | None, last: int | None) -> Columns:
        """The narrower ones of both."""
        firsts = [one for one in (self.first, first) if one is not None]
        lasts = [one for one in (self.last, last) if one is not None]
        return Columns(max(firsts, default=None), min(lasts, default=None))


def visible_columns(elements: Element, m: int, n: int) -> Columns:
    """The columns that a row of elements can see; m and n are loops."""
    found = Columns()
    for condition in _needed(elements):
        if condition.name != "arith.cmpi":
            continue
        sides = [_linear(one, m, n) for one in condition.operands]
        predicate = dict(condition.detail)["predicate"].value
        if None in sides:
            continue
        one, other = (side for side in sides if side is not None)
        bounds = compared(predicate, one, other)
        if bounds is not None:
            found = found.within(bounds.first, bounds.last)
    return found


def compared(predicate: int, one: Linear, other: Linear) -> Columns | None:
    """What a comparison says of columns and rows; None where that is not the same.

    predicate: of arith.cmpi, as MLIR numbers them
    """
    if predicate not in _BOUNDS:
        return None
    rows, columns, offset = (x - y for x, y in zip(one, other, strict=True))
    least, most = _BOUNDS[predicate]
    if (rows, columns) == (-1, 1):
        first = None if least is None else least - offset
        last = None if most is None else most - offset
        return Columns(first, last)
    if (rows, columns) == (1, -1):
        first = None if most is None else offset - most
        last = None if least is None else offset - least
        return Columns(first, last)
    return None


def _needed(element: Element) -> Iterator[Element]:
    """Conditions without which an element is -inf."""
    if element.name != "arith.select":
        return
    condition, chosen, other = element.operands
    if other.name == "constant" and other.detail == -math.inf:
        yield from _conjuncts(condition)
        yield from _needed(chosen)


def _conjuncts(condition: Element) -> Iterator[Element]:
    if condition.name != "arith.andi":
        yield condition
        return
    for one in condition.operands:
        yield from _conjuncts(one)


def _linear(element: Element, m: int, n: int) -> Linear | None:
    """How often a number has that of the row, that of the column, and 1."""
    if element.name == "constant":
        return 0, 0, element.detail
    if element.name == "index" and element.detail in ((m,), (n,)):
        return (1, 0, 0) if element.detail == (m,) else (0, 1, 0)
    if element.name not in ("arith.addi", "arith.subi"):
        return None
    sides = [_linear(one, m, n) for one in element.operands]
    if None in sides:
        return None
    sign = 1 if element.name == "arith.addi" else -1
    one, other = (side for side in sides if side is not None)
    a, b, c = (x + sign * y for x, y in zip(one, other, strict=True))
    return a, b, c
