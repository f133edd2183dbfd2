"""What the threads of a row compute: all ops of a row group.

Each thread has the same columns of whatever has an element for each: vectors of up to
16 bytes, as far as rows are aligned, neighbouring threads neighbouring vectors. Where
the last vectors are beyond the row, a thread looks at the last one of the row again:
reductions leave that out, and nothing is stored. Elements are read and computed where
they are first needed: once of a row that is held, else in each part that needs them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.linalg.view import Operand
from alcop_mlir.analysis.rows.row_groups import RowGroup
from alcop_mlir.analysis.rows.row_members import Member
from alcop_mlir.analysis.rows.row_sources import RowSources, Source, row_sources
from alcop_mlir.bindings import arith, gpu, ir, memref
from alcop_mlir.passes import build, edit
from alcop_mlir.target import WARP_SIZE
from alcop_mlir.transforms.tiling import row_parts
from alcop_mlir.transforms.tiling.nest_elements import element_of, indices_of
from alcop_mlir.transforms.tiling.row_parts import Columns, Part, both, where
from alcop_mlir.transforms.tiling.row_reductions import (
    Iteration,
    Reduction,
    Values,
    body,
    reduction_of,
)


@dataclass
class RowCode:
    """Builds what one thread does.

    row:     the indices of the row
    columns: as the threads of the row share them
    lane:    of rows across: the number of the row among those of the block
    is_row:  whether this thread has a row, not another one's; None where it surely has
    ones:    of the members that make one element of a row, what they made
    """

    group: RowGroup
    row: list[Any]
    columns: Columns
    lane: Any = None
    is_row: Any = None
    ones: dict[Source, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._loaded: dict[Any, Any] = {}  # one element of a row, by memref and index

    @cached_property
    def _sources(self) -> RowSources:
        return row_sources(self.group.members)

    def compute(self) -> None:
        """Run all members, and store what others than these may read."""
        self._load_ones()
        whole = self.columns.part(0) if self.group.layout.is_held else None
        levels = self._sources.levels
        for level in range(max(levels) + 1):
            for number, member in enumerate(self.group.members):
                if levels[number] == level and not member.has_columns:
                    self._make_ones(number)
            reductions = [
                number
                for number, member in enumerate(self.group.members)
                if levels[number] == level + 1 and member.combine is not None
            ]
            if reductions:
                self._reduce(reductions, whole)
        self._store(whole)

    # -- elements --------------------------------------------------------------------

    def _load_ones(self) -> None:
        """Load what has one element a row, in front of all loops along it."""
        for number, member in enumerate(self.group.members):
            for operand in member.reads:
                is_in_memory = self._sources.of(number, operand) is None
                if is_in_memory and not member.is_along_rows(operand):
                    self._loaded_one(member, operand)

    def _loaded_one(self, member: Member, operand: Operand) -> Any:
        at = _where(member, operand)
        if at not in self._loaded:
            index_of = self._index_of(member, [])
            self._loaded[at] = element_of(operand, index_of)
        return self._loaded[at]

    def _elements(self, part: Part, number: int, operand: Operand) -> Values:
        """Of an operand of a member, an element for each column, or one for all."""
        member = self.group.members[number]
        source = self._sources.of(number, operand)
        if source is not None:
            if source in self.ones:
                return [self.ones[source]]
            if source not in part.made:
                self._map(part, source.member)
            return part.made[source]
        if not member.is_along_rows(operand):
            return [self._loaded_one(member, operand)]
        at = _where(member, operand)
        if at not in part.loaded:
            part.loaded[at] = row_parts.load(
                member, operand, part, self._indices(member, operand, part)
            )
        return part.loaded[at]

    def _indices(
        self, member: Member, operand: Operand, part: Part
    ) -> Callable[[int], Values]:
        """The indices of an operand at a column of a part."""
        return lambda position: indices_of(
            operand, self._index_of(member, part.columns[position])
        )

    def _index_of(self, member: Member, column: Sequence[ir.Value]) -> dict[int, Any]:
        """The index of each loop of a member."""
        rows = dict(zip(member.rows, self.row, strict=True))
        return rows | dict(zip(member.columns, column, strict=False))

    # -- ops -------------------------------------------------------------------------

    def _make_ones(self, number: int) -> None:
        """An element-wise op with one element a row."""
        part = Part([None], [[]], [None], 1)
        self._map(part, number)
        self.ones |= {source: one for source, (one,) in part.made.items()}

    def _map(self, part: Part, number: int) -> None:
        """An element-wise op: the elements of its outputs at the columns of a part."""
        member = self.group.members[number]
        inputs = self._inputs(part, number)
        results = [
            self._body(member, inputs, part, position)
            for position in range(len(part.columns))
        ]
        for position, elements in enumerate(zip(*results, strict=True)):
            part.made[Source(number, position)] = list(elements)

    def _inputs(self, part: Part, number: int) -> list[tuple[Operand, Values]]:
        member = self.group.members[number]
        starts = member.nest.outputs if member.combine is not None else ()
        return [
            (operand, self._elements(part, number, operand))
            for operand in member.reads
            if operand not in starts
        ]

    def _body(
        self,
        member: Member,
        inputs: list[tuple[Operand, Values]],
        part: Part,
        position: int,
    ) -> Values:
        """What the body of an element-wise op yields. A copy has no body."""
        if member.nest.block is None:
            ((_, elements),) = inputs
            return [_one(elements, position)]
        iteration = self._iteration(member, inputs, part, position)
        return edit.inline(member.nest.block, iteration.mapping)

    def _iteration(
        self,
        member: Member,
        inputs: list[tuple[Operand, Values]],
        part: Part,
        position: int,
    ) -> Iteration:
        mapping = {
            operand.argument: _one(elements, position) for operand, elements in inputs
        }
        for operand in member.nest.inputs:
            if not operand.is_memref:
                mapping[operand.argument] = operand.value
        index_of = self._index_of(member, part.columns[position])
        for op in walk(member.nest.op, "linalg.index"):
            mapping[op.results[0]] = index_of[op.attributes["dim"].value]
        return Iteration(mapping, part.numbers[position])

    # -- reductions ------------------------------------------------------------------

    def _reduce(self, numbers: list[int], whole: Part | None) -> None:
        """Reductions that need no other's result: by each thread, then by all."""
        ways = [reduction_of(self.group.members[number]) for number in numbers]
        carried = [way.neutral() for way in ways]
        if whole is not None:
            carried = self._added(whole, numbers, ways, carried)
        else:
            carried = self._over_parts(numbers, ways, carried)
        for number, way, part in zip(numbers, ways, carried, strict=True):
            total = self._over_threads(way, part)
            for output, result in enumerate(self._results(number, way, total)):
                self.ones[Source(number, output)] = result

    def _over_parts(
        self, numbers: list[int], ways: list[Reduction], carried: list[Values]
    ) -> list[Values]:
        """What is carried after all parts of a row."""

        def iteration(first: ir.Value, flat: list[ir.Value]) -> Values:
            part = self.columns.part(first)
            added = self._added(part, numbers, ways, _like(flat, carried))
            return [value for one in added for value in one]

        bounds = (0, self.columns.count, self.columns.step)
        flat = [value for one in carried for value in one]
        loop = build.for_loop(bounds, flat, iteration)
        return _like(list(loop.results), carried)

    def _added(
        self,
        part: Part,
        numbers: list[int],
        ways: list[Reduction],
        carried: list[Values],
    ) -> list[Values]:
        """What is carried with the columns of a part."""
        found = []
        for number, way, one in zip(numbers, ways, carried, strict=True):
            member = self.group.members[number]
            inputs = self._inputs(part, number)
            total = one
            for position in range(len(part.columns)):
                iteration = self._iteration(member, inputs, part, position)
                more = way.added(total, iteration)
                is_there = part.is_there[position // part.width]
                if is_there is not None:
                    more = [
                        arith.select(is_there, new, old)
                        for new, old in zip(more, total, strict=True)
                    ]
                total = more
            found.append(total)
        return found

    def _over_threads(self, way: Reduction, part: Values) -> Values:
        """What is carried of all threads of a row, in each of them."""
        threads = self.group.layout.threads
        if threads == 1:
            return part
        if self.group.layout.across:
            return self._over_block(way, part, threads, self.columns.thread, self.lane)
        distance = WARP_SIZE // 2
        while distance:
            part = way.joined(part, [build.shuffle(one, distance) for one in part])
            distance //= 2
        if threads == WARP_SIZE:
            return part
        warp, lane = (
            make(self.columns.thread, WARP_SIZE) for make in (build.div, build.rem)
        )
        return self._over_block(way, part, threads // WARP_SIZE, warp, None, lane)

    def _over_block(
        self,
        way: Reduction,
        part: Values,
        count: int,
        number: ir.Value,
        lane: ir.Value | None,
        writer: Any = None,
    ) -> Values:
        """What is carried of `count` parts that a block has, through shared memory.

        number: of this thread's part
        lane:   of the row, of which the block has one for each lane; None of one row
        writer: 0 in the one thread that stores the part; None where each does
        """
        rows = [] if lane is None else [WARP_SIZE]
        at = [] if lane is None else [lane]
        words = [build.to_word(one) if one.type.width < _WORD else one for one in part]
        buffers = [
            build.alloc(build.workgroup_memref([count, *rows], word.type))
            for word in words
        ]

        def write() -> None:
            for word, buffer in zip(words, buffers, strict=True):
                build.store(word, buffer, [number, *at])

        where(None if writer is None else _is_first(writer), write)
        gpu.barrier()
        total: Values = []
        for other in range(count):
            read = [
                memref.load(buffer, [build.index(other), *at]) for buffer in buffers
            ]
            values = [
                build.from_word(one.type, word) if one.type.width < _WORD else word
                for one, word in zip(part, read, strict=True)
            ]
            total = way.joined(total, values) if total else values
        return total

    def _results(self, number: int, way: Reduction, total: Values) -> Values:
        """The outputs of a reduction, of what all threads carry."""
        member = self.group.members[number]
        starts = [
            self.ones[self._sources.made[number][output.value]]
            for output in member.nest.outputs
        ]

        def at(column: ir.Value) -> Iteration:
            return self._iteration(member, [], self.columns.one(column), 0)

        def fold(accumulators: Sequence[ir.Value]) -> Values:
            def iteration(column: ir.Value, carried: list[ir.Value]) -> Values:
                part = self.columns.one(column)
                inputs = self._inputs(part, number)
                one = self._iteration(member, inputs, part, 0)
                return body(member, one, carried)

            bounds = (0, self.columns.count, 1)
            return list(build.for_loop(bounds, list(accumulators), iteration).results)

        return way.results(starts, total, at, fold)

    # -- results ---------------------------------------------------------------------

    def _store(self, whole: Part | None) -> None:
        last = self._sources.last
        stored = [(last[one.value], one) for one in self.group.stored]
        rows = [one for one in stored if one[0] not in self.ones]
        if whole is not None:
            self._store_rows(whole, rows)
        elif rows:

            def iteration(first: ir.Value, _: list[ir.Value]) -> None:
                self._store_rows(self.columns.part(first), rows)

            bounds = (0, self.columns.count, self.columns.step)
            build.for_loop(bounds, [], iteration)
        ones = [one for one in stored if one[0] in self.ones]
        if ones:
            alone = self.group.layout.threads == 1
            is_first = None if alone else _is_first(self.columns.thread)
            where(both(is_first, self.is_row), lambda: self._store_ones(ones))

    def _store_rows(self, part: Part, stored: list[tuple[Source, Operand]]) -> None:
        for source, output in stored:
            member = self.group.members[source.member]
            if source not in part.made:
                self._map(part, source.member)
            indices = self._indices(member, output, part)
            elements = part.made[source]
            row_parts.store(member, output, part, elements, indices, self.is_row)

    def _store_ones(self, stored: list[tuple[Source, Operand]]) -> None:
        for source, output in stored:
            member = self.group.members[source.member]
            at = indices_of(output, self._index_of(member, []))
            memref.store(self.ones[source], output.value, at)


_WORD = 32  # bits of what is in shared memory


def _where(member: Member, operand: Operand) -> tuple[Any, ...]:
    """What tells which element is read: equal ones are the same."""
    return operand.value, member.place(operand), str(operand.map)


def _is_first(number: ir.Value) -> Any:
    return arith.cmpi(arith.CmpIPredicate.eq, number, build.index(0))


def _one(elements: Values, position: int) -> Any:
    return elements[position] if len(elements) > 1 else elements[0]


def _like(flat: Values, parts: list[Values]) -> list[Values]:
    """Values one after the other as lists of the same lengths as `parts`."""
    left = iter(flat)
    return [[next(left) for _ in part] for part in parts]
