"""Results of blocks whose tiles are found by arithmetic that has no linear terms."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from placed_cases import assert_misplaced, assert_proven, verdict

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
from certificate_kernels import Case, matmul

# The last group of rows of blocks has one row only.
UNEVEN = matmul("nn", 160, 96, 64, "block=32,32,32 warp=16,16 stages=2,1 raster=4")
# A block's number goes round a `or`, of which nothing is known but in each block.
LONG = matmul("nn", 96, 64, 224, "block=32,32,32 warp=16,16 stages=3,2 raster=2")


@pytest.mark.parametrize("case", [UNEVEN, LONG], ids=lambda one: one.name)
def test_uneven_rasters_are_placed(case: Case) -> None:
    assert_proven(case)


def test_results_are_placed_where_loads_are_not_shown_to_be_steady() -> None:
    """Elements that are loaded one by one, and where the sum ends inside of a tile."""
    tiles = "block=32,32,32 warp=16,16 stages=2,1 raster=4"
    case = matmul("nn", 131, 71, 72, tiles)
    report = verdict(case, case.ptx)
    assert report.is_placed, report.misplaced
    assert not report.is_steady
    assert report.missing == ()  # a result that is placed says more


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("selp.b64 %rd22, %rd21, %rd20, %p1;", "selp.b64 %rd22, %rd20, %rd21, %p1;"),
        ("selp.b64 %rd23, 2, 0, %p1;", "selp.b64 %rd23, 2, 1, %p1;"),
        ("setp.eq.b64 %p1, %rd19, 0;", "setp.ne.b64 %p1, %rd19, 0;"),
        ("mad.lo.s64 %rd20, %rd18, 3, %rd7;", "mad.lo.s64 %rd20, %rd18, 2, %rd7;"),
        ("add.s64 %rd25, %rd20, %rd19;", "mov.b64 %rd25, %rd20;"),
        ("sub.s64 %rd26, %rd25, %rd24;", "mov.b64 %rd26, %rd25;"),
        ("shl.b64 %rd28, %rd22, 5;", "shl.b64 %rd28, %rd22, 4;"),
    ],
)
def test_other_rasters_are_not_placed(old: str, new: str) -> None:
    assert_misplaced(UNEVEN, old, new)
