"""Races between warps on shared memory, in all blocks or in one of them."""

from __future__ import annotations

import numpy as np
import pytest
from fixture_kernels import MODES
from kernel_text import launch, line_of, module
from racy_kernels import (
    TWO_WARPS,
    check_pair,
    kinds,
    run_two_warps,
)

in_every_mode = pytest.mark.parametrize(("visibility", "schedule"), MODES)


@in_every_mode
def test_read_without_a_barrier(visibility: str, schedule: str) -> None:
    text, result = run_two_warps(
        "st.shared.u32 [%at], %v;\nld.shared.u32 %v, [%other];\n"
        "st.global.u32 [%out], %v;",
        visibility,
        schedule,
    )
    # which of the two accesses comes first depends on the schedule
    found = check_pair(
        text, result, "st.shared", "ld.shared", {"read-after-write", "write-after-read"}
    )
    if schedule == "lockstep":
        assert found[0].kind == "read-after-write"
        assert found[0].line == line_of(text, "ld.shared")


@in_every_mode
def test_overwrite_without_a_barrier(visibility: str, schedule: str) -> None:
    text, result = run_two_warps(
        "st.shared.u32 [%at], %v;\nbar.sync 0;\nld.shared.u32 %v, [%other];\n"
        "st.shared.u32 [%at], %i;\nst.global.u32 [%out], %v;",
        visibility,
        schedule,
    )
    lines = {line_of(text, "[%at], %i"), line_of(text, "ld.shared")}
    found = [h for h in result.hazards if {h.line, h.other_line} == lines]
    assert found
    assert kinds(result) <= {"read-after-write", "write-after-read"}
    if schedule == "lockstep":
        assert kinds(result) == {"write-after-read"}


@in_every_mode
def test_two_writers_without_a_barrier(visibility: str, schedule: str) -> None:
    text, result = run_two_warps(
        "and.b32 %other, %i, 31; shl.b32 %other, %other, 2;\n"
        "add.u32 %other, %other, %cells;\nst.shared.u32 [%other], %i;",
        visibility,
        schedule,
    )
    assert kinds(result) == {"write-after-write"}
    line = line_of(text, "st.shared")
    assert [(h.line, h.other_line) for h in result.hazards] == [(line, line)]


@in_every_mode
def test_never_written(visibility: str, schedule: str) -> None:
    text, result = run_two_warps(
        "setp.ne.u32 %p, %i, 40;\n@%p st.shared.u32 [%at], %v;\nbar.sync 0;\n"
        "ld.shared.u32 %v, [%other];\nst.global.u32 [%out], %v;",
        visibility,
        schedule,
    )
    assert kinds(result) == {"uninitialised-read"}
    (hazard,) = result.hazards
    assert hazard.line == line_of(text, "ld.shared")
    assert hazard.address == 160
    assert hazard.warp == 0  # thread 23 reads cell 40
    assert hazard.block == (0, 0, 0)


@in_every_mode
def test_barriers_and_fresh_slots_are_clean(visibility: str, schedule: str) -> None:
    """The same accesses with a barrier between each two of them."""
    _, result = run_two_warps(
        "st.shared.u32 [%at], %v;\nbar.sync 0;\nld.shared.u32 %v, [%other];\n"
        "bar.sync 0;\nst.shared.u32 [%at], %i;\nbar.sync 0;\n"
        "ld.shared.u32 %v, [%other];\nst.global.u32 [%out], %v;",
        visibility,
        schedule,
    )
    assert result.hazards == ()


@in_every_mode
def test_a_named_barrier_orders_only_its_own_threads(
    visibility: str, schedule: str
) -> None:
    """Warps 0 and 1 meet at barrier 1; warp 2 reads what they wrote."""
    body = """
    setp.ge.u32 %p, %i, 64;
    @%p bra LATE;
    st.shared.u32 [%at], %v;
    bar.sync 1, 64;
    ld.shared.u32 %v, [%other];
    bra END;
    LATE:
    ld.shared.u32 %v, [cells+8];
    END:
    st.global.u32 [%out], %v;
    """
    text, result = run_two_warps(body, visibility, schedule, block=96)
    late = line_of(text, "[cells+8]")
    assert {hazard.line for hazard in result.hazards} | {
        hazard.other_line for hazard in result.hazards
    } >= {late}
    inside = line_of(text, "[%other]")
    assert all(inside not in (h.line, h.other_line) for h in result.hazards)


@in_every_mode
def test_arriving_is_not_waiting(visibility: str, schedule: str) -> None:
    """Warp 1 only arrives, and then reads what warp 0 wrote before it waited."""
    body = """
    setp.ge.u32 %p, %i, 32;
    @%p bra ARRIVE;
    st.shared.u32 [%at], %v;
    bar.sync 1, 64;
    bra END;
    ARRIVE:
    bar.arrive 1, 64;
    ld.shared.u32 %v, [%other];
    st.global.u32 [%out], %v;
    END:
    """
    text, result = run_two_warps(body, visibility, schedule)
    check_pair(
        text, result, "st.shared", "ld.shared", {"read-after-write", "write-after-read"}
    )


