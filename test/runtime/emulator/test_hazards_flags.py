"""Flags in memory: what releases, fences and scopes order, and what they do not."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from fixture_kernels import SCHEDULES
from kernel_text import launch, module
from racy_kernels import kinds

from alcop_mlir.runtime.emulator.machine import releases

# Warp 0 writes `data`, and sets the flag; warp 1 waits for it and reads `data`.
START = """
    .shared .align 16 .b8 cells[512]; .shared .align 16 .b8 words[32];
    .reg .b32 %i, %w, %at, %v, %t, %far, %rank; .reg .pred %p, %q;
    .reg .b64 %data, %flag, %out, %x;
    mov.u32 %i, %tid.x; shr.u32 %w, %i, 5; and.b32 %i, %i, 31;
    ld.param.u64 %out, [p0]; mad.wide.u32 %out, %i, 4, %out;
    ld.param.u64 %flag, [p2];
    @ADDRESSES
    setp.eq.u32 %q, %i, 0;
"""
ADDRESSES = {
    "shared": """
        mov.u32 %at, cells; mad.lo.u32 %at, %i, 4, %at; cvt.u64.u32 %data, %at;
        mov.u32 %far, words; cvt.u64.u32 %flag, %far;
        mov.u32 %v, %tid.x; setp.eq.u32 %p, %v, 0;
        @%p st.shared.u64 [words], 0; bar.sync 0;
    """,
    "global": "ld.param.u64 %data, [p1]; mad.wide.u32 %data, %i, 4, %data;",
}
BODY = """
    setp.ne.u32 %p, %w, 0; @%p bra READS;
    add.u32 %v, %i, 7; st.SPACE.u32 [%data], %v;
    bar.warp.sync -1;
    @WRITE
    ret;
READS:
    @READ
    setp.eq.u32 %p, %t, 0; @%p bra READS;
    @BEHIND
    ld.SPACE.u32 %v, [%data]; st.global.u32 [%out], %v;
"""
# What sets the flag, what reads it, what comes behind the loop.
CORRECT = {
    "release and acquire": (
        "@%q st.release.SCOPE.SPACE.u32 [%flag], 1;",
        "ld.acquire.SCOPE.SPACE.u32 %t, [%flag];",
        "",
    ),
    "fences": (
        "fence.acq_rel.SCOPE; @%q st.relaxed.SCOPE.SPACE.u32 [%flag], 1;",
        "ld.relaxed.SCOPE.SPACE.u32 %t, [%flag];",
        "fence.acq_rel.SCOPE;",
    ),
    "a fence and an acquire": (
        "fence.sc.SCOPE; @%q red.relaxed.SCOPE.SPACE.add.u32 [%flag], 1;",
        "atom.acquire.SCOPE.SPACE.add.u32 %t, [%flag], 0;",
        "",
    ),
    "a release and a fence": (
        "@%q atom.release.SCOPE.SPACE.exch.b32 %t, [%flag], 1;",
        "atom.relaxed.SCOPE.SPACE.or.b32 %t, [%flag], 0;",
        "fence.acq_rel.SCOPE;",
    ),
    "as volatile has it": (
        "membar.gl; @%q st.volatile.SPACE.u32 [%flag], 1;",
        "ld.volatile.SPACE.u32 %t, [%flag];",
        "membar.gl;",
    ),
    "both of one atomic": (
        "@%q atom.acq_rel.SCOPE.SPACE.cas.b32 %t, [%flag], 0, 1;",
        "atom.acq_rel.SCOPE.SPACE.cas.b32 %t, [%flag], 2, 3;",
        "",
    ),
}
WEAKER = (
    (r"\.(release|acquire|acq_rel)\.(cta|gpu)\.(shared|global)", r".relaxed.\2.\3"),
    (r"(fence\S+|membar\S+) ?", ""),
)


def text_of(name: str, space: str, scope: str) -> str:
    write, read, behind = CORRECT[name]
    body = BODY.replace("@WRITE", write).replace("@READ", read)
    body = START.replace("@ADDRESSES", ADDRESSES[space]) + body
    body = body.replace("@BEHIND", behind).replace("SCOPE", scope)
    return body.replace("SPACE", space)


def run(body: str, threads: int = 64, **options: Any) -> tuple[set[str], np.ndarray]:
    out, data, flag = (np.zeros(n, np.uint32) for n in (32, 32, 4))
    text = module(f"{body}\nret;", ["u64", "u64", "u64"], target="sm_90", version="8.6")
    result = launch(text, None, (1,), (threads,), [out, data, flag], **options)
    return kinds(result), out


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(("space", "scope"), [("shared", "cta"), ("global", "gpu")])
@pytest.mark.parametrize("name", CORRECT)
def test_a_flag_orders(name: str, scope: str, space: str, schedule: str) -> None:
    found, out = run(text_of(name, space, scope), schedule=schedule)
    assert found == set()
    np.testing.assert_array_equal(out, np.arange(32) + 7)


def mutants(text: str) -> list[str]:
    """The text with one modifier, or one fence, less."""
    return [
        text[: match.start()] + match.expand(by) + text[match.end() :]
        for pattern, by in WEAKER
        for match in re.finditer(pattern, text)
    ]


@pytest.mark.parametrize("schedule", ["lockstep", "random(1)"])
@pytest.mark.parametrize("space", ["shared", "global"])
@pytest.mark.parametrize("name", CORRECT)
def test_less_does_not_order(name: str, space: str, schedule: str) -> None:
    broken = mutants(text_of(name, space, "cta"))
    assert len(broken) == 2
    for text in broken:
        assert run(text, schedule=schedule)[0] == {"read-after-write"}


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_weak_flags_race_themselves(schedule: str) -> None:
    text = text_of("release and acquire", "shared", "cta")
    for modifier in (".release.cta", ".acquire.cta"):
        weak = text.replace(modifier, "")
        assert "read-after-write" in run(weak, schedule=schedule)[0]


# Warp 0 fills the cell of each lane, warp 1 empties it: three times, by one flag.
PING_PONG = (
    START.replace("@ADDRESSES", ADDRESSES["shared"])
    + """
    mov.u32 %far, 0; mov.u32 %rank, 0;
