"""What reductions along rows make of elements: values of a row, of all its columns.

A *fold* is made of elements of one row, of some of its columns, each used once. Where
these are all, it is a value of the row, as its sum or its largest element, and what is
computed of it and of an element of the row is one of that element's indices.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

import numpy as np

from alcop_mlir.checker.form.statement import Statement
from alcop_mlir.checker.logic import terms
from alcop_mlir.checker.machine.held import Tags
from alcop_mlir.checker.placed.columns import ALL
from alcop_mlir.checker.placed.results import Loops, of_result
from alcop_mlir.checker.placed.tags import (
    UNKNOWN,
    Book,
    Element,
    Fold,
    Result,
    is_turn,
)

_Given = list[tuple[int, np.ndarray]]  # kinds, and the index of each
_Found = tuple[int, Any]
_INDEX = 36  # bits of an index of a fold; those above are a set of columns


class _Part(NamedTuple):
    """Of each thread an element, a fold, or a fold beside an element.

    sets:  of columns that are folded
    reads: arrays of which each of these has used an element; None: there are none
    own:   arrays of which one has been used at the index itself; None: there is none
    """

    loops: Loops
    sets: np.ndarray
    reads: frozenset[str] | None
    own: frozenset[str] | None

    @property
    def is_of_row(self) -> bool:
        """Whether it is a value of a row that is done."""
        return self.own is None and bool((self.sets == ALL).all())


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
    every = [(number, at, _part(book, number, at)) for number, at in given]
    found = _together(book, [part for *_, part in every if part is not None])
    for number, at, part in every:
        if part is None and found is not None:
            found = _with_element(book, found, number, at)
    if found is None:
        return UNKNOWN, 0
    kinds = [book.kinds[number] for number, _ in given]
    return _numbered(book, found, max(kind.size for kind in kinds if kind))


def done(book: Book, tags: Tags) -> np.ndarray:
    """Where tags are of values of rows that are done."""
    found = np.zeros(tags.number.shape, bool)
    for number in np.unique(tags.number).tolist():
        kind = book.kinds[number]
        if isinstance(kind, Fold) and kind.own is None:
            sets = tags.place // max(kind.size, 1) >> _INDEX
            found |= (tags.number == number) & (sets == ALL)
    return found


def stored(
    book: Book, number: int, at: np.ndarray, loops: Loops, size: int
) -> tuple[int, np.ndarray]:
    """What is stored where no sum is, as a result: an element, a number, or a value of
    a row.
    """
    kind = book.kinds[number]
    if not isinstance(kind, Fold):
        return of_result(book, number, at, loops, size)
    part = _part(book, number, at)
    if part is None or not part.is_of_row:
        return UNKNOWN, at
    used = whole_rows(book.statement, part.reads or ())
    rows = {n: o for n, o in loops.items() if n in book.columns.extents}  # all of it
    part = part._replace(loops={**part.loops, **rows}, reads=None, own=used)
    return _numbered(book, part, size)


def _part(book: Book, number: int, at: np.ndarray) -> _Part | None:
    """None: an element that does not have all loops."""
    number, at = of_result(book, number, at)
    kind = book.kinds[number]
    if isinstance(kind, Result):
        return _Part(book.loops(kind, at), np.zeros_like(at), None, kind.reads)
    if not isinstance(kind, Fold):
        return None
    index = Result(kind.term, kind.size, (), frozenset())
    loops = book.loops(index, at & ((1 << _INDEX) - 1))
    return _Part(loops, at >> _INDEX, kind.reads, kind.own)


def _numbered(book: Book, part: _Part, size: int) -> _Found:
    term, index = book.result(part.loops)
    if part.reads is None:
        whole = (("", book.statement.extents[book.statement.reduced]),)
        return book.number(Result(term, size, whole, part.own or frozenset())), index
    if any(is_turn(symbol) for symbol, _ in term):
        return UNKNOWN, 0
    if (index < 0).any() or (index >= 1 << _INDEX).any():
        return UNKNOWN, 0
    kind = Fold(term, size, part.reads, part.own)
    return book.number(kind), index + (part.sets << _INDEX)


def _together(book: Book, parts: list[_Part]) -> _Part | None:
    """One element, or several of a fold, and values of their row."""
    rows = [part for part in parts if part.is_of_row]
    rest = [part for part in parts if not part.is_of_row]
    found = None
    if rest:
        found = _beside(book, rest, False) or _folded(book, rest)
        found = found or _beside(book, rest, True)
        if found is None or (rows and found.own is None):
            return None
    for one in rows:
        used = whole_rows(book.statement, one.reads or ())
        if found is None:
            found = one._replace(reads=used)
        elif not _is_one_row(book, one, found):
            return None
        elif found.own is None:
            found = found._replace(reads=(found.reads or frozenset()) | used)
        else:
            found = found._replace(own=found.own | used)
    return found


def _beside(book: Book, parts: list[_Part], is_waiting: bool) -> _Part | None:
    """Elements of one index; is_waiting: beside a fold that is not of all columns."""
    base = next((part for part in parts if part.own is not None), None)
    if base is None or (not is_waiting and any(p.reads is not None for p in parts)):
        return None
    own = frozenset[str]()
    for one in parts:
        if one.own is not None and not _is_same(one.loops, base.loops):
            return None
        if not _is_one_row(book, one, base):
            return None
        own |= one.own or frozenset()
    folds = [_of_row(book, one) for one in parts if one.reads is not None]
    if not folds:
        return base._replace(own=own)
    folded = _united(book, folds)
    if folded is None:
        return None
    if folded.is_of_row:
        used = whole_rows(book.statement, folded.reads or ())
        return _Part(base.loops, folded.sets * 0, None, own | used)
    return folded._replace(loops=base.loops, own=own)


def _folded(book: Book, parts: list[_Part]) -> _Part | None:
    """Several columns of one row, of which the same has been used."""
    found: list[_Part] = []
    for one in parts:
        if one.own is None:
            found.append(one)
        elif one.reads is not None:
            return one if len(parts) == 1 else None
        else:
            columns = _column(book, one)
            sets = None if columns is None else book.columns.alone(columns)
            if sets is None:
                return None
            found.append(_of_row(book, one._replace(sets=sets, reads=one.own)))
    return _united(book, found)


def _united(book: Book, parts: list[_Part]) -> _Part | None:
    first, *rest = parts
    for one in rest:
        if not _is_alike(book, one, first) or not _is_one_row(book, one, first):
            return None
        sets = book.columns.both(first.sets, one.sets)
        if sets is None:
            return None
        reads = (first.reads or frozenset()) | (one.reads or frozenset())
        first = first._replace(sets=sets, reads=reads)
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
    zero: Loops = {loop: ({}, 0) for loop in book.columns.extents}
    return part._replace(loops={**part.loops, **zero}, own=None)


def _column(book: Book, part: _Part) -> np.ndarray | None:
    """The number of an element's column; None where it is not known, or none."""
    column = np.zeros_like(part.sets)
    for loop, extent in book.columns.extents.items():
        term, index = part.loops[loop]
        if term or (index < 0).any() or (index >= extent).any():
            return None
        column = column * extent + index
    return column


def _with_element(book: Book, part: _Part, number: int, at: np.ndarray) -> _Part | None:
    """And an element of an array that does not have all loops."""
    kind = book.kinds[number]
    if not isinstance(kind, Element) or (part.own is None and not part.is_of_row):
        return None
    loops = book.loops(kind, at)
    known = part.loops.keys() - (book.columns.extents if part.own is None else {})
    if not loops.keys() <= known or not _is_same(loops, part.loops):
        return None
    used = frozenset((kind.array,))
    if part.own is None:
        return part._replace(reads=whole_rows(book.statement, part.reads or ()) | used)
    return part._replace(own=part.own | used)


def _is_one_row(book: Book, one: _Part, other: _Part) -> bool:
    rows = book.columns.extents
    return _is_same({n: o for n, o in one.loops.items() if n not in rows}, other.loops)


def _is_same(one: Loops, other: Loops) -> bool:
    """Whether the other has the same indices of loops of this one."""
    return all(
        terms.frozen(term) == terms.frozen(other[loop][0])
        and bool(np.equal(index, other[loop][1]).all())
        for loop, (term, index) in one.items()
    )
