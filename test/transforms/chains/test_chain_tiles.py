"""Tiles of chains: as large as fills and fits the target, or as given."""

from __future__ import annotations

from dataclasses import replace

import pytest

from alcop_mlir.target import TARGETS, Target, find_target
from alcop_mlir.transforms.chains.chain_tiles import (
    ChainSizes,
    ChainTiles,
    TilesError,
    checked_tiles,
    chosen_tiles,
    column_tiles,
    merge_bytes,
    shared_bytes,
    with_parts,
)

A100 = find_target("sm_80")
HEADS = ChainSizes(batch=128, m=1024, n=1024, k=64, d=64)


@pytest.mark.parametrize(
    ("batch", "m", "d", "expected"),
    [
        (128, 1024, 64, (16, 8, 64)),
        (128, 1024, 128, (16, 8, 64)),
        (14, 1024, 64, (16, 8, 64)),  # 112 blocks of 128 rows for 108 SMs
        (13, 1024, 64, (16, 4, 64)),  # 104
        (128, 40, 64, (16, 3, 64)),
        (128, 16, 64, (16, 1, 64)),
        (128, 1024, 256, (16, 8, 32)),
    ],
)
def test_tiles_are_as_large_as_fills_the_target(
    batch: int, m: int, d: int, expected: tuple[int, int, int]
) -> None:
    sizes = replace(HEADS, batch=batch, m=m, k=d, d=d)
    assert chosen_tiles(sizes, A100) == ChainTiles(*expected)


@pytest.mark.parametrize("found", TARGETS, ids=lambda one: one.name)
@pytest.mark.parametrize("n", [1024, 1000])
def test_all_heads_fit_all_targets(found: Target, n: int) -> None:
    for size in range(16, 257, 16):
        sizes = replace(HEADS, n=n, k=size, d=size)
        needed = shared_bytes(sizes, chosen_tiles(sizes, found), 1)
        assert needed <= found.shared_bytes_per_block


def test_what_fits_nowhere_says_needed_and_available() -> None:
    with pytest.raises(TilesError) as found:
        chosen_tiles(replace(HEADS, k=1024, d=1024), A100)
    needed = (64 * 1024 + 32 * 2048) * 2
    assert f"need {needed} bytes of shared memory, sm_80 has 166912" in str(found.value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((16, 4), "expected rows of a warp, warps and columns"),
        ((16, 0, 64), "expected rows of a warp, warps and columns"),
        ((8, 4, 64), "expected multiples of 16"),
        ((16, 64, 64), "64 warps, expected 32 at most on sm_80"),
        ((16, 4, 1024), "need 270336 bytes of shared memory, sm_80 has 166912"),
    ],
)
def test_given_tiles_that_are_not_possible(
    given: tuple[int, ...], message: str
) -> None:
    with pytest.raises(TilesError, match=message):
        checked_tiles(given, HEADS, A100)
    assert checked_tiles((32, 4, 64), HEADS, A100) == ChainTiles(32, 4, 64)


STEP = ChainSizes(batch=8, m=4, n=1024, k=128, d=128)


@pytest.mark.parametrize(
    ("changed", "parts"),
    [
        ({}, 8),  # of 2 tiles, the fewest, for 16
        ({"n": 8192}, 13),  # 8 times 13 blocks are up to 108
        ({"n": 8192, "batch": 1}, 32),  # the most
        ({"n": 8192, "batch": 54}, 2),
        ({"n": 8192, "batch": 55}, 1),
        ({"n": 384}, 1),  # 6 tiles: 4 less are not more than a merge
        ({"n": 448}, 4),
        ({"m": 64, "batch": 1}, 2),  # of 9 tiles, for what is left to be a quarter
        ({"m": 4, "last": 100}, 1),  # one that sees up to 104 columns
        ({"first": -200, "last": 0}, 1),  # and up to 201
    ],
)
def test_parts_fill_the_target_where_that_is_worth_a_merge(
    changed: dict[str, int], parts: int
) -> None:
    sizes = replace(STEP, **changed)
    found = with_parts(chosen_tiles(sizes, A100), sizes, A100)
    assert found.parts == parts
    assert found == replace(chosen_tiles(sizes, A100), parts=parts)


@pytest.mark.parametrize("bounds", [{}, {"last": 7}, {"first": -9, "last": 70}])
def test_a_block_goes_over_all_columns_that_its_rows_see(
    bounds: dict[str, int],
) -> None:
    """Of each block, counted one by one; no count is larger than it has to be."""
    sizes = replace(STEP, m=200, n=500, **bounds)
    tiles = ChainTiles(16, 2, 32)
    seen = []
    for first in range(0, sizes.m, tiles.block_rows):
        least = max(first + bounds.get("first", -first), 0) // tiles.columns
        most = first + tiles.block_rows + bounds.get("last", sizes.n)
        most = min(most, sizes.n)
        seen.append(-(-most // tiles.columns) - least)
    assert max(seen) <= column_tiles(sizes, tiles) <= max(seen) + 1


def test_what_a_merge_moves() -> None:
    assert merge_bytes(STEP, 8) == 2 * 8 * (8 * 4) * (128 + 2) * 4


@pytest.mark.parametrize("given", [-1, 17, "two"])
def test_parts_that_there_are_no_tiles_for(given: object) -> None:
    tiles = chosen_tiles(STEP, A100)
    with pytest.raises(TilesError, match=f"has {given} parts, expected 1 to 16"):
        with_parts(tiles, STEP, A100, given)
    assert with_parts(tiles, STEP, A100, 16).parts == 16
