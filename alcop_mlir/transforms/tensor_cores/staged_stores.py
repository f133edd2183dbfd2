"""Builders that store accumulators through shared memory, in runs along the rows.

Where rows of the output are not aligned, a lane can store only a few bytes of a row at
once, and the part of a row that a quad holds is too short to fill sectors. The warp
then puts eight rows at a time, one of each quad, into a buffer of its own, a stage, and
stores them from there: neighbouring lanes store neighbouring bytes of a row.

The buffer overlays the tiles of the inputs, which the block no longer reads: a barrier
runs before the first use. Its rows are longer than the tile's, so that quads that write
at the same time write to different banks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from alcop_mlir.analysis.ir.alignment import element_bytes
from alcop_mlir.analysis.layout.fragment_layout import FragmentLayout
from alcop_mlir.analysis.layout.staging import OVERLAID, free_bytes, top_level
from alcop_mlir.bindings import gpu, ir, nvvm
from alcop_mlir.passes import build
from alcop_mlir.target import WARP_SIZE
from alcop_mlir.transforms.tensor_cores.copy_offsets import WAVE_BYTES
from alcop_mlir.transforms.tensor_cores.fragment_access import (
    PIECE_COLUMNS,
    QUAD,
    AccumulatorLane,
    Indices,
    Pieces,
    accumulator_lane,
    allows,
    held_row,
    lane,
    neighbours,
    shifted,
)

_ROWS = WARP_SIZE // QUAD
_ALL_LANES = -1  # as a mask
_WIDEST_BYTES = 8  # of one lane's store: rows of a warp's tile are short
_IN_FLIGHT = 8  # elements loaded before the first of them is stored


@dataclass(frozen=True)
class Stage:
    """A buffer per warp for some rows of the output; numbers of warp and lane."""

    buffer: Any
    warp: Any
    lane: Any
    owner: AccumulatorLane


@dataclass
class Stages:
    """The stages of a kernel of so many threads, built when first needed."""

    threads: int
    body: Any
    buffers: dict[Any, Any] = field(default_factory=dict)
    ordered: list[Any] = field(default_factory=list)

    def at(self, write: ir.Operation, layout: FragmentLayout) -> Stage | None:
        """The stage of the transfer `write` of a vector; None without room.

        Built at the current insertion point, before `write`.
        """
        kind = write.operands[0].type
        shape = [self.threads // WARP_SIZE, _ROWS, _pitch(layout, kind)]
        if math.prod(shape) * element_bytes(kind) > free_bytes(write, self.body):
            return None
        self._order(write)
        thread = gpu.thread_id(gpu.Dimension.x, upper_bound=self.threads)
        return Stage(
            self._buffer(shape, kind.element_type),
            build.div(thread, WARP_SIZE),
            lane(self.threads),
            accumulator_lane(self.threads, layout),
        )

    def _order(self, write: ir.Operation) -> None:
        """Build a barrier: all warps have read the tiles before one overwrites them."""
        top = top_level(write, self.body)
        if any(top == known for known in self.ordered):
            return
        self.ordered.append(top)
        with ir.InsertionPoint(top):
            gpu.barrier()

    def _buffer(self, shape: list[int], element: ir.Type) -> Any:
        kind = build.workgroup_memref(shape, element)
        if kind not in self.buffers:
            with ir.InsertionPoint.at_block_begin(self.body):
                buffer = build.alloc(kind)
            buffer.owner.attributes[OVERLAID] = ir.UnitAttr.get()
            self.buffers[kind] = buffer
        return self.buffers[kind]


def _pitch(layout: FragmentLayout, kind: ir.Type) -> int:
    """Elements from row to row of a stage, so that quads write to different banks."""
    per_lane = neighbours(layout)
    quad = QUAD * per_lane * element_bytes(kind)  # bytes
    columns = kind.shape[1]
    return next(
        pitch
        for pitch in range(columns, columns + WAVE_BYTES, per_lane)
        if pitch * element_bytes(kind) % (2 * quad) == quad
    )


def store_staged(
    fragments: Pieces, target: ir.Value, indices: Indices, stage: Stage
) -> None:
    """Store one row of each quad at a time."""
    columns = fragments.counts["n"]
    # Distance of the rows of neighbouring quads.
    step = 2 if "m" in fragments.layout.interleaved else 1
    for number in range(fragments.counts["m"]):
        pieces = fragments.values[number * columns : (number + 1) * columns]
        for half in range(2):
            _put(pieces, half, stage)
            _order_warp()
            first = number * fragments.layout.piece[0] + half * stage.owner.half
            _copy_out(stage, target, indices, (first, step), columns)
            _order_warp()


def _put(pieces: Sequence[Any], half: int, stage: Stage) -> None:
    """Store the upper or the lower row of each quad of a row of pieces to the stage."""
    per_lane = neighbours(stage.owner.layout)
    column = build.mul(stage.owner.lane_in_quad, per_lane)
    side_by_side = per_lane // 2
    for first in range(0, len(pieces), side_by_side):
        held = held_row(pieces[first : first + side_by_side], half)
        at = build.plus(column, first * PIECE_COLUMNS)
        build.store(held, stage.buffer, [stage.warp, stage.owner.quad, at])


def _order_warp() -> None:
    """Make earlier writes of lanes visible to all lanes of the warp."""
    nvvm.bar_warp_sync(build.i32(_ALL_LANES))


def _copy_out(
    stage: Stage, target: ir.Value, indices: Indices, rows: tuple[int, int], pieces: int
) -> None:
    """From the stage to the output: lanes take turns along the rows.

    rows: the first of the output, and the distance from one to the next
    """
    columns = pieces * PIECE_COLUMNS
    count = _elements_at_once(stage, target, indices, columns)
    turns = range(_ROWS * columns // count // WARP_SIZE)
    offsets = [_lane_offset(stage, turn, columns, count) for turn in turns]
    for first in range(0, len(offsets), _IN_FLIGHT):
        some = offsets[first : first + _IN_FLIGHT]
        values = [
            build.load(stage.buffer, [stage.warp, *offset], count) for offset in some
        ]
        for value, (row, column) in zip(values, some, strict=True):
            row = build.plus(build.mul(row, rows[1]), rows[0])
            build.store(value, target, shifted(indices, (row, column)))


def _elements_at_once(
    stage: Stage, target: ir.Value, indices: Indices, columns: int
) -> int:
    """Elements of one lane's store: as both memories allow, with all lanes busy."""
    start = [build.index(0)] * stage.buffer.type.rank
    count = _WIDEST_BYTES // element_bytes(target.type)
    while count > 1 and not (
        _ROWS * columns // count % WARP_SIZE == 0
        and allows(target, indices, count)
        and allows(stage.buffer, start, count)
    ):
        count //= 2
    return count


