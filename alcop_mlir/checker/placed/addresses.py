"""Which elements are at addresses of global memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from alcop_mlir.checker.logic import terms
from alcop_mlir.checker.machine.arithmetic import Mixed, Unknown, Value
from alcop_mlir.checker.machine.held import Tags
from alcop_mlir.checker.machine.mixed import mixed
from alcop_mlir.checker.placed.blocks import Blocks
from alcop_mlir.checker.placed.gathers import Gathers
from alcop_mlir.checker.placed.kinds import Element
from alcop_mlir.checker.placed.origins import is_turn
from alcop_mlir.checker.placed.tags import NUMBER, UNKNOWN, ZERO, Book
from alcop_mlir.checker.placed.told import NotKnown
from alcop_mlir.checker.ptx.instructions import place_of

if TYPE_CHECKING:
    from alcop_mlir.checker.machine.machine import Machine


class Addresses:
    """Of one machine, and the blocks of its grid."""

    def __init__(
        self,
        machine: Machine,
        book: Book,
        blocks: Blocks,
        gathers: Gathers | None = None,
    ):
        self.machine, self.book, self.blocks = machine, book, blocks
        self.gathers = gathers
        self._known: dict[Any, tuple[Value, np.ndarray, np.ndarray]] = {}

    def loaded(self, operand: str, count: int) -> Tags | None:
        """Bytes of global memory."""
        if self.is_gathered(self.machine.state.pc):
            return self._gathered(count)
        register, offset = place_of(operand) or ("", 0)
        if register not in self.machine.state.registers:
            return None
        try:
            numbers, starts = self._places(self.machine.value(register))
        except Unknown:
            return None
        return self._bytes(numbers, starts + offset, count)

    def is_gathered(self, pc: int) -> bool:
        """Whether it is of elements of windows; it is known of which."""
        return self.gathers is not None and self.gathers.found(pc) is not None

    def _gathered(self, count: int) -> Tags:
        """Bytes of elements of windows, and zeros beyond the array, as windows have."""
        found = self.gathers and self.gathers.found(self.machine.state.pc)
        assert found
        array, size = found.array, self.book.statement.arrays[found.array].bytes
        turns = {f"n{head}": step for head, step in found.turns.items()}
        term = turns | self.book.origins.spread(found.blocks[..., None, None])
        number = self.book.number(Element(array, terms.frozen(term), size))
        numbers = np.where(found.others, ZERO, number).astype(np.int32)
        return self._bytes(numbers, found.threads * size, count)

    def _places(self, address: Value) -> tuple[np.ndarray, np.ndarray]:
        """Of each thread a kind of element, and the byte of it; once of one value."""
        data = self.machine.state.data
        key = id(address), *((n, terms.frozen(t)) for n, t in data.turns.items())
        if key not in self._known:
            value = mixed(address, 64, self.machine.threads)
            found = self._found(value)
            names = terms.inside({s: 1 for s in value.parts if not is_turn(s)})
            if (found[0] == UNKNOWN).any() or not names.isdisjoint(data.told):
                return found
            # With the value, so that it keeps its id.
            self._known[key] = address, *found
        return self._known[key][1:]

    def _found(self, value: Mixed) -> tuple[np.ndarray, np.ndarray]:
        names = list(value.parts)
        rows = np.array([value.parts[n] for n in names]).reshape(len(names), -1)
        if (rows == rows[:, :1]).all():  # as where all threads have one tile
            kinds, which = rows[:, :1], np.zeros(rows.shape[1], np.int64)
        else:
            kinds, which = np.unique(rows, axis=1, return_inverse=True)
        turns = self.machine.state.data.turns
        every = [
            terms.replaced(dict(zip(names, column.tolist(), strict=True)), turns)
            for column in kinds.T
        ]
        more = np.array([term.pop("", 0) for term in every], np.int64)
        numbers = np.array([self._pointed(term) for term in every], np.int32)
        which = np.asarray(which).ravel()
        return numbers[which], value.constant + more[which]

    def _pointed(self, term: terms.Term) -> int:
        """The kind of element at an address, without the number that is added.

        What does not change with turns is a number of each block.
        """
        arrays, origins = self.book.statement.arrays, self.book.origins
        term = {s: c for s, c in term.items() if c}
        pointers = [s for s in term if s[:1] == "." and s[1:] in arrays]
        if len(pointers) != 1 or term.pop(pointers[0]) != 1:
            return UNKNOWN
        array = pointers[0][1:]
        if array in self.book.statement.windows:
            return UNKNOWN
        size = arrays[array].bytes
        turns = {s: term.pop(s) for s in [*term] if is_turn(s)}
        try:
            start = self.blocks.term(term, self.machine.state.data.told)
        except NotKnown:
            return UNKNOWN
        is_of_block = start.shape[3:] == (1, 1)
        is_whole = not (start % size).any() and not any(
            c % size for c in turns.values()
        )
        if not is_of_block or not is_whole:
            return UNKNOWN
        found = {s: c // size for s, c in turns.items()} | origins.spread(start // size)
        return self.book.number(Element(array, terms.frozen(found), size))

    def _bytes(self, number: np.ndarray, start: np.ndarray, count: int) -> Tags:
        """So many bytes from the start on."""
        granules = max(count // self.book.grain, 1)
        place = start[:, None] + np.arange(granules) * self.book.grain
        place = np.where(number[:, None] > NUMBER, place, 0)
        return Tags(np.repeat(number[:, None], granules, axis=1), place)


def is_stable(symbol: str) -> bool:
    """Whether it is a parameter, a special register or known of each block, or made of
    such.
    """
    if isinstance(symbol, terms.Made):
        return all(name[0] in ".%@" for name in symbol.names)
    return symbol[0] in ".%@"
