"""Sizes of tiles of a chain: the largest that fit, while blocks fill the GPU.

Where blocks of the smallest tiles do not fill it, each goes over a part of the columns
only, and another kernel merges what parts leave.
"""

from __future__ import annotations

from dataclasses import replace

from alcop_mlir.frozen import frozen
from alcop_mlir.target import MMA_F16_SHAPE, WARP_SIZE, Target

_ROWS = MMA_F16_SHAPE[0]  # of a fragment, the least that a warp has
# A block of 128 rows reads keys and values half as often as one of 64, but there are
# half as many to fill the GPU. Each warp has 16 rows: with 32 of heads of 64 registers
# spill.
_WARPS = (8, 4)
# Columns of weights in a tile: a warp holds 16 rows of them, and of accumulators of a
# head, in up to 255 registers of a thread.
_COLUMNS, _LONG_COLUMNS, _LONG_HEAD = 64, 32, 128
_ELEMENT_BYTES = 2  # f16 and bf16
_SLOTS = 2  # of keys and values, so that a copy runs beside the arithmetic
_PARTIAL_BYTES = 4  # f32
# Tiles of columns that a part has at least, for one to be copied beside another.
_FEWEST_TILES = 2
# A block must have this many tiles less with parts than without: the launch of a merge
# takes microseconds, a tile about one. An estimate, not measured.
_TILES_OF_MERGE = 4
# What parts leave, written and read again, is at most this share of the keys and values
# that they read.
_SHARE_OF_MERGE = 4
# What tiles are chosen for where a size is known at run time only: more than a few, and
# no multiple of a tile, so that the last one has buffers of its own. Ours.
OPEN_EXTENT = 1000
# The merge is one op that reads all parts. Ours: its code grows with them.
MOST_PARTS = 32


class TilesError(Exception):
    """Why no tiles are possible."""


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
    of_rows: numbers that a part leaves of a row beside accumulators
    is_open: whether one is known at run time only, and OPEN_EXTENT here
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


def chosen_tiles(sizes: ChainSizes, target: Target) -> ChainTiles:
    """The tiles of a chain on this target; TilesError where none fit."""
    possible = _possible(sizes)
    for slots in (_SLOTS, 1):
        fitting = [
            one
            for one in possible
            if shared_bytes(sizes, one, slots) <= target.shared_bytes_per_block
        ]
        if fitting:
            return next(
                (one for one in fitting if block_count(sizes, one) >= target.sms),
                fitting[-1],
            )
    raise TilesError(_does_not_fit(sizes, possible[-1], target))


def checked_tiles(given: object, sizes: ChainSizes, target: Target) -> ChainTiles:
    """Tiles that a mark or an option has; TilesError where they are not possible."""
    numbers = list(given) if isinstance(given, (list, tuple)) else [given]
    whole = [one for one in numbers if isinstance(one, int) and one > 0]
    if len(whole) != len(numbers) or len(whole) != 3:
        raise TilesError(
            f"tiles are {numbers}, expected rows of a warp, warps and columns"
        )
    tiles = ChainTiles(*whole)
    if tiles.rows % _ROWS or tiles.columns % _ROWS:
        raise TilesError(
            f"tiles have {tiles.rows} rows of a warp and {tiles.columns} columns, "
            f"expected multiples of {_ROWS}"
        )
    if tiles.warps * WARP_SIZE > target.threads_per_block:
        raise TilesError(
            f"tiles have {tiles.warps} warps, expected "
            f"{target.threads_per_block // WARP_SIZE} at most on {target.name}"
        )
    if shared_bytes(sizes, tiles, 1) > target.shared_bytes_per_block:
        raise TilesError(_does_not_fit(sizes, tiles, target))
    return tiles


def with_parts(
    tiles: ChainTiles, sizes: ChainSizes, target: Target, given: object = 0
) -> ChainTiles:
    """The tiles with so many parts, or as many as are worth a merge; TilesError."""
    count = column_tiles(sizes, tiles)
    most = 1 if sizes.is_open else max(min(count, MOST_PARTS), 1)
    if not isinstance(given, int) or not 0 <= given <= most:
        why = f"a block goes over {count} tiles of {tiles.columns} columns"
        if sizes.is_open:
            why = "a size is known at run time only"
        raise TilesError(f"has {given} parts, expected 1 to {most}: {why}")
    return replace(tiles, parts=given or _chosen_parts(sizes, tiles, target))


def would_split(sizes: ChainSizes, tiles: ChainTiles, target: Target) -> bool:
    """Whether columns would be in parts if all sizes were known, and OPEN_EXTENT."""
    known = replace(sizes, is_open=False)
    return sizes.is_open and _chosen_parts(known, tiles, target) > 1


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


def merge_bytes(sizes: ChainSizes, parts: int) -> int:
    """What parts write and a merge reads: accumulators, maximum, total of each row."""
    left = sizes.d + sizes.of_rows
    return 2 * parts * sizes.batch * sizes.m * left * _PARTIAL_BYTES


def _chosen_parts(sizes: ChainSizes, tiles: ChainTiles, target: Target) -> int:
    """As many as SMs have no block yet, with columns enough in each; 1 for none."""
    count = column_tiles(sizes, tiles)
    wanted = min(target.sms // block_count(sizes, tiles), MOST_PARTS)
    if sizes.is_open or wanted < 2:
        return 1
    read = tiles.columns * (sizes.k + sizes.d) * _ELEMENT_BYTES
    left = merge_bytes(replace(sizes, batch=1, m=min(sizes.m, tiles.block_rows)), 1)
    length = max(-(-count // wanted), _FEWEST_TILES, -(-left * _SHARE_OF_MERGE // read))
    return -(-count // length) if count - length > _TILES_OF_MERGE else 1


def shared_bytes(sizes: ChainSizes, tiles: ChainTiles, slots: int) -> int:
    """What queries, keys and values of a block take in shared memory."""
    # A last tile of columns that is not whole has buffers of its own.
    is_ragged = sizes.n % tiles.columns != 0 and sizes.n > tiles.columns
    columns = tiles.columns * (slots + is_ragged)
    elements = tiles.block_rows * sizes.k + columns * (sizes.k + sizes.d)
    return elements * _ELEMENT_BYTES


def _possible(sizes: ChainSizes) -> list[ChainTiles]:
    """From the largest to the smallest."""
    columns = _COLUMNS if sizes.d <= _LONG_HEAD else _LONG_COLUMNS
    needed = -(-sizes.m // _ROWS)
    least = min(_WARPS[-1], needed)
    warps = [most for most in _WARPS if most <= needed] or [least]
    if warps[-1] != least:
        warps.append(least)
    return [ChainTiles(_ROWS, number, columns) for number in warps]


def _does_not_fit(sizes: ChainSizes, tiles: ChainTiles, target: Target) -> str:
    return (
        f"tiles of {tiles.block_rows} rows and {tiles.columns} columns, of "
        f"{sizes.k} and {sizes.d} elements, need {shared_bytes(sizes, tiles, 1)} bytes "
        f"of shared memory, {target.name} has {target.shared_bytes_per_block}"
    )
