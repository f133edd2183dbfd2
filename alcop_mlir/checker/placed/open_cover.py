"""That blocks together store each output once, where nobody knows how many there are.

On each way a block stores a box of the output: so many indices of each loop, from a
multiple of that on. All multiples are inside of the output, there are as many blocks as
such multiples, and no two blocks have the same ones, as the number of a block can be
computed of its multiples: so each box has one block.
"""

from __future__ import annotations

import numpy as np

from alcop_mlir.checker.logic import terms
from alcop_mlir.checker.machine.held import Frozen
from alcop_mlir.checker.placed.cover import Stored
from alcop_mlir.checker.placed.kinds import Result
from alcop_mlir.checker.placed.open_accesses import Accesses
from alcop_mlir.checker.placed.open_book import OpenBook
from alcop_mlir.checker.placed.open_numbers import Numbers
from alcop_mlir.checker.placed.tags import Misplaced

_Box = tuple[tuple[str, Frozen, int], ...]  # by loop, which multiple of how many


class OpenCover:
    """What ways have stored at their ends."""

    def __init__(self, book: OpenBook, accesses: Accesses):
        self.book, self.accesses = book, accesses
        self._boxes: dict[str, set[_Box]] = {n: set() for n in book.statement.outputs}

    def add(self, stored: Stored, blocks: np.ndarray) -> None:
        """A way ends, and has stored that, the same in each case."""
        for array in self._boxes:
            mine = [(term, index) for name, term, index in stored if name == array]
            for case in range(len(mine[0][1]) if mine else 1):
                each = [(term, index[case]) for term, index in mine]
                self._boxes[array].add(self._box(array, each))

    def _box(self, array: str, mine: list[tuple[Frozen, np.ndarray]]) -> _Box:
        if len({term for term, _ in mine}) != 1:
            raise Misplaced(f"elements of {array} that are not stored")
        kind = Result(mine[0][0], 1, (), frozenset())
        index = np.concatenate([i.ravel() for _, i in mine])
        found, volume, place = [], 1, np.zeros(len(index), np.int64)
        for loop, (own, numbers) in self.book.loops(kind, index).items():
            count = int(numbers.max()) + 1
            if int(numbers.min()) or any(c % count for c in own.values()):
                raise Misplaced(f"elements of {array} that are not stored")
            multiple = {s: c // count for s, c in own.items()}
            found.append((loop, terms.frozen(multiple), count))
            volume, place = volume * count, place * count + numbers
        if volume > len(index) or not np.bincount(place, minlength=volume).all():
            raise Misplaced(f"elements of {array} that are not stored")
        return tuple(sorted(found))

    def check(self) -> None:
        """Raises Misplaced where an element may not be stored, or by two blocks."""
        for array, boxes in self._boxes.items():
            if len(boxes) != 1:
                raise Misplaced("ways store other elements")
            (box,) = boxes
            self._check(array, box)

    def _check(self, array: str, box: _Box) -> None:
        thread = self.accesses.thread
        # At the end of the first block no block has gone any way yet.
        start = self.accesses.ways.ends[0]
        numbers = Numbers(thread, start, [dict(m) for _, m, _ in box if m])
        places = [terms.number(1)]
        for loop, multiple, count in box:
            extent = self.accesses.extent(loop)
            rounded = terms.plus(extent, terms.number(count - 1))
            many = terms.quotient(rounded, count)
            last = terms.plus(many, terms.number(-1))
            if multiple and not numbers.is_within(dict(multiple), last):
                raise Misplaced(f"which elements of {array} a block stores")
            if not multiple and not numbers.is_within(extent, terms.number(count)):
                raise Misplaced(f"elements of {array} that are not stored")
            # Of the one place of a loop that needs one at most there are blocks in any
            # case, or as many as places: with none there are no elements either.
            more = [terms.product(one, many) for one in places]
            places = more if multiple else [*places, *more]
        blocks = terms.number(1)
        for axis in thread.given.grid:
            blocks = terms.product(blocks, thread.blocks(axis))
        if terms.frozen(blocks) not in map(terms.frozen, places):
            raise Misplaced(f"as many blocks as {array} has tiles")
        if not numbers.tell_block():
            raise Misplaced(f"elements of {array} that are stored by two blocks")