AGAIN:
    @WAIT
    bar.warp.sync -1;
    setp.ne.u32 %p, %w, 0; @%p bra TAKE;
    mad.lo.u32 %v, %far, 100, %i; st.shared.u32 [%data], %v; bra.uni SET;
TAKE:
    ld.shared.u32 %v, [%data]; add.u32 %rank, %rank, %v;
SET:
    bar.warp.sync -1;
    @%q atom.release.cta.shared.add.u32 %t, [%flag], 1;
    add.u32 %far, %far, 1; setp.lt.u32 %p, %far, 3; @%p bra AGAIN;
    setp.eq.u32 %p, %w, 0; @%p bra END;
    st.global.u32 [%out], %rank;
END:
"""
)
TURN = """
    mad.lo.u32 %v, %far, 2, %w;
L: ld.acquire.cta.shared.u32 %t, [%flag]; setp.ne.u32 %p, %t, %v; @%p bra L;
"""


@pytest.mark.parametrize("schedule", ["lockstep", "random(3)"])
def test_a_flag_that_counts(schedule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(releases, "_MOST_RECORDS", 2)
    text = PING_PONG.replace("@WAIT", TURN)
    found, out = run(text, schedule=schedule)
    assert found == set()
    np.testing.assert_array_equal(out, 300 + 3 * np.arange(32))
    relaxed = text.replace("atom.release", "atom.relaxed")
    assert "read-after-write" in run(relaxed, schedule=schedule)[0]
    relaxed = text.replace("ld.acquire", "ld.relaxed")
    assert "read-after-write" in run(relaxed, schedule=schedule)[0]


# Warp 0 releases, warp 1 hands on with an atomic, warp 2 reads what warp 0 has written.
CHAIN = (
    START.replace("@ADDRESSES", ADDRESSES["shared"])
    + """
    setp.eq.u32 %p, %w, 2; @%p bra READS;
    setp.eq.u32 %p, %w, 1; @%p bra HANDS;
    add.u32 %v, %i, 7; st.shared.u32 [%data], %v; bar.warp.sync -1;
    @%q st.release.cta.shared.u32 [%flag], 1;
    ret;
HANDS:
    @!%q bra END;
L:  ld.relaxed.cta.shared.u32 %t, [%flag]; setp.ne.u32 %p, %t, 1; @%p bra L;
    @HAND
    st.relaxed.cta.shared.u32 [words+4], 1;
    ret;
READS:
    ld.relaxed.cta.shared.u32 %t, [words+4]; setp.ne.u32 %p, %t, 1; @%p bra READS;
    ld.acquire.cta.shared.u32 %t, [%flag];
    ld.shared.u32 %v, [%data]; st.global.u32 [%out], %v;
END:
"""
)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_atomics_hand_on_and_stores_do_not(schedule: str) -> None:
    """PTX ISA "Observation Order"."""
    hand = "atom.relaxed.cta.shared.add.u32 %t, [%flag], 1;"
    text = CHAIN.replace("@HAND", hand)
    assert run(text, threads=96, schedule=schedule)[0] == set()
    stored = text.replace(hand, "st.relaxed.cta.shared.u32 [%flag], 2;")
    found = run(stored, threads=96, schedule=schedule)[0]
    assert found == {"read-after-write"}
    # What it has acquired itself it may release.
    fenced = stored.replace("st.relaxed", "fence.acq_rel.cta; st.relaxed")
    assert run(fenced, threads=96, schedule=schedule)[0] == set()
    for fence in ("acquire", "release"):
        half = fenced.replace("fence.acq_rel", f"fence.{fence}")
        assert run(half, threads=96, schedule=schedule)[0] == {"read-after-write"}


# Each block of a cluster writes to the other one's cells, and sets a flag there.
FAR = """
    .shared .align 16 .b8 cells[128]; .shared .align 16 .b8 words[16];
    .reg .b32 %i, %at, %v, %t, %far, %flag, %peer; .reg .pred %p, %q; .reg .b64 %out;
    mov.u32 %i, %tid.x; setp.eq.u32 %q, %i, 0; mov.u32 %v, %cluster_ctarank;
    xor.b32 %peer, %v, 1; mov.u32 %at, cells; mad.lo.u32 %at, %i, 4, %at;
    mapa.shared::cluster.u32 %far, %at, %peer;
    mov.u32 %t, words; mapa.shared::cluster.u32 %flag, %t, %peer;
    @%q st.shared.u32 [words], 0;
    barrier.cluster.arrive; barrier.cluster.wait;
    mad.lo.u32 %v, %v, 100, %i; st.shared::cluster.u32 [%far], %v;
    bar.warp.sync -1;
    @WRITE
