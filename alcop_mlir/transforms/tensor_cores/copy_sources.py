"""Builders of where a thread reads a chunk of a tile's copy, and how much of it.

A source is asked with the offsets of a chunk in the tile: `at` are the indices of its
first element in the source, `is_inside` whether that is there, None where it surely is,
and `count` how many of its elements are there, None for all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from alcop_mlir.analysis.layout.distribution import (
    GATHERS,
    Distribution,
    is_full,
    row_width,
)
from alcop_mlir.bindings import ir
from alcop_mlir.dialects import alcop
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import build
from alcop_mlir.transforms.tensor_cores.copy_offsets import Index
from alcop_mlir.transforms.tensor_cores.row_elements import RowElements


class Source(Protocol):
    """What a copy reads, see above."""

    def at(self, indices: Sequence[Index]) -> list[Any]: ...

    def is_inside(self, indices: Sequence[Index]) -> Any | None: ...

    def count(self, indices: Sequence[Index]) -> Any | None: ...


def source_of(
    copy: ir.Operation, distribution: Distribution, elements: RowElements
) -> Source:
    """The source of a tile's copy."""
    if copy.name in GATHERS:
        return GatheredSource(copy, distribution, elements)
    return TileSource(copy, distribution)


@frozen
class TileSource:
    """A memref that the tile begins at the beginning of."""

    copy: Any
    chunk: Distribution

    def at(self, indices: Sequence[Index]) -> list[Any]:
        """The same indices; in the last row where that is copied instead."""
        return clamped(self.copy, indices)

    def is_inside(self, indices: Sequence[Index]) -> Any | None:
        """Whether the first `indices` are inside of the source."""
        source, target = self.copy.operands
        is_inside = None
        for number, index in enumerate(indices):
            if is_full(source, target, number) or is_clamped(self.copy, number):
                continue
            inside = index.is_below(build.size(source, number))
            is_inside = build.both(is_inside, inside)
        return is_inside

    def count(self, indices: Sequence[Index]) -> Any | None:
        """How many elements are inside of the source."""
        if not self.chunk.parts:
            return _count(self.chunk.elements, self.is_inside(indices))
        *outer, column = indices
        size = build.size(self.copy.operands[0], len(outer))
        return _count(_left(column, size, self.chunk), self.is_inside(outer))


@frozen
class GatheredSource:
    """Rows of a memref at offsets of their own."""

    copy: Any
    chunk: Distribution
    elements: RowElements

    def at(self, indices: Sequence[Index]) -> list[Any]:
        """The row's offset, and the column."""
        row, column = indices
        return [build.add(self.elements.of(self.copy.operands[2], row), column.value)]

    def is_inside(self, indices: Sequence[Index]) -> Any | None:
        """Whether the row is valid, and has the column."""
        row, column = indices
        is_valid, width = self._is_valid(row), row_width(self.copy)
        if width is None:
            return is_valid
        # Not by 32 bits: a width may be any number.
        has_column = build.less(column.base, column.below(width))
        return build.both(is_valid, has_column)

    def count(self, indices: Sequence[Index]) -> Any | None:
        """How many elements are in a valid row."""
        if not self.chunk.parts:
            return _count(self.chunk.elements, self.is_inside(indices))
        row, column = indices
        width = row_width(self.copy)
        assert width is not None, "only a width cuts a row"
        return _count(_left(column, width, self.chunk), self._is_valid(row))

    def _is_valid(self, row: Index) -> Any:
        return self.elements.of(self.copy.operands[3], row)


def is_clamped(copy: ir.Operation, number: int) -> bool:
    """Whether a copy of a tile takes the source's last row for rows beyond it.

    Where each row has an address of its own, this needs no condition.
    """
    source, target = copy.operands
    strides, _ = source.type.get_strides_and_offset()
    return (
        number in alcop.arbitrary(copy)
        and source.type.is_dynamic_stride_or_offset(strides[number])
        and not is_full(source, target, number)
    )


def clamped(copy: ir.Operation, indices: Sequence[Index]) -> list[Any]:
    """Where a copy of a tile reads its source: in the last row at most, see above."""
    source = copy.operands[0]
    return [
        index.clamped(build.sub(build.size(source, number), 1))
        if is_clamped(copy, number)
        else index.value
        for number, index in enumerate(indices)
    ]


def _left(column: Index, end: ir.Value, chunk: Distribution) -> Any:
    """The elements of a chunk before `end`, a column."""
    left = build.sub(column.below(end), column.base)
    return build.least(build.most(left, 0), chunk.elements)


def _count(elements: ir.Value | int, is_inside: ir.Value | None) -> Any | None:
    """`elements` where it is inside, else zero; None for all of them."""
    if is_inside is None:
        return None if isinstance(elements, int) else elements
    return build.select(is_inside, elements, 0)
