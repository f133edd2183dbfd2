"""Races between the blocks of a cluster, blocks that end too early, deadlocks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fixture_kernels import MODES
from kernel_text import launch, module
from racy_kernels import kinds

from alcop_mlir.runtime.emulator import EmulationError, Result

in_every_mode = pytest.mark.parametrize(("visibility", "schedule"), MODES)
START = """
    .shared .align 128 .b8 cells[512]; .shared .align 8 .b8 bar[8];
    .reg .b32 %i, %rank, %peer, %at, %far, %farbar, %v, %c<4>;
    .reg .b64 %out, %in, %d<4>; .reg .pred %p<4>;
    mov.u32 %i, %tid.x; mov.u32 %rank, %cluster_ctarank; xor.b32 %peer, %rank, 1;
    mov.u32 %at, cells; mad.lo.u32 %at, %i, 4, %at;
    mapa.shared::cluster.u32 %far, %at, %peer;
    mov.u32 %c0, bar; mapa.shared::cluster.u32 %farbar, %c0, %peer;
    mov.u32 %c0, %ctaid.x; mad.lo.u32 %c0, %c0, 64, %i;
    ld.param.u64 %out, [p0]; mad.wide.u32 %out, %c0, 4, %out;
    setp.ne.u32 %p1, %i, 0; setp.ne.u32 %p2, %rank, 0;
"""
MEET = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"
BEGIN = "barrier.cluster.arrive.relaxed; barrier.cluster.wait;\n"
SAVE = "st.global.u32 [%out], %v;\n"


def run(body: str, blocks: int = 4, ranks: int = 2, **options: Any) -> Result:
    """The body in blocks of 64 threads, in clusters of two; %i is stored in `cells`."""
    directive = f".reqnctapercluster {ranks}"
    given = {"target": "sm_90", "version": "8.1", "directives": directive}
    out = np.zeros((blocks, 64), np.uint32)
    text = module(f"{START}{body}\nret;", ["u64"], **given)
    return launch(text, None, (blocks,), (64,), [out], **options)


def found(body: str, **options: Any) -> set[str]:
    return kinds(run(body, **options))


EXCHANGE = f"""
    st.shared.u32 [%at], %c0;
    MEET
    ld.shared::cluster.u32 %v, [%far];
    {SAVE}
    LEAVE
