"""Builders that store accumulators through shared memory, in runs along the rows.

Where rows of the output are not aligned, a lane can store only a few bytes of a row at
once, and the part of a row that a quad holds is too short to fill sectors. The warp
then puts eight rows at a time, one of each quad, into a buffer of its own, a stage, and
stores them from there: neighbouring lanes store neighbouring bytes of a row. Warps that
hold parts of the same rows share these out: each stores some rows of all of them, as a
row has parts of two sectors wherever it is cut. Where lanes take several turns along a
row, all turns but the first begin with a sector.

The buffer overlays the tiles of the inputs, which the block no longer reads: a barrier
runs before the first use. Its rows are longer than the tile's, so that quads that write
at the same time write to different banks; so are stages, so that rows that go on in the
next stage go on in the next bank.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from alcop_mlir.analysis.ir.alignment import element_bytes
from alcop_mlir.analysis.ir.loops import made_by
from alcop_mlir.analysis.layout.fragment_layout import FragmentLayout
from alcop_mlir.analysis.layout.staging import (
    OVERLAID,
    free_bytes,
    top_level,
    warps_beside,
)
from alcop_mlir.bindings import arith, gpu, ir, memref, nvvm
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import build
from alcop_mlir.target import SECTOR_BYTES, WARP_SIZE
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
_ROWS_OF = "alcop.rows"  # a matrix whose rows lie apart in memory
_ALL_LANES = -1  # as a mask
_WIDEST_BYTES = 8  # of one lane's store: rows of a warp's tile are short
_IN_FLIGHT = 8  # elements loaded before the first of them is stored


@frozen
class Stage:
    """A part of a buffer per warp for some rows of the output; numbers of warp, lane.

    room:    elements from warp to warp
    pitch:   elements from row to row
    columns: of a warp's part of the output
    beside:  warps that hold parts of the same rows and share these out
    member:  the warp's number among them, as a value
    """

    buffer: Any
    warp: Any
    lane: Any
    owner: AccumulatorLane
    room: int
    pitch: int
    columns: int
    beside: int
    member: Any

    @property
    def width(self) -> int:
        """Elements of a row in all stages that it goes through."""
        return self.columns * self.beside

    def at(self, warp: Any, row: Any, column: Any) -> list[Any]:
        """Where the stage of a warp has an element."""
        first = build.add(build.mul(warp, self.room), build.mul(row, self.pitch))
        return [build.add(first, column)]

    def order(self) -> None:
        """Make earlier writes visible to all who share the rows."""
        if self.beside == 1:
            nvvm.bar_warp_sync(build.i32(_ALL_LANES))
        else:
            gpu.barrier()


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
        pitch = _pitch(layout, kind)
        room = _ROWS * pitch + _gap(kind)
        size = self.threads // WARP_SIZE * room
        if size * element_bytes(kind) > free_bytes(write, self.body):
            return None
        self._order(write)
        # Else what is computed of it for the K loop would be held until here.
        thread = build.opaque(gpu.thread_id(gpu.Dimension.x, upper_bound=self.threads))
        warp, columns = build.div(thread, WARP_SIZE), kind.shape[1]
        beside = _sharing_warps(write, columns * element_bytes(kind))
        return Stage(
            self._buffer(size, kind.element_type),
            warp,
            lane(self.threads),
            accumulator_lane(self.threads, layout),
            room,
            pitch,
            columns,
            beside,
            build.rem(warp, beside),
        )

    def _order(self, write: ir.Operation) -> None:
        """Build a barrier: all warps have read the tiles before one overwrites them."""
        top = top_level(write, self.body)
        if any(top == known for known in self.ordered):
            return
        self.ordered.append(top)
        with ir.InsertionPoint(top):
            gpu.barrier()

    def _buffer(self, size: int, element: ir.Type) -> Any:
        kind = build.workgroup_memref([size], element)
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


def _gap(kind: ir.Type) -> int:
    """Elements between stages: where a row ends, the next stage has the next bank."""
    row = kind.shape[1] * element_bytes(kind)
    return row % WAVE_BYTES // element_bytes(kind)


def _sharing_warps(write: ir.Operation, row_bytes: int) -> int:
    """Warps that share out the rows of `write`, of which each holds so many bytes."""
    vector, target, *indices = write.operands
    beside = warps_beside(indices[: target.type.rank], vector.type.shape[1])
    is_even = _ROWS % beside == 0 and row_bytes * beside % WAVE_BYTES == 0
    return beside if is_even else 1


def store_staged(
    fragments: Pieces, target: ir.Value, indices: Indices, stage: Stage
) -> None:
    """Store one row of each quad at a time."""
    columns = fragments.counts["n"]
    # Distance of the rows of neighbouring quads.
    step = 2 if "m" in fragments.layout.interleaved else 1
    before = build.mul(stage.member, stage.columns)
    start = [*indices[:-1], build.sub(indices[-1], before)]
    for number in range(fragments.counts["m"]):
        pieces = fragments.values[number * columns : (number + 1) * columns]
        for half in range(2):
            _put(pieces, half, stage)
            stage.order()
            first = number * fragments.layout.piece[0] + half * stage.owner.half
            _copy_out(stage, target, start, (first, step))
            stage.order()


def _put(pieces: Sequence[Any], half: int, stage: Stage) -> None:
    """Store the upper or the lower row of each quad of a row of pieces to the stage."""
    per_lane = neighbours(stage.owner.layout)
    column = build.mul(stage.owner.lane_in_quad, per_lane)
    side_by_side = per_lane // 2
    for first in range(0, len(pieces), side_by_side):
        held = held_row(pieces[first : first + side_by_side], half)
        column_of_piece = build.plus(column, first * PIECE_COLUMNS)
        at = stage.at(stage.warp, stage.owner.quad, column_of_piece)
        build.store(held, stage.buffer, at)


def _copy_out(
    stage: Stage, target: ir.Value, indices: Indices, rows: tuple[int, int]
) -> None:
    """From the stage to the output: lanes take turns along the rows.

    indices: where the rows begin
    rows:    the first of the output, and the distance from one to the next
    """
    count = _elements_at_once(stage, target, indices)
    turns = range(_ROWS * stage.columns // count // WARP_SIZE)
    offsets = [_lane_offset(stage, turn, count) for turn in turns]
    places = [
        shifted(indices, (build.plus(build.mul(row, rows[1]), rows[0]), build.index(0)))
        for row, _ in offsets
    ]
    if stage.width // count > WARP_SIZE:
        offsets = [
            (row, _turned(column, target, place, stage.width))
            for (row, column), place in zip(offsets, places, strict=True)
        ]
    for first in range(0, len(offsets), _IN_FLIGHT):
        some = slice(first, first + _IN_FLIGHT)
        values = [_staged(stage, *offset, count) for offset in offsets[some]]
        for value, (_, column), place in zip(
            values, offsets[some], places[some], strict=True
        ):
            build.store(value, target, shifted(place, (build.index(0), column)))


def _staged(stage: Stage, row: ir.Value, column: ir.Value, count: int) -> Any:
    """Elements of a row, which goes through the stages of the warps that share it."""
    if stage.beside == 1:
        return build.load(stage.buffer, stage.at(stage.warp, row, column), count)
    first = build.sub(stage.warp, stage.member)
    warp = build.add(first, build.div(column, stage.columns))
    at = stage.at(warp, row, build.rem(column, stage.columns))
    return build.load(stage.buffer, at, count)


def _turned(column: ir.Value, target: ir.Value, start: Indices, width: int) -> Any:
    """`column`, moved around in a row of that width that begins at `start`.

    By as much as the row begins after the beginning of a sector: turns but the first
    then begin with one, and the first has the row's end as well. Memory begins with
    one. Rows of `alcop.rows` are unchanged: where they begin is not known yet.
    """
    if made_by(target, _ROWS_OF) is not None:
        return column
    rank = target.type.rank
    _, first, *numbers = memref.ExtractStridedMetadataOp(target).results
    for index, stride in zip(start, numbers[rank:], strict=True):
        first = build.add(first, build.mul(index, stride))
    word = build.integer(32)  # low bits are enough, and take half as many registers
    first, column = (arith.index_cast(word, value) for value in (first, column))
    after = arith.remui(first, build.i32(SECTOR_BYTES // element_bytes(target.type)))
    if width & (width - 1):  # else a difference below zero has the same remainder
        column = arith.addi(column, build.i32(width))
    column = arith.remui(arith.subi(column, after), build.i32(width))
    return arith.index_castui(ir.IndexType.get(), column)


def _elements_at_once(stage: Stage, target: ir.Value, indices: Indices) -> int:
    """Elements of one lane's store: as both memories allow, with all lanes busy."""
    start = [build.index(0)]
    count = _WIDEST_BYTES // element_bytes(target.type)
    # Rows that warps share are stored one by one.
    lanes = stage.width if stage.beside > 1 else _ROWS * stage.columns
    while count > 1 and not (
        lanes // count % WARP_SIZE == 0
        and allows(target, indices, count)
        and allows(stage.buffer, start, count)
    ):
        count //= 2
    return count


