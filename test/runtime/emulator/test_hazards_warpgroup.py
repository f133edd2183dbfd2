"""Races of wgmma with its registers and with shared memory, and its wrong uses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kernel_text import launch, line_of
from warpgroup_kernels import descriptor, kernel, run, vector

from alcop_mlir.errors import EmulationError
from alcop_mlir.runtime.emulator import Result

SIZE = 16384  # bytes: A at 0, B at 8192, each of 64 rows of 128 bytes
A, B = descriptor(0, 0, 1024, "128"), descriptor(8192, 0, 1024, "128")
SET = f"mov.b64 %x, {A}; mov.b64 %y, {B};\nsetp.eq.b32 %p0, 0, 0;\n"
FENCE, COMMIT = "wgmma.fence.sync.aligned;\n", "wgmma.commit_group.sync.aligned;\n"
D, FRAGMENT = vector("d", 32), vector("a", 4)
FORM = "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16"
SHARED = f"{FORM} {D}, %x, %y, %p0, 1, 1, 0, 0;\n"
REGISTERS = f"{FORM} {D}, {FRAGMENT}, %y, %p0, 1, 1, 0;\n"


def wait(newest: int) -> str:
    return f"wgmma.wait_group.sync.aligned {newest};\n"


def kinds(code: str, **options: Any) -> list[str]:
    return [hazard.kind for hazard in executed(code, **options).hazards]


def executed(code: str, **options: Any) -> Result:
    generator = np.random.default_rng(0)
    memory = generator.standard_normal(SIZE // 2).astype(np.float16).view(np.uint8)
    d = np.zeros((128, 32), np.uint32)
    return run(SET + code, memory, d, **options)[1]


CLEAN = {
    "one": FENCE + SHARED + COMMIT + wait(0),
    "two in a group": FENCE + SHARED + SHARED + COMMIT + wait(0),
    "two groups": FENCE + SHARED + COMMIT + SHARED + COMMIT + wait(1) + wait(0),
    "registers": FENCE + REGISTERS + COMMIT + wait(0),
    "registers, twice": FENCE + REGISTERS + REGISTERS + COMMIT + wait(0),
    "again after a fence": (
        FENCE
        + SHARED
        + COMMIT
        + wait(0)
        + "add.u32 %d3, %d3, 1;\n"
        + FENCE
        + SHARED
        + COMMIT
        + wait(0)
    ),
    "shared memory written after": (
        FENCE
        + SHARED
        + COMMIT
        + wait(0)
        + "bar.sync 0;\n"
        + "setp.eq.u32 %p2, %t0, 0;\n@%p2 "
        + "st.shared.b32 [tile], %t0;\n"
    ),
    "by a warp that waits, with no barrier": (
        FENCE
        + SHARED
        + COMMIT
        + wait(0)
        + "setp.eq.u32 %p2, %t0, 33;\n@%p2 st.shared.b32 [tile+8192], %t0;\n"
    ),
    "another register": FENCE + SHARED + COMMIT + "mov.u32 %d40, 1;\n" + wait(0),
    "a guard that does not hold": (
        FENCE
        + SHARED
        + COMMIT
        + "setp.ne.b32 %p3, 0, 0;\n@%p3 mov.u32 %d3, 1;\n"
        + wait(0)
    ),
}


@pytest.mark.parametrize("visibility", ["late", "early"])
@pytest.mark.parametrize("schedule", ["lockstep", "descending", "random(1)"])
@pytest.mark.parametrize("name", CLEAN)
def test_nothing_is_reported(name: str, schedule: str, visibility: str) -> None:
    assert kinds(CLEAN[name], schedule=schedule, visibility=visibility) == []


@pytest.mark.parametrize("schedule", ["lockstep", "ascending", "random(2)"])
@pytest.mark.parametrize(
    ("code", "kind", "message"),
    [
        (
            FENCE + SHARED + COMMIT + "add.u32 %t1, %d5, 1;\n" + wait(0),
            "register-in-flight",
            "accesses an accumulator of a wgmma in flight",
        ),
        (
            FENCE + SHARED + COMMIT + "mov.u32 %d5, 1;\n" + wait(0),
            "register-in-flight",
            "accesses an accumulator of a wgmma in flight",
        ),
        (
            FENCE + SHARED + COMMIT + wait(1) + "mov.u32 %t1, %d0;\n" + wait(0),
            "register-in-flight",
            "no wgmma.wait_group covers it",
        ),
        (
            FENCE + SHARED + COMMIT + "bar.sync 0;\nmov.u32 %d5, 1;\n" + wait(0),
            "register-in-flight",
            "accesses an accumulator of a wgmma in flight",
        ),
        (  # not committed: no wait covers it
            FENCE + SHARED + wait(0) + "mov.u32 %t1, %d0;\n",
            "register-in-flight",
            "accesses an accumulator",
        ),
        (
            FENCE + REGISTERS + COMMIT + "mov.u32 %a2, 1;\n" + wait(0),
            "register-in-flight",
            "accesses a fragment A of a wgmma in flight",
        ),
        (SHARED + COMMIT + wait(0), "missing-wgmma-fence", "has executed no wgmma.f"),
        (
            FENCE + "add.u32 %d3, %d3, 1;\n" + SHARED + COMMIT + wait(0),
            "missing-wgmma-fence",
            "uses a register that is accessed before, with no wgmma.fence since",
        ),
        (
            FENCE
            + SHARED
            + COMMIT
            + wait(0)
            + "mov.u32 %t1, %d9;\n"
            + SHARED
            + COMMIT
            + wait(0),
            "missing-wgmma-fence",
            "uses a register that is accessed before",
        ),
        (
            FENCE + "mov.u32 %a1, 5;\n" + REGISTERS + COMMIT + wait(0),
            "missing-wgmma-fence",
            "uses a register that is accessed before",
        ),
        (  # the same accumulators in another shape
            FENCE
            + SHARED
            + SHARED.replace("m64n64", "m64n32").replace(D, vector("d", 16))
            + COMMIT
            + wait(0),
            "missing-wgmma-fence",
            "uses a register that is accessed before",
        ),
        (
            FENCE
            + SHARED
            + COMMIT
            + "bar.sync 0;\nsetp.eq.u32 %p2, %t0, 64;\n"
            + "@%p2 st.shared.b32 [tile], %t0;\n"
            + wait(0),
            "write-while-read",
            "write over what an operation issued by warp",
        ),
        (  # by the warp itself, before its wait
            FENCE
            + SHARED
            + COMMIT
            + wait(1)
            + "setp.eq.u32 %p2, %t0, 0;\n@%p2 st.shared.b32 [tile], %t0;\n"
            + wait(0),
            "write-while-read",
            "write over what an operation issued by warp",
        ),
        (  # after a wait that does not cover it
            FENCE
            + SHARED
            + COMMIT
            + SHARED
            + COMMIT
            + wait(1)
            + "setp.eq.u32 %p2, %t0, 0;\n@%p2 st.shared.b32 [tile+8192], %t0;\n"
            + wait(0),
            "write-while-read",
            "write over what an operation issued by warp",
        ),
        (  # written with no barrier before another warp's wgmma reads it
            "setp.eq.u32 %p2, %t0, 0;\n@%p2 st.shared.b32 [tile+8192], %t0;\n"
            + FENCE
            + SHARED
            + COMMIT
            + wait(0),
            "read-after-write",
            "no barrier between",
        ),
    ],
)
def test_what_is_reported(code: str, kind: str, message: str, schedule: str) -> None:
    result = executed(code, schedule=schedule)
    found = [hazard for hazard in result.hazards if hazard.kind == kind]
    if schedule != "lockstep" and not found:
        # Which of two accesses without an order comes first, the schedule says.
        swapped = {"write-after-read", "read-after-write", "write-while-read"}
        assert swapped & {hazard.kind for hazard in result.hazards}
        return
    assert found, [str(hazard) for hazard in result.hazards]
    assert message in found[0].message


def test_reads_of_what_nothing_has_written() -> None:
    code = SET.replace(str(B), str(descriptor(20480, 0, 1024, "128")))
    text = kernel(code + FENCE + SHARED + COMMIT + wait(0), 32, SIZE)
    text = text.replace(
        "mov.u32 %t0, %tid.x;",
        "mov.u32 %t0, %tid.x; .shared .align 1024 .b8 other[16384];",
        1,
    )
    arrays = [np.zeros(n, np.uint8) for n in (SIZE, 128 * 128, 2048)]
    result = launch(text, "kernel", (1,), (128,), arrays)
    (found,) = result.hazards
    assert found.kind == "uninitialised-read"
    assert "its value is multiplied at PTX line" in found.message


def test_what_is_never_waited_for_is_a_note() -> None:
    text = kernel(SET + FENCE + SHARED + COMMIT + "ret;\n", 32, SIZE)
    result = executed(FENCE + SHARED + COMMIT + "ret;\n")
    (note,) = result.notes
    assert note.kind == "wgmma-in-flight-at-exit"
    assert note.line == line_of(text, "wgmma.mma_async")
    assert result.hazards == ()


@pytest.mark.parametrize("schedule", ["lockstep", "ascending", "random(1)"])
@pytest.mark.parametrize(
    ("code", "message"),
    [
        (
            "setp.lt.u32 %p2, %t0, 64;\n@%p2 bra SKIP;\n"
            + FENCE
            + SHARED
            + COMMIT
            + wait(0)
            + "SKIP:\n",
            r"its warpgroup, which block \(0, 0, 0\) warps 0, 1 have not issued",
        ),
        (
            "setp.lt.u32 %p2, %t0, 64;\n"
            + FENCE
            + "@%p2 bra OTHER;\n"
            + SHARED
            + "bra JOIN;\nOTHER:\n"
            + SHARED
            + "JOIN:\n"
            + COMMIT
            + wait(0),
            "are of one warpgroup, and differ in their wgmma number 1",
        ),
        (
            "shr.u32 %t1, %t0, 5;\ncvt.u64.u32 %g6, %t1;\nadd.u64 %y, %y, %g6;\n"
            + FENCE
            + SHARED
            + COMMIT
            + wait(0),
            "with other descriptors",
        ),
        (
            "cvt.u64.u32 %g6, %t0;\nadd.u64 %y, %y, %g6;\n" + FENCE + SHARED + COMMIT,
            "the lanes of a warp have different descriptors",
        ),
        (
            "setp.eq.u32 %p2, %t0, 5;\n@%p2 bra SKIP;\n"
            + FENCE
            + SHARED
            + COMMIT
            + wait(0)
            + "SKIP:\n",
            "a part of",
        ),
        (
            FENCE
            + SHARED
            + COMMIT
            + "setp.eq.u32 %p2, %t0, 5;\n@%p2 bra SKIP;\n"
            + wait(0)
            + "SKIP:\n",
            "a part of",
        ),
        (
            "mov.b64 %y, 0x4000004000003fff;\n" + FENCE + SHARED + COMMIT,
            "out-of-bounds 16-byte shared access",
        ),
    ],
)
def test_faults(code: str, message: str, schedule: str) -> None:
    with pytest.raises(EmulationError, match=message) as caught:
        executed(code, schedule=schedule)
    assert "\n" not in str(caught.value)


def test_a_block_without_whole_warpgroups() -> None:
    text = kernel(SET + FENCE + SHARED + COMMIT + wait(0), 32, SIZE)
    arrays = [np.zeros(n, np.uint8) for n in (SIZE, 128 * 128, 2048)]
    with pytest.raises(EmulationError, match="are no whole warpgroup"):
        launch(text, "kernel", (1,), (96,), arrays)
