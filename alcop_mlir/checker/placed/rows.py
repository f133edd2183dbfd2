"""What reductions along rows make of elements: values of a row, of all its columns.

A *fold* is made of elements of one row, of some of its columns, each used once. Where
these are all, it is a value of the row, as its sum or its largest element, and what is
computed of it and of an element of the row is one of that element's indices. What has
no index along a loop is the same for all of these.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

import numpy as np

from alcop_mlir.checker.form.statement import Statement
from alcop_mlir.checker.logic import terms
from alcop_mlir.checker.logic.terms import Term
from alcop_mlir.checker.machine.held import Tags
from alcop_mlir.checker.placed.columns import ALL, SET
from alcop_mlir.checker.placed.kinds import Element, Fold, Result
from alcop_mlir.checker.placed.origins import is_turn
from alcop_mlir.checker.placed.results import Loops, of_result
from alcop_mlir.checker.placed.tags import UNKNOWN, Book

_Given = list[tuple[int, np.ndarray]]  # kinds, and the index of each
_Found = tuple[int, Any]
_FIRST: tuple[Term, Any] = ({}, 0)


class _Part(NamedTuple):
    """Of each thread an element, a fold, or a fold beside an element.

    loops: indices, of those loops that it has
    sets:  of columns that are folded
    reads: arrays of which each of these has used an element; None: there are none
    own:   arrays of which one has been used at the index itself; None: there is none
    """

    loops: Loops
    sets: np.ndarray
    reads: frozenset[str] | None
    own: frozenset[str] | None


def whole_rows(statement: Statement, arrays: Collection[str]) -> frozenset[str]:
    """What a value of a row has used, which is made of elements of these arrays."""
    rows = {*statement.row_loops}
    found: set[str] = set()
    for name in arrays:
        array = name.removeprefix("/")
        is_row = not rows.isdisjoint(statement.arrays[array].strides)
        found.add("/" + array if is_row else array)
    return frozenset(found)


def joined_in_rows(book: Book, given: _Given) -> _Found:
    """What is computed of elements and folds, where a statement has rows."""
    if len(given) == 1:
        return given[0]
    parts = [_part(book, *one) for one in given]
    found = _beside(book, parts, False) or _folded(book, parts)
    found = found or _beside(book, parts, True)
    if found is None:
        return UNKNOWN, 0
    kinds = [book.kinds[number] for number, _ in given]
    return _numbered(book, _done(book, found), max(kind.size for kind in kinds if kind))


def done(book: Book, tags: Tags) -> np.ndarray:
    """Where tags are of values of rows."""
    found = np.zeros(tags.number.shape, bool)
    for number in np.unique(tags.number).tolist():
        kind = book.kinds[number]
        if isinstance(kind, Fold) and kind.reads is None:
            is_row = book.columns.extents.keys().isdisjoint(kind.loops)
            if is_row and any(name[:1] == "/" for name in kind.own or ()):
                found |= tags.number == number
    return found


def stored(
    book: Book, number: int, at: np.ndarray, loops: Loops, size: int
) -> tuple[int, np.ndarray]:
    """What is stored where no sum is, as a result: an element, a number, or a value of
    a row; the same for all that it has no index for.
    """
    if book.kinds[number] is None or not book.statement.row_loops:
        return of_result(book, number, at, loops, size)
    part = _part(book, number, at)
    if part.reads is not None or not part.loops.keys() <= loops.keys():
        return UNKNOWN, at
    every = {**dict.fromkeys(book.statement.order, _FIRST), **loops, **part.loops}
    return _numbered(book, part._replace(loops=every), size)


def _part(book: Book, number: int, at: np.ndarray) -> _Part:
    kind = book.kinds[number]
    none = np.zeros_like(at)
    if isinstance(kind, Element):
        return _Part(book.loops(kind, at), none, None, frozenset({kind.array}))
    if isinstance(kind, Result):
        return _Part(book.loops(kind, at), none, None, kind.reads)
    assert isinstance(kind, Fold)
    index = Result(kind.term, kind.size, (), frozenset())
    every = book.loops(index, at & ((1 << SET) - 1))
    loops = {loop: every[loop] for loop in kind.loops}
    return _Part(loops, at >> SET, kind.reads, kind.own)


def _numbered(book: Book, part: _Part, size: int) -> _Found:
    every = {**dict.fromkeys(book.statement.order, _FIRST), **part.loops}
    term, index = book.result(every)
    if part.reads is None and part.loops.keys() == book.statement.order.keys():
        whole = (("", book.statement.extents[book.statement.reduced]),)
        return book.number(Result(term, size, whole, part.own or frozenset())), index
    if any(is_turn(symbol) for symbol, _ in term):
        return UNKNOWN, 0
    index = index + np.zeros_like(part.sets)
    if (index < 0).any() or (index >= 1 << SET).any():
        return UNKNOWN, 0
    kind = Fold(term, size, part.reads, part.own, tuple(sorted(part.loops)))
    return book.number(kind), index + (part.sets << SET)


def _done(book: Book, part: _Part) -> _Part:
    """A fold of all columns is an element that has none."""
    if part.reads is None or (part.sets != ALL).any():
        return part
    own = whole_rows(book.statement, part.reads) | (part.own or frozenset())
    return part._replace(sets=part.sets * 0, reads=None, own=own)


def _beside(book: Book, parts: list[_Part], is_waiting: bool) -> _Part | None:
    """Elements of one index; is_waiting: beside a fold that is not of all columns."""
    elements = [part for part in parts if part.own is not None]
    folds = [_of_row(book, part) for part in parts if part.reads is not None]
    if not elements or bool(folds) != is_waiting:
        return None
    loops = merged([part.loops for part in elements])
    if loops is None:
        return None
    own = frozenset[str]().union(*(part.own or () for part in elements))
    found = _Part(loops, elements[0].sets * 0, None, own)
    if not folds:
        return found
    folded = _united(book, folds)
    every = None if folded is None else merged([folded.loops, loops])
    return (
        None
        if folded is None or every is None
        else folded._replace(loops=every, own=own)
    )


def _folded(book: Book, parts: list[_Part]) -> _Part | None:
    """Several columns of one row, of which the same has been used; and elements that
    have no column, which each of these may use.
    """
    found: list[_Part] = []
    more = frozenset[str]()
    rows: list[Loops] = []
    for one in parts:
        if one.own is None:
            found.append(one)
        elif one.reads is not None:
            return None
        elif book.columns.extents.keys().isdisjoint(one.loops):
            more |= one.own
            rows.append(one.loops)
        else:
            columns = _column(book, one)
            sets = None if columns is None else book.columns.alone(columns)
            if sets is None:
                return None
            found.append(_of_row(book, one._replace(sets=sets, reads=one.own)))
    folded = _united(book, found) if found else None
    loops = None if folded is None else merged([folded.loops, *rows])
    if folded is None or loops is None:
        return None
    return folded._replace(loops=loops, reads=(folded.reads or frozenset()) | more)


def _united(book: Book, parts: list[_Part]) -> _Part | None:
    first, *rest = parts
    for one in rest:
        loops = merged([first.loops, one.loops])
        if loops is None or not _is_alike(book, one, first):
            return None
        sets = book.columns.both(first.sets, one.sets)
        if sets is None:
            return None
        reads = (first.reads or frozenset()) | (one.reads or frozenset())
        first = first._replace(loops=loops, sets=sets, reads=reads)
    return first


def _is_alike(book: Book, one: _Part, other: _Part) -> bool:
    """Whether elements of two folds have used the same arrays, of those with rows."""
    rows, arrays = {*book.statement.row_loops}, book.statement.arrays
    every = ({*(part.reads or ())} for part in (one, other))
    first, second = (
        {n for n in names if n[:1] == "/" or not rows.isdisjoint(arrays[n].strides)}
        for names in every
    )
    return first == second


def _of_row(book: Book, part: _Part) -> _Part:
    """Without the index of a column."""
    rows = book.columns.extents
    loops = {loop: one for loop, one in part.loops.items() if loop not in rows}
    return part._replace(loops=loops, own=None)


def _column(book: Book, part: _Part) -> np.ndarray | None:
    """The number of an element's column; None where it is not known, or none."""
    column = np.zeros_like(part.sets)
    for loop, extent in book.columns.extents.items():
        term, index = part.loops.get(loop, ({"?": 1}, part.sets))
        if term or (index < 0).any() or (index >= extent).any():
            return None
        column = column * extent + index
    return column


def merged(every: list[Loops]) -> Loops | None:
    """Indices of all, where those that several have are the same."""
    found: Loops = {}
    for loops in every:
        for loop, (term, index) in loops.items():
            own, mine = found.setdefault(loop, (term, index))
            if terms.frozen(own) != terms.frozen(term) or np.any(mine != index):
                return None
    return found
