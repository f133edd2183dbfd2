"""Builders of the offsets of the chunks that a thread copies of a tile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from alcop_mlir.analysis.ir.kernels import ThreadBlock
from alcop_mlir.analysis.layout.distribution import Distribution
from alcop_mlir.bindings import arith, gpu, ir
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import build
from alcop_mlir.target import SHARED_BANK_BYTES, SHARED_BANKS

WAVE_BYTES = SHARED_BANKS * SHARED_BANK_BYTES  # shared memory written at once


@frozen
class Index:
    """Offset of a chunk along one dimension: `base` plus the constant `shift`.

    Comparisons are of what is left after the base, which many rounds share, with the
    shift: a constant is part of the instruction, as it is in an index of shared memory.

    is_sure: whether it is in the tile for every thread; in a last round some threads
        have no chunk
    """

    base: Any
    shift: int
    value: Any
    is_sure: bool = True

    def below(self, limit: ir.Value) -> Any:
        """`limit` minus the shift, to compare the base with."""
        return build.plus(limit, -self.shift)

    def is_below(self, limit: ir.Value) -> Any:
        """Whether the index is less than `limit`, the extent of a tile at most.

        It fits in 32 bits, and a comparison of 64 bits takes two instructions.
        """
        word = build.integer(32)
        left = arith.index_cast(word, build.sub(limit, self.base))
        return arith.cmpi(arith.CmpIPredicate.sgt, left, build.i32(self.shift))

    def plus(self, number: int) -> Index:
        """The index of an element so many after this one."""
        return Index(self.base, self.shift + number, build.plus(self.value, number))

    def clamped(self, last: ir.Value) -> Any:
        """The index, or `last` where it is greater."""
        return build.plus(build.least(self.base, self.below(last)), self.shift)


@frozen
class ChunkOffsets:
    """Offsets of a thread's chunks by round; whether it has one in the last round."""

    indices: tuple[tuple[Index, ...], ...]
    has_last: Any | None  # None: every thread has one

    @property
    def full(self) -> int:
        """Rounds in which every thread has a chunk."""
        return len(self.indices) - (self.has_last is not None)


def chunk_offsets(block: ThreadBlock, distribution: Distribution) -> ChunkOffsets:
    """Built at the start of the kernel, so that all copies of a shape share them."""
    with ir.InsertionPoint.at_block_begin(block.body):
        thread = gpu.thread_id(gpu.Dimension.x, upper_bound=distribution.threads)
        indices = tuple(_rounds(thread, distribution))
        if distribution.last_round == distribution.threads:
            return ChunkOffsets(indices, None)
        *full, some = indices
        some = tuple(replace(index, is_sure=False) for index in some)
        indices = (*full, some)
        last = build.index(distribution.last_round)
        return ChunkOffsets(indices, arith.cmpi(arith.CmpIPredicate.ult, thread, last))


def step_between(
    one: Sequence[tuple[Index, ...]], other: Sequence[tuple[Index, ...]]
) -> list[int] | None:
    """The distance of each round of `other` from that of `one`.

    None where it is not the same in all rounds.
    """
    steps = {
        tuple(
            later.shift - index.shift if later.base == index.base else None
            for index, later in zip(first, second, strict=True)
        )
        for first, second in zip(one, other, strict=True)
    }
    (step,) = steps if len(steps) == 1 else [(None,)]
    return None if None in step else [by for by in step if by is not None]


def advanced(
    offsets: Sequence[tuple[Index, ...]], number: ir.Value, step: Sequence[int]
) -> list[tuple[Index, ...]]:
    """`offsets` moved by `number`, a value, times `step`."""
    by = [build.mul(number, one) if one else None for one in step]
    return [
        tuple(
            index if way is None else _shifted(build.add(index.base, way), index.shift)
            for index, way in zip(indices, by, strict=True)
        )
        for indices in offsets
    ]


def _rounds(
    thread: ir.Value, distribution: Distribution
) -> Iterator[tuple[Index, ...]]:
    """Indices of the first element of the thread's chunk, for each round."""
    if distribution.across:
        return _narrow_rounds(thread, distribution)
    is_even = distribution.threads % distribution.chunks_per_row == 0
    if is_even and len(distribution.shape) == 2:
        return _even_rounds(thread, distribution)
    return _uneven_rounds(thread, distribution)


def _even_rounds(
    thread: ir.Value, distribution: Distribution
) -> Iterator[tuple[Index, ...]]:
    """Rounds differ by whole rows: one base, and constants."""
    per_row = distribution.chunks_per_row
    row, chunk_in_row = build.div(thread, per_row), build.rem(thread, per_row)
    column = _shifted(build.mul(chunk_in_row, distribution.elements), 0)
    for number in range(distribution.rounds):
        yield _shifted(row, number * (distribution.threads // per_row)), column


def _uneven_rounds(
    thread: ir.Value, distribution: Distribution
) -> Iterator[tuple[Index, ...]]:
    per_row, threads = distribution.chunks_per_row, distribution.threads
    for number in range(distribution.rounds):
        chunk = build.plus(thread, number * threads)
        row, chunk_in_row = build.div(chunk, per_row), build.rem(chunk, per_row)
        indices = build.coordinates(row, distribution.shape[:-1])
        indices.append(build.mul(chunk_in_row, distribution.elements))
        yield tuple(_shifted(index, 0) for index in indices)


def _narrow_rounds(
    thread: ir.Value, distribution: Distribution
) -> Iterator[tuple[Index, ...]]:
    """Rounds run along the rows first."""
    across = distribution.across
    row = build.div(thread, across)
    if across * distribution.bytes < WAVE_BYTES:
        # Neighbouring groups of lanes copy rows four apart; see analysis.layout.
        eighth = build.rem(row, 8)
        row = build.add(
            build.add(
                build.mul(build.div(row, 8), 8), build.mul(build.rem(eighth, 2), 4)
            ),
            build.div(eighth, 2),
        )
    column = build.mul(build.rem(thread, across), distribution.elements)
    for number in range(distribution.rounds):
        down, along = divmod(number, distribution.chunks_per_row // across)
        yield (
            _shifted(row, down * (distribution.threads // across)),
            _shifted(column, along * across * distribution.elements),
        )


def _shifted(base: ir.Value, by: int) -> Index:
    return Index(base, by, build.plus(base, by))