def _lane_offset(stage: Stage, turn: int, columns: int, count: int) -> tuple[Any, Any]:
    """Row and column of a lane's `count` elements in a turn."""
    per_row = columns // count  # lanes
    if per_row % WARP_SIZE == 0:
        row, along = divmod(turn, per_row // WARP_SIZE)
        column = build.mul(stage.lane, count)
        return build.index(row), build.plus(column, along * WARP_SIZE * count)
    number = build.plus(stage.lane, turn * WARP_SIZE)
    row, column = _divided(number, per_row)
    return _in_other_banks(row, stage, columns), build.mul(column, count)


def _in_other_banks(number: ir.Value, stage: Stage, columns: int) -> Any:
    """The row to read as row `number`: rows read at once must not share banks.

    Rows are an odd multiple of what a quad writes apart, so that some, but not the next
    one, are an odd multiple of their own length apart.
    """
    size = element_bytes(stage.buffer.type)
    quad = QUAD * neighbours(stage.owner.layout) * size
    at_once, apart = WAVE_BYTES // (columns * size), columns * size // quad
    if at_once < 2 or _ROWS % (at_once * apart):
        return number
    group, first = _divided(number, at_once)
    outer, inner = _divided(group, apart)
    row = build.add(build.mul(first, apart), inner)
    return build.add(row, build.mul(outer, at_once * apart))


def _divided(value: ir.Value, by: int) -> tuple[Any, Any]:
    """Quotient and remainder."""
    return build.div(value, by), build.rem(value, by)
