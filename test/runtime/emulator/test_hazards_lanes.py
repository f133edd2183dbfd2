"""Races between lanes of one warp, and copies used before they have landed."""

from __future__ import annotations

import numpy as np
import pytest
from fixture_kernels import MODES
from kernel_text import launch, line_of, module
from racy_kernels import (
    BETWEEN_LANES,
    check_pair,
    kinds,
    run_one_warp,
)

in_every_mode = pytest.mark.parametrize(("visibility", "schedule"), MODES)


# Between lanes of a warp --------------------------------------------------------------

LANE_CASES = {
    "read": (
        "st.shared.u32 [%at], %i;\n{}\nld.shared.u32 %v, [%other];\n"
        "st.global.u32 [%out], %v;",
        "st.shared",
        "ld.shared",
        "read-after-write",
    ),
    "overwrite": (
        "st.shared.u32 [%at], %i;\nbar.warp.sync -1;\n"
        "ld.shared.u32 %v, [%other];\n{}\nst.shared.u32 [%at], %v;",
        "ld.shared",
        "[%at], %v",
        "write-after-read",
    ),
    "second writer": (
        "st.shared.u32 [%at], %i;\n{}\nst.shared.u32 [%other], %i;",
        "[%at], %i",
        "[%other], %i",
        "write-after-write",
    ),
    "copy": (
        "cp.async.ca.shared.global [%at], [%in], 4;\ncp.async.wait_all;\n{}\n"
        "ld.shared.u32 %v, [%other];\nst.global.u32 [%out], %v;",
        "cp.async.ca",
        "ld.shared",
        "read-after-write",
    ),
}


@in_every_mode
@pytest.mark.parametrize("case", LANE_CASES)
def test_lanes_need_a_warp_barrier(case: str, visibility: str, schedule: str) -> None:
    body, first, second, kind = LANE_CASES[case]
    text, result = run_one_warp(body.format(""), visibility, schedule)
    lines = (line_of(text, second), line_of(text, first))
    assert [(h.kind, h.line, h.other_line) for h in result.hazards] == [(kind, *lines)]


@in_every_mode
@pytest.mark.parametrize("barrier", ["bar.warp.sync 0xffffffff;", "bar.sync 0;"])
@pytest.mark.parametrize("case", LANE_CASES)
def test_lanes_with_a_barrier_are_clean(
    case: str, barrier: str, visibility: str, schedule: str
) -> None:
    _, result = run_one_warp(LANE_CASES[case][0].format(barrier), visibility, schedule)
    assert result.hazards == ()


@in_every_mode
@pytest.mark.parametrize(("first", "second"), [(0, 5), (9, 4), (31, 0)])
def test_two_lanes_read_and_the_second_writes(
    first: int, second: int, visibility: str, schedule: str
) -> None:
    """The second lane's read must not hide that of the first."""
    body = f"""
    st.shared.u32 [%at], %i;
    bar.warp.sync -1;
    setp.eq.u32 %p, %i, {first};
    @%p ld.shared.u32 %v, [cells+64];
    setp.eq.u32 %p, %i, {second};
    @%p ld.shared.u32 %other, [cells+64];
    @%p st.shared.u32 [cells+64], %i;
    """
    text, result = run_one_warp(body, visibility, schedule)
    lines = (line_of(text, "st.shared.u32 [cells"), line_of(text, "%other, [cells"))
    (hazard,) = result.hazards
    assert hazard.kind == "write-after-read"
    assert hazard.line == lines[0]
    assert hazard.other_line in (lines[1], lines[1] - 2)  # either read


@in_every_mode
def test_one_lane_reads_and_writes(visibility: str, schedule: str) -> None:
    body = """
    st.shared.u32 [%at], %i;
    bar.warp.sync -1;
    setp.eq.u32 %p, %i, 3;
    @%p ld.shared.u32 %v, [cells+64];
    @%p ld.shared.u32 %other, [cells+64];
    @%p st.shared.u32 [cells+64], %i;
    """
    _, result = run_one_warp(body, visibility, schedule)
    assert result.hazards == ()


@in_every_mode
@pytest.mark.parametrize("rows", ["its own row", "another lane's row"])
def test_ldmatrix_reads_for_the_whole_warp(
    rows: str, visibility: str, schedule: str
) -> None:
    """Every lane gets elements of every row: stores by lanes need a barrier first."""
    swap = "xor.b32 %at, %at, 16;" if rows == "another lane's row" else ""
    body = f"""
    .reg .b32 %r<4>;
    shl.b32 %at, %i, 4; add.u32 %at, %at, %cells;
    st.shared.v4.u32 [%at], {{%i, %i, %i, %i}};
    BARRIER {swap}
    ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{%r0, %r1, %r2, %r3}}, [%at];
    """
    text, result = run_one_warp(body.replace("BARRIER", ""), visibility, schedule)
    check_pair(text, result, "st.shared.v4", "ldmatrix", {"read-after-write"})
    _, result = run_one_warp(
        body.replace("BARRIER", "bar.warp.sync -1;"), visibility, schedule
    )
    assert result.hazards == ()


