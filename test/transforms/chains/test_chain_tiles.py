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
    shared_bytes,
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