"""


def exchange(meet: str = MEET, leave: str = MEET) -> str:
    return EXCHANGE.replace("MEET", meet).replace("LEAVE", leave)


@in_every_mode
def test_what_orders_blocks(visibility: str, schedule: str) -> None:
    options = {"visibility": visibility, "schedule": schedule}
    assert found(exchange(), **options) == set()
    unordered = {"read-after-write", "write-after-read", "uninitialised-read"}
    assert found(exchange("bar.sync 0;"), **options) & unordered
    relaxed = MEET.replace("arrive", "arrive.relaxed")
    assert found(exchange(relaxed), **options) == {"read-after-write"}
    # The wait is too late.
    arrive, wait = MEET.split("; ")
    late = exchange(f"{arrive};").replace(SAVE, f"{wait} {SAVE}")
    assert found(late, **options) & {"read-after-write", "uninitialised-read"}


@in_every_mode
def test_reads_and_writes_race(visibility: str, schedule: str) -> None:
    options = {"visibility": visibility, "schedule": schedule}
    again = exchange().replace(SAVE, f"{SAVE} bar.sync 0; st.shared.u32 [%at], 7;")
    assert found(again, **options) & {"write-after-read", "read-after-write"}
    ordered = again.replace("bar.sync 0;", MEET)
    assert found(ordered, **options) == set()
    both = (
        f"{BEGIN} st.shared::cluster.u32 [%far], %c0; st.shared.u32 [%at], %i;" + MEET
    )
    assert "write-after-write" in found(both, **options)
    atomics = "red.shared::cluster.add.u32 [%far], 1; red.shared.add.u32 [%at], 1;"
    first = f"st.shared.u32 [%at], 0; {MEET}"
    assert found(first + atomics + MEET, **options) == set()
    plain = atomics.replace("red.shared.add.u32 [%at], 1", "st.shared.u32 [%at], 7")
    assert "write-after-write" in found(first + plain + MEET, **options)


def test_a_report_names_both_blocks() -> None:
    (hazard,) = run(BEGIN + exchange("bar.sync 0;"), blocks=2).hazards[:1]
    text = str(hazard)
    assert hazard.kind == "read-after-write"
    assert "nothing of scope .cluster between" in text
    assert "block (1, 0, 0)" in text
    assert "block (0, 0, 0)" in text
    assert hazard.address < 512
    assert hazard.warp < 2


@in_every_mode
def test_global_memory_of_a_cluster(visibility: str, schedule: str) -> None:
    """Its blocks order what they do there by their barrier; other blocks do not."""
    options = {"visibility": visibility, "schedule": schedule}
    body = """
        add.u32 %v, %c0, 5; st.global.u32 [%out], %v;
        MEET
        xor.b32 %c1, %c0, FLIP; ld.param.u64 %in, [p0]; mad.wide.u32 %in, %c1, 4, %in;
        ld.global.u32 %v, [%in];
    """
    near = body.replace("FLIP", "64")
    assert found(near.replace("MEET", MEET), **options) == set()
    races = found(near.replace("MEET", "bar.sync 0;"), **options)
    assert races & {"read-after-write", "write-after-read"}
    far = body.replace("FLIP", "128").replace("MEET", MEET)
    assert found(far, **options) == {"block-conflict"}


@in_every_mode
@pytest.mark.parametrize("access", ["st", "atom", "arrive"])
def test_a_block_may_not_have_begun(
    access: str, visibility: str, schedule: str
) -> None:
    options = {"visibility": visibility, "schedule": schedule}
    there = {
        "st": "st.shared::cluster.u32 [%far], 5;",
        "atom": "atom.shared::cluster.exch.b32 %v, [%far], 5;",
        "arrive": "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%farbar];",
    }
    init = "@%p1 bra R; mbarrier.init.shared.b64 [bar], 100;"
    init += "fence.mbarrier_init.release.cluster; R:\n"
    body = f"{init}{BEGIN}{there[access]}{MEET}"
    assert "block-not-begun" not in found(body, **options)
    late, why = body.replace(BEGIN, "bar.sync 0;"), ""
    try:
        reported = found(late, **options)
    except EmulationError as error:
        reported, why = set[str](), str(error)
    assert "block-not-begun" in reported or "there is no mbarrier at" in why


# --- mbarriers, and scopes ----------------------------------------------------------

SEND = f"""
    @%p1 bra READY;
    mbarrier.init.shared.b64 [bar], 64;
    fence.mbarrier_init.release.cluster;
READY:
    barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;
    st.shared::cluster.u32 [%far], %c0;
    mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%farbar];
LOOP:
    mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p0, [bar], 0;
    @!%p0 bra LOOP;
    ld.shared.u32 %v, [%at];
    {SAVE}{MEET}
