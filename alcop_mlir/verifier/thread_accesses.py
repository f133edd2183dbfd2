"""What threads access in memory, as a kernel runs: `Accesses`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from alcop_mlir.bindings import ir
from alcop_mlir.verifier.block_memory import BlockMemory, Space
from alcop_mlir.verifier.made_up import (
    element,
    fewer,
    joined,
    split,
    stand_in,
    zero,
)
from alcop_mlir.verifier.thread_values import LOADS, STORES, ThreadValues
from alcop_mlir.verifier.views import Lanes, Root, lane
from alcop_mlir.verifier.violations import Violation


class Unknown(Exception):
    """What an op does is not known, where all has to be."""


@dataclass(frozen=True)
class _Place:
    """What an op accesses: `count` elements of `pieces` units of the root, or one."""

    root: Root
    pieces: int
    offsets: Lanes  # bytes
    count: int | None

    def units(self, threads: Iterable[int]) -> Iterator[tuple[int, range]]:
        """For threads, as far as known: the units of the root that each accesses."""
        offsets, unit = self.offsets, self.root.unit
        length = self.pieces * (self.count or 1)
        for thread in threads:
            offset = lane(offsets, thread)
            if offset is not None:
                first = offset // unit
                yield thread, range(first, first + length)


@dataclass
class Accesses:
    """Accesses of the `active` threads.

    found:   what races, by op and text
    outside: accesses beyond the end of shared memory, by op
    """

    values: ThreadValues
    memory: BlockMemory
    active: Sequence[int]
    found: dict[tuple[Any, str], Violation] = field(default_factory=dict)
    outside: dict[Any, Violation] = field(default_factory=dict)
    elements: int = 0  # that were accessed

    def load(self, op: Any) -> None:
        kind = op.results[0].type
        place = self._place(op, LOADS[op.name], _elements(kind))
        if place is None:
            self.values.set(op.results, [None])
            return
        found: list[Any] = [None] * self.values.threads
        initial = self._initial(place.root, kind)
        for thread, units in place.units(self.active):
            parts = self._read(op, place, thread, units, initial)
            single = place.count is None
            found[thread] = element(parts[0], kind) if single else joined(parts)
        self.values.set(op.results, [found])

    def store(self, op: Any) -> None:
        value = self.values.at(op.operands[0])
        place = self._place(op, STORES[op.name], _elements(op.operands[0].type))
        if place is None:
            return
        for thread, units in place.units(self.active):
            own = lane(value, thread)
            parts = [own] if place.count is None else split(own, place.count)
            self._write(op, place, thread, units, parts, self.memory.store)

    def copy(self, op: Any) -> None:
        self.values.set(op.results, [None])
        segments = list(op.attributes["operandSegmentSizes"])
        count, number = op.attributes["dstElements"].value, 1 + segments[1]
        source = self._place(op, number, count, segments[3])
        place = self._place(op, 0, count, segments[1])
        if place is None:
            return
        most = self.values.at(op.operands[-1]) if segments[4] else count
        kind = op.operands[number].type.element_type
        read: dict[int, range] = {}
        if source is not None:
            read = dict(source.units(self.active))
        for thread, units in place.units(self.active):
            parts: list[Any] = [None] * count
            here = lane(most, thread)
            if source is not None and thread in read and here is not None:
                initial, given = self._initial(source.root, kind), read[thread]
                given = given[: len(given) // count * max(0, here)]
                found = self._read(op, source, thread, given, initial)
                parts = found + [zero(kind)] * (count - len(found))
            self._write(op, place, thread, units, parts, self.memory.copy)

    def _place(
        self, op: Any, number: int, count: int | None, rank: int | None = None
    ) -> _Place | None:
        """What an op accesses; None where that is not known."""
        view = self.values.at(op.operands[number])
        if view is None or count == 0:
            return self._lost(op)
        if view.root.is_private and not self.values.made_up:
            return None
        rank = len(op.operands) - number - 1 if rank is None else rank
        given = op.operands[number + 1 : number + 1 + rank]
        is_row = count is None or view.strides[-1:] == (view.width,)
        if rank != len(view.strides) or not is_row or view.width % view.root.unit:
            return self._lost(op)
        offsets = view.at([self.values.at(one) for one in given], self.values.threads)
        self.elements += len(self.active) * (count or 1)
        if offsets is None:
            return self._lost(op)
        return _Place(view.root, view.width // view.root.unit, offsets, count)

    def _lost(self, op: Any) -> None:
        if self.values.made_up:
            raise Unknown(op.name)

    def _initial(self, root: Root, kind: Any) -> Callable[[int], Any]:
        """What memory holds before it is written; shared memory the same everywhere."""
        few, seed = fewer(kind), root.seed
        if not self.values.made_up:
            return lambda _: None
        if root.is_shared or root.is_private:
            return lambda _: stand_in(few, 0)
        return lambda place: stand_in(few, seed, place)

    def _read(
        self, op: Any, place: _Place, thread: int, units: range, initial: Any
    ) -> list[Any]:
        space = self._space(op, place.root, thread, units)
        parts, why = self.memory.load(thread, space, units, initial)
        if why:
            self._say(op, place.root, why)
        each = place.pieces
        if each == 1:
            return parts
        return [joined(parts[n : n + each]) for n in range(0, len(parts), each)]

    def _write(
        self, op: Any, place: _Place, thread: int, units: range, parts: Any, how: Any
    ) -> None:
        if place.pieces > 1:
            parts = [piece for one in parts for piece in split(one, place.pieces)]
        space = self._space(op, place.root, thread, units)
        why = how(thread, space, units, parts, op)
        if why:
            self._say(op, place.root, why)

    def _space(self, op: Any, root: Root, thread: int, units: range) -> Space:
        """What is in the root; whether it has these units is said."""
        if root.is_shared and root.size is not None and units:
            if units[0] < 0 or units[-1] * root.unit >= root.size:
                why = f"is of byte {units[0] * root.unit}, its buffer has {root.size}"
                self.outside.setdefault(op, Violation(op, why))
        name = (*root.name, thread) if root.is_private else root.name
        space = self.memory.spaces.get(name)
        if space is None:
            space = self.memory.spaces[name] = {}
        return space

    def _say(self, op: Any, root: Root, why: str) -> None:
        # In global memory programs may race that are right, as with flags.
        if root.is_shared or (self.values.made_up and not root.is_private):
            self.found.setdefault((op, why), Violation(op, why))


def _elements(kind: Any) -> int | None:
    """Elements of a vector, 0 where they are not in a row; None for a single one."""
    if not isinstance(kind, ir.VectorType):
        return None
    return kind.shape[0] if kind.rank == 1 else 0
