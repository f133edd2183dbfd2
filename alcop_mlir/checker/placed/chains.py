"""What is computed between and behind the two contractions of a chain, as attention is.

An element of the first sum, a *score*, is followed by its row and column. Scores of a
row are folded as elements of other rows are: each column once. What is made of the
first columns of a row, as the largest of those so far, is a value of the row that
scores may be computed with; how many columns that is, is the *scale* of what comes of
it. A sum of scaled scores, along a row or by the second contraction, is of one scale.
It is brought to that of more columns by a value that is made of both, as in
exp(old - new), and to none by the fold of all columns that has its scale. Which of the
values of a scale it is, and what is computed with it, is not looked at.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from alcop_mlir.checker.form.statement import SCORES, Chain, Statement
from alcop_mlir.checker.logic import terms
from alcop_mlir.checker.machine.held import Frozen, Tags
from alcop_mlir.checker.placed.columns import SET, period, prefix
from alcop_mlir.checker.placed.kinds import (
    Element,
    Fold,
    Kind,
    Prefix,
    Result,
    RowValue,
)
from alcop_mlir.checker.placed.origins import Misplaced, is_turn
from alcop_mlir.checker.placed.results import Loops
from alcop_mlir.checker.placed.rows import merged
from alcop_mlir.checker.placed.tags import NUMBER, UNKNOWN, ZERO, Book

WHOLE_ROW = "/" + SCORES
_Given = list[tuple[int, np.ndarray]]  # kinds, and the index of each
_Found = tuple[int, Any]


class _Part(NamedTuple):
    """kind: what is the same in all threads; sets: of columns, of a fold"""

    kind: Kind
    loops: Loops
    sets: np.ndarray


def joined_in_chain(book: Book, name: str, given: _Given) -> _Found:
    """What is computed of scores, accumulators, folds, values of rows, and elements."""
    parts = [_part(book, *one) for one in given if one[0] != ZERO]
    if not parts:
        return ZERO if name == "mul" else NUMBER, 0
    is_row = all(isinstance(part.kind, Fold | RowValue) for part in parts)
    if name == "mul" and is_row and len(parts) < len(given):
        return ZERO, 0
    if len(parts) == 1 and not _is_open(book, parts[0].kind):
        return next(one for one in given if one[0] != ZERO)
    loops = merged([_of_row(book, part) for part in parts])
    found = None if loops is None else _combined(book, parts)
    if found is None:
        return UNKNOWN, 0
    return _numbered(book, found, max(part.kind.size for part in parts))


def whole_reads(chain: Chain) -> frozenset[str]:
    """What each score has to be made of before it is multiplied again, or folded."""
    return chain.reads | {SCORES}


def multiplied(book: Book, kind: Kind) -> str:
    """The array that a tile's elements are of, scores as one; "": of none."""
    if isinstance(kind, Element):
        return kind.array
    chain = book.statement.chain
    if chain is None or not isinstance(kind, Result) or not kind.is_score:
        return ""
    is_made = _is_whole(book, kind) and kind.reads == whole_reads(chain)
    return SCORES if is_made else ""


def beyond(book: Book, numbers: np.ndarray) -> np.ndarray:
    """Where a tile of scores has weights of no score, as beyond the last column: there
    nothing is added, as the other operand has to be 0 there.
    """
    none = np.zeros(numbers.shape, bool)
    if book.statement.chain is None:
        return none
    kinds = {one: book.kinds[one] for one in np.unique(numbers).tolist()}
    if any(isinstance(k, Element) for k in kinds.values()):
        return none
    values = [n for n, k in kinds.items() if isinstance(k, Fold | RowValue)]
    return np.isin(numbers, [NUMBER, *values])


def operands(statement: Statement) -> set[str | None]:
    """Arrays that are multiplied."""
    chain = statement.chain
    more = () if chain is None else (chain.lhs, chain.rhs)
    return {statement.lhs, statement.rhs, *more}


def kept(
    book: Book, array: str, number: int, at: np.ndarray, loops: Loops
) -> tuple[Frozen, np.ndarray]:
    """Which elements are stored to an array of values of rows; Misplaced where these
    are of other rows, or not of all columns.
    """
    chain, part, whole = book.statement.chain, _part(book, number, at), _upto(book)
    made = _made(book, [part]) if isinstance(part.kind, Fold) else None
    scale = None if chain is not None and array == chain.kept[0] else whole
    if chain is None or array not in chain.kept or made != {(whole, scale)}:
        raise Misplaced(f"it is not known what is stored to {array}")
    if part.loops.keys() != loops.keys() or merged([part.loops, loops]) is None:
        raise Misplaced(f"a result is stored as another one of {array}")
    return book.result(loops)