L:  @READ
    setp.eq.u32 %p, %t, 0; @%p bra L;
    @BEHIND
    ld.shared.u32 %v, [%at];
    ld.param.u64 %out, [p0]; mad.wide.u32 %out, %peer, 128, %out;
    mad.wide.u32 %out, %i, 4, %out; st.global.u32 [%out], %v;
    barrier.cluster.arrive; barrier.cluster.wait;
"""
ACROSS = (
    (
        "@%q st.release.cluster.shared::cluster.u32 [%flag], 1;",
        "ld.acquire.cluster.shared.u32 %t, [words];",
        "",
    ),
    (
        "fence.acq_rel.cluster; @%q red.relaxed.cluster.shared::cluster.or.b32 "
        "[%flag], 1;",
        "ld.relaxed.gpu.shared.u32 %t, [words];",
        "fence.acq_rel.cluster;",
    ),
)


def run_across(write: str, read: str, behind: str, **options: Any) -> set[str]:
    body = FAR.replace("@WRITE", write).replace("@READ", read)
    body = body.replace("@BEHIND", behind)
    given = {"target": "sm_90", "version": "8.6"}
    given["directives"] = ".reqnctapercluster 2"
    out = np.zeros(64, np.uint32)
    text = module(f"{body}\nret;", ["u64"], **given)
    result = launch(text, None, (2,), (32,), [out], **options)
    wanted = np.concatenate([np.arange(32), np.arange(32) + 100])
    np.testing.assert_array_equal(np.sort(out), wanted)
    return kinds(result)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("protocol", range(2))
def test_blocks_of_a_cluster(protocol: int, schedule: str) -> None:
    write, read, behind = ACROSS[protocol]
    options = {"schedule": schedule}
    assert run_across(write, read, behind, **options) == set()
    narrow = [part.replace(".cluster.", ".cta.") for part in (write, read, behind)]
    narrow = [part.replace(".cluster;", ".cta;") for part in narrow]
    narrow[1] = narrow[1].replace(".gpu.", ".cta.")
    for at in range(3):
        parts = [write, read, behind]
        if narrow[at] == parts[at]:
            continue
        parts[at] = narrow[at]
        assert run_across(*parts, **options) & {"read-after-write"}


RELAXED_BARRIERS = {
    "mbarrier": (
        "FENCE mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [%flag];",
        "mbarrier.try_wait.parity.relaxed.cluster.shared::cta.b64 %p, [words], 0;"
        "selp.u32 %t, 1, 0, %p;",
        "FENCE",
    ),
    "cluster": (
        "FENCE barrier.cluster.arrive.relaxed.aligned;",
        "barrier.cluster.wait.aligned; mov.u32 %t, 1;",
        "",
    ),
}


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("name", RELAXED_BARRIERS)
def test_fences_of_barriers_that_are_relaxed(name: str, schedule: str) -> None:
    parts = list(RELAXED_BARRIERS[name])
    with_init = "mbarrier.init.shared.b64 [words], 32; fence.mbarrier_init.release"
    text = FAR.replace("st.shared.u32 [words], 0;", f"{with_init}.cluster;", 1)
    text = text.replace("@%q mbarrier", "@!%q bra I; mbarrier").replace(
        "cluster;\n    barrier", "cluster;\nI:  barrier", 1
    )

    def found(*parts: str) -> set[str]:
        body = text
        for mark, part in zip(("@WRITE", "@READ", "@BEHIND"), parts, strict=True):
            body = body.replace(mark, part)
        given = {"target": "sm_90", "version": "8.6"}
        given["directives"] = ".reqnctapercluster 2"
        whole = module(f"{body}\nret;", ["u64"], **given)
        out = np.zeros(64, np.uint32)
        return kinds(launch(whole, None, (2,), (32,), [out], schedule=schedule))

    fence = "fence.acq_rel.cluster;"
    assert found(*(part.replace("FENCE", fence) for part in parts)) == set()
    for at, part in enumerate(parts):
        if "FENCE" in part:
            less = [one.replace("FENCE", fence) for one in parts]
            less[at] = part.replace("FENCE", "")
            assert found(*less) == {"read-after-write"}
