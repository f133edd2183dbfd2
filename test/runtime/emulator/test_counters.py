"""Counters on access patterns whose figures follow from the hardware's rules.

Shared memory: 32 banks of 4 bytes; a wavefront serves each bank once; 8 and 16 bytes a
lane go in 2 and 4 phases. Global memory: sectors of 32 bytes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fixture_kernels import SCHEDULES, edit, fixture, run_gemm
from kernel_text import launch, line_of, module

from alcop_mlir.runtime.emulator import Counters, Result

START = """
    .shared .align 128 .b8 cells[16384];
    .reg .b32 %i, %a, %t<4>, %base; .reg .b64 %in, %g, %w; .reg .b16 %h;
    ld.param.u64 %in, [p0];
    mov.u32 %i, %tid.x;
    mov.u32 %base, cells;
    mov.u32 %t0, 0; mov.u32 %t1, 0; mov.u32 %t2, 0; mov.u32 %t3, 0; mov.u64 %w, 0;
"""


def counted(body: str, block: int = 32, grid: int = 1) -> tuple[str, Counters]:
    """Shared reads here are of memory never written: the reports are left out."""
    text = module(START + body, ["u64"])
    result = launch(
        text,
        "kernel",
        (grid,),
        (block,),
        [np.zeros(2048, np.uint32)],
        counters=True,
        hazards=False,
    )
    assert result.counters is not None
    return text, result.counters


def shared(address: str, access: str) -> tuple[int, int]:
    """Wavefronts, needed and ideal, of one access at `base` + an offset in %a."""
    _, counters = counted(f"{address}\nadd.u32 %a, %base, %a;\n{access}")
    return counters.shared_wavefronts, counters.shared_wavefronts_ideal


LOAD = "ld.shared.u32 %t0, [%a];"
VECTOR = "ld.shared.v4.u32 {%t0, %t1, %t2, %t3}, [%a];"

# offset of lane i in bytes -> the access, wavefronts, and those of an ideal layout
PATTERNS = {
    "stride 1": ("shl.b32 %a, %i, 2;", LOAD, 1, 1),
    "stride 2": ("shl.b32 %a, %i, 3;", LOAD, 2, 1),
    "stride 4": ("shl.b32 %a, %i, 4;", LOAD, 4, 1),
    "stride 32": ("shl.b32 %a, %i, 7;", LOAD, 32, 1),
    "stride 33, padded": ("mul.lo.u32 %a, %i, 132;", LOAD, 1, 1),
    "reversed": ("xor.b32 %a, %i, 31; shl.b32 %a, %a, 2;", LOAD, 1, 1),
    "one word for all": ("mov.u32 %a, 64;", LOAD, 1, 1),
    "two words of one bank": ("and.b32 %a, %i, 1; shl.b32 %a, %a, 7;", LOAD, 2, 1),
    "bytes": ("mov.u32 %a, %i;", "ld.shared.u8 %h, [%a];", 1, 1),
    "halves": ("shl.b32 %a, %i, 1;", "ld.shared.u16 %h, [%a];", 1, 1),
    "halves a row apart": ("shl.b32 %a, %i, 7;", "ld.shared.u16 %h, [%a];", 32, 1),
    "8 bytes, stride 1": ("shl.b32 %a, %i, 3;", "ld.shared.u64 %w, [%a];", 2, 2),
    "8 bytes, stride 2": ("shl.b32 %a, %i, 4;", "ld.shared.u64 %w, [%a];", 4, 2),
    "16 bytes, stride 1": ("shl.b32 %a, %i, 4;", VECTOR, 4, 4),
    "16 bytes a row apart": ("shl.b32 %a, %i, 7;", VECTOR, 32, 4),
    "store, stride 1": ("shl.b32 %a, %i, 2;", "st.shared.u32 [%a], %t0;", 1, 1),
    "store, stride 32": ("shl.b32 %a, %i, 7;", "st.shared.u32 [%a], %t0;", 32, 1),
}


@pytest.mark.parametrize("name", PATTERNS)
def test_shared_patterns(name: str) -> None:
    address, access, wavefronts, ideal = PATTERNS[name]
    assert shared(address, access) == (wavefronts, ideal)


MATRIX = "ldmatrix.sync.aligned.m8n8.x{}.shared.b16 {{{}}}, [%a];"
X1, X4 = MATRIX.format(1, "%t0"), MATRIX.format(4, "%t0, %t1, %t2, %t3")

# Rows of 64 or 128 bytes, plain, padded by 16 bytes, or with their chunks swizzled.
MATRIX_PATTERNS = {
    "rows of 16 bytes": ("shl.b32 %a, %i, 4;", X4, 4, 4),
    "rows of 64 bytes": ("shl.b32 %a, %i, 6;", X4, 16, 4),
    "rows of 128 bytes": ("shl.b32 %a, %i, 7;", X4, 32, 4),
    "rows of 64 bytes, padded": ("mul.lo.u32 %a, %i, 80;", X4, 4, 4),
    "rows of 128 bytes, padded": ("mul.lo.u32 %a, %i, 144;", X4, 4, 4),
    "rows of 64 bytes, swizzled": (
        "shr.u32 %t0, %i, 1; and.b32 %t0, %t0, 3; shl.b32 %t0, %t0, 4;"
        "shl.b32 %a, %i, 6; xor.b32 %a, %a, %t0;",
        X4,
        4,
        4,
    ),
    "rows of 128 bytes, swizzled": (
        "and.b32 %t0, %i, 7; shl.b32 %t0, %t0, 4;"
        "shl.b32 %a, %i, 7; xor.b32 %a, %a, %t0;",
        X4,
        4,
        4,
    ),
    "one tile, rows of 128 bytes": ("shl.b32 %a, %i, 7;", X1, 8, 1),
    "one tile, rows of 16 bytes": ("shl.b32 %a, %i, 4;", X1, 1, 1),
}


@pytest.mark.parametrize("name", MATRIX_PATTERNS)
def test_ldmatrix_patterns(name: str) -> None:
    address, access, wavefronts, ideal = MATRIX_PATTERNS[name]
    assert shared(address, access) == (wavefronts, ideal)


def test_bank_conflicts_are_the_difference() -> None:
    _, counters = counted(f"shl.b32 %a, %i, 4;\nadd.u32 %a, %base, %a;\n{LOAD}\n{LOAD}")
    assert counters.shared_wavefronts == 8
    assert counters.bank_conflicts == 6


def test_counts_are_per_warp_and_block() -> None:
    """Three blocks of two warps; lanes collide in the second warp only."""
    body = """
    and.b32 %a, %i, 31; shl.b32 %a, %a, 2;
    setp.ge.u32 %q, %i, 32;
    @%q shl.b32 %a, %a, 1;
    add.u32 %a, %base, %a;
    ld.shared.u32 %t0, [%a];
    """
    text, counters = counted(".reg .pred %q;" + body, block=64, grid=3)
    assert (counters.shared_wavefronts, counters.shared_wavefronts_ideal) == (9, 6)
    (line,) = counters.lines
    assert line.line == line_of(text, "ld.shared")
    assert line.shared_wavefronts == 9


GLOBAL_PATTERNS = {
    "stride 1": ("shl.b32 %a, %i, 2;", "ld.global.u32 %t0, [%g];", 4, 4),
    "one element further": (
        "add.u32 %a, %i, 1; shl.b32 %a, %a, 2;",
        "ld.global.u32 %t0, [%g];",
        5,
        4,
    ),
    "stride 8": ("shl.b32 %a, %i, 5;", "ld.global.u32 %t0, [%g];", 32, 4),
    "stride 2": ("shl.b32 %a, %i, 3;", "ld.global.u32 %t0, [%g];", 8, 4),
    "one word for all": ("mov.u32 %a, 0;", "ld.global.u32 %t0, [%g];", 1, 1),
    "16 bytes": (
        "shl.b32 %a, %i, 4;",
        "ld.global.v4.u32 {%t0, %t1, %t2, %t3}, [%g];",
        16,
        16,
    ),
    "halves": ("shl.b32 %a, %i, 1;", "ld.global.u16 %h, [%g];", 2, 2),
    "store": ("shl.b32 %a, %i, 5;", "st.global.u32 [%g], %t0;", 32, 4),
    "copy": (
        "shl.b32 %a, %i, 4;",
        "add.u32 %t0, %base, %a; cp.async.cg.shared.global [%t0], [%g], 16; "
        "cp.async.wait_all;",
        16,
        16,
    ),
}


@pytest.mark.parametrize("name", GLOBAL_PATTERNS)
def test_global_sectors(name: str) -> None:
    address, access, sectors, ideal = GLOBAL_PATTERNS[name]
    _, counters = counted(
        f"{address}\ncvt.u64.u32 %g, %a; add.u64 %g, %in, %g;\n{access}"
    )
    assert (counters.global_sectors, counters.global_sectors_ideal) == (sectors, ideal)


# The matmul ---------------------------------------------------------------------------

TILES, WARPS = 5, 4
K = 32 * TILES


def run_counted(text: str, m: int, n: int, k: int, **options: Any) -> Counters:
    result, _ = run_gemm(text, m, n, k, counters=True, **options)
    assert result.counters is not None
    return result.counters


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_instructions_by_class(schedule: str) -> None:
    text = fixture("gemm_f16_3stage")
    result, _ = run_gemm(text, 128, 128, K, counters=True, schedule=schedule)
    assert result.counters is not None
    counts = result.counters.instructions
    assert counts["mma"] == 64 * TILES * WARPS
    assert counts["ldmatrix"] == 16 * TILES * WARPS
    assert counts["cp.async"] == 8 * TILES * WARPS
    # a commit per stage of the prologue and per tile, and a wait per tile
    assert counts["cp.async control"] == (2 + 2 * TILES) * WARPS
    assert counts["barrier"] == TILES * WARPS
    assert sum(counts.values()) == result.warp_instructions


def test_copy_bytes_leave_out_the_zeros() -> None:
    """136 x 72 and 72 x 40: whole 16-byte pieces inside the operands only."""
    text = fixture("gemm_f16_3stage")
    assert run_counted(text, 128, 128, K).copy_bytes == 2 * (128 * K + K * 128)
    m, n, k = 136, 40, 72  # two blocks along m; both copy all of B
    assert run_counted(text, m, n, k).copy_bytes == 2 * (m * k + 2 * k * n)


def test_swizzle_removes_the_bank_conflicts() -> None:
    text = fixture("gemm_f16_3stage")
    counters = run_counted(text, 128, 128, K)
    reads = [one for one in counters.lines if one.text.startswith("ldmatrix")]
    assert len(reads) == 16
    for one in reads:
        assert one.shared_wavefronts == one.shared_wavefronts_ideal
        assert one.shared_wavefronts == 4 * TILES * WARPS


def test_how_far_before_its_wait_a_group_was_committed() -> None:
    text = fixture("gemm_f16_3stage")
    counters = run_counted(text, 128, 128, K)
    wait = line_of(text, "cp.async.wait_group")
    commits = [line_of(text, "cp.async.commit_group", place) for place in range(3)]
    groups = {group.commit_line: group for group in counters.groups}
    assert sorted(groups) == commits
    assert all(group.wait_line == wait for group in counters.groups)
    first, second, loop = (groups[line] for line in commits)
    # the first tile is waited for at once; the second one after the first's mma
    assert (first.groups, first.multiplies_ahead) == (WARPS, (0, 0, 0))
    assert (second.groups, second.multiplies_ahead) == (WARPS, (64, 64, 64))
    # tile t + 2 is committed before the mma of tiles t and t + 1
    assert loop.groups == (TILES - 2) * WARPS
    assert loop.multiplies_ahead == (128, 128, 128)
    assert loop.instructions_ahead[0] > 128


def test_instructions_between_commit_and_wait() -> None:
    """Two copies in a group, three additions, then the wait."""
    body = """
    shl.b32 %a, %i, 2; add.u32 %a, %base, %a;
    mul.wide.u32 %g, %i, 4; add.u64 %g, %in, %g;
    cp.async.ca.shared.global [%a], [%g], 4;
    cp.async.ca.shared.global [%a+128], [%g+128], 4;
    cp.async.commit_group;
    add.u32 %t0, %t0, 1; add.u32 %t0, %t0, 1; add.u32 %t0, %t0, 1;
    cp.async.wait_group 0;
    """
    text, counters = counted(body, block=96, grid=2)
    (group,) = counters.groups
    assert group.commit_line == line_of(text, "commit_group")
    assert group.wait_line == line_of(text, "wait_group")
    assert group.groups == 6
    assert group.instructions_ahead == (3, 3.0, 3)
    assert group.multiplies_ahead == (0, 0.0, 0)
    assert counters.copy_bytes == 6 * 32 * 8


def test_a_late_commit_shows() -> None:
    """Waiting for every group right away leaves nothing in flight over the mma."""
    text = edit(
        fixture("gemm_f16_3stage"),
        "wait_group 1;",
        "wait_group 0;",
        after="// loop body starts",
    )
    loop = run_counted(text, 128, 128, K).groups[-1]
    assert loop.multiplies_ahead == (64, 64, 64)


def test_counters_are_the_same_in_every_schedule() -> None:
    text = fixture("gemm_f16_3stage")
    first, *others = [
        run_counted(text, 136, 40, 72, schedule=schedule) for schedule in SCHEDULES
    ]
    for other in others:
        assert other == first


def test_counters_are_scaled_by_the_number_of_blocks() -> None:
    text = fixture("gemm_f16_3stage")
    one, four = (run_counted(text, size, size, 64) for size in (128, 256))
    assert four.shared_wavefronts == 4 * one.shared_wavefronts
    assert four.global_sectors == 4 * one.global_sectors
    assert {name: 4 * count for name, count in one.instructions.items()} == (
        four.instructions
    )


def test_no_counters_unless_asked() -> None:
    result: Result = run_gemm(fixture("gemm_f16_3stage"), 128, 128, 32)[0]
    assert result.counters is None
    assert result.warp_instructions > 0
    assert result.seconds > 0
