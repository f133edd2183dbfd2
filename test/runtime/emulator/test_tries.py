"""A warp that tries once whether a phase has ended, and waits where it has not."""

from __future__ import annotations

import numpy as np
import pytest
from fixture_kernels import MODES
from kernel_text import launch, module

from alcop_mlir.runtime.emulator import Result

WAIT = "WAIT: mbarrier.try_wait.parity.shared.b64 %q, [bar], 0; @!%q bra WAIT;"
KERNEL = """
    .shared .align 8 .b8 bar[8];
    .shared .align 4 .b8 cells[128];
    .reg .b32 %i, %at, %v; .reg .b64 %d, %out; .reg .pred %p, %q;
    ld.param.u64 %out, [p0];
    mov.u32 %i, %tid.x; and.b32 %at, %i, 31; shl.b32 %at, %at, 2;
    mov.u32 %v, cells; add.u32 %at, %at, %v;
    setp.ne.u32 %p, %i, 0;
    @!%p mbarrier.init.shared.b64 [bar], 32;
    bar.sync 0;
    setp.ge.u32 %p, %i, 32;
    @%p bra WRITE;
    mbarrier.HOW.parity.shared.b64 %q, [bar], 0;
    @%q bra READY;
    WAIT
READY:
    ld.shared.u32 %v, [%at];
    mad.wide.u32 %out, %i, 4, %out;
    st.global.u32 [%out], %v;
    ret;
WRITE:
    st.shared.u32 [%at], %i;
    mbarrier.arrive.shared.b64 %d, [bar];
    ret;
"""


def run(how: str, wait: str, mode: tuple[str, str]) -> tuple[np.ndarray, Result]:
    body = KERNEL.replace("HOW", how).replace("WAIT\n", f"{wait}\n")
    text = module(body, ["u64"], target="sm_90", version="8.0")
    out = np.zeros(32, np.uint32)
    visibility, schedule = mode
    result = launch(
        text, None, (1,), (64,), [out], visibility=visibility, schedule=schedule
    )
    return out, result


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("how", ["try_wait", "test_wait"])
def test_who_waits_after_it_is_right(how: str, mode: tuple[str, str]) -> None:
    out, result = run(how, WAIT, mode)
    assert out.tolist() == [*range(32, 64)]
    assert result.hazards == ()


@pytest.mark.parametrize("how", ["try_wait", "test_wait"])
def test_who_does_not_wait_after_it_is_found(how: str) -> None:
    _, result = run(how, "", ("late", "lockstep"))
    assert {hazard.kind for hazard in result.hazards} & {
        "read-after-write",
        "write-after-read",
        "uninitialised-read",
    }


ROUNDS = """
    .shared .align 8 .b8 bar[8];
    .shared .align 4 .b8 cells[128];
    .reg .b32 %i, %at, %v, %bit; .reg .b64 %d, %out; .reg .pred %p, %q;
    ld.param.u64 %out, [p0];
    mov.u32 %i, %tid.x; and.b32 %at, %i, 31; shl.b32 %at, %at, 2;
    mov.u32 %v, cells; add.u32 %at, %at, %v; mov.u32 %bit, 0;
    setp.ne.u32 %p, %i, 0;
    @!%p mbarrier.init.shared.b64 [bar], 32;
    bar.sync 0;
    setp.ge.u32 %p, %i, 32;
    @%p mbarrier.arrive.shared.b64 %d, [bar];
    bar.sync 0;
    @%p bra WRITE;
TRY:
    mbarrier.try_wait.parity.shared.b64 %q, [bar], %bit;
    LOOP
    add.u32 %bit, %bit, 1;
    setp.lt.u32 %q, %bit, 2;
    @%q bra TRY;
    ld.shared.u32 %v, [%at];
    mad.wide.u32 %out, %i, 4, %out;
    st.global.u32 [%out], %v;
    ret;
WRITE:
    st.shared.u32 [%at], %i;
    mbarrier.arrive.shared.b64 %d, [bar];
    ret;
"""


@pytest.mark.parametrize(("loop", "is_right"), [("@!%q bra TRY;", True), ("", False)])
def test_a_wait_that_went_well_may_fail_later(loop: str, is_right: bool) -> None:
    """The first phase is over when it is tried, the second one is not."""
    text = module(ROUNDS.replace("LOOP", loop), ["u64"], target="sm_90", version="8.0")
    out = np.zeros(32, np.uint32)
    result = launch(text, None, (1,), (64,), [out], visibility="late")
    assert (result.hazards == ()) == is_right
    assert not is_right or out.tolist() == [*range(32, 64)]