def _lane_offset(stage: Stage, turn: int, count: int) -> tuple[Any, Any]:
    """Row and column of a lane's `count` elements in a turn."""
    per_row = stage.width // count  # lanes
    if per_row % WARP_SIZE == 0:
        number, along = divmod(turn, per_row // WARP_SIZE)
        row = build.plus(build.mul(stage.member, _ROWS // stage.beside), number)
        column = build.mul(stage.lane, count)
        return row, build.plus(column, along * WARP_SIZE * count)
    number = build.plus(stage.lane, turn * WARP_SIZE)
    row, column = _divided(number, per_row)
    return _in_other_banks(row, stage), build.mul(column, count)


def _in_other_banks(number: ir.Value, stage: Stage) -> Any:
    """The row to read as row `number`: rows read at once must not share banks.

    Rows are an odd multiple of what a quad writes apart, so that some, but not the next
    one, are an odd multiple of their own length apart.
    """
    size = element_bytes(stage.buffer.type)
    quad = QUAD * neighbours(stage.owner.layout) * size
    at_once, apart = WAVE_BYTES // (stage.columns * size), stage.columns * size // quad
    if at_once < 2 or _ROWS % (at_once * apart):
        return number
    group, first = _divided(number, at_once)
    outer, inner = _divided(group, apart)
    row = build.add(build.mul(first, apart), inner)
    return build.add(row, build.mul(outer, at_once * apart))


def _divided(value: ir.Value, by: int) -> tuple[Any, Any]:
    """Quotient and remainder."""
    return build.div(value, by), build.rem(value, by)
