"""Whether what blocks have stored is each output once."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from alcop_mlir.checker.logic import terms
from alcop_mlir.checker.machine.held import Frozen
from alcop_mlir.checker.placed.kinds import Result
from alcop_mlir.checker.placed.origins import Misplaced
from alcop_mlir.checker.placed.tags import Book

Stored = tuple[tuple[str, Frozen, tuple[np.ndarray, ...]], ...]


_MOST_ELEMENTS = 1 << 24  # that are looked at one by one


class Boxes(NamedTuple):
    """Of some blocks: by loop, the first index in each block, and how many follow."""

    starts: np.ndarray
    lengths: np.ndarray


class Cover:
    """What ways have stored at their ends: together each element of outputs once."""

    def __init__(self, book: Book):
        self.book = book
        self._ends: dict[tuple[object, ...], tuple[Stored, np.ndarray]] = {}

    def add(self, stored: Stored, blocks: np.ndarray) -> None:
        """These blocks end, and have stored that."""
        key = tuple((a, t, i[0].tobytes()) for a, t, i in stored)
        _, before = self._ends.get(key, (stored, blocks & False))
        self._ends[key] = stored, before | blocks

    def check(self) -> None:
        """Raises Misplaced where an element is not stored, or by two blocks."""
        count = sum(blocks.astype(np.int64) for _, blocks in self._ends.values())
        if not self._ends or (np.asarray(count) != 1).any():
            raise Misplaced("ways store other elements")
        for array in self.book.statement.outputs:
            self._check_cover(array)

    def _check_cover(self, array: str) -> None:
        every = [self._boxes(array, *end) for end in self._ends.values()]
        if None in every:
            self._check_each(array)
            return
        boxes = [one for one in every if one is not None and one.starts.size]
        total = self._elements(array)
        volume = sum(int(one.lengths.prod()) * one.starts.shape[1] for one in boxes)
        if not are_apart(boxes) or volume > total:
            raise Misplaced(f"elements of {array} that are stored by two blocks")
        if volume < total:
            raise Misplaced(f"elements of {array} that are not stored")

    def _check_each(self, array: str) -> None:
        """Element by element, where what a block stores is no box."""
        total, statement = self._elements(array), self.book.statement
        is_numbered = statement.arrays[array].strides.keys() == statement.order.keys()
        if total > _MOST_ELEMENTS or not is_numbered:
            raise Misplaced(f"elements of {array} that are not stored")
        count = np.zeros(total, np.int64)
        for stored, blocks in self._ends.values():
            self.book.origins.go(blocks)
            for name, term, (index,) in stored:
                if name == array and index.size:
                    starts = self.book.origins.values(dict(term))[blocks.ravel()]
                    every = (starts[:, None] + np.unique(index)).ravel()
                    count += np.bincount(every, minlength=total)
        if (count > 1).any():
            raise Misplaced(f"elements of {array} that are stored by two blocks")
        if (count < 1).any():
            raise Misplaced(f"elements of {array} that are not stored")

    def _elements(self, array: str) -> int:
        statement = self.book.statement
        loops = statement.arrays[array].strides
        return int(np.prod([statement.extents[n] for n in loops]))

    def _boxes(self, array: str, stored: Stored, blocks: np.ndarray) -> Boxes | None:
        """None: what each block has stored is no box, but inside."""
        mine = [(term, index[0]) for name, term, index in stored if name == array]
        mine = [(term, index) for term, index in mine if index.size]
        if not mine:
            return Boxes(np.zeros((0, 0), np.int64), np.zeros(0, np.int64))
        self.book.origins.go(blocks)
        first = mine[0][0]
        less = [self.book.origins.shift(term, first) for term, _ in mine]
        if None in less:
            raise Misplaced(f"stores to {array}")
        every = [
            i + by for (_, i), by in zip(mine, less, strict=True) if by is not None
        ]
        index = np.unique(np.concatenate(every))
        kind = Result(terms.frozen(dict(first)), 1, (), frozenset())
        loops, here = self.book.loops(kind, index), blocks.ravel()
        starts, lengths = [], []
        for loop, (own, number) in loops.items():
            low, length = int(number.min()), int(number.max()) - int(number.min()) + 1
            start = self.book.origins.values(own)[here] + low
            beyond = start + length > self.book.statement.extents[loop]
            if (start < 0).any() or beyond.any():
                raise Misplaced(f"elements of {array} beyond its end")
            starts.append(start)
            lengths.append(length)
        if int(np.prod(lengths)) != len(index):
            return None
        count = (len(starts), int(here.sum()))
        return Boxes(np.array(starts, np.int64).reshape(count), np.array(lengths))


def are_apart(boxes: Sequence[Boxes]) -> bool:
    """Whether no two meet: along each loop indices are apart or the same, and no two
    are the same along all.
    """
    if not boxes:
        return True
    every = np.concatenate([one.starts for one in boxes], axis=1)
    if np.unique(every, axis=1).shape[1] != every.shape[1]:
        return False
    for loop in range(len(every)):
        ends = {
            (int(start), int(start + one.lengths[loop]))
            for one in boxes
            for start in np.unique(one.starts[loop])
        }
        ordered = sorted(ends)
        if any(b[0] < a[1] for a, b in pairwise(ordered)):
            return False
    return True
