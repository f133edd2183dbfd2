"""A chain of contractions as numbers: its sizes, its tiles, and what these need.

    scores (m x n) = queries (m x k) times keys (n x k)
    result (m x d) = weights of scores (m x n) times values (n x d)

for each matrix of a batch; attention is one. A block has some rows and goes over all
columns of scores, or over one part of them, tile by tile.
"""

from __future__ import annotations

import functools

from alcop_mlir.frozen import frozen
from alcop_mlir.target import MAX_REGISTERS_PER_THREAD, WARP_SIZE

ELEMENT_BYTES = 2  # f16 and bf16
PARTIAL_BYTES = 4  # f32
HELD_HEAD = 128  # elements of a query that registers have room for, beside all others
# Registers of a thread beside those of the tile: addresses, counters, what is loaded
# early. ptxas 13.5 takes 138 to 195 for heads of 64 and tiles of 64 and 128 columns,
# 164 to 224 with a mask, 179 to 255 for heads of 128. `registers` is near that.
# python bench/bench_attention.py --all
_OTHER_REGISTERS = 56


@frozen
class ChainTiles:
    """Sizes of tiles.

    rows:    of a warp
    warps:   of a block, each with rows of its own
    columns: of weights, as many keys and values
    parts:   of the columns, each of which has blocks of its own
    """

    rows: int
    warps: int
    columns: int
    parts: int = 1

    @property
    def block_rows(self) -> int:
        """Rows of a block."""
        return self.rows * self.warps


@frozen
class ChainSizes:
    """Extents of the loops of a chain, and how many matrices its batch has.

    first, last: bounds of the number of a column less that of its row; None for none
    of_rows: numbers that a part leaves of a row beside accumulators; 0 without softmax
    is_open: whether one is known at run time only, and stands for any here
    extra: instructions of f32 for each score, as of a bias, beside those of a softmax
    """

    batch: int
    m: int
    n: int
    k: int
    d: int
    first: int | None = None
    last: int | None = None
    of_rows: int = 2
    is_open: bool = False
    extra: float = 0.0

    @property
    def flops(self) -> float:
        """Of both contractions, with what a mask leaves out."""
        return 2.0 * self.batch * self.m * self.n * (self.k + self.d)


def block_count(sizes: ChainSizes, tiles: ChainTiles) -> int:
    """How many blocks there are without parts."""
    return sizes.batch * -(-sizes.m // tiles.block_rows)


def column_tiles(sizes: ChainSizes, tiles: ChainTiles) -> int:
    """The most tiles of columns that a block goes over."""
    columns = sizes.n
    if sizes.last is not None:
        rows = -(-sizes.m // tiles.block_rows) * tiles.block_rows
        columns = min(columns, max(rows + sizes.last, 0))
        if sizes.first is not None:
            # Between the bounds of the first row and of the last; tiles begin before.
            seen = tiles.block_rows + sizes.last - sizes.first + tiles.columns
            columns = min(columns, max(seen, 0))
    return -(-columns // tiles.columns)


def mean_column_tiles(sizes: ChainSizes, tiles: ChainTiles) -> float:
    """Tiles of columns that a block goes over, the mean of all blocks."""
    if sizes.last is None:
        return float(-(-sizes.n // tiles.columns))
    return _mean_column_tiles(sizes, tiles.block_rows, tiles.columns)


@functools.lru_cache(256)  # numbers of parts are tried one after another
def _mean_column_tiles(sizes: ChainSizes, rows: int, columns: int) -> float:
    assert sizes.last is not None
    total, blocks = 0, -(-sizes.m // rows)
    for block in range(blocks):
        end = min(max(min((block + 1) * rows, sizes.m) + sizes.last, 0), sizes.n)
        first = 0 if sizes.first is None else max(block * rows + sizes.first, 0)
        total += max(-(-end // columns) - first // columns, 0)
    return total / blocks


def merge_bytes(sizes: ChainSizes, parts: int) -> int:
    """What parts write and a merge reads: accumulators, maximum, total of each row."""
    left = sizes.d + sizes.of_rows
    return 2 * parts * sizes.batch * sizes.m * left * PARTIAL_BYTES


def shared_bytes(sizes: ChainSizes, tiles: ChainTiles, slots: int) -> int:
    """What queries, keys and values of a block take in shared memory."""
    # A last tile of columns that is not whole has buffers of its own.
    is_ragged = sizes.n % tiles.columns != 0 and sizes.n > tiles.columns
    columns = tiles.columns * (slots + is_ragged)
    elements = tiles.block_rows * sizes.k + columns * (sizes.k + sizes.d)
    return elements * ELEMENT_BYTES


def registers(sizes: ChainSizes, tiles: ChainTiles) -> int:
    """Of a thread, about: accumulators, queries, scores and their weights, others."""
    of_tile = sizes.d + sizes.k / ELEMENT_BYTES
    of_tile += tiles.columns * (1 + 1 / ELEMENT_BYTES)
    needed = tiles.rows * of_tile / WARP_SIZE + _OTHER_REGISTERS
    return min(round(needed), MAX_REGISTERS_PER_THREAD)
