"""What the threads of a row compute: all ops of a row group, the row in registers.

Each thread holds the same columns of whatever is as long as the row: vectors of up to
16 bytes, as far as rows are aligned, neighbouring threads neighbouring vectors. Where
the last vectors are beyond the row, a thread looks at the last one of the row again:
reductions leave that out, and nothing is stored.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from alcop_mlir.analysis.ir.alignment import (
    BASE_ALIGNMENT,
    address_alignment,
    element_bytes,
    has_whole_bytes,
)
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.linalg.view import Operand
from alcop_mlir.analysis.rows.row_groups import RowGroup
from alcop_mlir.analysis.rows.row_members import Member
from alcop_mlir.analysis.rows.warp_reductions import NEUTRAL
from alcop_mlir.bindings import arith, gpu, ir, llvm, memref, vector
from alcop_mlir.passes import build
from alcop_mlir.target import WARP_SIZE
from alcop_mlir.transforms.tiling.nest_elements import (
    combined,
    combined_by_warp,
    element_of,
    indices_of,
)

_SMALLEST = 2  # bytes of an element that 16 bytes hold most of


@dataclass
class RowCode:
    """Builds what one thread does.

    row:    the indices of the row
    thread: its number among those of the row
    held:   by memref, the elements that the thread has: of all its columns, or one
    """

    group: RowGroup
    row: list[ir.Value]
    thread: ir.Value
    held: dict[Any, list[Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        columns, threads = self.group.columns, WARP_SIZE * self.group.warps
        self._width = _vector_width(columns, threads)
        covered = threads * self._width
        self._starts: list[Any] = []
        self._is_there: list[Any] = []  # None: of all threads
        first = build.mul(self.thread, self._width)
        for begin in range(0, columns, covered):
            start, is_there = build.add(first, begin) if begin else first, None
            if begin + covered > columns:
                is_there = build.less(start, columns)
                start = build.least(start, columns - self._width)
            self._starts.append(start)
            self._is_there.append(is_there)
        self._columns = [
            build.add(start, number) if number else start
            for start in self._starts
            for number in range(self._width)
        ]
        self._loaded: dict[Any, list[Any]] = {}

    def compute(self) -> None:
        """Run all members, and store what others than these may read."""
        for member in self.group.members:
            inputs = {
                operand.argument: self._elements(member, operand)
                for operand in member.reads
                if operand.argument is not None
            }
            if member.combine is None:
                self._map(member, inputs)
            else:
                self._reduce(member, inputs)
        self._store()

    # -- elements --------------------------------------------------------------------

    def _elements(self, member: Member, operand: Operand) -> list[Any]:
        """Of an operand, an element for each column, or one for all."""
        if operand.value in self.held:
            return self.held[operand.value]
        where = (operand.value, member.place(operand), str(operand.map))
        if where not in self._loaded:
            self._loaded[where] = self._load(member, operand)
        return self._loaded[where]

    def _load(self, member: Member, operand: Operand) -> list[Any]:
        if not any(member.column in index.loops for index in operand.indices):
            return [element_of(operand, self._indices(member, None))]
        count = self._neighbours(member, operand)
        found: list[Any] = []
        for column in self._columns[::count]:
            at = indices_of(operand, self._indices(member, column))
            found += _parts(build.load(operand.value, at, count), count)
        return found

    def _neighbours(self, member: Member, operand: Operand) -> int:
        """How many elements of an operand a thread may access at once."""
        kind = operand.value.type
        if operand.loops[-1] != member.column or not has_whole_bytes(kind.element_type):
            return 1
        if kind.get_strides_and_offset()[0][-1] != 1:
            return 1
        divisors = [1] * (kind.rank - 1) + [self._width]
        aligned = address_alignment(operand.value, divisors)
        return max(1, min(aligned, BASE_ALIGNMENT) // element_bytes(kind))

    def _indices(self, member: Member, column: Any) -> dict[int, Any]:
        """The index of each loop of a member, at a column."""
        return dict(zip(member.loops, [*self.row, column], strict=False))

    # -- ops -------------------------------------------------------------------------

    def _map(self, member: Member, inputs: dict[Any, list[Any]]) -> None:
        """An element-wise op: the elements of its outputs."""
        columns = self._columns if member.has_columns else [None]
        results = [
            self._body(member, inputs, number, column)
            for number, column in enumerate(columns)
        ]
        for output, elements in zip(
            member.nest.outputs, zip(*results, strict=True), strict=True
        ):
            self.held[output.value] = list(elements)

    def _reduce(self, member: Member, inputs: dict[Any, list[Any]]) -> None:
        """A reduction: by each thread, then by those of a warp, then by warps."""
        (output,) = member.nest.outputs
        combine = member.combine
        kind = combine.results[0].type
        total = arith.constant(kind, NEUTRAL[combine.name])
        for number, column in enumerate(self._columns):
            terms = inputs | {output.argument: [total]}
            (more,) = self._body(member, terms, number, column)
            is_there = self._is_there[number // self._width]
            total = more if is_there is None else arith.select(is_there, more, total)
        total = combined_by_warp(combine, total)
        if self.group.warps > 1:
            total = self._over_warps(combine, total)
        (start,) = self.held[output.value]
        self.held[output.value] = [combined(combine, start, total)]

    def _over_warps(self, combine: Any, part: Any) -> Any:
        """The total of the parts that the warps of a block have."""
        kind = part.type
        is_boolean = kind == build.integer(1)
        word = build.integer(32) if is_boolean else kind
        parts = build.alloc(build.workgroup_memref([self.group.warps], word))
        warp, lane = (
            build.div(self.thread, WARP_SIZE),
            build.rem(self.thread, WARP_SIZE),
        )
        stored = arith.extui(word, part) if is_boolean else part
        self._by_first(lane, lambda: build.store(stored, parts, [warp]))
        gpu.barrier()
        total: Any = None
        for number in range(self.group.warps):
            other = memref.load(parts, [build.index(number)])
            other = arith.trunci(kind, other) if is_boolean else other
            total = other if total is None else combined(combine, total, other)
        return total

    def _body(
        self, member: Member, inputs: dict[Any, list[Any]], number: int, column: Any
    ) -> list[Any]:
        """What the body of a member yields for a column. A copy has no body."""
        nest = member.nest
        if nest.block is None:
            (operand,) = nest.inputs
            return [_one(self._elements(member, operand), number)]
        mapping = {
            argument: _one(elements, number) for argument, elements in inputs.items()
        }
        for operand in nest.inputs:
            if not operand.is_memref:
                mapping[operand.argument] = operand.value
        index_of = self._indices(member, column)
        for op in walk(nest.op, "linalg.index"):
            mapping[op.results[0]] = index_of[op.attributes["dim"].value]
        return build.inline(nest.block, mapping)

    # -- results ---------------------------------------------------------------------

    def _store(self) -> None:
        writers = {
            output.value: (member, output)
            for member in self.group.members
            for output in member.nest.outputs
        }
        stored = [writers[one.value] for one in self.group.stored]
        for member, output in stored:
            if member.has_columns and member.combine is None:
                self._store_row(member, output)
        ones = [one for one in stored if len(one[0].place(one[1])) == self.group.rows]
        if ones:
            self._by_first(self.thread, lambda: self._store_ones(ones))

    def _store_row(self, member: Member, output: Operand) -> None:
        elements, count = self.held[output.value], self._neighbours(member, output)
        for number, is_there in enumerate(self._is_there):
            first = number * self._width

            def store(first: int = first) -> None:
                for position in range(first, first + self._width, count):
                    index_of = self._indices(member, self._columns[position])
                    some = elements[position : position + count]
                    value = some[0] if count == 1 else build.vector_of(some)
                    build.store(value, output.value, indices_of(output, index_of))

            if is_there is None:
                store()
            else:
                build.branch(is_there, store)

    def _store_ones(self, stored: list[tuple[Member, Operand]]) -> None:
        for member, output in stored:
            (element,) = self.held[output.value]
            at = indices_of(output, self._indices(member, None))
            memref.store(element, output.value, at)

    def _by_first(self, number: Any, make: Callable[[], None]) -> None:
        is_first = arith.cmpi(arith.CmpIPredicate.eq, number, build.index(0))
        build.branch(is_first, make)


def _vector_width(columns: int, threads: int) -> int:
    """Elements that a thread holds side by side: a power of 2 that divides a row.

    No more than are 16 bytes of the smallest type that is computed with, and none that
    lets threads look at more elements than they must.
    """
    width = BASE_ALIGNMENT // _SMALLEST
    least = -(-columns // threads)
    while columns % width or -(-columns // (threads * width)) * width > least:
        width //= 2
    return width


def _parts(loaded: Any, count: int) -> list[Any]:
    """The elements of what was loaded.

    Frozen, as LLVM would otherwise load each element of some vectors by itself.
    """
    if count == 1:
        return [loaded]
    loaded = llvm.freeze(loaded)
    return [
        vector.extract(loaded, dynamic_position=[], static_position=[number])
        for number in range(count)
    ]


def _one(elements: list[Any], number: int) -> Any:
    return elements[number] if len(elements) > 1 else elements[0]