def test_a_warp_barrier_of_some_lanes_orders_only_those() -> None:
    """Lanes 0 to 15 synchronise with each other, but read from lanes 16 to 31."""
    body = """
    st.shared.u32 [%at], %i;
    setp.ge.u32 %p, %i, 16;
    @%p bra END;
    bar.warp.sync 0x0000ffff;
    ld.shared.u32 %v, [%other];
    END:
    """
    text, result = run_one_warp(body, "late", "lockstep")
    check_pair(text, result, "st.shared", "ld.shared", {"read-after-write"})
    near = body.replace(
        "ld.shared.u32 %v, [%other]", "xor.b32 %at, %at, 60;\nld.shared.u32 %v, [%at]"
    )
    _, result = run_one_warp(near, "late", "lockstep")
    assert result.hazards == ()


@in_every_mode
def test_own_accesses_need_no_barrier(visibility: str, schedule: str) -> None:
    """A lane reads its own stores and its own copies after its own wait."""
    body = """
    st.shared.u32 [%at], %i;
    ld.shared.u32 %v, [%at];
    add.u32 %v, %v, 1;
    st.shared.u32 [%at], %v;
    cp.async.ca.shared.global [%at+256], [%in], 4;
    cp.async.wait_all;
    ld.shared.u32 %v, [%at+256];
    st.global.u32 [%out], %v;
    """
    _, result = run_one_warp(body, visibility, schedule)
    assert result.hazards == ()


# Asynchronous copies ------------------------------------------------------------------


@in_every_mode
def test_read_of_bytes_in_flight(visibility: str, schedule: str) -> None:
    text, result = run_one_warp(
        "cp.async.ca.shared.global [%at], [%in], 4;\ncp.async.commit_group;\n"
        "ld.shared.u32 %v, [%at];\nst.global.u32 [%out], %v;\ncp.async.wait_group 0;",
        visibility,
        schedule,
    )
    (hazard,) = result.hazards
    assert hazard.kind == "read-in-flight"
    assert hazard.line == line_of(text, "ld.shared")
    assert hazard.other_line == line_of(text, "cp.async.ca")


@in_every_mode
def test_write_over_bytes_in_flight(visibility: str, schedule: str) -> None:
    text, result = run_one_warp(
        "cp.async.ca.shared.global [%at], [%in], 4;\ncp.async.commit_group;\n"
        "st.shared.u32 [%at], %i;\ncp.async.wait_group 0;",
        visibility,
        schedule,
    )
    assert "write-in-flight" in kinds(result)
    found = next(h for h in result.hazards if h.kind == "write-in-flight")
    assert found.line == line_of(text, "st.shared")
    assert found.other_line == line_of(text, "cp.async.ca")


@in_every_mode
@pytest.mark.parametrize("commit", ["cp.async.commit_group;", ""])
def test_copies_in_flight_at_exit(commit: str, visibility: str, schedule: str) -> None:
    text, result = run_one_warp(
        f"cp.async.ca.shared.global [%at], [%in], 4;\n{commit}", visibility, schedule
    )
    assert result.hazards == ()  # nobody reads it
    (note,) = result.notes
    assert note.kind == "copy-in-flight-at-exit"
    assert line_of(text, "cp.async.ca") in (note.line, note.other_line)


def test_empty_groups_at_exit_are_fine() -> None:
    _, result = run_one_warp(
        "cp.async.ca.shared.global [%at], [%in], 4;\ncp.async.commit_group;\n"
        "cp.async.commit_group;\ncp.async.wait_group 1;\ncp.async.commit_group;",
        "late",
        "lockstep",
    )
    assert result.hazards == ()


@pytest.mark.parametrize("visibility", ["late", "early"])
def test_visibility_decides_what_a_racy_read_sees(visibility: str) -> None:
    """late: poison until the wait; early: the data at once."""
    body = """
    cp.async.ca.shared.global [%at], [%in], 4;
    ld.shared.u32 %v, [%at];
    st.global.u32 [%out], %v;
    cp.async.wait_all;
    """
    text = module(BETWEEN_LANES + body, ["u64", "u64"])
    given, out = np.arange(32, dtype=np.uint32), np.zeros(32, np.uint32)
    launch(text, "kernel", (1,), (32,), [given, out], visibility=visibility)
    if visibility == "early":
        assert out.tolist() == given.tolist()
    else:
        assert out.tolist() == [0xFFFFFFFF] * 32
