"""Which blocks run together, and what they move between DRAM, L2 and the SMs.

Blocks start in the order of the grid: along N first, or, with `raster` rows in a group,
down a group's rows first. Those that run together (a wave) read a tile of A or B from
DRAM once; a later wave finds it in L2 only if all inputs fit there.

Of images the taps of a window read the same pixels. From one tap to the next these stay
in L2 if it has room for those of the wave, with the channels of a sweep over the taps,
and for what one tap reads of the other operand; else each tap reads them from DRAM.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from alcop_mlir import hardware
from alcop_mlir.target import Target
from alcop_mlir.tuning.candidates import Candidates, FloatArray, IntArray
from alcop_mlir.tuning.open_problem import Problems
from alcop_mlir.tuning.problem import Problem


@dataclass(frozen=True, eq=False)
class Grid:
    """By candidate; with several sizes, by size and candidate.

    steps: of a block's K loop
    blocks: of the grid; resident: at once on an SM, in the waves that are full
    full_waves: how many those are; tail_resident: on an SM in the last wave, or 0
    l2_share: bytes per second between L2 and one of the SMs at work
    tile_bytes, out_bytes: that a block reads per K step, and writes in the end: a tile
        of C, or of a part of it where K is split
    wave_bytes: that the blocks of a full wave read, each byte counted once
    read_bytes, written_bytes: from and to DRAM, in all, before parts are added up
    missing: fraction of the tiles that come from DRAM
    parts_bytes: all parts of C where K is split, else 0
    parts_missing: of these, what L2 does not keep
    """

    steps: FloatArray
    blocks: FloatArray
    resident: FloatArray
    full_waves: FloatArray
    tail_resident: FloatArray
    l2_share: FloatArray
    tile_bytes: FloatArray
    out_bytes: FloatArray
    wave_bytes: FloatArray
    read_bytes: FloatArray
    written_bytes: FloatArray
    missing: FloatArray
    parts_bytes: FloatArray
    parts_missing: FloatArray

    @property
    def shape(self) -> tuple[int, ...]:
        """(candidates), or (sizes, candidates)."""
        return self.blocks.shape


def grid(problem: Problem | Problems, candidates: Candidates, target: Target) -> Grid:
    """The grid of each candidate on `target`."""
    axis = candidates.axis
    block_m, block_n, split = axis("block_m"), axis("block_n"), axis("split_k")
    rows, columns = _rows(problem, candidates), np.ceil(problem.n / block_n)
    # Of a rectangle, what is outside of an image is not read.
    held_m = np.where(axis("rectangle") > 1, problem.m / rows, block_m)
    blocks = rows * columns * problem.batch * split
    most = candidates.costs[:, 3].astype(np.float64)
    resident = np.minimum(most, np.ceil(blocks / target.sms))
    at_once = resident * target.sms
    full_waves = np.floor(blocks / at_once)
    rest = blocks - full_waves * at_once
    tile_bytes = (held_m + block_n) * axis("block_k") * problem.element_bytes
    tiles = rows, columns, held_m
    own = _own_parts(problem, candidates, tiles, at_once, target)
    distinct = _distinct(candidates, problem.batch, tiles, at_once, own)
    wave_bytes = distinct * problem.k / split * problem.element_bytes
    input_bytes = problem.input_bytes
    waves = full_waves + rest / at_once
    kept = input_bytes <= hardware.L2_KEPT * target.l2_bytes
    read = np.where(kept, input_bytes, np.maximum(waves * wave_bytes, input_bytes))
    working = np.minimum(blocks, target.sms)
    elements = 1.0 * problem.batch * problem.m * problem.n
    parts = np.where(split > 1, split * elements * problem.accumulator_bytes, 0.0)
    spilled = np.where(parts <= hardware.L2_KEPT * target.l2_bytes, 0.0, parts)
    return Grid(
        steps=np.ceil(_steps(problem, axis("block_k")) / split),
        blocks=blocks,
        resident=resident,
        full_waves=full_waves,
        tail_resident=np.ceil(rest / target.sms),
        l2_share=np.minimum(
            hardware.rates(target).l2_most, target.l2_bytes_per_second / working
        ),
        tile_bytes=tile_bytes,
        out_bytes=block_m
        * block_n
        * np.where(split > 1, problem.accumulator_bytes, problem.out_bytes),
        wave_bytes=wave_bytes,
        read_bytes=read,
        written_bytes=np.where(split > 1, spilled, elements * problem.out_bytes),
        missing=np.minimum(1.0, read / np.maximum(waves, 1.0) / wave_bytes),
        parts_bytes=parts,
        parts_missing=spilled,
    )


def _rows(problem: Problem | Problems, candidates: Candidates) -> FloatArray:
    """Rows of blocks, each of rows of A or of a rectangle of one image's places."""
    block_m, width = candidates.axis("block_m"), candidates.axis("rectangle")
    rows = np.ceil(problem.m / block_m)
    if problem.places is None:
        return rows
    p, q = problem.places
    of_image = np.ceil(p * width / block_m) * np.ceil(q / width)
    return np.where(width > 1, problem.m / (p * q) * of_image, rows)


def _steps(problem: Problem | Problems, block_k: FloatArray) -> FloatArray:
    """Along K, each of one tap where K consists of taps."""
    taps = problem.tap_count
    steps: FloatArray = (
        np.ceil(problem.k / taps / block_k) if taps > 1 else problem.k / block_k
    )
    return taps * steps


def _own_parts(
    problem: Problem | Problems,
    candidates: Candidates,
    tiles: tuple[FloatArray, FloatArray, FloatArray],
    at_once: FloatArray,
    target: Target,
) -> tuple[FloatArray, FloatArray]:
    """The parts of rows of A and columns of B that a wave reads from DRAM.

    Of windows what others do not have, where L2 keeps it for them.
    """
    own_a, own_b = (np.full(len(candidates), own) for own in problem.own_parts)
    if problem.taps is None:
        return own_a, own_b
    of_tap = np.full(len(candidates), 1.0 / problem.tap_count)
    parts = (own_a, of_tap) if problem.gathered == "A" else (of_tap, own_b)
    distinct = _distinct(candidates, problem.batch, tiles, at_once, parts)
    elements = problem.k / (candidates.axis("split_k") * candidates.axis("sweeps"))
    live = distinct * elements * problem.element_bytes
    kept = live <= hardware.L2_KEPT * target.l2_bytes
    return np.where(kept, own_a, 1.0), np.where(kept, own_b, 1.0)


def _distinct(
    candidates: Candidates,
    batch: FloatArray | IntArray | int,
    tiles: tuple[FloatArray, FloatArray, FloatArray],
    at_once: FloatArray,
    own: tuple[FloatArray, FloatArray],
) -> FloatArray:
    """Rows of A plus columns of B that `at_once` neighbouring blocks read together.

    tiles: rows and columns of blocks, and the rows of A that each block has
    own: the part of each to count
    """
    rows, columns, held_m = tiles
    at_once = np.minimum(at_once, rows * columns * batch * candidates.axis("split_k"))
    group = np.minimum(candidates.axis("raster"), rows)
    batches = np.maximum(1.0, np.floor(at_once / (rows * columns)))
    inside = np.minimum(at_once, rows * columns)
    wide = np.minimum(columns, np.ceil(inside / group))
    high = np.minimum(rows, group * np.ceil(inside / (group * columns)))
    own_a, own_b = own
    columns_b = wide * candidates.axis("block_n")
    return batches * (high * held_m * own_a + columns_b * own_b)