@in_every_mode
def test_arriving_releases(visibility: str, schedule: str) -> None:
    """The right way round: warp 0 writes and arrives, warp 1 waits and reads."""
    body = """
    setp.ge.u32 %p, %i, 32;
    @%p bra WAIT;
    st.shared.u32 [%at], %v;
    bar.arrive 1, 64;
    bra END;
    WAIT:
    bar.sync 1, 64;
    ld.shared.u32 %v, [%other];
    st.global.u32 [%out], %v;
    END:
    """
    _, result = run_two_warps(body, visibility, schedule)
    assert result.hazards == ()


@in_every_mode
def test_atomic_beside_a_plain_access(visibility: str, schedule: str) -> None:
    """Atomics do not race with each other, but with a plain read they do."""
    body = """
    setp.eq.u32 %p, %i, 0;
    mov.u32 %v, 0;
    @%p st.shared.u32 [cells], %v;
    bar.sync 0;
    atom.shared.add.u32 %v, [cells], 1;
    ld.shared.u32 %v, [cells];
    st.global.u32 [%out], %v;
    """
    text, result = run_two_warps(body, visibility, schedule)
    check_pair(
        text,
        result,
        "atom.shared",
        "ld.shared",
        {"read-after-write", "write-after-read"},
    )


# Blocks that differ: what is kept once for all of them must part in time --------------

ONE_BLOCK = {
    "skips the barrier": """
        st.shared.u32 [%at], %v;
        @%p bra SKIP;
        bar.sync 0;
        SKIP:
        ld.shared.u32 %v, [%other];
    """,
    "reads another place": """
        @!%p mov.u32 %other, %at;
        st.shared.u32 [%at], %v;
        ld.shared.u32 %v, [%other];
    """,
    "writes another place": """
        @!%p mov.u32 %other, %at;
        ld.shared.u32 %v, [%at];
        st.shared.u32 [%other], %v;
    """,
    "does not wait": """
        cp.async.ca.shared.global [%at], [%in], 4;
        @!%p cp.async.wait_all;
        ld.shared.u32 %v, [%at];
        cp.async.wait_all;
    """,
    "writes with one warp more": """
        setp.lt.u32 %q, %i, 32;
        or.pred %q, %q, %p;
        shl.b32 %other, %i, 2; and.b32 %other, %other, 127;
        add.u32 %other, %other, %cells;
        @%q st.shared.u32 [%other], %i;
    """,
}
BEFORE = {"writes another place": "st.shared.u32 [%at], %v;\nbar.sync 0;\n"}


@in_every_mode
@pytest.mark.parametrize("guilty", [0, 2])
@pytest.mark.parametrize("case", ONE_BLOCK)
def test_one_block_of_three(
    case: str, guilty: int, visibility: str, schedule: str
) -> None:
    """The race is in one block only, and the report says in which."""
    body = f".reg .pred %q; mov.u32 %k, %ctaid.x; setp.eq.u32 %p, %k, {guilty};\n"
    text = module(
        TWO_WARPS + ".reg .b32 %k;" + body + BEFORE.get(case, "") + ONE_BLOCK[case],
        ["u64", "u64"],
    )
    arrays = [np.arange(1, 65, dtype=np.uint32), np.zeros(64, np.uint32)]
    options = {"visibility": visibility, "schedule": schedule}
    result = launch(text, "kernel", (3,), (64,), arrays, **options)
    assert result.hazards
    assert {hazard.block for hazard in result.hazards} == {(guilty, 0, 0)}
    innocent = text.replace(f"%k, {guilty};", "%k, 9;")
    assert launch(innocent, "kernel", (3,), (64,), arrays, **options).hazards == ()


@pytest.mark.parametrize(("visibility", "schedule"), MODES)
@pytest.mark.parametrize("value", ["mov.u32 %v, 7;", ""], ids=["same", "different"])
def test_warps_that_store_to_one_place(
    value: str, visibility: str, schedule: str
) -> None:
    """A race, but a note if they store the same value, in step or not."""
    body = f"{value} st.shared.u32 [%cells], %v; // by all"
    text, result = run_two_warps(body, visibility, schedule)
    line = line_of(text, "// by all")
    hazards = {(h.kind, h.line, h.other_line) for h in result.hazards}
    notes = {(h.kind, h.line, h.other_line) for h in result.notes}
    if value:
        assert (hazards, notes) == (set(), {("equal-writes", line, line)})
    else:
        assert hazards == {("write-after-write", line, line)}


def test_an_equal_write_hides_no_later_race() -> None:
    """Both warps store 7, then one of them 8 where the other reads."""
    body = """
        mov.u32 %v, 7;
        st.shared.u32 [%cells], %v;
        setp.lt.u32 %p, %i, 32;
        mov.u32 %v, 8;
        @%p st.shared.u32 [%cells], %v;
        @!%p ld.shared.u32 %v, [%cells];
    """
    _, result = run_two_warps(body, "late", "lockstep")
    assert kinds(result) & {"read-after-write", "write-after-read"}
    assert {note.kind for note in result.notes} == {"equal-writes"}
