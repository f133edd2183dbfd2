"""Which contractions wgmma is chosen for, and what is said of others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from alcop_mlir.analysis.linalg.contractions import Contraction
from alcop_mlir.schedule import Schedule
from alcop_mlir.taps import Taps
from alcop_mlir.target import find_target
from alcop_mlir.transforms.schedules.warpgroup_schedule import warpgroup_schedule
from alcop_mlir.transforms.schedules.warpgroup_variants import (
    missing_clusters,
    warpgroup_variants,
)
from alcop_mlir.variants import ScheduleVariant

TARGET = find_target("sm_90a")
HALVES = Contraction(
    None, 4096, 4096, 4096, (), "mk", "nk", "mn", False, "f16", "f16", "f16"
)
OPEN = replace(HALVES, m=None, n=None, k=None, has_narrow_copies=True)


def variants_of(contraction: Contraction) -> tuple[ScheduleVariant, ...]:
    found = warpgroup_variants(contraction, TARGET)
    assert not isinstance(found, str), found
    return found


def of(kind: str, out: str = "f32") -> Contraction:
    return replace(HALVES, lhs_type=kind, rhs_type=kind, out_type=out)


@pytest.mark.parametrize(
    ("contraction", "step"),
    [
        (HALVES, 64),
        (of("bf16"), 64),
        (of("f32"), 32),
        (of("f8E5M2"), 128),
        (of("i8", "i32"), 128),
    ],
)
def test_steps_are_rows_of_128_bytes(contraction: Contraction, step: int) -> None:
    found = warpgroup_schedule(contraction, TARGET)
    assert isinstance(found, Schedule)
    assert found.block == (128, 256, step)
    assert found.stages == (4, 2)


@pytest.mark.parametrize(
    ("m", "k", "cluster", "mode"),
    [
        # What blocks alone read from L2 takes power.
        (4096, 4096, 2, "cooperative"),
        # One row of tiles makes no clusters.
        (60, 4096, 1, "cooperative"),
        # Stores are long against K.
        (4096, 256, 2, "pingpong"),
    ],
)
def test_blocks_are_in_clusters_and_take_turns(
    m: int, k: int, cluster: int, mode: str
) -> None:
    found = warpgroup_schedule(replace(HALVES, m=m, k=k), TARGET)
    assert isinstance(found, Schedule)
    assert (found.cluster, found.mode) == (cluster, mode)


@pytest.mark.parametrize(
    ("m", "low", "cluster"), [(None, 2047, 1), (None, 2048, 2), (4096, 1, 2)]
)
def test_open_sizes_have_clusters_where_m_is_long(
    m: int | None, low: int, cluster: int
) -> None:
    ranges = (("m", (low, 8192)),) if m is None else ()
    contraction = replace(OPEN, m=m, size_ranges=ranges)
    large, *_ = variants_of(contraction)
    assert (large.schedule.block[0], large.schedule.cluster) == (128, cluster)
    said = missing_clusters(contraction, TARGET)
    assert ("M may be less than 2048" in said) == (cluster == 1)


@pytest.mark.parametrize(
    ("contraction", "message"),
    [
        (
            replace(HALVES, taps=Taps("A", 9, 1)),
            "A or B consists of windows, whose rows no tensor map has",
        ),
        (replace(HALVES, stored=(1, 2)), "A or B is computed of what memory holds"),
        (replace(HALVES, packed=True), "A or B is computed of what memory holds"),
        (replace(HALVES, rhs_type="bf16"), "A and B are of two types, bf16 and f16"),
        (
            replace(of("i8", "i32"), rhs="kn"),
            "B of i8 is stored across K, expected along K, or f16 or bf16",
        ),
        (
            replace(of("f32"), lhs="km", rhs="kn"),
            "A and B of tf32 are stored across K, expected along K, or f16 or bf16",
        ),
        (
            replace(HALVES, row_bytes=(16, 8)),
            "rows of B are known to begin at multiples of 8 bytes, expected 16",
        ),
        (
            replace(HALVES, batches=tuple((loop, 2) for loop in "bcde")),
            "it has 6 dimensions, a tensor map has at most 5",
        ),
        (replace(HALVES, m=1, lhs="k", out_loops="n"), "A is a vector"),
        (replace(HALVES, batches=(("b", 2),)), "C is reduced over a batch"),
        (replace(HALVES, k=160), "K is 160, expected 192 at least to fill a ring"),
        (
            replace(HALVES, m=31),
            "C of 31 x 4096 fills less than half of a tile of 64x64",
        ),
        (
            OPEN,
            "rows of A or B have lengths or distances that are known at run time only, "
            "and are not known to begin at multiples of 16 bytes",
        ),
    ],
)
def test_a_reason_says_what_does_not_fit(
    contraction: Contraction, message: str
) -> None:
    assert warpgroup_schedule(contraction, TARGET) == message


def test_open_sizes_have_a_schedule_for_large_and_one_for_small() -> None:
    large, small = variants_of(OPEN)
    assert (large.schedule.block, small.schedule.block) == (
        (128, 256, 64),
        (64, 128, 64),
    )
    assert (large.row_bytes, small.row_bytes) == (16, 16)
    # From on where each SM has a tile of the small one.
    assert [(one.loops, one.least) for one in large.limits] == [
        ("mn", 132 * 64 * 128 + 1),
        ("m", 64),
        ("n", 128),
        ("k", 192),
    ]
    assert [one.least for one in small.limits] == [32, 64, 192]


@pytest.mark.parametrize(
    ("contraction", "blocks"),
    [
        # Sizes that are expected, or known, are small, or all large.
        (replace(OPEN, m=256, n=256), [(64, 64)]),
        (replace(OPEN, size_ranges=(("m", (1, 512)), ("n", (1, 512)))), [(64, 64)]),
        (replace(OPEN, m=8192, n=8192), [(128, 256)]),
        # The rows of a batch.
        (
            replace(
                OPEN, lhs="bmk", rhs="bnk", out_loops="bmn", batches=(("b", None),)
            ),
            [(128, 256), (64, 128)],
        ),
    ],
)
def test_as_many_as_differ(
    contraction: Contraction, blocks: list[tuple[int, int]]
) -> None:
    found = variants_of(contraction)
    assert [one.schedule.block[:2] for one in found] == blocks


@pytest.mark.parametrize(
    ("contraction", "message"),
    [
        (
            replace(OPEN, k=250),
            "rows of A have 500 bytes, expected a multiple of 16",
        ),
        (
            replace(OPEN, size_ranges=(("m", (1, 16)),)),
            "C of 16 x 8192 fills less than half of a tile of 64x64",
        ),
    ],
)
def test_open_sizes_that_are_not_for_it(contraction: Contraction, message: str) -> None:
    assert warpgroup_variants(contraction, TARGET) == message