def done_in_chain(book: Book, tags: Tags) -> np.ndarray:
    """Where tags are of the first columns of a row, which no shuffle may fold again."""
    found = np.zeros(tags.number.shape, bool)
    for number in np.unique(tags.number).tolist():
        kind, mine = book.kinds[number], tags.number == number
        if isinstance(kind, Fold):
            sets = tags.place // max(kind.size, 1) >> SET
            each = np.unique(sets[mine]).tolist()
            start = kind.start
            is_done = [prefix(book.columns.at(one), start) is not None for one in each]
            found |= mine & np.isin(sets, np.array(each)[is_done])
    return found


def _part(book: Book, number: int, at: np.ndarray) -> _Part:
    kind, sets = book.kinds[number], np.zeros_like(at)
    assert kind is not None
    numbered = kind
    if isinstance(kind, Fold | RowValue):
        numbered = Result(kind.term, kind.size, (), frozenset(), is_score=True)
    if isinstance(kind, Fold):
        sets, at = at >> SET, at & ((1 << SET) - 1)
    loops = book.loops(numbered, at)
    loop = book.statement.reduced
    if isinstance(kind, Fold | RowValue):
        loops.pop(loop, None)
    if loop in loops:
        term, index = loops[loop]
        term = terms.replaced(term, book.turns)
        own = {s: term.pop(s) for s in [*term] if not is_turn(s)}
        same = book.origins.shift(terms.frozen(own), ())
        loops[loop] = (own | term, index) if same is None else (term, index + same)
    return _Part(kind, loops, sets)


def _is_open(book: Book, kind: Kind) -> bool:
    """Whether it is a sum that goes on, of which nothing is computed."""
    return isinstance(kind, Result) and not _is_whole(book, kind)


def _is_whole(book: Book, kind: Result) -> bool:
    is_all = book.is_whole_score if kind.is_score else book.is_whole
    return is_all(kind.upto) and not kind.first


def _of_row(book: Book, part: _Part) -> Loops:
    return {n: one for n, one in part.loops.items() if n != book.statement.reduced}


def _combined(book: Book, parts: list[_Part]) -> _Part | None:
    values = [p for p in parts if isinstance(p.kind, Fold | RowValue)]
    sums = [p for p in parts if isinstance(p.kind, Result) and not p.kind.is_score]
    others = [p for p in parts if not any(p is q for q in (*values, *sums))]
    if sums:
        return _of_sum(book, sums, values, others)
    if not others:
        return _folded(book, values) or _of_values(book, values)
    found = _of_scores(book, others)
    if found is None:
        return _folded(book, parts)
    if not values:
        return found
    is_inside = {_is_inside(book, found, one) for one in values}
    if is_inside == {False}:
        return _folded(book, [found, *values])
    made = _made(book, values) if is_inside == {True} else None
    assert isinstance(found.kind, Result)
    scale = None if made is None else _scaled(book, found.kind.scale, made)
    if scale is None:
        return None
    return found._replace(kind=found.kind._replace(scale=scale))


def _of_scores(book: Book, parts: list[_Part]) -> _Part | None:
    """One score, and elements of its indices."""
    loops = merged([part.loops for part in parts])
    scores = [p.kind for p in parts if isinstance(p.kind, Result)]
    if loops is None or not scores or len({one.scale for one in scores}) > 1:
        return None
    first, arrays = (
        scores[0],
        {p.kind.array for p in parts if isinstance(p.kind, Element)},
    )
    if loops.keys() != book.statement.order_of(True).keys():
        return None
    if not all(_is_whole(book, one) for one in scores) or (arrays and first.scale):
        return None
    reads = frozenset(arrays).union(*(one.reads for one in scores))
    return _Part(first._replace(reads=reads), loops, parts[0].sets * 0)


def _of_sum(
    book: Book, sums: list[_Part], values: list[_Part], others: list[_Part]
) -> _Part | None:
    """What the second contraction adds up, with values of the row: of another scale; or
    all of it, with elements of its indices.
    """
    kinds = [p.kind for p in sums if isinstance(p.kind, Result)]
    first, loops = kinds[0], merged([p.loops for p in sums])
    is_whole = _is_whole(book, first)
    if loops is None or len({(k.upto, k.first, k.scale) for k in kinds}) > 1:
        return None
    if not is_whole and (len(sums) > 1 or others or not values):
        return None
    found = first._replace(reads=first.reads.union(*(one.reads for one in kinds)))
    made = _made(book, values)
    if values and made is None:
        return None
    if values and made:
        row = (_upto(book), found.scale)
        if is_whole and row in made and _is_of(made - {row}, found.scale):
            found = found._replace(scale=None, reads=found.reads | {WHOLE_ROW})
        else:
            scale = _scaled(book, found.scale, made)
            if scale is None:
                return None
            found = found._replace(scale=scale)
    for part in others:
        more = part.kind
        is_alike = merged([loops, part.loops]) is not None
        if not isinstance(more, Element) or found.scale is not None or not is_alike:
            return None
        if not part.loops.keys() <= loops.keys():
            return None
        found = found._replace(reads=found.reads | {more.array})
    return _Part(found, loops, sums[0].sets * 0)