"""


@in_every_mode
def test_scopes(visibility: str, schedule: str) -> None:
    options = {"visibility": visibility, "schedule": schedule}
    assert found(SEND, **options) == set()
    for wide, narrow in (
        ("arrive.release.cluster.", "arrive.release.cta."),
        ("arrive.release.cluster.", "arrive."),
        ("arrive.release.cluster.", "arrive.relaxed.cluster."),
        ("parity.acquire.cluster.", "parity.acquire.cta."),
        ("parity.acquire.cluster.", "parity."),
        ("parity.acquire.cluster.", "parity.relaxed.cluster."),
    ):
        assert wide in SEND
        assert found(SEND.replace(wide, narrow), **options) == {"read-after-write"}


@in_every_mode
def test_any_scope_lets_memory_be_written_again(visibility: str, schedule: str) -> None:
    """What was read before an arrival, whatever its scope, may be overwritten after."""
    options = {"visibility": visibility, "schedule": schedule}
    body = f"""
        @%p1 bra READY;
        mbarrier.init.shared.b64 [bar], 64; fence.mbarrier_init.release.cluster;
    READY:
        st.shared.u32 [%at], %c0;
        {MEET}
        ld.shared::cluster.u32 %v, [%far];
        mbarrier.arrive.shared::cluster.b64 _, [%farbar];
    LOOP:
        mbarrier.try_wait.parity.shared.b64 %p0, [bar], 0;
        @!%p0 bra LOOP;
        st.shared.u32 [%at], 7;
        {SAVE}{MEET}"""
    assert found(body, **options) == set()
    assert "write-after-read" in found(
        body.replace("@!%p0 bra LOOP;", "").replace("[bar], 0;", "[bar], 1;"), **options
    )


@in_every_mode
def test_an_init_has_to_be_known(visibility: str, schedule: str) -> None:
    options = {"visibility": visibility, "schedule": schedule}
    unfenced = SEND.replace("fence.mbarrier_init.release.cluster;", "")
    assert "read-after-write" in found(unfenced, **options)
    released = unfenced.replace("arrive.relaxed.aligned", "arrive.aligned")
    assert found(released, **options) == set()
    near = SEND.replace(
        "barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;",
        "bar.sync 0;",
    )
    why = "nothing"
    try:
        reported = found(near, **options)
    except EmulationError as error:
        reported, why = set[str](), str(error)
    assert "there is no mbarrier at" in why or "read-after-write" in reported


# --- the end of a block -------------------------------------------------------------


@in_every_mode
@pytest.mark.parametrize(
    "access",
    [
        "ld.shared::cluster.u32 %v, [%far];",
        "st.shared::cluster.u32 [%far], 5;",
        "atom.shared::cluster.add.u32 %v, [%far], 5;",
        "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%farbar];",
    ],
)
def test_a_block_ends_before_it_is_accessed(
    access: str, visibility: str, schedule: str
) -> None:
    options = {"visibility": visibility, "schedule": schedule}
    body = f"""
        st.shared.u32 [%at], %c0;
        @%p1 bra READY;
        mbarrier.init.shared.b64 [bar], 100; fence.mbarrier_init.release.cluster;
    READY:
        {MEET}
        @!%p2 bra END;
        {access}
    END:
        LEAVE"""
    assert found(body.replace("LEAVE", MEET), **options) == set()
    assert found(body.replace("LEAVE", "bar.sync 0;"), **options) == {"block-ended"}
    relaxed = MEET.replace("arrive.aligned", "arrive.relaxed.aligned")
    assert found(body.replace("LEAVE", relaxed), **options) == {"block-ended"}
    # It is enough that one warp of the block waits.
    one = f"shr.u32 %c1, %i, 5; setp.eq.u32 %p3, %c1, 1; @%p3 ret; {MEET}"
    assert found(body.replace("LEAVE", one), **options) <= {"block-ended"}


def test_a_block_ends_under_a_copy() -> None:
    body = f"""
        @%p1 bra READY;
        mbarrier.init.shared.b64 [bar], 1; fence.mbarrier_init.release.cluster;
        mbarrier.arrive.expect_tx.shared.b64 %d0, [bar], 256;
    READY:
        {MEET}
        st.async.shared::cluster.mbarrier::complete_tx::bytes.u32
            [%far], %c0, [%farbar];
        WAIT"""
    wait = "LOOP: mbarrier.try_wait.parity.shared.b64 %p0, [bar], 0; @!%p0 bra LOOP;"
    assert found(body.replace("WAIT", wait)) == set()
    for visibility in ("late", "early"):
        result = found(body.replace("WAIT", ""), visibility=visibility)
        assert "block-ended" in result


# --- barrier.cluster ----------------------------------------------------------------


@in_every_mode
def test_phases(visibility: str, schedule: str) -> None:
    """Values go round a cluster of four, one block further in each phase."""
    body = f"""
        add.u32 %peer, %rank, 1; and.b32 %peer, %peer, 3;
        mapa.shared::cluster.u32 %far, %at, %peer;
        mov.u32 %v, %c0; mov.u32 %c1, 0;
        {BEGIN}
    TURN:
        st.shared::cluster.u32 [%far], %v;
        barrier.cluster.arrive;
        add.u32 %c1, %c1, 1;
        barrier.cluster.wait.acquire;
        ld.shared.u32 %v, [%at];
        {MEET}
        setp.lt.u32 %p3, %c1, 3; @%p3 bra TURN;
        {SAVE}"""
    out = np.zeros((8, 64), np.uint32)
    given = {"target": "sm_90", "version": "8.1"}
    text = module(f"{START}{body}\nret;", ["u64"], **given)
    options: dict[str, Any] = {"visibility": visibility, "schedule": schedule}
    result = launch(text, None, (8,), (64,), [out], cluster=(4, 1, 1), **options)
    assert result.hazards == ()
    block = np.arange(8)
    source = block // 4 * 4 + (block - 3) % 4
    np.testing.assert_array_equal(out, source[:, None] * 64 + np.arange(64))


def test_threads_that_have_ended_are_not_waited_for() -> None:
    body = f"setp.lt.u32 %p3, %i, 32; @%p3 ret; {MEET}"
    assert found(body) == set()


@pytest.mark.parametrize(
    ("body", "match"),
    [
        (
            "@%p2 bra END; barrier.cluster.arrive; barrier.cluster.wait; END: "
            "@!%p2 bra OUT; mbarrier.init.shared.b64 [cells], 1; LOOP: "
            "mbarrier.try_wait.parity.shared.b64 %p0, [cells], 0; @!%p0 bra LOOP; OUT:",
            r"deadlock.*block \(0, 0, 0\) warps 0, 1 wait at barrier.cluster, at which "
            r"64 of 128 threads of the cluster have arrived",
        ),
        ("barrier.cluster.arrive; barrier.cluster.arrive;", "second arrival"),
        ("barrier.cluster.wait;", "no arrival before it"),
        (
            "setp.lt.u32 %p3, %i, 5; @%p3 bra OUT; barrier.cluster.arrive.aligned; "
            "barrier.cluster.wait; OUT: bar.warp.sync -1;",
            "a part of .* waits for the rest of the warp",
        ),
    ],
)
def test_wrong_uses(body: str, match: str) -> None:
    with pytest.raises(EmulationError, match=match):
        run(body)


def test_named_barriers_are_those_of_a_block() -> None:
    """Each block counts its own arrivals, and a reduction is of its own threads."""
    body = f"""
        setp.lt.u32 %p3, %i, 20; @%p2 setp.lt.u32 %p3, %i, 7;
        bar.red.popc.u32 %v, 3, 64, %p3;
        {SAVE}{MEET}"""
    out = np.zeros((4, 64), np.uint32)
    given = {"target": "sm_90", "version": "8.1"}
    text = module(f"{START}{body}\nret;", ["u64"], **given)
    for schedule in ("lockstep", "random(2)"):
        launch(text, None, (4,), (64,), [out], cluster=(2, 1, 1), schedule=schedule)
        assert out[:, 0].tolist() == [20, 7, 20, 7]
        assert (out == out[:, :1]).all()


def test_blocks_whose_warps_are_no_whole_warpgroups() -> None:
    """Five warps and a part of one: barriers, ranks, the cluster's barrier."""
    body = f"""
        st.shared.u32 [%at], %c0; {MEET} ld.shared::cluster.u32 %v, [%far];
        mov.u32 %c2, %warpid; mad.lo.u32 %v, %c2, 1000, %v; {SAVE}{MEET}"""
    out = np.zeros((4, 170), np.uint32)
    given = {"target": "sm_90", "version": "8.1"}
    start = START.replace("cells[512]", "cells[1024]").replace("%c0, 64,", "%c0, 170,")
    text = module(f"{start}{body}\nret;", ["u64"], **given)
    for schedule in ("lockstep", "descending"):
        options: dict[str, Any] = {"cluster": (2, 1, 1), "schedule": schedule}
        result = launch(text, None, (4,), (170,), [out], **options)
        assert result.hazards == ()
        thread = np.arange(170)
        wanted = (np.arange(4) ^ 1)[:, None] * 170 + thread + thread // 32 * 1000
        np.testing.assert_array_equal(out, wanted)
