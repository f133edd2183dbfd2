"""Builders of where the chunks begin that a thread copies of a tile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from alcop_mlir.analysis.distribution import Distribution
from alcop_mlir.analysis.thread_block import ThreadBlock
from alcop_mlir.bindings import arith, gpu, ir
from alcop_mlir.target import SHARED_BANK_BYTES, SHARED_BANKS
from alcop_mlir.transforms import build

WAVE_BYTES = SHARED_BANKS * SHARED_BANK_BYTES  # shared memory written at once


@dataclass(frozen=True)
class Index:
    """Where a chunk begins along one dimension: `base` plus a number.

    What is compared with it is shifted instead: bases are the same in many rounds, and
    an index that only addresses shared memory becomes part of the instruction.
    """

    base: Any
    shift: int
    value: Any

    def below(self, limit: Any) -> Any:
        """`limit`, as seen from the base."""
        return build.plus(limit, -self.shift)

    def held(self, last: Any) -> Any:
        """The index, or `last` where it is beyond that."""
        return build.plus(arith.minsi(self.base, self.below(last)), self.shift)


@dataclass(frozen=True)
class Places:
    """Where a thread's chunks begin, per round; whether it has one in the last."""

    indices: tuple[tuple[Index, ...], ...]
    has_last: Any | None  # None: every thread has


def places(block: ThreadBlock, distribution: Distribution) -> Places:
    """Built where the kernel begins, so that all copies of a shape share them."""
    with ir.InsertionPoint.at_block_begin(block.body):
        thread = gpu.thread_id(gpu.Dimension.x, upper_bound=distribution.threads)
        rounds = range(distribution.rounds)
        indices = [_indices(thread, number, distribution) for number in rounds]
        if distribution.last_round == distribution.threads:
            return Places(tuple(indices), None)
        last = build.index(distribution.last_round)
        return Places(
            tuple(indices), arith.cmpi(arith.CmpIPredicate.ult, thread, last)
        )


def _indices(
    thread: Any, number: int, distribution: Distribution
) -> tuple[Index, ...]:
    """Indices of the first element of the thread's chunk in round `number`."""
    per_row, threads = distribution.chunks_per_row, distribution.threads
    if distribution.across:
        return _narrow_indices(thread, number, distribution)
    if threads % per_row == 0:  # rounds differ by constants only
        row = _shifted(_divide(thread, per_row), number * threads // per_row)
        place = _remainder(thread, per_row)
    else:
        chunk = build.plus(thread, number * threads)
        row, place = _shifted(_divide(chunk, per_row), 0), _remainder(chunk, per_row)
    column = _shifted(_times(place, distribution.elements), 0)
    if len(distribution.shape) == 2:
        return row, column
    rows = _row_indices(row.value, distribution.shape[:-1])
    return (*(_shifted(index, 0) for index in rows), column)


def _shifted(base: Any, by: int) -> Index:
    return Index(base, by, build.plus(base, by))


def _narrow_indices(
    thread: Any, number: int, distribution: Distribution
) -> tuple[Index, ...]:
    """As `_indices`, with rounds along the rows first."""
    across = distribution.across
    down, along = divmod(number, distribution.chunks_per_row // across)
    row = _divide(thread, across)
    if across * distribution.bytes < WAVE_BYTES:
        # Neighbouring groups of lanes take rows four apart; see analysis.distribution.
        eighth = _remainder(row, 8)
        row = build.add(
            build.add(_times(_divide(row, 8), 8), _times(_remainder(eighth, 2), 4)),
            _divide(eighth, 2),
        )
    column = _times(_remainder(thread, across), distribution.elements)
    return (
        _shifted(row, down * (distribution.threads // across)),
        _shifted(column, along * across * distribution.elements),
    )


def _row_indices(row: Any, extents: Sequence[int]) -> list[Any]:
    """The indices along `extents` of row number `row` among all rows."""
    indices: list[Any] = []
    for rows in reversed(extents):
        is_outermost = len(indices) == len(extents) - 1
        indices.append(row if is_outermost else _remainder(row, rows))
        row = _divide(row, rows)
    return indices[::-1]


# Arithmetic on indices; what changes nothing builds nothing.


def _times(value: Any, factor: int) -> Any:
    return build.mul(value, build.index(factor)) if factor != 1 else value


def _divide(value: Any, divisor: int) -> Any:
    return arith.divui(value, build.index(divisor)) if divisor != 1 else value


def _remainder(value: Any, divisor: int) -> Any:
    return arith.remui(value, build.index(divisor)) if divisor != 1 else build.index(0)
