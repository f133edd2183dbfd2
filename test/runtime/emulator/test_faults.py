"""Faults that stop a kernel: bad addresses in every space, barriers nobody leaves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fixture_kernels import SCHEDULES, fixture
from kernel_text import launch, line_of, module

from alcop_mlir.errors import EmulationError

START = """
    .shared .align 16 .b8 tile[256];
    .shared .align 16 .b8 spare[64];
    .local .align 16 .b8 mine[64];
    .reg .b32 %i, %a, %t<4>; .reg .b64 %in, %out, %p, %l; .reg .b16 %h; .reg .pred %q;
    ld.param.u64 %in, [p0]; ld.param.u64 %out, [p1];
    mov.u32 %i, %tid.x;
    mov.u32 %a, tile; mov.u64 %l, mine;
    mov.u32 %t0, 0; mov.u32 %t1, 0; mov.u32 %t2, 0; mov.u32 %t3, 0;
"""


def fails(
    body: str, block: int = 32, schedule: str = "lockstep", **options: Any
) -> tuple[str, str]:
    """The message of the fault, and the text."""
    text = module(START + body, ["u64", "u64"], **options)
    arrays = [np.zeros(64, np.uint32), np.zeros(32, np.uint32)]
    with pytest.raises(EmulationError) as caught:
        launch(text, "kernel", (2,), (block,), arrays, schedule=schedule)
    return str(caught.value), text


def fails_with(kind: str, access: str, space: str, buffer: str) -> str:
    message, text = fails(access)
    assert kind in message
    assert space in message
    assert buffer in message.split("PTX line")[0]
    assert f"PTX line {line_of(text, access)}" in message
    return message


# Address faults: the access, its space, and the buffer that the message must name.
OUT_OF_BOUNDS = [
    ("ld.global.u32 %t0, [%in+256];", "global", "p0"),
    ("ld.global.u32 %t0, [%in+-4];", "global", "p0"),
    ("ld.global.v4.u32 {%t0, %t1, %t2, %t3}, [%in+256];", "global", "p0"),
    ("st.global.u32 [%out+128], %t0;", "global", "p1"),
    ("atom.global.add.u32 %t0, [%out+128], 1;", "global", "p1"),
    ("red.global.add.u32 [%out+128], 1;", "global", "p1"),
    ("ld.u32 %t0, [%in+256];", "global", "p0"),
    ("ld.shared.u32 %t0, [%a+4096];", "shared", "spare"),
    ("st.shared.u32 [%a+320], %t0;", "shared", "spare"),
    ("atom.shared.add.u32 %t0, [%a+320], 1;", "shared", "spare"),
    ("ld.local.u32 %t0, [%l+64];", "local", "mine"),
    ("st.local.u32 [%l+64], %t0;", "local", "mine"),
    ("cp.async.ca.shared.global [%a], [%in+256], 16;", "global", "p0"),
    ("cp.async.ca.shared.global [%a+320], [%in], 16;", "shared", "spare"),
    ("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%t0}, [%a+320];", "shared", "spare"),
]


@pytest.mark.parametrize(("access", "space", "buffer"), OUT_OF_BOUNDS)
def test_out_of_bounds(access: str, space: str, buffer: str) -> None:
    message = fails_with("out-of-bounds", access, space, buffer)
    assert access.split()[0] in message
    assert "block (0, 0, 0)" in message
    assert "warp 0" in message


def test_out_of_bounds_names_the_thread() -> None:
    body = """
    mov.u32 %t1, %ctaid.x;
    setp.eq.u32 %q, %t1, 1; setp.eq.and.u32 %q, %i, 37, %q;
    @%q ld.global.u32 %t0, [%in+4096];
    """
    message, _ = fails(body, block=64)
    assert "block (1, 0, 0) warp 1 lane 5" in message


def test_the_last_bytes_are_inside() -> None:
    body = """
    ld.global.v4.u32 {%t0, %t1, %t2, %t3}, [%in+240];
    st.shared.v4.u32 [%a+304], {%t0, %t1, %t2, %t3};
    st.local.v4.u32 [%l+48], {%t0, %t1, %t2, %t3};
    st.global.u32 [%out+124], %t0;
    """
    text = module(START + body, ["u64", "u64"])
    arrays = [np.zeros(64, np.uint32), np.zeros(32, np.uint32)]
    launch(text, "kernel", (1,), (1,), arrays)


MISALIGNED = [
    ("ld.global.u32 %t0, [%in+2];", "global", "p0"),
    ("ld.global.u16 %h, [%in+1];", "global", "p0"),
    ("ld.global.v4.u32 {%t0, %t1, %t2, %t3}, [%in+8];", "global", "p0"),
    ("ld.global.v2.u32 {%t0, %t1}, [%in+4];", "global", "p0"),
    ("ld.global.u64 %p, [%in+4];", "global", "p0"),
    ("st.global.u32 [%out+1], %t0;", "global", "p1"),
    ("red.global.add.u32 [%out+2], 1;", "global", "p1"),
    ("ld.shared.u32 %t0, [%a+2];", "shared", "tile"),
    ("ld.shared.u32 %t0, [%a+258];", "shared", "spare"),
    ("st.shared.v4.u32 [%a+8], {%t0, %t1, %t2, %t3};", "shared", "tile"),
    ("st.local.u32 [%l+2], %t0;", "local", "mine"),
    ("cp.async.ca.shared.global [%a], [%in+8], 16;", "global", "p0"),
    ("cp.async.ca.shared.global [%a+2], [%in], 4;", "shared", "tile"),
    ("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%t0}, [%a+8];", "shared", "tile"),
]


@pytest.mark.parametrize(("access", "space", "buffer"), MISALIGNED)
def test_misaligned(access: str, space: str, buffer: str) -> None:
    fails_with("misaligned", access, space, buffer)


def test_arrays_lie_where_they_lie() -> None:
    """One that begins 4 bytes behind a multiple of 16 bytes is aligned to no more."""
    memory = np.zeros(72, np.uint32)
    begin = -memory.ctypes.data % 16 // 4
    unaligned, out = memory[begin + 1 : begin + 65], np.zeros(32, np.uint32)
    for access, is_aligned in (
        ("ld.global.u32 %t0, [%in];", True),
        ("ld.global.v2.u32 {%t0, %t1}, [%in+4];", True),
        ("ld.global.v2.u32 {%t0, %t1}, [%in];", False),
        ("ld.global.v4.u32 {%t0, %t1, %t2, %t3}, [%in+12];", True),
        ("cp.async.ca.shared.global [%a], [%in], 16;", False),
    ):
        text = module(START + access, ["u64", "u64"])
        if is_aligned:
            launch(text, "kernel", (1,), (32,), [unaligned, out])
            continue
        with pytest.raises(EmulationError, match=r"misaligned .*p0"):
            launch(text, "kernel", (1,), (32,), [unaligned, out])


def test_a_null_pointer() -> None:
    message, _ = fails("mov.u64 %p, 0; ld.global.u32 %t0, [%p];")
    assert "out-of-bounds" in message


# Barriers -----------------------------------------------------------------------------


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_barriers_that_never_meet(schedule: str) -> None:
    """Warp 0 waits at barrier 1, warp 1 at barrier 2: both lines are named."""
    body = """
    setp.lt.u32 %q, %i, 32;
    @%q bra FIRST;
    bar.sync 2, 64;
    bra END;
    FIRST:
    bar.sync 1, 64;
    END:
    """
    message, text = fails(body, block=64, schedule=schedule)
    assert "deadlock" in message
    assert message.count("at which 32 of 64 threads have arrived") == 2
    for waiting in ("bar.sync 1", "bar.sync 2"):
        assert str(line_of(text, waiting)) in message


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_barrier_for_more_threads_than_there_are(schedule: str) -> None:
    message, text = fails("bar.sync 3, 96;", block=64, schedule=schedule)
    assert "wait at barrier 3, at which 64 of 96 threads have arrived, PTX" in message
    assert str(line_of(text, "bar.sync 3")) in message


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_producer_and_consumer_that_wait_for_each_other(schedule: str) -> None:
    """The consumer frees the slot only after the third fill: the arrival is missing."""
    text = fixture("named_barriers")
    text = text.replace("bar.arrive %r46, 96;", "")
    arrays = [np.zeros((8, 32), np.int32), np.zeros((8, 2, 32), np.int32)]
    with pytest.raises(EmulationError, match="deadlock"):
        launch(text, "producer_consumer", (1,), (96,), [*arrays, 8], schedule=schedule)


def test_part_of_a_warp_at_an_aligned_barrier() -> None:
    """bar.sync is barrier.sync.aligned: all lanes of the warp must take it together."""
    body = """
    setp.lt.u32 %q, %i, 16;
    @%q bra SOME;
    bra END;
    SOME:
    bar.sync 0;
    END:
    bar.sync 0;
    """
    message, text = fails(body)
    assert str(line_of(text, "bar.sync 0;")) in message


@pytest.mark.parametrize(
    "access",
    [
        "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%t0}, [%a];",
        "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 "
        "{%t0, %t1}, {%t0, %t1}, {%t2}, {%t0, %t1};",
    ],
)
def test_part_of_a_warp_at_an_aligned_instruction(access: str) -> None:
    body = f"setp.lt.u32 %q, %i, 16;\n@%q bra SOME;\nbra END;\nSOME:\n{access}\nEND:"
    message, text = fails(body)
    assert str(line_of(text, access.split()[0])) in message
    assert access.split(".")[0] in message


# Limits -------------------------------------------------------------------------------


def test_static_shared_memory_over_48_kb() -> None:
    text = module(".shared .align 16 .b8 big[49168];\n.reg .b32 %r;\nmov.u32 %r, big;")
    with pytest.raises(EmulationError, match=r"49168 bytes.*49152"):
        launch(text, "kernel", (1,), (32,), [])


def test_48_kb_is_allowed() -> None:
    text = module(".shared .align 16 .b8 big[49152];\n.reg .b32 %r;\nmov.u32 %r, big;")
    launch(text, "kernel", (1,), (32,), [])


def test_more_shared_memory_than_the_target_has() -> None:
    """163 KB a block on sm_80, 227 KB on sm_90; dynamic memory only."""
    before = ".extern .shared .align 16 .b8 dynamic[];"
    for target, limit in (("sm_80", 163), ("sm_86", 99), ("sm_90", 227)):
        text = module(
            ".reg .b32 %r; mov.u32 %r, dynamic;", before=before, target=target
        )
        launch(text, "kernel", (1,), (32,), [], dynamic_shared=limit * 1024)
        with pytest.raises(EmulationError, match=rf"{limit * 1024}"):
            launch(text, "kernel", (1,), (32,), [], dynamic_shared=limit * 1024 + 16)


@pytest.mark.parametrize(
    ("directive", "block", "match"),
    [
        (".maxntid 64, 1, 1", (128,), r"128.*\.maxntid.*64"),
        (".maxntid 8, 8, 1", (128,), r"128.*\.maxntid 8, 8, 1"),
        (".reqntid 64, 1, 1", (32,), r"\.reqntid"),
    ],
)
def test_block_against_its_bounds(
    directive: str, block: tuple[int, ...], match: str
) -> None:
    text = module("ret;", directives=directive)
    with pytest.raises(EmulationError, match=match):
        launch(text, "kernel", (1,), block, [])


def test_block_within_its_bounds() -> None:
    text = module("ret;", directives=".maxntid 8, 8, 1")
    launch(text, "kernel", (1,), (64,), [])
    launch(text, "kernel", (1,), (16, 4), [])


def test_more_threads_than_a_block_may_have() -> None:
    with pytest.raises(EmulationError, match="1024"):
        launch(module("ret;"), "kernel", (1,), (1056,), [])


def test_trap() -> None:
    message, text = fails("setp.eq.u32 %q, %i, 3;\n@%q trap;")
    assert "trap" in message
    assert str(line_of(text, "trap;")) in message
