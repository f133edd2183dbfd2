"""The tiles that registers of all lanes hold, as `mma.sync` multiplies them.

PTX ISA "Matrix Fragments for mma.m16n8k..": which element each register of a lane has.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from alcop_mlir.checker.logic import terms
from alcop_mlir.checker.logic.terms import Term
from alcop_mlir.checker.machine.held import Frozen, Tags
from alcop_mlir.checker.machine.registers import WARP
from alcop_mlir.checker.placed.chains import beyond, multiplied, operands
from alcop_mlir.checker.placed.kinds import Kind, Result
from alcop_mlir.checker.placed.moves import Moves
from alcop_mlir.checker.placed.origins import Misplaced
from alcop_mlir.checker.placed.tags import NUMBER, UNKNOWN, ZERO

_NONE = -1 << 40  # instead of an index: a zero
_Form = tuple[int, int, int]  # bytes of an element, positions along the sum, lines


@dataclass(frozen=True, eq=False)
class Lines:
    """Of each warp, what the lines of a tile are; equal ones are one object.

    at:   by loop that is not summed, a term and a number for each line
    good: of which lines this is known; what others make nobody knows
    """

    at: dict[str, tuple[Term, np.ndarray]]
    good: np.ndarray


@dataclass(frozen=True, eq=False)
class Tile:
    """Of each warp: what its lines are, and where they are along the sum.

    along: by position along the sum, the term of the index there, and a number from the
           first on; equal ones are one object
    first: the least of these numbers; count: how many there are, of which all follow:
           at other positions there are zeros
    scale: of scores; see `chains`
    """

    array: str
    lines: Lines
    term: Term
    along: np.ndarray
    first: int
    count: int
    scale: Frozen | None = None

    @cached_property
    def place(self) -> tuple[Frozen, int]:
        """Where it begins along the sum, and how far it goes."""
        return terms.frozen(terms.plus(self.term, terms.number(self.first))), self.count


@dataclass(frozen=True, eq=False)
class _Layout:
    """What the indices of a tile's elements say, whichever term all of them share.

    index: by loop that is not summed, the number of each line
    key:   the same for the same lines; others as of `Tile` and `Lines`
    """

    index: dict[str, np.ndarray]
    good: np.ndarray
    key: Any
    along: np.ndarray
    first: int
    count: int


class Fragments:
    """Of one machine."""

    def __init__(self, moves: Moves):
        self.moves, self.book = moves, moves.book
        self._tiles: dict[Any, tuple[list[Tags], Tile]] = {}
        self._known: dict[Any, Tile] = {}
        self._layouts: dict[Any, _Layout] = {}
        self._lines: dict[Any, Lines] = {}
        self._alongs: dict[bytes, np.ndarray] = {}
        self._at: dict[Any, tuple[np.ndarray, np.ndarray]] = {}
        lane = np.arange(moves.threads) % WARP
        self._group, self._place = lane // 4, lane % 4
        self._warp = np.arange(moves.threads) // WARP

    def tile(self, names: Sequence[str], size: int, depth: int, lines: int) -> Tile:
        """The tile in these registers, of so many lines and elements along the sum, of
        that size; Misplaced where these are not known to be of one array.
        """
        tags = [self.moves.operand(n, 4) for n in names]
        key = (self.book.origins.key, lines, size, depth, *map(id, tags))
        if key not in self._tiles:
            # With the tags, so that each keeps its id.
            self._tiles[key] = tags, self._read(tags, (size, depth, lines))
        return self._tiles[key][1]

    def _read(self, tags: list[Tags], form: _Form) -> Tile:
        """Of equal tags it is found out once."""
        numbers = [t.number.tobytes() for t in tags]
        places = hashlib.sha256(b"".join(t.place.tobytes() for t in tags)).digest()
        one = tags[0].number
        is_one = numbers.count(numbers[0]) == len(numbers) and (one == one[0, 0]).all()
        what = int(one[0, 0]) if is_one else hashlib.sha256(b"".join(numbers)).digest()
        key = self.book.origins.key, form, what, places
        if key not in self._known:
            kind = self.book.kinds[what] if isinstance(what, int) else None
            if kind is not None and multiplied(self.book, kind):
                self._known[key] = self._of_one(kind, places, tags, form)
            else:
                self._known[key] = self._of_several(tags, form)
        return self._known[key]

    def _of_one(self, kind: Kind, places: bytes, tags: list[Tags], form: _Form) -> Tile:
        """All elements are of one kind: their layout is the same for others of it, as
        of other blocks or turns.
        """
        array = self._array(kind)
        key = form, array, kind.size, places
        if key not in self._layouts:
            numbers, index = self._elements(tags, form)
            mine, none = numbers > NUMBER, np.zeros(numbers.shape, bool)
            self._layouts[key] = self._layout(kind, mine, none, index)
        return self._tile(kind, array, self._layouts[key])

    def _of_several(self, tags: list[Tags], form: _Form) -> Tile:
        """There are zeros, where the sum has ended, or lines of which nothing is
        known.
        """
        numbers, index = self._elements(tags, form)
        zero = (numbers == ZERO) | beyond(self.book, numbers)
        is_zero = zero.all(axis=2)
        if (zero | (numbers == UNKNOWN)).all() and is_zero.any():
            nothing = np.full(index.shape[::2], _NONE)
            return Tile("", Lines({}, is_zero), {}, nothing, 0, 0)
        known = numbers[~zero & (numbers > NUMBER)]
        kind = self.book.kinds[int(known[0])] if len(known) else None
        array = self._array(kind)
        assert kind is not None
        layout = self._layout(kind, numbers == known[0], zero, index)
        return self._tile(kind, array, layout)

    def _array(self, kind: Kind | None) -> str:
        """The array that elements of a kind are of."""
        array = "" if kind is None else multiplied(self.book, kind)
        if not array:
            raise Misplaced("it multiplies what is not known to be of one array")
        if array not in operands(self.book.statement):
            raise Misplaced(f"it multiplies elements of {array}")
        return array

    def _elements(self, tags: list[Tags], form: _Form) -> tuple[np.ndarray, np.ndarray]:
        """By warp, line and position along the sum, numbers and indices of elements."""
        size, depth, lines = form
        each = 4 // size
        if len(tags) * each * WARP != lines * depth:
            raise Misplaced("not modelled: registers of a tile")
        numbers = np.concatenate([t.number for t in tags], axis=1)
        places = np.concatenate([t.place for t in tags], axis=1)
        whole = self.book.whole(Tags(numbers, places), size)
        spread = (self._spread(one, each, depth, lines) for one in whole)
        return next(spread), next(spread)

    def _spread(
        self, held: np.ndarray, each: int, depth: int, lines: int
    ) -> np.ndarray:
        """By warp, line and position along the sum, from registers of lanes."""
        key = each, depth, lines
        if key not in self._at:
            item = np.arange(held.shape[1])
            register, halves = item // each, lines // 8
            line = self._group[:, None] + 8 * (register % halves)
            at = self._place[:, None] * each + item % each
            self._at[key] = line, at + 4 * each * (register // halves)
        found = np.zeros((self.moves.threads // WARP, lines, depth), np.int64)
        line, at = self._at[key]
        found[self._warp[:, None], line, at] = held
        return found

    def _layout(
        self, kind: Kind, mine: np.ndarray, zero: np.ndarray, index: np.ndarray
    ) -> _Layout:
        """Of elements of a kind, which are `mine`; they have zeros where the sum has
        ended.
        """
        good = (mine | zero).all(axis=2) & mine.any(axis=2)
        if not good.any():
            raise Misplaced("it multiplies what is not known to be of one array")
        zeros = zero[good][0]
        good &= (zero == zeros).all(axis=2)
        every = self.book.numbers(kind, index[:, :, ~zeros])
        found = every.pop(self.book.statement.along(multiplied(self.book, kind)))
        for value in every.values():
            good &= (value == value[:, :, :1]).all(axis=2)
        inside = found[np.arange(len(good)), good.argmax(axis=1)]
        good &= (found == inside[:, None]).all(axis=2)
        has_any = good.any(axis=1)
        if not has_any.any():
            raise Misplaced("rows of a tile are of several rows of an array")
        order = np.sort(inside[has_any], axis=1)
        first, count = int(order.min()), order.shape[1]
        if (order - first != np.arange(count)).any():
            raise Misplaced("a tile has no neighbours along the sum")
        along = np.full((len(good), len(zeros)), _NONE)
        along[:, ~zeros] = np.where(has_any[:, None], inside - first, _NONE)
        along = self._alongs.setdefault(along.tobytes(), along)
        rows = {n: np.where(good, v[:, :, 0], 0) for n, v in every.items()}
        same = tuple((n, v.tobytes()) for n, v in rows.items())
        return _Layout(
            rows, good, (good.shape, good.tobytes(), same), along, first, count
        )

    def _tile(self, kind: Kind, array: str, layout: _Layout) -> Tile:
        """Of elements with that layout; equal lines are one object."""
        every = self.book.terms(kind)
        term, more = every.pop(self.book.statement.along(array))
        each = tuple((n, terms.frozen(t)) for n, (t, _) in every.items())
        key = self.book.origins.key, array, layout.key, each
        if key not in self._lines:
            rows = {n: (t, layout.index[n]) for n, (t, _) in every.items()}
            self._lines[key] = Lines(rows, layout.good)
        scale = kind.scale if isinstance(kind, Result) else None
        lines, first = self._lines[key], layout.first + more
        return Tile(array, lines, term, layout.along, first, layout.count, scale)
