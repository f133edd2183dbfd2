"""The columns that a thread of a row computes on at a time, and what it has of them."""

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
from alcop_mlir.analysis.linalg.view import Operand
from alcop_mlir.analysis.rows.row_layouts import RowLayout
from alcop_mlir.analysis.rows.row_members import Member
from alcop_mlir.bindings import arith, ir, llvm, vector
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import build
from alcop_mlir.transforms.tiling.thread_points import product


@dataclass
class Part:
    """Some columns of a thread: vectors of neighbours, of the same width.

    numbers:  of the columns, counted over all loops along a row
    columns:  the indices of these loops, of each column
    is_there: of each vector, whether the row has it; None where it surely has
    width:    columns of a vector
    made:     elements of what members make, by the numbers of member and output
    loaded:   elements of what is in memory, by memref and indices
    """

    numbers: list[Any]
    columns: list[list[Any]]
    is_there: list[Any]
    width: int
    made: dict[Any, list[Any]] = field(default_factory=dict)
    loaded: dict[Any, list[Any]] = field(default_factory=dict)


@frozen
class Columns:
    """The columns of a row, as its threads share them.

    how:    how they do
    sizes:  of the loops along the row, ints or index values
    thread: the number of this thread among those of the row
    """

    how: RowLayout
    sizes: list[Any]
    thread: Any

    @property
    def count(self) -> Any:
        """How many there are: an int, or a value."""
        return product(self.sizes)

    @property
    def step(self) -> int:
        """How many columns all threads of the row compute on at a time."""
        return self.how.threads * self.how.width * self.how.vectors

    def part(self, first: ir.Value | int) -> Part:
        """What this thread has of the `step` columns from `first` on."""
        how, width = self.how, self.how.width
        covered = how.threads * width
        own = build.mul(self.thread, width)
        numbers, columns, is_there = [], [], []
        for vector_number in range(how.vectors):
            start = _sum(own, _sum(first, vector_number * covered))
            there = None
            if not self._is_sure(first, (vector_number + 1) * covered):
                there = build.less(start, self.count)
                start = build.least(start, _sum(self.count, -width))
            is_there.append(there)
            indices = build.coordinates(start, self.sizes)
            for number in range(width):
                numbers.append(_sum(start, number))
                columns.append([*indices[:-1], _sum(indices[-1], number)])
        return Part(numbers, columns, is_there, width)

    def _is_sure(self, first: ir.Value | int, end: int) -> bool:
        """Whether columns from `first` to `first + end` are in the row."""
        count = self.how.count
        if count is None:
            return False
        if isinstance(first, int):
            return first + end <= count
        return count % self.step == 0

    def one(self, number: ir.Value) -> Part:
        """A single column."""
        return Part([number], [build.coordinates(number, self.sizes)], [None], 1)


def _sum(one: ir.Value | int, other: ir.Value | int) -> Any:
    """The sum of two indices, ints or values: an int of two ints."""
    if isinstance(one, int) and isinstance(other, int):
        return one + other
    if isinstance(other, int) and other == 0:
        return one
    return build.add(one, other)


def neighbours(member: Member, operand: Operand, width: int) -> int:
    """How many elements of an operand a thread may access at once, of `width`."""
    kind = operand.value.type
    if operand.loops[-1] != member.columns[-1] or not has_whole_bytes(
        kind.element_type
    ):
        return 1
    if kind.get_strides_and_offset()[0][-1] != 1:
        return 1
    divisors = [1] * (kind.rank - 1) + [width]
    aligned = min(address_alignment(operand.value, divisors), BASE_ALIGNMENT)
    # Of a dimension of one element every index is 0, and so aligned to anything.
    return max(1, min(aligned // element_bytes(kind), width))


def load(
    member: Member,
    operand: Operand,
    part: Part,
    indices: Callable[[int], list[Any]],
) -> list[Any]:
    """An operand's elements at all columns of a part.

    indices: of the operand, at a column by its position in the part
    """
    count = neighbours(member, operand, part.width)
    found: list[Any] = []
    for position in range(0, len(part.columns), count):
        found += _elements(build.load(operand.value, indices(position), count), count)
    return found


def _elements(loaded: Any, count: int) -> list[Any]:
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


def store(
    member: Member,
    operand: Operand,
    part: Part,
    elements: list[Any],
    indices: Callable[[int], list[Any]],
    is_row: ir.Value | None,
) -> None:
    """Store elements at all columns of a part that the row has.

    indices: as of `load`
    is_row:  whether this thread has a row; None where it surely has
    """
    count = neighbours(member, operand, part.width)
    for number, is_there in enumerate(part.is_there):
        first = number * part.width

        def write(first: int = first) -> None:
            for position in range(first, first + part.width, count):
                some = elements[position : position + count]
                value = some[0] if count == 1 else build.vector_of(some)
                build.store(value, operand.value, indices(position))

        where(both(is_there, is_row), write)


def both(one: ir.Value | None, other: ir.Value | None) -> Any:
    """Whether both conditions hold; None is one that always does."""
    if one is None or other is None:
        return other if one is None else one
    return arith.andi(one, other)


def where(condition: ir.Value | None, make: Callable[[], None]) -> None:
    """What `make` builds, under a condition; None is one that always holds."""
    if condition is None:
        make()
    else:
        build.branch(condition, make)
