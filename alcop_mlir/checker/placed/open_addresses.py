"""What is loaded and copied of arrays whose sizes are not known: see `OpenBook`."""

from __future__ import annotations

from typing import Any

import numpy as np

from alcop_mlir.checker.logic import terms
from alcop_mlir.checker.machine.held import Tags
from alcop_mlir.checker.placed.addresses import Addresses
from alcop_mlir.checker.placed.kinds import Element
from alcop_mlir.checker.placed.moves import Moves
from alcop_mlir.checker.placed.open_accesses import Asked, Indices
from alcop_mlir.checker.placed.open_book import OpenBook, is_digit
from alcop_mlir.checker.placed.open_here import Here
from alcop_mlir.checker.placed.tags import UNKNOWN
from alcop_mlir.checker.ptx.instructions import Instruction, integer

_MOST_STEP = 512  # of elements, that a turn adds


class OpenAddresses(Addresses):
    """Where the machine is."""

    book: OpenBook

    def __init__(self, *given: Any, here: Here):
        super().__init__(*given)
        self.accesses, self.here = here.accesses, here

    def count(self, ins: Instruction, array: str) -> int:
        """How many elements a load or a store accesses."""
        names = ins.operands[0 if ins.parts[0] == "ld" else 1]
        size = (names.count(",") + 1) * ins.width // 8
        return max(size // self.book.statement.arrays[array].bytes, 1)

    def loaded(self, operand: str, count: int) -> Tags | None:
        """Bytes of global memory; of what is beyond the end of a sum nothing is known,
        unless nobody reads it.
        """
        pc, way = self.machine.state.pc, self.here.way
        found = self.accesses.indices(pc, way)
        if found is None:
            return None
        array, indices = found
        size = self.book.statement.arrays[array].bytes
        if self.machine.kernel.code[pc].parts[0] == "ld":
            many = max(count // size, 1)
            _, beyond = self.accesses.along(indices, many)
            there = self.accesses.valid(indices, many)
            runs = self.accesses.found[pc].runs
            if not self.accesses.never([[*r, *there, *beyond] for r in runs], way):
                return None
        return self._of(array, indices, size, count)

    def copied(self, count: int) -> Tags | None:
        """What a copy leaves: all that is there, and 0 beyond the end of the sum."""
        pc, way = self.machine.state.pc, self.here.way
        found, access = self.accesses.indices(pc, way), self.accesses.found.get(pc)
        if found is None or access is None or access.when != [[]]:
            return None
        array, indices = found
        size = self.book.statement.arrays[array].bytes
        many = max(count // size, 1)
        less = terms.minus(terms.number(count - 1), access.size)
        some = terms.plus(access.size, terms.number(-1))

        def ask(indices: Indices) -> list[Asked]:
            before, beyond = self.accesses.along(indices, many)
            there = self.accesses.valid(indices, many)
            return [([[*there, *before, less], [*there, *beyond, some]], way, None)]

        if not self.accesses.are_never(pc, "copied", indices, way, ask):
            return None
        return self._of(array, indices, size, count)

    def _of(self, array: str, indices: Indices, size: int, count: int) -> Tags | None:
        """So many bytes from an element on."""
        threads = self.machine.threads
        loops = {n: self.accesses.numbers(t, threads) for n, t in indices.items()}
        steps = [abs(c) for t, _ in loops.values() for s, c in t.items() if s[0] == "n"]
        if not is_digit(loops) or max(steps, default=0) > _MOST_STEP:
            return None
        strides = self.book.statement.arrays[array].strides
        term, index = self.book.joined(loops, strides)
        number = self.book.number(Element(array, term, size))
        return self.bytes(number, index * size, count)

    def bytes(self, number: int, start: np.ndarray, count: int) -> Tags:
        """So many bytes of one kind."""
        numbers = np.full(self.machine.threads, number, np.int32)
        return self._bytes(numbers, start, count)


class OpenMoves(Moves):
    """Of a machine."""

    addresses: OpenAddresses

    def __init__(self, *given: Any, addresses: OpenAddresses):
        super().__init__(*given)
        self.addresses = addresses

    def copied(self, ins: Instruction, lanes: np.ndarray) -> None:
        """`cp.async`."""
        count = integer(ins.operands[2])
        found = self.addresses.copied(count)
        if found is None or self.is_stored(found):
            found = self.nothing(count, UNKNOWN)
        self.store(self.shared_granules(ins.operands[0], count), found, lanes)
