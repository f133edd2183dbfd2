"""Integers of elements: which are known to fit 32 bits, and in what they are computed.

Numbers of rows and columns, and what is made of them, have a least and a largest value:
they are INTEGER, i32, as long as these fit. So are integers of 32 bits and less that
are read from memory. What does not surely fit, as a length of 64 bits that is read, is
LONG, i64, in which MLIR's index is computed too. A number that fits 32 bits is compared
with one that may not by cutting that to 32 bits: where they differ, the first one has
no such value, so that the comparison is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from alcop_mlir.analysis.chains.elements import (
    BOOLEAN,
    INTEGER,
    LEAST,
    LONG,
    MOST,
    Element,
    Limits,
    Pool,
    within_words,
)

WORDS: Limits = (LEAST, MOST)
# Bits of the types that integers of a program have.
BITS = {"i8": 8, "i16": 16, "i32": 32, "i64": 64, "index": 64}

_CASTS = ("arith.index_cast", "arith.index_castui", "arith.extsi", "arith.trunci")
_COMPARE, _SELECT = "arith.cmpi", "arith.select"


def limits_of_type(kind: str) -> Limits | None:
    """The least and largest integer of a type; None if they do not fit 32 bits."""
    bits = BITS[kind]
    return (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if bits <= BITS["i32"] else None


def is_integer(element: Element) -> bool:
    """Whether it is one, and no boolean."""
    return element.type in (INTEGER, LONG)


def cast(pool: Pool, name: str, element: Element, kind: str) -> Element | None:
    """What a cast makes of an integer; None for one that expressions do not have."""
    if name not in _CASTS or kind not in BITS:
        return None
    least, most = element.limits or (-(2**63), 2**63 - 1)
    bits = BITS[kind]
    if name == "arith.index_castui" and least < 0:
        return None
    if -(2 ** (bits - 1)) <= least and most < 2 ** (bits - 1):
        return element
    if bits != BITS["i32"]:
        return None
    return pool.op("arith.trunci", (element,), INTEGER, limits=WORDS)


def computed(
    pool: Pool,
    name: str,
    operands: tuple[Element, ...],
    kind: str,
    attributes: Mapping[str, Any],
) -> Element | None:
    """What an op makes of integers; None for ops that expressions do not have.

    kind: the type of its result in the program
    """
    if name == _COMPARE:
        return pool.op(name, _compared(pool, operands), BOOLEAN, attributes)
    if name == _SELECT:
        condition, *numbers = operands
        limits = _limits(_united, numbers)
        alike = _alike(pool, numbers, limits)
        made = INTEGER if limits else LONG
        return pool.op(name, (condition, *alike), made, limits=limits)
    if name not in _ENDS or kind not in ("i32", "i64", "index"):
        return None
    limits = _limits(_ENDS[name], operands)
    if limits is None and kind == "i32":
        limits = WORDS  # it wraps around, as in the program
    made = INTEGER if limits else LONG
    return pool.op(name, _alike(pool, operands, limits), made, limits=limits)


def _limits(ends: Callable[..., Limits], operands: Any) -> Limits | None:
    """The limits of what is made of integers; None if it may not fit 32 bits."""
    known = [one.limits for one in operands if one.limits is not None]
    if len(known) < len(operands):
        return None
    found = ends(*known)
    return found if within_words(found) else None


def _alike(pool: Pool, operands: Any, limits: Limits | None) -> tuple[Element, ...]:
    """The operands, as i64 where what is made of them is."""
    return tuple(operands if limits else (_long(pool, one) for one in operands))


def _long(pool: Pool, element: Element) -> Element:
    if element.type == LONG:
        return element
    if element.name == "constant":
        return pool.constant(element.detail, LONG)
    return pool.op("arith.extsi", (element,), LONG)


def _compared(pool: Pool, operands: tuple[Element, ...]) -> tuple[Element, ...]:
    """Both sides of a comparison, as i32 where one of them is that and not too large.

    Of the other one, what is not in 32 bits becomes the least or the largest of these.
    Signed or not, it is on the same side of the first one still.
    """
    if all(one.type == operands[0].type for one in operands):
        return operands
    (word,) = (one for one in operands if one.type == INTEGER)
    limits = word.limits
    if limits is None or not LEAST < limits[0] <= limits[1] < MOST:
        return tuple(_long(pool, one) for one in operands)
    return tuple(one if one is word else _cut(pool, one) for one in operands)


def _cut(pool: Pool, element: Element) -> Element:
    least, most = (pool.constant(number, LONG) for number in WORDS)
    made = pool.op("arith.maxsi", (element, least), LONG)
    made = pool.op("arith.minsi", (made, most), LONG)
    return pool.op("arith.trunci", (made,), INTEGER, limits=WORDS)


def _products(one: Limits, other: Limits) -> Limits:
    every = [a * b for a in one for b in other]
    return min(every), max(every)


def _united(one: Limits, other: Limits) -> Limits:
    return min(one[0], other[0]), max(one[1], other[1])


_ENDS: dict[str, Callable[..., Limits]] = {
    "arith.addi": lambda one, other: (one[0] + other[0], one[1] + other[1]),
    "arith.subi": lambda one, other: (one[0] - other[1], one[1] - other[0]),
    "arith.muli": _products,
    "arith.maxsi": lambda one, other: (max(one[0], other[0]), max(one[1], other[1])),
    "arith.minsi": lambda one, other: (min(one[0], other[0]), min(one[1], other[1])),
    "math.absi": lambda one: (max(0, one[0], -one[1]), max(-one[0], one[1])),
}
