"""setmaxnreg: registers go from warpgroups that give them to those that ask."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_text import launch, module

from alcop_mlir.runtime.emulator import EmulationError

ROLES = """
    .reg .b32 %i; .reg .pred %p; .reg .b64 %out;
    mov.u32 %i, %tid.x; ld.param.u64 %out, [p0]; mad.wide.u32 %out, %i, 4, %out;
    setp.ge.u32 %p, %i, 128; @%p bra CONSUMER;
    GIVE
    bra END;
CONSUMER:
    ASK
    st.global.u32 [%out], %i;
END:
    ret;
"""
GIVE, ASK = (
    "setmaxnreg.dec.sync.aligned.u32 40;",
    "setmaxnreg.inc.sync.aligned.u32 232;",
)


def run(
    give: str,
    ask: str,
    schedule: str = "lockstep",
    limits: str = "",
    hazards: bool = True,
) -> np.ndarray:
    text = ROLES.replace("GIVE", give).replace("ASK", ask)
    whole = module(text, ["u64"], target="sm_90a", version="8.0", directives=limits)
    out = np.zeros(384, np.uint32)
    options = {"schedule": schedule, "hazards": hazards}
    launch(whole, None, (2,), (384,), [out], **options)
    return out


@pytest.mark.parametrize("schedule", ["lockstep", "ascending", "descending", "random"])
def test_two_warpgroups_get_what_one_gives(schedule: str) -> None:
    """65,536 registers: 168 for each of 384 threads, then 40 and twice 232."""
    out = run(GIVE, ASK, schedule)
    np.testing.assert_array_equal(out[128:], np.arange(128, 384))


@pytest.mark.parametrize(
    ("give", "ask", "limits", "wanted"),
    [
        ("", ASK, "", "deadlock: .* have 168 registers a thread and wait for 232, 0 "),
        (GIVE.replace("40", "48"), ASK, "", "warps .*11 have 168 registers a thread"),
        (GIVE, ASK, ".maxnreg 128", "have 128 registers a thread and wait for 232"),
        (GIVE.replace("40", "176"), "", "", "setmaxnreg.dec to 176 registers of thr"),
        (GIVE.replace("40", "41"), "", "", "expected a multiple of 8 from 24 to 256"),
    ],
)  # fmt: skip
def test_errors(give: str, ask: str, limits: str, wanted: str) -> None:
    with pytest.raises(EmulationError, match=wanted) as error:
        run(give, ask, limits=limits)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("schedule", ["lockstep", "descending"])
@pytest.mark.parametrize(
    ("others", "wanted"),
    [
        ("", "executed: 1 by warp 0, 0 by warp 1, 0 by warp 2, 0 by warp 3 at block"),
        ("setmaxnreg.dec.sync.aligned.u32 48;", "have to execute the same setmaxnreg"),
        (GIVE, ""),
    ],
)
def test_all_warps_of_a_warpgroup_execute_it(
    others: str, wanted: str, schedule: str
) -> None:
    """Warp 0 gives registers back; what the other three of the warpgroup do."""
    give = f"""
    .reg .pred %q; setp.ge.u32 %q, %i, 32; @%q bra OTHERS;
    {GIVE}
    bra END;
OTHERS:
    {others}
"""
    if not wanted:
        run(give, "", schedule)
        return
    with pytest.raises(EmulationError, match=wanted) as error:
        run(give, "", schedule)
    assert "\n" not in str(error.value)


# What the warps that give registers do, what the next warpgroup does, is it enough.
MEETINGS = {
    "bar.sync 1, 128;": ("", True),
    "bar.arrive 1, 256; bar.sync 2, 256;": (
        "bar.sync 1, 256; bar.arrive 2, 256;",
        True,
    ),
    "bar.arrive 1, 256;": ("bar.sync 1, 256;", False),
    "bar.warp.sync -1;": ("", False),
    "": ("", False),
}


@pytest.mark.parametrize("schedule", ["lockstep", "ascending", "descending"])
@pytest.mark.parametrize("between", MEETINGS)
def test_warps_of_a_warpgroup_meet_between_two(between: str, schedule: str) -> None:
    others, enough = MEETINGS[between]
    leave = f".reg .pred %q; setp.ge.u32 %q, %i, 256; @%q bra END; {others}"
    give = f"{GIVE} {between} setmaxnreg.dec.sync.aligned.u32 32;"
    run(give, leave, schedule, hazards=False)
    if enough:
        run(give, leave, schedule)
        return
    wanted = "behind the setmaxnreg of warp .: .* synchronise between two .* at block"
    with pytest.raises(EmulationError, match=wanted) as error:
        run(give, leave, schedule)
    assert "\n" not in str(error.value)


def test_a_third_one_needs_a_barrier_of_its_own() -> None:
    more = "bar.sync 1, 128; setmaxnreg.dec.sync.aligned.u32 32;"
    run(GIVE + more + more.replace(" 32;", " 24;"), "")
    with pytest.raises(EmulationError, match="have to synchronise between two"):
        run(GIVE + more + "setmaxnreg.dec.sync.aligned.u32 24;", "")


@pytest.mark.parametrize("schedule", ["lockstep", "descending"])
@pytest.mark.parametrize(
    ("give", "wanted"),
    [
        (
            f"@!%q bra OVER; {GIVE} bra OVER; OVER: bar.warp.sync -1;",
            "a part of .*wait",
        ),
        (
            f"@%q bra LEFT; {GIVE} bra OVER; LEFT: {GIVE} OVER:",
            "deadlock: .* a part of",
        ),
        (f"@!%q exit; {GIVE}", "setmaxnreg is executed by only a part of a warp"),
    ],
    ids=["skipped", "two arms", "ended"],
)
def test_lanes_of_a_warp_execute_it_together(
    give: str, wanted: str, schedule: str
) -> None:
    """Lane 3 of each warp is elsewhere: reported, and no endless run."""
    apart = f"""
        .reg .b32 %lane; .reg .pred %q;
        and.b32 %lane, %i, 31; setp.ne.u32 %q, %lane, 3; {give}"""
    with pytest.raises(EmulationError, match=wanted):
        run(apart, "", schedule)