def _of_values(book: Book, parts: list[_Part]) -> _Part | None:
    """A fold of another scale; or what is computed of values of a row."""
    loops = merged([part.loops for part in parts])
    assert loops is not None
    scaled = [p for p in parts if isinstance(p.kind, Fold) and p.kind.scale is not None]
    if len(scaled) == 1 and len(parts) > 1:
        (one,) = scaled
        assert isinstance(one.kind, Fold)
        rest = _made(book, [part for part in parts if part is not one])
        scale = None if rest is None else _scaled(book, one.kind.scale, rest)
        if scale is not None:
            return one._replace(kind=one.kind._replace(scale=scale))
    made = _made(book, parts)
    if made is None:
        return None
    size = parts[0].kind.size
    return _Part(RowValue((), size, made), loops, parts[0].sets * 0)


def _folded(book: Book, parts: list[_Part]) -> _Part | None:
    """Several columns of one row, of one scale."""
    every = [_fold(book, part) for part in parts]
    first, *rest = every
    if first is None or not isinstance(first.kind, Fold):
        return None
    sets = first.sets
    for one in rest:
        if one is None or not isinstance(one.kind, Fold):
            return None
        if one.kind[2:] != first.kind[2:]:
            return None
        both = book.columns.both(sets, one.sets)
        if both is None:
            return None
        sets = both
    return first._replace(sets=sets)


def _fold(book: Book, part: _Part) -> _Part | None:
    """A fold, or a score as one of one column."""
    kind, chain = part.kind, book.statement.chain
    assert chain is not None
    if isinstance(kind, Fold):
        return part
    if not isinstance(kind, Result) or kind.reads != whole_reads(chain):
        return None
    if not _is_whole(book, kind):
        return None
    term, index = part.loops[book.statement.reduced]
    start = terms.frozen(term)
    count = period(start)
    if (start and not count) or (index < 0).any():
        return None
    sets = book.columns.alone(index + count)
    if sets is None:
        return None
    found = Fold((), kind.size, kind.reads, None, (), start, kind.scale)
    return _Part(found, _of_row(book, part), sets)


def _is_inside(book: Book, score: _Part, value: _Part) -> bool | None:
    """Whether a value of the row is made of a score's column too; None: of some are."""
    term, index = score.loops[book.statement.reduced]
    if isinstance(value.kind, Fold):
        less = book.origins.shift(terms.frozen(term), value.kind.start)
        bits = index + (less or 0) + period(value.kind.start)
        if less is None or (bits < 0).any():
            return None
        found = book.columns.has(value.sets, bits)
        return bool(found.all()) if found.all() or not found.any() else None
    assert isinstance(value.kind, RowValue)
    for upto, _ in value.kind.made:
        less = book.origins.shift(upto, terms.frozen(term))
        if less is None or (index >= less).any():
            return None
    return True


def _made(book: Book, values: list[_Part]) -> frozenset[Prefix] | None:
    """What columns values of a row are made of; None: not the first ones."""
    chain = book.statement.chain
    found = frozenset[Prefix]()
    for part in values:
        kind = part.kind
        if isinstance(kind, RowValue):
            found |= kind.made
            continue
        assert isinstance(kind, Fold)
        assert chain is not None
        columns = book.columns.first(part.sets)
        upto = None if columns is None else prefix(columns, kind.start)
        if upto is None or kind.reads != whole_reads(chain):
            return None
        found |= {(upto, kind.scale)}
    return found


def _is_of(made: Iterable[Prefix], scale: Frozen | None) -> bool:
    """Whether values are of this scale."""
    return all(one == (scale, None) for one in made)


def _scaled(book: Book, scale: Frozen | None, made: frozenset[Prefix]) -> Frozen | None:
    """The scale of what is computed of something and of values of its row; None where
    these are not for it.
    """
    every = {upto for upto, of in made if of is None}
    if len(every) != len(made):
        return None
    rest = every - {scale}
    if scale is None or not rest:
        return every.pop() if len(every) == 1 else None
    if len(rest) > 1 or scale not in every:
        return None
    (other,) = rest
    more = book.origins.shift(other, scale)
    return other if more is not None and more > 0 else None


def _upto(book: Book) -> Frozen:
    """All columns of a row."""
    return terms.frozen({"": book.statement.extents[book.statement.reduced]})


def _numbered(book: Book, part: _Part, size: int) -> _Found:
    kind = part.kind
    if isinstance(kind, Result) and not kind.is_score:
        term, index = book.result(part.loops)
        return book.number(kind._replace(term=term, size=size)), index
    term, index = book.score(part.loops)
    is_row = isinstance(kind, Fold | RowValue)
    index = index + np.zeros_like(part.sets)
    if is_row and ((index < 0).any() or (index >= 1 << SET).any() or _has_turns(term)):
        return UNKNOWN, 0
    number = book.number(kind._replace(term=term, size=size))
    return number, index + (part.sets << SET)


def _has_turns(term: Frozen) -> bool:
    return any(is_turn(symbol) for symbol, _ in term)
