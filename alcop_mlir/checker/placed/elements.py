"""What is computed of elements: an element of the same indices, where these agree.

Bytes may also move within a register: so two elements that are loaded one by one become
those of one register.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from alcop_mlir.checker.logic import terms
from alcop_mlir.checker.machine.held import Tags
from alcop_mlir.checker.placed.tags import (
    NUMBER,
    UNKNOWN,
    ZERO,
    Book,
    Element,
    Result,
    Whole,
)

Loops = dict[str, tuple[terms.Term, Any]]


def joined(book: Book, parts: list[Whole], adds: bool = False) -> Whole:
    """What is computed of elements with the same indices is of those too.

    adds: it is an addition, which may be of the next element of a sum
    """
    number = np.full(parts[0].number.shape, NUMBER, np.int32)
    index = np.zeros(number.shape, np.int64)
    combined = np.stack([p.number for p in parts], axis=-1)
    for row in np.unique(combined.reshape(-1, len(parts)), axis=0):
        at = (combined == row).all(axis=-1)
        kinds = row.tolist()
        if UNKNOWN in kinds:
            number[at] = UNKNOWN
            continue
        given = [(k, p.at[at]) for k, p in zip(kinds, parts, strict=True) if k > NUMBER]
        if adds and len(given) == 2 and book.statement.rhs is None:
            number[at], index[at] = _added(book, given)
        elif given:
            number[at], index[at] = _together(book, given)
    return Whole(number, index)


def of_result(
    book: Book, number: int, at: np.ndarray, loops: Loops | None = None
) -> tuple[int, np.ndarray]:
    """An element that is a result as it is, where nothing is added.

    loops: those of the result; None where it has to have an index for each
    """
    kind, statement = book.kinds[number], book.statement
    if statement.lhs is not None or not isinstance(kind, Element):
        return number, at
    own = book.loops(kind, at)
    if own.keys() != statement.order.keys():
        if loops is None:
            return number, at
        own = {**loops, **own}  # the same for all that it has no index for
    term, index = book.result(own)
    whole = (("", statement.extents[statement.reduced]),)
    made = Result(term, kind.size, whole, frozenset((kind.array,)))
    return book.number(made), index


def _together(book: Book, given: list[tuple[int, np.ndarray]]) -> tuple[int, Any]:
    kinds = book.kinds
    given = [of_result(book, *one) for one in given]
    (first, at), *rest = sorted(
        given, key=lambda one: not isinstance(kinds[one[0]], Result)
    )
    found = kinds[first]
    assert found is not None
    if not rest:
        return _after(book, found, first), at
    if isinstance(found, Element) or _after(book, found, first) == UNKNOWN:
        return UNKNOWN, 0
    loops = book.loops(found, at)
    for number, index in rest:
        other = kinds[number]
        assert other is not None
        for loop, (term, value) in book.loops(other, index).items():
            own, mine = loops.get(loop, ({}, None))
            if mine is None or terms.frozen(own) != terms.frozen(term):
                return UNKNOWN, 0
            if not np.array_equal(mine, value):
                return UNKNOWN, 0
        more = other.reads if isinstance(other, Result) else {other.array}
        if isinstance(other, Result) and other.upto != found.upto:
            return UNKNOWN, 0
        found = found._replace(reads=found.reads | more)
    return book.number(found), at


class _Part(NamedTuple):
    """A part of a sum of one array's elements: from one on, before another one."""

    first: int
    last: int
    kind: Result
    at: np.ndarray


def _added(book: Book, given: list[tuple[int, np.ndarray]]) -> tuple[int, Any]:
    """A sum up to some element plus the next one; else as any other instruction."""
    one, other = (_part(book, *side) for side in given)
    if one is None or other is None:
        return _together(book, given)
    low, high = sorted((one, other), key=lambda part: (part.last, part.first))
    is_next = not low.first and low.last == high.first < high.last
    if not is_next or low.kind.size != high.kind.size:
        return _together(book, given)
    is_same = book.origins.is_same(low.kind.term, high.kind.term)
    if not is_same or not np.array_equal(low.at, high.at):
        return UNKNOWN, 0
    reads = low.kind.reads | high.kind.reads
    found = low.kind._replace(upto=(("", high.last),), reads=reads)
    return book.number(found), low.at


def _part(book: Book, number: int, at: np.ndarray) -> _Part | None:
    kind, statement = book.kinds[number], book.statement
    if isinstance(kind, Result):
        last = terms.minus({"": 0}, dict(kind.upto))
        return _Part(0, -last[""], kind, at) if terms.is_constant(last) else None
    if kind is None or kind.array not in (statement.lhs, statement.init):
        return None
    loops = book.loops(kind, at)
    first = last = 0
    reads = frozenset({kind.array})
    if kind.array == statement.lhs:
        term, along = loops.pop(statement.reduced)
        if not terms.is_constant(term) or (along != along[0]).any():
            return None
        first, last, reads = int(along[0]), int(along[0]) + 1, frozenset()
    term, index = book.result(loops)
    return _Part(first, last, Result(term, kind.size, (), reads), index)


def _after(book: Book, kind: Element | Result, number: int) -> int:
    """An element that something is computed of: of a sum only when it is whole."""
    statement = book.statement
    whole = (("", statement.extents[statement.reduced]),)
    return UNKNOWN if isinstance(kind, Result) and kind.upto != whole else number


def widened(tags: Tags, count: int) -> Tags:
    """With zeros in front, so that there are as many granules."""
    more = count - tags.number.shape[1]
    if more <= 0:
        return tags
    zeros = np.full((len(tags.number), more), ZERO, np.int32)
    number = np.concatenate([tags.number, zeros], axis=1)
    return Tags(number, np.concatenate([tags.place, zeros * np.int64(0)], axis=1))


def shifted(tags: Tags, by: int) -> Tags:
    """Moved up by so many granules, or down; zeros follow."""
    count = tags.number.shape[1]
    by = max(-count, min(count, by))
    if by < 0:
        return widened(Tags(tags.number[:, -by:], tags.place[:, -by:]), count)
    number, place = (np.roll(one, by, axis=1) for one in tags)
    number[:, :by], place[:, :by] = ZERO, 0
    return Tags(number, place)


def united(one: Tags, other: Tags) -> Tags:
    """What `or` leaves: where one is 0, the other."""
    a, b = one.number == ZERO, other.number == ZERO
    number = np.where(a, other.number, np.where(b, one.number, UNKNOWN))
    place = np.where(a, other.place, np.where(b, one.place, 0))
    return Tags(number.astype(np.int32), place)
