"""Builders of the tiles of matrices that are never made: gathers of their rows.

A row begins at an element of its own, which the block computes once before its loops,
as a vector with an element per row of the tile; in each step along K it continues by
the same offset as all others. Of an image, a row is what a window sees. What is
outside of the image is zero, and so are rows beyond the matrix: where there may be any,
the block keeps a word per row that tells which taps it lacks (`tap_words.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import reduce
from typing import Any

from alcop_mlir.analysis.ir.extents import stride
from alcop_mlir.analysis.ir.gathered_rows import gathered_rows
from alcop_mlir.analysis.ir.memref_layouts import follows_shape
from alcop_mlir.analysis.linalg.contraction_letters import BATCHES
from alcop_mlir.bindings import arith, ir, vector
from alcop_mlir.dialects import alcop
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import build, sizes
from alcop_mlir.passes.sizes import Number
from alcop_mlir.transforms.tiling.images import (
    Image,
    image_of,
)
from alcop_mlir.transforms.tiling.k_steps import KStep
from alcop_mlir.transforms.tiling.row_vectors import RowVectors
from alcop_mlir.transforms.tiling.tap_words import TapWords
from alcop_mlir.transforms.tiling.tiled_contractions import BlockTile, TiledOperand


@frozen
class TileRows:
    """The rows of a block's tile of A or B, where they are gathered.

    source: what they are gathered from, of one dimension
    first:  the number of each one's first element in it
    lacks:  the word of the taps that each lacks; None where steps do not differ in that
    valid:  whether each has elements, where `lacks` is None
    window: the attribute of the matrix, if it has one
    """

    source: Any
    first: Any
    lacks: Any | None
    valid: Any | None
    window: Any | None = None

    def copy(self, step: KStep, target: ir.Value) -> None:
        """Gather the tile of a step."""
        count, width = target.type.shape
        begins = RowVectors(count).add(self.first, step.offset)
        valid: Any = self.valid
        if self.lacks is not None:
            valid = _has(self.lacks, step.word)
        extent = None if step.extent == width else build.value(step.extent)
        gather = alcop.GatherOp(self.source, target, begins, valid, width=extent)
        if self.window is not None:
            gather.operation.attributes[alcop.WINDOW] = self.window


def tile_rows(
    tile: BlockTile, operand: TiledOperand, batch: Mapping[str, ir.Value]
) -> TileRows | None:
    """The rows of A or B that the block gathers; None where it copies views of them."""
    gathered = gathered_rows(operand.value)
    if gathered is None:
        return None
    loop = operand.matrix_loops[0]
    extents = dict(zip("mn", tile.contraction.schedule.block, strict=False))
    rows, size = RowVectors(extents[loop]), tile.sizes[loop]
    numbers, exists = rows.add(rows.numbers(), tile.block[loop]), None
    if tile.rectangles is not None and loop == "m":
        numbers, bounds = tile.rectangles.row(numbers, rows)
        inside = [rows.is_below(position, size) for position, size in bounds]
        exists = reduce(arith.andi, inside) if inside else None
    elif not size.divides(rows.count):
        exists = rows.is_below(numbers, size.value)
    image = image_of(operand.value)
    groups = [batch[one] for one in operand.loops if one in BATCHES]
    if image is None:
        return _of_table(gathered.op, rows, [*groups, tile.block[loop]], exists)
    group = build.mul(groups[0], image.channels) if groups else 0
    found = _of_image(image, rows, numbers, group, exists)
    return replace(found, window=gathered.op.attributes[alcop.WINDOW])


def _of_table(
    op: ir.Operation,
    rows: RowVectors,
    start: list[ir.Value],
    exists: ir.Value | None,
) -> TileRows:
    """The rows of a table that an `alcop.take` names.

    start: the number of the matrix, where there is a batch, and of the first row in it
    """
    table, indices = op.operands
    rank, last = indices.type.rank, table.type.rank - 1
    kind = rows.kind(indices.type.element_type)
    by, padding = build.loop_map(rank, [rank - 1]), build.zero(kind.element_type)
    known = [exists is None]
    numbers = vector.transfer_read(kind, indices, start, by, padding, known)
    if kind != rows.kind():
        numbers = arith.index_cast(rows.kind(), numbers)
    if last == 2:  # a table for each batch
        numbers = rows.add(numbers, build.mul(start[0], build.size(table, 1)))
    first = rows.mul(numbers, build.size(table, last))
    return TileRows(_in_one_row(table), first, None, _or_all(exists, rows))


def _of_image(
    image: Image,
    rows: RowVectors,
    numbers: ir.Value,
    group: ir.Value | int,
    exists: ir.Value | None,
) -> TileRows:
    """The windows with these numbers; `group` is the first channel."""
    words, size = TapWords(image.window.size), image.window.size
    pixels = _first_pixels(image, rows, numbers)
    first = rows.all(group)
    for pixel, pitch in zip(pixels, image.pitches, strict=True):
        first = rows.add(first, rows.mul(pixel, pitch))
    lacks = _lacking(image, rows, pixels[1:])
    if lacks is not None and exists is not None:
        lacks = arith.select(exists, lacks, rows.all(words.every, words.kind))
    if lacks is not None and image.window.taps == 1:
        lacks, exists = None, _has(lacks, words.of_tap([0] * len(size)))
    valid = _or_all(exists, rows) if lacks is None else None
    return TileRows(_in_one_row(image.source), first, lacks, valid)


def _first_pixels(image: Image, rows: RowVectors, numbers: ir.Value) -> list[Any]:
    """Of each row, the number of its image, then its first pixel along each dimension.

    Pixels before the image have negative numbers.
    """
    window, found = image.window, []
    for dimension in reversed(image.dimensions):
        count = image.places(dimension)
        place = numbers
        if dimension or image.batch != 1:
            place, numbers = rows.rem(numbers, count), rows.div(numbers, count)
        pixel = rows.mul(place, window.strides[dimension])
        found.append(rows.add(pixel, -window.low[dimension]))
    images = rows.all(0) if image.batch == 1 else numbers
    return [images, *reversed(found)]


def _lacking(image: Image, rows: RowVectors, pixels: list[Any]) -> Any | None:
    """The taps that each row lacks; None where none lacks any."""
    words, found = TapWords(image.window.size), []
    none = rows.all(0, words.kind)
    for dimension, pixel in enumerate(pixels):
        for position in image.window.outside(dimension):
            number = rows.add(pixel, position * image.window.dilations[dimension])
            is_inside = rows.is_below(number, image.sizes[dimension])
            bits = rows.all(words.bits(dimension, position), words.kind)
            found.append(arith.select(is_inside, none, bits))
    return reduce(arith.ori, found) if found else None


def _has(lacks: ir.Value, word: ir.Value | None) -> Any:
    """Whether rows have the tap of a step."""
    assert word is not None
    (count,) = lacks.type.shape
    lacking = arith.andi(lacks, RowVectors(count).all(word))
    return arith.cmpi(arith.CmpIPredicate.eq, lacking, build.zero(lacks.type))


def _or_all(exists: ir.Value | None, rows: RowVectors) -> Any:
    return rows.all(1, build.integer(1)) if exists is None else exists


def _in_one_row(source: ir.Value) -> Any:
    """The elements of a memref, from the first to the last, as one dimension.

    Not a collapse_shape, which upstream folds into the accesses by dividing.
    """
    kind = source.type
    _, offset = kind.get_strides_and_offset()
    size = _reach(source)
    layout = ir.StridedLayoutAttr.get(offset, [1]) if offset else None
    row = build.memref_like(kind, sizes.shape([size]), layout=layout)
    return build.reinterpreted(row, source, sizes.values([size]))


def _reach(source: ir.Value) -> Number:
    """From the first to the last element of a memref, both counted."""
    kind, extents = source.type, sizes.sizes_of(source)
    if not kind.has_static_shape and follows_shape(kind):
        return sizes.product(extents)
    total: Number = 1
    for number, extent in enumerate(extents):
        last = sizes.plus(extent, -1)
        total = sizes.plus(sizes.times(last, stride(source, number)), total)
    return total
