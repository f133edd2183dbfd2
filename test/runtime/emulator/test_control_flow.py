"""Branches, loops and early exits that differ between lanes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from kernel_text import run_kernel, run_lanes
from operand_values import FIXED, seeds

from alcop_mlir.runtime.emulator import emulate

SCHEDULES = ["lockstep", "ascending", "descending", "random(11)"]


@FIXED
@given(seed=seeds)
def test_nested_divergent_loops(seed: int) -> None:
    """Trip counts per lane, a break and a continue in the inner loop."""
    values = np.random.default_rng(seed).integers(0, 40, 256).astype(np.uint32)
    body = """
    mov.u32 %d, 0;
    mov.u32 %t0, 0;
    OUTER:
    setp.ge.u32 %q0, %t0, %a;
    @%q0 bra DONE;
    mov.u32 %t1, %t0;
    INNER:
    rem.u32 %t2, %t1, 7;
    setp.eq.u32 %q1, %t2, 6;
    @%q1 bra NEXT;
    add.u32 %t1, %t1, 1;
    and.b32 %t3, %t1, 1;
    setp.eq.u32 %q2, %t3, 0;
    @%q2 bra INNER;
    mad.lo.u32 %d, %d, 3, %t1;
    bra.uni INNER;
    NEXT:
    add.u32 %t0, %t0, 3;
    bra OUTER;
    DONE:
    """

    def model(limit: int) -> int:
        total, i = 0, 0
        while i < limit:
            j = i
            while j % 7 != 6:
                j += 1
                if j % 2:
                    total = (total * 3 + j) % 2**32
            i += 3
        return total

    got = run_lanes(body, {"a": ("b32", values)}, {"d": "b32"})["d"]
    assert got.tolist() == [model(int(value)) for value in values]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_lanes_leave_one_by_one(schedule: str) -> None:
    """Lane i leaves in round i; those that stay still vote."""
    body = """
    .reg .b64 %out; .reg .b32 %lane, %n, %rest, %mask, %seen; .reg .pred %p;
    ld.param.u64 %out, [p0];
    mov.u32 %lane, %tid.x;
    mad.wide.u32 %out, %lane, 4, %out;
    mov.u32 %n, 0; mov.u32 %seen, 0;
    ROUND:
    setp.eq.u32 %p, %lane, %n;
    @%p bra LEAVE;
    shl.b32 %rest, 0xfffffffe, %n;
    setp.gt.u32 %p, %lane, 20;
    vote.sync.ballot.b32 %mask, %p, %rest;
    add.u32 %seen, %seen, %mask;
    add.u32 %n, %n, 1;
    bra ROUND;
    LEAVE:
    st.global.u32 [%out], %seen;
    exit;
    """
    out = np.zeros(32, np.uint32)
    run_kernel(body, ["u64"], [out], schedule=schedule)
    masks = [2**32 - (2 << max(i, 20)) for i in range(32)]
    wanted = [sum(masks[:lane]) % 2**32 for lane in range(32)]
    assert out.tolist() == wanted


def test_predicated_return() -> None:
    body = """
    .reg .b64 %out; .reg .b32 %i, %n; .reg .pred %p;
    ld.param.u64 %out, [p0]; ld.param.u32 %n, [p1];
    mov.u32 %i, %tid.x;
    setp.ge.u32 %p, %i, %n;
    @%p ret;
    mad.wide.u32 %out, %i, 4, %out;
    st.global.u32 [%out], %n;
    """
    out = np.zeros(20, np.uint32)
    result = run_kernel(body, ["u64", "u32"], [out, 20], block=(64,))
    assert result.hazards == ()
    assert out.tolist() == [20] * 20


@pytest.mark.parametrize("cluster", [1, 2])
def test_a_kernel_without_instructions_ends(cluster: int) -> None:
    text = """
        .version 7.8
        .target sm_90
        .address_size 64
        .visible .entry nothing()
        {
        }"""
    result = emulate(
        text, "nothing", (2, 1, 1), (64, 1, 1), [], cluster=(cluster, 1, 1)
    )
    assert result.hazards == ()


def test_barrier_after_some_warps_have_left() -> None:
    """Threads that exited do not count at a barrier any more."""
    body = """
    .shared .align 4 .b32 cell;
    .reg .b64 %out; .reg .b32 %i, %v; .reg .pred %p;
    mov.u32 %i, %tid.x;
    setp.ge.u32 %p, %i, 64;
    @%p ret;
    setp.eq.u32 %p, %i, 0;
    mov.u32 %v, 5;
    @%p st.shared.u32 [cell], %v;
    bar.sync 0;
    ld.shared.u32 %v, [cell];
    ld.param.u64 %out, [p0];
    mad.wide.u32 %out, %i, 4, %out;
    st.global.u32 [%out], %v;
    """
    out = np.zeros(64, np.uint32)
    for schedule in SCHEDULES:
        out[:] = 0
        result = run_kernel(body, ["u64"], [out], block=(96,), schedule=schedule)
        assert result.hazards == ()
        assert out.tolist() == [5] * 64


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_barrier_from_both_sides_of_a_branch(schedule: str) -> None:
    """barrier.sync without .aligned: lanes of one warp may arrive from two places."""
    body = """
    .shared .align 4 .b8 cells[256];
    .reg .b64 %out; .reg .b32 %i, %a, %v; .reg .pred %p;
    mov.u32 %i, %tid.x;
    mov.u32 %a, cells; mad.lo.u32 %a, %i, 4, %a;
    setp.lt.u32 %p, %i, 13;
    @%p bra FEW;
    st.shared.u32 [%a], %i;
    barrier.sync 0;
    bra JOIN;
    FEW:
    add.u32 %v, %i, 100;
    st.shared.u32 [%a], %v;
    barrier.sync 0;
    JOIN:
    mov.u32 %a, cells; sub.u32 %v, 63, %i; mad.lo.u32 %a, %v, 4, %a;
    ld.shared.u32 %v, [%a];
    ld.param.u64 %out, [p0]; mad.wide.u32 %out, %i, 4, %out;
    st.global.u32 [%out], %v;
    """
    out = np.zeros(64, np.uint32)
    result = run_kernel(body, ["u64"], [out], block=(64,), schedule=schedule)
    assert result.hazards == ()
    assert out[::-1].tolist() == [*range(100, 113), *range(13, 64)]


def test_scoped_registers_and_labels() -> None:
    """Names declared in braces, as inline assembly does, hide the outer ones."""
    body = """
    .reg .b32 %x; .reg .pred %p;
    mov.u32 %x, 1;
    {
      .reg .b32 %x; .reg .pred %p;
      mov.u32 %x, 50;
      setp.gt.u32 %p, %a, 10;
      @%p bra SKIP;
      add.u32 %x, %x, 1;
      SKIP:
      mov.u32 %d, %x;
    }
    {
      .reg .pred %p;
      setp.gt.u32 %p, %a, 20;
      @%p bra SKIP;
      add.u32 %d, %d, 100;
      SKIP:
    }
    add.u32 %d, %d, %x;
    """
    values = np.arange(32, dtype=np.uint32)
    got = run_lanes(body, {"a": ("b32", values)}, {"d": "b32"}, block=32)["d"]
    wanted = [51 + (i <= 10) + 100 * (i <= 20) for i in range(32)]
    assert got.tolist() == wanted


def test_partial_last_warp() -> None:
    """A block of 40 threads: lanes 8 to 31 of its second warp do not exist."""
    body = """
    .reg .b64 %out; .reg .b32 %i, %m; .reg .pred %p;
    mov.u32 %i, %tid.x;
    activemask.b32 %m;
    bar.sync 0;
    ld.param.u64 %out, [p0];
    mad.wide.u32 %out, %i, 4, %out;
    st.global.u32 [%out], %m;
    """
    out = np.zeros(40, np.uint32)
    run_kernel(body, ["u64"], [out], block=(40,))
    assert out.tolist() == [2**32 - 1] * 32 + [0xFF] * 8


def test_loop_whose_count_differs_between_blocks_and_warps() -> None:
    body = """
    .reg .b64 %out; .reg .b32 %i, %w, %c, %n, %k, %one; .reg .pred %p;
    mov.u32 %i, %tid.x; shr.u32 %w, %i, 5; mov.u32 %c, %ctaid.x;
    mad.lo.u32 %n, %c, 3, %w;
    mov.u32 %k, 0; mov.u32 %one, 0;
    LOOP:
    setp.ge.u32 %p, %k, %n;
    @%p bra OUT;
    add.u32 %one, %one, %i;
    add.u32 %k, %k, 1;
    bra LOOP;
    OUT:
    ld.param.u64 %out, [p0];
    mad.lo.u32 %i, %c, 96, %i;
    mad.wide.u32 %out, %i, 4, %out;
    st.global.u32 [%out], %one;
    """
    out = np.zeros((4, 96), np.uint32)
    for schedule in SCHEDULES:
        out[:] = 0
        run_kernel(body, ["u64"], [out], grid=(4,), block=(96,), schedule=schedule)
        threads = np.arange(96)
        wanted = [(block * 3 + threads // 32) * threads for block in range(4)]
        np.testing.assert_array_equal(out, wanted)
