"""What is computed of elements: an element of the same indices, where these agree.

Bytes may also move within a register: so two elements that are loaded one by one become
those of one register.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from alcop_mlir.checker.logic import terms
from alcop_mlir.checker.logic.terms import Term
from alcop_mlir.checker.machine.held import Frozen, Tags
from alcop_mlir.checker.placed.chains import joined_in_chain
from alcop_mlir.checker.placed.kinds import Element, Result, Whole
from alcop_mlir.checker.placed.results import of_result
from alcop_mlir.checker.placed.rows import joined_in_rows
from alcop_mlir.checker.placed.tags import NUMBER, UNKNOWN, ZERO, Book

Loops = dict[str, tuple[Term, Any]]
_Given = list[tuple[int, np.ndarray]]  # kinds, and the index of each
_Found = tuple[int, Any]
_SUMS = ("add", "fma")


def joined(book: Book, parts: list[Whole], name: str = "") -> Whole:
    """What is computed of elements with the same indices is of those too.

    name: the opcode: of `mul`, `add` and `fma` it is looked at what is added up
    """
    shape = parts[0].number.shape
    with_zeros = _SUMS if book.statement.chain is None else (*_SUMS, "mul")
    number, index = np.full(shape, NUMBER, np.int32), np.zeros(shape, np.int64)
    for kinds, at in _alike([p.number for p in parts]):
        if UNKNOWN in kinds:
            number[at] = UNKNOWN
            continue
        given = [
            (k, p.at[at])
            for k, p in zip(kinds, parts, strict=True)
            if k > NUMBER or (k == ZERO and name in with_zeros)
        ]
        if given:
            number[at], index[at] = _computed(book, name, given)
    return Whole(number, index)


def _alike(numbers: list[np.ndarray]) -> Iterator[tuple[list[int], np.ndarray]]:
    """Kinds of several parts that come together, and where they do."""
    first = [int(one.flat[0]) for one in numbers]
    if all((one == n).all() for one, n in zip(numbers, first, strict=True)):
        yield first, np.ones(numbers[0].shape, bool)
        return
    combined = np.stack(numbers, axis=-1)
    for row in np.unique(combined.reshape(-1, len(numbers)), axis=0):
        yield row.tolist(), (combined == row).all(axis=-1)


def _computed(book: Book, name: str, given: _Given) -> _Found:
    """What an op makes of elements; of zeros too, where it adds."""
    if book.statement.chain is not None:
        return joined_in_chain(book, name, given)
    if book.statement.row_loops:
        others = [one for one in given if one[0] != ZERO]
        return joined_in_rows(book, others) if others else (NUMBER, 0)
    if name == "mul" and len(given) == 2:
        return _multiplied(book, given) or _together(book, given)
    if name == "fma" and len(given) == 3 and ZERO not in (given[0][0], given[1][0]):
        product = _multiplied(book, given[:2])
        given = given if product is None else [product, given[2]]
    if name in _SUMS and len(given) == 2:
        found = _added(book, given)
        if found is not None:
            return found
    others = [one for one in given if one[0] != ZERO]
    return _together(book, others) if others else (NUMBER, 0)


def _multiplied(book: Book, given: _Given) -> _Found | None:
    """What the sum adds, of an element of each operand; None: something else."""
    statement, loops = book.statement, dict[str, tuple[Term, Any]]()
    kinds = [book.kinds[number] for number, _ in given]
    arrays = {one.array for one in kinds if isinstance(one, Element)}
    if arrays != {statement.lhs, statement.rhs} or len(arrays) < 2:
        return None
    for kind, (_, at) in zip(kinds, given, strict=True):
        assert kind is not None
        for loop, (term, index) in book.loops(kind, at).items():
            term = terms.replaced(term, book.turns)  # of turns that are known
            one = term, index + term.pop("", 0)
            own, mine = loops.setdefault(loop, one)
            is_same = terms.frozen(own) == terms.frozen(term)
            if not is_same or not np.array_equal(mine, one[1]):
                return UNKNOWN, 0
    along, places = loops.pop(statement.reduced)
    if (places != places[0]).any():
        return UNKNOWN, 0
    first = terms.plus(along, terms.number(int(places[0])))
    after = terms.plus(first, terms.number(1))
    term, index = book.result(loops)
    start = () if book.meet(terms.frozen(first), ()) else terms.frozen(first)
    size = max(one.size for one in kinds if one is not None)
    made = Result(term, size, terms.frozen(after), frozenset(), start)
    return book.number(made), index


def _together(book: Book, given: _Given) -> _Found:
    kinds = book.kinds
    given = [of_result(book, *one) for one in given]
    (first, at), *rest = sorted(
        given, key=lambda one: not isinstance(kinds[one[0]], Result)
    )
    found = kinds[first]
    assert isinstance(found, Element | Result)  # folds are of rows
    if not rest:
        return _after(book, found, first), at
    if isinstance(found, Element) or _after(book, found, first) == UNKNOWN:
        return UNKNOWN, 0
    loops = book.loops(found, at)
    for number, index in rest:
        other = kinds[number]
        assert isinstance(other, Element | Result)
        for loop, (term, value) in book.loops(other, index).items():
            if loop not in loops:
                return UNKNOWN, 0
            own, mine = loops[loop]
            less = _less(book, terms.frozen(own), terms.frozen(term))
            if less is None or not np.array_equal(mine + less, value):
                return UNKNOWN, 0
        more = other.reads if isinstance(other, Result) else {other.array}
        if isinstance(other, Result) and _after(book, other, number) == UNKNOWN:
            return UNKNOWN, 0
        found = found._replace(reads=found.reads | more)
    return book.number(found), at


def _less(book: Book, one: Frozen, other: Frozen) -> int | None:
    """By how much one term is more than another, where that is a number here."""
    is_same = book.origins.is_same(one, other)
    return 0 if is_same else book.origins.shift(one, other)


def _added(book: Book, given: _Given) -> _Found | None:
    """A part of a sum plus the next one; or plus 0. None: another op."""
    zeros = [one for one in given if one[0] != ZERO]
    if len(zeros) == 1:
        part = _part(book, *zeros[0])
        return None if part is None else (book.number(part[0]), part[1])
    parts = [_part(book, *one) for one in given]
    for low, high in (parts, parts[::-1]):
        if low is None or high is None:
            return None
        (one, at), (other, index) = low, high
        is_next = book.meet(one.upto, other.first) and other.upto != other.first
        if not is_next or one.size != other.size:
            continue
        less = _less(book, one.term, other.term)
        if less is None or not np.array_equal(at + less, index):
            return UNKNOWN, 0
        reads = one.reads | other.reads
        return book.number(one._replace(upto=other.upto, reads=reads)), at
    return None


def _part(book: Book, number: int, at: np.ndarray) -> tuple[Result, Any] | None:
    """What may be a part of a sum: of what is multiplied; an element that is added; or
    where it starts from.
    """
    kind, statement = book.kinds[number], book.statement
    if isinstance(kind, Result):
        return kind, at
    if not isinstance(kind, Element):
        return None
    is_added = kind.array == statement.lhs and statement.rhs is None
    if not is_added and kind.array != statement.init:
        return None
    loops = book.loops(kind, at)
    first = last = terms.number(0)
    reads = frozenset({kind.array})
    if is_added:
        term, along = loops.pop(statement.reduced)
        if (along != along[0]).any():
            return None
        first, reads = terms.plus(term, terms.number(int(along[0]))), frozenset()
        last = terms.plus(first, terms.number(1))
    term, index = book.result(loops)
    start = () if book.meet(terms.frozen(first), ()) else terms.frozen(first)
    made = Result(term, kind.size, terms.frozen(last), frozenset(reads), start)
    return made, index


def _after(book: Book, kind: Element | Result, number: int) -> int:
    """An element that something is computed of: of a sum only when it is whole."""
    is_part = isinstance(kind, Result) and (kind.first or not book.is_whole(kind.upto))
    return UNKNOWN if is_part else number


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
