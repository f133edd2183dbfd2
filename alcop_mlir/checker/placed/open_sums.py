"""When a sum is whole, along a loop of which nobody knows how long it is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from alcop_mlir.checker.machine.held import Held, Tags
from alcop_mlir.checker.placed.kinds import Element, Kind, Result
from alcop_mlir.checker.placed.open_accesses import Accesses, Indices
from alcop_mlir.checker.placed.open_book import ENDED, OpenBook
from alcop_mlir.checker.placed.tags import ZERO


class OpenSums:
    """Of one check, where its machine is."""

    def __init__(self, book: OpenBook, accesses: Accesses):
        self.book, self.accesses = book, accesses
        self.statement = book.statement

    def name_turn(self, data: Held, name: str) -> bool:
        """Whether all that is held of a sum is where a turn is."""
        numbers = _of((data.shared, *data.registers.values()))
        return all(self._names(self.book.kinds[number], name) for number in numbers)

    def _names(self, kind: Kind | None, name: str) -> bool:
        if isinstance(kind, Result):
            return name in dict(kind.upto)
        if kind is None:
            return True
        loops = self.book.loops(kind, np.zeros(1, np.int64))
        along = loops.get(self.statement.reduced)
        return along is None or name in along[0]

    def ended(self, registers: Mapping[str, Tags]) -> tuple[dict[str, Tags], bool]:
        """Registers, with each sum as a whole one if it surely is; whether all are."""
        numbers = _of(registers.values())
        kinds = {number: self.book.kinds[number] for number in numbers}
        whole = {n: made for n, k in kinds.items() if (made := self._ended(k))}
        new = np.arange(len(self.book.kinds), dtype=np.int32)
        for number, made in whole.items():
            new[number] = self.book.number(made)
        is_all = all(n in whole for n, k in kinds.items() if isinstance(k, Result))
        arrays = {id(t.number): t.number for t in registers.values()}
        each = {one: new[number] for one, number in arrays.items()}
        found = {n: Tags(each[id(t.number)], t.place) for n, t in registers.items()}
        return found, bool(whole) and is_all

    def _ended(self, kind: Kind | None) -> Result | None:
        """A sum that is whole, or what it starts from where nothing is added."""
        if isinstance(kind, Element) and kind.array == self.statement.init:
            kind = Result(kind.term, kind.size, (), frozenset({kind.array}))
        if not isinstance(kind, Result) or not self.book.is_whole(kind.upto):
            return None
        return kind._replace(upto=ENDED)

    def results(self, tags: Tags, indices: Indices, size: int) -> Tags:
        """What is stored there: where nothing is added, 0 or what a sum starts from is
        a result.
        """
        number, book = int(tags.number.flat[0]), self.book
        if (tags.number != number).any():
            return tags
        made = self._ended(book.kinds[number])
        if made is not None:
            return tags._replace(number=np.full_like(tags.number, book.number(made)))
        if number != ZERO or self.statement.init or not book.is_whole(()):
            return tags
        count = len(tags.number)
        loops = {n: self.accesses.numbers(t, count) for n, t in indices.items()}
        term, index = book.result(loops)
        whole = book.number(Result(term, size, ENDED, frozenset()))
        place = index[:, None] * size + np.arange(tags.number.shape[1]) * book.grain
        return Tags(np.full_like(tags.number, whole), place)


def _of(every: Iterable[Tags]) -> set[int]:
    """The numbers in tags."""
    arrays = {id(tags.number): tags.number for tags in every}.values()
    return {number for one in arrays for number in np.unique(one).tolist()}
