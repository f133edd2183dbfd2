"""That blocks together store each output once, where nobody knows how many there are.

On each way a block stores a box of the output: so many indices of each loop, from a
multiple of that on. Which multiples says the number of the block, by divisions of it:
of a number below P * Q quotient and rest by Q are all pairs below P and Q, once each.
"""

from __future__ import annotations

import numpy as np

from alcop_mlir.checker.logic import terms
from alcop_mlir.checker.logic.terms import Division, Term
from alcop_mlir.checker.machine.held import Frozen
from alcop_mlir.checker.placed.cover import Stored
from alcop_mlir.checker.placed.open_accesses import Accesses
from alcop_mlir.checker.placed.open_book import OpenBook
from alcop_mlir.checker.placed.tags import Misplaced, Result

_Box = tuple[tuple[str, str, int], ...]  # by loop, a symbol and how many indices


class OpenCover:
    """What ways have stored at their ends."""

    def __init__(self, book: OpenBook, accesses: Accesses):
        self.book, self.accesses = book, accesses
        self._boxes: dict[str, set[_Box]] = {n: set() for n in book.statement.outputs}

    def add(self, stored: Stored, blocks: np.ndarray) -> None:
        """A way ends, and has stored that."""
        for array in self._boxes:
            mine = [(term, index) for name, term, index in stored if name == array]
            self._boxes[array].add(self._box(array, mine))

    def _box(self, array: str, mine: list[tuple[Frozen, np.ndarray]]) -> _Box:
        if len({term for term, _ in mine}) != 1:
            raise Misplaced(f"elements of {array} that are not stored")
        kind = Result(mine[0][0], 1, (), frozenset())
        index = np.unique(np.concatenate([i.ravel() for _, i in mine]))
        found, volume = [], 1
        for loop, (own, numbers) in self.book.loops(kind, index).items():
            count = int(numbers.max()) + 1
            if int(numbers.min()) or any(c != count for c in own.values()):
                raise Misplaced(f"elements of {array} that are not stored")
            if len(own) > 1:
                raise Misplaced(f"which elements of {array} a block stores")
            found.append((loop, next(iter(own), ""), count))
            volume *= count
        if volume != len(index):
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
        """Each loop's multiple is one of the numbers that the block's is taken apart
        into, and there are as many as the loop needs.
        """
        given = self.accesses.thread
        left = self._numbers([symbol for _, symbol, _ in box if symbol])
        for loop, symbol, count in box:
            extent = self.accesses.extent(loop)
            if not symbol:
                more = terms.minus(extent, terms.number(count + 1))
                way = given.start
                if not given.facts.excludes([[more]], [*way.facts.values()], []):
                    raise Misplaced(f"elements of {array} that are not stored")
                continue
            needed = terms.quotient(terms.plus(extent, terms.number(count - 1)), count)
            has = left.pop(symbol, None)
            if has is None or terms.frozen(has) != terms.frozen(needed):
                raise Misplaced(f"which elements of {array} a block stores")
        if any(terms.frozen(one) != (("", 1),) for one in left.values()):
            raise Misplaced(f"elements of {array} that are stored by two blocks")

    def _numbers(self, wanted: list[str]) -> dict[str, Term]:
        """Numbers that together are the number of the block, and how many each has."""
        given = self.accesses.thread
        found = {axis: given.blocks(axis) for axis in given.given.grid}
        divided = {s for s in wanted if isinstance(s, Division)}
        for symbol in sorted(divided, key=lambda s: len(s)):
            assert isinstance(symbol, Division)
            whole = [s for s in symbol.dividend if s]
            if terms.frozen(symbol.dividend) not in {((s, 1),) for s in found}:
                continue
            first = self._left(whole[0], symbol.by)
            if first is None:
                continue
            del found[whole[0]]
            quotient, rest = terms.division(symbol.dividend, symbol.by)
            found |= {quotient: first, rest: symbol.by}
        return found

    def _left(self, axis: str, by: Term) -> Term | None:
        """What the number of blocks along an axis is a multiple of `by` of."""
        if axis[0] != "%":
            return None
        counts = self.accesses.thread.counts(axis)
        for place, one in enumerate(counts):
            if terms.frozen(one) == terms.frozen(by):
                left = terms.number(1)
                for other in counts[:place] + counts[place + 1 :]:
                    left = terms.product(left, other)
                return left
        return None
