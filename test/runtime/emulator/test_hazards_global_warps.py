"""Warps of one block that touch the same global memory with no barrier between."""

from __future__ import annotations

import numpy as np
import pytest
from fixture_kernels import MODES
from kernel_text import launch, line_of, module
from racy_kernels import kinds

from alcop_mlir.runtime.emulator import Result

in_every_mode = pytest.mark.parametrize(("visibility", "schedule"), MODES)
THREADS = 96
# %mine is the thread's own element, %other that of the next warp; %i the thread.
HEAD = """
    .reg .b64 %out, %mine, %other; .reg .b32 %i, %c, %n, %m; .reg .pred %p;
    .reg .b16 %h;
    ld.param.u64 %out, [p0];
    mov.u32 %i, %tid.x; mov.u32 %c, %ctaid.x;
    mad.lo.u32 %n, %c, 256, %i;
    mad.wide.u32 %mine, %n, 4, %out;
    add.u64 %other, %mine, 128;
    setp.lt.u32 %p, %i, 32;
"""
LOAD, STORE = "ld.global.u32 %m, [%other];", "st.global.u32 [%mine], %i;"
KEEP = "st.global.u32 [%mine+512], %m;"  # elsewhere, so that the load is used
BARRIER = "bar.sync 0;"


def run(
    body: str,
    mode: tuple[str, str] = ("late", "lockstep"),
    blocks: int = 1,
    threads: int = THREADS,
) -> tuple[str, Result]:
    text = module(HEAD + body, ["u64"])
    out = np.full(blocks * 256, 7, np.uint32)
    visibility, schedule = mode
    result = launch(
        text,
        "kernel",
        (blocks,),
        (threads,),
        [out],
        visibility=visibility,
        schedule=schedule,
    )
    return text, result


@in_every_mode
@pytest.mark.parametrize("blocks", [1, 3])
@pytest.mark.parametrize("between", ["", BARRIER])
@pytest.mark.parametrize("order", [(LOAD, STORE), (STORE, LOAD)])
def test_a_read_and_a_store(
    order: tuple[str, str], between: str, blocks: int, visibility: str, schedule: str
) -> None:
    """Found whichever comes first in the run; a barrier between orders them."""
    first, second = order
    body = f"{first}\n{between}\n{second}\n{KEEP}"
    text, result = run(body, (visibility, schedule), blocks)
    if between:
        assert result.hazards == ()
        return
    assert kinds(result) <= {"read-after-write", "write-after-read"}
    for hazard in result.hazards:
        assert hazard.space == "global"
        assert {hazard.line, hazard.other_line} == {
            line_of(text, "ld.global"),
            line_of(text, "st.global"),
        }
    assert result.hazards


@in_every_mode
@pytest.mark.parametrize("between", ["", BARRIER])
def test_what_all_threads_read(between: str, visibility: str, schedule: str) -> None:
    """The load is one for all warps; the first warp then stores."""
    load, store = "ld.global.u32 %m, [%out];", "@%p st.global.u32 [%out], %i;"
    _, result = run(f"{load}\n{KEEP}\n{between}\n{store}", (visibility, schedule))
    assert bool(result.hazards) == (not between)
    # Which is first is decided by the schedule.
    assert kinds(result) <= {"write-after-read", "read-after-write"}


@in_every_mode
def test_what_all_threads_store_alike(visibility: str, schedule: str) -> None:
    """As tile code does that is not spread over threads: no order decides anything."""
    body = f"st.global.u32 [%out], %c;\nld.global.u32 %m, [%out];\n{KEEP}"
    _, result = run(body, (visibility, schedule))
    assert result.hazards == ()


@in_every_mode
def test_warps_that_store_other_values(visibility: str, schedule: str) -> None:
    body = "rem.u32 %n, %i, 32;\nmad.wide.u32 %mine, %n, 4, %out;\n" + STORE
    text, result = run(body, (visibility, schedule))
    (hazard,) = result.hazards
    assert hazard.kind == "write-after-write"
    assert hazard.line == hazard.other_line == line_of(text, "st.global")


def test_accesses_of_other_widths() -> None:
    """One thread reads two bytes of what the next warp stores."""
    load = "ld.global.u16 %h, [%other+2];\ncvt.u32.u16 %m, %h;"
    _, result = run(f"{load}\n{STORE}\n{KEEP}")
    assert kinds(result) == {"write-after-read"}
    _, result = run(f"{STORE}\n{load}\n{KEEP}")
    assert kinds(result) == {"read-after-write"}


def test_an_older_read_of_another_warp_counts() -> None:
    """The warp that writes has read last itself."""
    reads = f"{LOAD}\n{KEEP}\nld.global.u32 %m, [%mine];"
    _, result = run(f"{reads}\nadd.u32 %m, %m, 1;\nst.global.u32 [%mine], %m;")
    assert kinds(result) == {"write-after-read"}


@pytest.mark.parametrize("order", ["membar.gl;", "fence.acq_rel.gpu;"])
def test_a_fence_alone_orders_no_warps(order: str) -> None:
    _, result = run(f"{order}\n{LOAD}\n{STORE}\n{KEEP}")
    assert kinds(result) == {"write-after-read"}


def test_lanes_of_one_warp_are_not_told_apart() -> None:
    _, result = run(f"ld.global.u32 %m, [%mine+4];\n{STORE}\n{KEEP}", threads=32)
    assert result.hazards == ()
