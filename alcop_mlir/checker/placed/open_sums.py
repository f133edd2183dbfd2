"""When a sum is whole, along a loop of which nobody knows how long it is."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

import numpy as np

from alcop_mlir.checker.logic import terms
from alcop_mlir.checker.logic.terms import Term
from alcop_mlir.checker.machine.held import Held, Tags
from alcop_mlir.checker.placed.kinds import Element, Kind, Result
from alcop_mlir.checker.placed.open_accesses import Accesses, Indices
from alcop_mlir.checker.placed.open_book import ENDED, OpenBook
from alcop_mlir.checker.placed.tags import ZERO, is_same

_WHOLE = Result((), 0, ENDED, frozenset())


class OpenSums:
    """Of one check, where its machine is."""

    def __init__(self, book: OpenBook, accesses: Accesses):
        self.book, self.accesses = book, accesses
        self.statement = book.statement

    def named(self, data: Held, name: str) -> Held | None:
        """What is held, where a turn's name says all that its known number does.

        All elements along the sum move with turns; a sum that has come to one that did
        not, as the last of a tile from before the loop, ends where that name says too.
        """
        turns, tags = dict(data.turns), (data.shared, *data.registers.values())
        turn = turns.pop(name)[""]
        kinds = {number: self.book.kinds[number] for number in self.book.present(tags)}
        sums = {n: kind for n, kind in kinds.items() if isinstance(kind, Result)}
        moving = (self._step(kind, name) for n, kind in kinds.items() if n not in sums)
        steps = {step for step in moving if step is not None}
        late = {n: kind for n, kind in sums.items() if name not in dict(kind.upto)}
        if 0 in steps or (late and len(steps) != 1):
            return None
        if late:
            (step,) = steps
            by: Term = {name: step, "": -step * turn}
            ends = {n: terms.plus(dict(kind.upto), by) for n, kind in late.items()}
            made = {n: late[n]._replace(upto=terms.frozen(t)) for n, t in ends.items()}
            shared, *registers = self._made(tags, made)
            every = dict(zip(data.registers, registers, strict=True))
            data = replace(data, shared=shared, registers=every)
        return replace(data, turns=turns)

    def _step(self, kind: Kind | None, name: str) -> int | None:
        """What a turn adds to an element's index along the sum, if it has one."""
        if kind is None:
            return None
        loops = self.book.loops(kind, np.zeros(1, np.int64))
        along = loops.get(self.statement.reduced)
        return None if along is None else along[0].get(name, 0)

    def are_instances(
        self, registers: Mapping[str, Tags], other: Mapping[str, Tags]
    ) -> bool:
        """Whether registers hold what others say: the same, or 0 where the sum of no
        element has anything to add, and what the others say is such a sum.
        """
        if registers.keys() != other.keys():
            return False
        zeros = {n: t for n, t in registers.items() if not is_same(t, other[n])}
        if not zeros or any((t.number != ZERO).any() for t in zeros.values()):
            return not zeros
        kinds = [self.book.kinds[n] for n in self.book.present(other[n] for n in zeros)]
        sums = [kind for kind in kinds if isinstance(kind, Result)]
        are_whole = all(k._replace(term=(), size=0) == _WHOLE for k in sums)
        if len(sums) < len(kinds) or not are_whole or self.statement.init:
            return False
        return self.book.is_whole(())

    def ended(self, registers: Mapping[str, Tags]) -> tuple[dict[str, Tags], bool]:
        """Registers, with each sum as a whole one if it surely is; whether all are."""
        numbers = self.book.present(registers.values())
        kinds = {number: self.book.kinds[number] for number in numbers}
        whole = {n: made for n, k in kinds.items() if (made := self._ended(k))}
        is_all = all(n in whole for n, k in kinds.items() if isinstance(k, Result))
        found = self._made(registers.values(), whole)
        return dict(zip(registers, found, strict=True)), bool(whole) and is_all

    def _made(self, every: Collection[Tags], made: Mapping[int, Kind]) -> list[Tags]:
        """Tags with other kinds instead of some, by their numbers."""
        others = {number: self.book.number(kind) for number, kind in made.items()}
        new = np.arange(len(self.book.kinds), dtype=np.int32)
        for number, other in others.items():
            new[number] = other
        arrays = {id(tags.number): tags.number for tags in every}
        each = {one: new[numbers] for one, numbers in arrays.items()}
        return [Tags(each[id(tags.number)], tags.place) for tags in every]

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
