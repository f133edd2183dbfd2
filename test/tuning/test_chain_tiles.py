"""Tiles of chains: as large as fills and fits the target, or as given."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from alcop_mlir.target import TARGETS, Target, find_target
from alcop_mlir.tuning.fused.chain_problem import (
    ChainSizes,
    ChainTiles,
    column_tiles,
    merge_bytes,
    shared_bytes,
)
from alcop_mlir.tuning.fused.chain_tiles import (
    MOST_PARTS,
    TilesError,
    _inside,
    _seconds,
    checked_tiles,
    chosen_tiles,
    possible_tiles,
    with_parts,
    would_split,
)

A100 = find_target("sm_80")
HEADS = ChainSizes(batch=128, m=1024, n=1024, k=64, d=64)


# A100, bf16: the fastest of Triton's kernels, see bench/measured/attention-A100.csv.
@pytest.mark.parametrize(
    ("batch", "size", "d", "causal", "expected"),
    [
        (128, 2048, 128, False, (16, 8, 128)),
        (16, 16384, 128, False, (16, 8, 128)),
    ],
)
def test_tiles_are_those_that_were_measured_fastest(
    batch: int, size: int, d: int, causal: bool, expected: tuple[int, int, int]
) -> None:
    sizes = ChainSizes(batch, size, size, d, d, last=0 if causal else None)
    assert chosen_tiles(sizes, A100) == ChainTiles(*expected)


@pytest.mark.parametrize("found", TARGETS, ids=lambda one: one.name)
@pytest.mark.parametrize("d", [32, 64, 128, 256])
@pytest.mark.parametrize("batch", [1, 12, 128])
def test_no_tiles_are_predicted_to_be_much_faster(
    found: Target, d: int, batch: int
) -> None:
    sizes = replace(HEADS, batch=batch, k=d, d=d)
    taken = _inside(sizes, chosen_tiles(sizes, found), found)
    columns = (32,) if d > 128 else (32, 64, 128)
    for warps, width in itertools.product((2, 4, 8), columns):
        other = ChainTiles(16, warps, width)
        if shared_bytes(sizes, other, 1) <= found.shared_bytes_per_block:
            assert taken <= 1.04 * _inside(sizes, other, found)


@pytest.mark.parametrize("batch", [12, 96, 128])
def test_one_tile_of_keys_is_copied_while_another_is_used(batch: int) -> None:
    for size in (64, 100, 128, 197, 256, 1024):
        sizes = replace(HEADS, batch=batch, m=size, n=size)
        assert column_tiles(sizes, chosen_tiles(sizes, A100)) >= 2


def test_heads_whose_kernels_would_spill_have_narrow_tiles() -> None:
    for d, most in ((64, 128), (80, 64), (96, 64), (112, 64), (128, 128), (192, 32)):
        sizes = replace(HEADS, k=d, d=d)
        assert max(one.columns for one in possible_tiles(sizes, A100)) == most


def test_a_block_has_no_more_warps_than_rows() -> None:
    for m, warps in ((16, 1), (40, 3), (64, 4)):
        sizes = replace(HEADS, m=m)
        assert chosen_tiles(sizes, A100).warps <= warps


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
    needed = (32 * 1024 + 32 * 2048) * 2
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
    ("changed", "is_split"),
    [
        ({}, True),
        ({"n": 8192}, True),
        ({"n": 8192, "batch": 1}, True),
        ({"n": 8192, "batch": 128}, False),  # blocks fill the GPU
        ({"n": 256}, False),  # a merge takes longer than two tiles
        ({"m": 4, "last": 100}, False),  # one that sees up to 104 columns
    ],
)
def test_parts_fill_the_target_where_that_is_worth_a_merge(
    changed: dict[str, int], is_split: bool
) -> None:
    sizes = replace(STEP, **changed)
    alone = chosen_tiles(sizes, A100)
    found = with_parts(alone, sizes, A100)
    assert found == replace(alone, parts=found.parts)
    assert (found.parts > 1) == is_split
    if is_split:
        before, after = (_seconds(sizes, one, A100) for one in (alone, found))
        assert before > 1.25 * after
        assert sizes.batch * found.parts > A100.sms / 2 or found.parts == MOST_PARTS


def test_sizes_that_are_known_at_run_time_only_are_in_one_part() -> None:
    sizes = replace(STEP, n=8192, is_open=True)
    tiles = chosen_tiles(sizes, A100)
    assert with_parts(tiles, sizes, A100).parts == 1
    assert would_split(sizes, tiles, A100)


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
    tiles = ChainTiles(16, 1, 64)
    with pytest.raises(TilesError, match=f"has {given} parts, expected 1 to 16"):
        with_parts(tiles, STEP, A100, given)
    assert with_parts(tiles, STEP, A100, 16).parts == 16
