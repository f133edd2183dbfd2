"""Clusters: special registers, addresses, stores and copies from block to block."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fixture_kernels import MODES
from kernel_text import launch, module
from racy_kernels import kinds

from alcop_mlir.runtime.emulator import EmulationError, Result, TensorMap

in_every_mode = pytest.mark.parametrize(("visibility", "schedule"), MODES)
THREADS = 64
RANKS = 4
REGISTERS = """
    .shared .align 1024 .b8 buffer[8192];
    .shared .align 8 .b8 bar[8];
    .reg .b32 %i, %rank, %ranks, %at, %peer, %far, %farbar, %v, %c<6>;
    .reg .b64 %d<6>, %in, %out, %wide;
    .reg .b16 %mask; .reg .pred %p<4>;
    mov.u32 %i, %tid.x; setp.ne.u32 %p1, %i, 0;
    mov.u32 %rank, %cluster_ctarank; mov.u32 %ranks, %cluster_nctarank;
    add.u32 %peer, %rank, 1; rem.u32 %peer, %peer, %ranks;
    mov.u32 %c0, %ctaid.x; mad.lo.u32 %c0, %c0, 64, %i;
    ld.param.u64 %out, [p0]; mad.wide.u32 %out, %c0, 4, %out;
    mov.u32 %at, buffer; mad.lo.u32 %at, %i, 4, %at;
    mapa.shared::cluster.u32 %far, %at, %peer;
    mov.u32 %c1, bar; mapa.shared::cluster.u32 %farbar, %c1, %peer;
"""
MEET = "barrier.cluster.arrive.release; barrier.cluster.wait.acquire;\n"
# An mbarrier of each block, known to all of them.
BEGIN = f"""{REGISTERS}
    @%p1 bra READY;
    mbarrier.init.shared.b64 [bar], COUNT;
    fence.mbarrier_init.release.cluster;
READY:
    barrier.cluster.arrive.relaxed; barrier.cluster.wait;
"""
WAIT = """
LOOP:
    mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p0, [bar], 0;
    @!%p0 bra LOOP;
"""
STORE_V = "st.global.u32 [%out], %v;\n"
LEAVE = "barrier.cluster.arrive; barrier.cluster.wait;\n"


def text_of(body: str, ranks: int = RANKS, kinds_of: str = "u64") -> str:
    return module(
        f"{body}\nret;",
        kinds_of.split(),
        directives=f".explicitcluster .reqnctapercluster {ranks}, 1, 1",
        target="sm_90a",
        version="8.6",
    )


def run(
    body: str, blocks: int = 2 * RANKS, *more: Any, ranks: int = RANKS, **options: Any
) -> tuple[np.ndarray, Result]:
    """What each thread stored as %v, (blocks, threads), and the result."""
    out = np.full((blocks, THREADS), 0xEEEEEEEE, np.uint32)
    kinds_of = "u64 " + " ".join("u64" for _ in more)
    text = text_of(body, ranks, kinds_of)
    result = launch(text, None, (blocks,), (THREADS,), [out, *more], **options)
    return out, result


def peers(blocks: int = 2 * RANKS, step: int = 1) -> np.ndarray:
    """The number of the block whose rank is `step` higher, round the cluster."""
    block = np.arange(blocks)
    return block // RANKS * RANKS + (block % RANKS + step) % RANKS


# --- who is who --------------------------------------------------------------------


def test_special_registers() -> None:
    names = ["ctaid", "clusterid", "nclusterid", "cluster_ctaid", "cluster_nctaid"]
    reads = [f"%{name}.{axis}" for name in names for axis in "xyz"]
    reads += ["%cluster_ctarank", "%cluster_nctarank", "%tid.x", "%warpid"]
    body = """
        .reg .b32 %r<9>, %v; .reg .b64 %out; .reg .pred %p;
        ld.param.u64 %out, [p0];
        mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ctaid.y; mov.u32 %r2, %ctaid.z;
        mad.lo.u32 %r0, %r1, 4, %r0; mad.lo.u32 %r0, %r2, 24, %r0;
        mov.u32 %r1, %tid.x; mad.lo.u32 %r0, %r0, 40, %r1;
        mul.lo.u32 %r0, %r0, 80; cvt.u64.u32 %out, %r0;
        .reg .b64 %base; ld.param.u64 %base, [p0]; add.u64 %out, %base, %out;
    """
    for i, read in enumerate(reads):
        body += f"mov.u32 %v, {read}; st.global.u32 [%out+{4 * i}], %v;\n"
    body += "mov.pred %p, %is_explicit_cluster; selp.u32 %v, 1, 0, %p;\n"
    body += f"st.global.u32 [%out+{4 * len(reads)}], %v;\n"
    found = np.zeros((2, 6, 4, 40, len(reads) + 1), np.uint32)
    text = module(body + "ret;", ["u64"], target="sm_90", version="8.0")
    launch(text, None, (4, 6, 2), (40,), [found], cluster=(2, 3, 1))
    for z, y, x, t in np.ndindex(2, 6, 4, 40):
        inside = (x % 2, y % 3, 0)
        wanted = [x, y, z, x // 2, y // 3, z, 2, 2, 2, *inside, 2, 3, 1]
        wanted += [inside[0] + 2 * inside[1], 6, t, t // 32, 1]
        assert found[z, y, x, t].tolist() == wanted


@pytest.mark.parametrize(
    ("directive", "options", "wanted"),
    [
        ("", {}, [1, 0]),
        ("", {"cluster": (1, 1, 1)}, [1, 1]),
        (".maxclusterrank 4", {"cluster": (4, 1, 1)}, [4, 1]),
        (".explicitcluster", {"cluster": (2, 2, 1)}, [4, 1]),
        (".reqnctapercluster 2", {}, [2, 1]),
        (".reqnctapercluster 4, 2", {"cluster": (4, 2, 1)}, [8, 1]),
    ],
)
def test_dimensions(directive: str, options: dict[str, Any], wanted: list[int]) -> None:
    body = """
        .reg .b32 %v; .reg .b64 %out; .reg .pred %p; ld.param.u64 %out, [p0];
        mov.u32 %v, %cluster_nctarank; st.global.u32 [%out], %v;
        mov.pred %p, %is_explicit_cluster; selp.u32 %v, 1, 0, %p;
        st.global.u32 [%out+4], %v; ret;
    """
    out = np.zeros(2, np.uint32)
    text = module(body, ["u64"], directives=directive, target="sm_90", version="8.0")
    launch(text, None, (4, 4), (1,), [out], **options)
    assert out.tolist() == wanted


@pytest.mark.parametrize(
    ("directive", "cluster", "match"),
    [
        (".explicitcluster", None, "has to be launched with clusters"),
        (".reqnctapercluster 2", (4, 1, 1), r"requires clusters of \(2, 1, 1\)"),
        (".maxclusterrank 2", (4, 1, 1), r"more than the \.maxclusterrank 2"),
        ("", (3, 1, 1), r"grid of \(4, 4, 1\) cannot be divided into clusters of \(3,"),
        ("", (8, 4, 1), "32 blocks, more than 16"),
        ("", (0, 1, 1), "expected a cluster of three numbers"),
        ("", (2, 1), "expected a cluster of three numbers"),
    ],
)
def test_dimensions_that_cannot_be(directive: str, cluster: Any, match: str) -> None:
    text = module("ret;", directives=directive, target="sm_90", version="8.0")
    with pytest.raises(EmulationError, match=match):
        launch(text, None, (4, 4), (1,), [], cluster=cluster)


def test_older_targets_have_none() -> None:
    with pytest.raises(EmulationError, match="sm_80 has no clusters"):
        launch(module("ret;"), None, (4,), (1,), [], cluster=(2, 1, 1))


def test_a_batch_has_whole_clusters() -> None:
    """More blocks than run together, in clusters of a size that divides none."""
    body = f"{REGISTERS} st.shared.u32 [%at], %c0;\n{MEET}"
    body += f"ld.shared::cluster.u32 %v, [%far];\n{STORE_V}{LEAVE}"
    blocks = 3 * 50
    out, result = run(body, blocks, ranks=3)
    block = np.arange(blocks)
    other = block // 3 * 3 + (block % 3 + 1) % 3
    np.testing.assert_array_equal(out, other[:, None] * 64 + np.arange(64))
    assert result.hazards == ()


# --- addresses ---------------------------------------------------------------------


@pytest.mark.parametrize("space", ["shared::cluster", "generic"])
@pytest.mark.parametrize("step", range(RANKS))
def test_mapa_getctarank_isspacep(space: str, step: int) -> None:
    find = "getctarank.u64 %v, %d1;"
    if space != "generic":
        find = "getctarank.shared::cluster.u32 %v, %c5;"
    body = f"""{REGISTERS}
        add.u32 %peer, %rank, {step}; rem.u32 %peer, %peer, %ranks;
        cvta.shared.u64 %d0, buffer;
        mapa.u64 %d1, %d0, %peer;
        cvta.to.shared::cluster.u64 %d2, %d1; cvt.u32.u64 %c4, %d2;
        mapa.shared::cluster.u32 %c5, buffer, %peer;
        setp.ne.u32 %p0, %c4, %c5;
        @%p0 trap;
        {find}
        isspacep.shared::cta %p2, %d1; selp.u32 %c3, 16, 0, %p2; add.u32 %v, %v, %c3;
        isspacep.shared::cluster %p2, %d1; selp.u32 %c3, 32, 0, %p2;
        add.u32 %v, %v, %c3;
        isspacep.global %p2, %d1; selp.u32 %c3, 64, 0, %p2; add.u32 %v, %v, %c3;
        {STORE_V}"""
    out, _ = run(body)
    rank = np.arange(2 * RANKS) % RANKS
    wanted = (rank + step) % RANKS + (16 if step == 0 else 0) + 32
    np.testing.assert_array_equal(out, np.repeat(wanted[:, None], THREADS, 1))


def test_a_rank_that_there_is_not() -> None:
    with pytest.raises(EmulationError, match="no block of rank 4 in a cluster of 4"):
        run(f"{REGISTERS} mapa.shared::cluster.u32 %far, %at, 4;")


def test_the_memory_of_another_block_is_reached_by_name_only() -> None:
    with pytest.raises(EmulationError, match="block of rank 1, which this instruction"):
        run(f"{REGISTERS} ld.shared.u32 %v, [%far];")


def test_bounds_are_those_of_a_block() -> None:
    with pytest.raises(EmulationError, match="byte 8200 of 8200"):
        run(f"{REGISTERS} {MEET} ld.shared::cluster.u32 %v, [%far+8200]; {LEAVE}")


# --- loads, stores and atomics ------------------------------------------------------


@in_every_mode
@pytest.mark.parametrize("generic", [False, True])
def test_loads(generic: bool, visibility: str, schedule: str) -> None:
    load = "ld.shared::cluster.v2.u32 {%c2, %c3}, [%far];"
    if generic:
        load = "cvta.shared.u64 %d0, buffer; mul.wide.u32 %d1, %i, 4;"
        load += "add.u64 %d0, %d0, %d1; mapa.u64 %d0, %d0, %peer;"
        load += "ld.v2.u32 {%c2, %c3}, [%d0];"
    body = f"""{REGISTERS}
        mad.lo.u32 %at, %i, 4, %at; mad.lo.u32 %far, %i, 4, %far;
        st.shared.u32 [%at], %c0; not.b32 %c1, %c0; st.shared.u32 [%at+4], %c1;
        {MEET}{load.replace("%i, 4", "%i, 8")}
        not.b32 %c3, %c3; sub.u32 %c3, %c3, %c2; add.u32 %v, %c2, %c3;
        {STORE_V}{LEAVE}"""
    out, result = run(body, visibility=visibility, schedule=schedule)
    np.testing.assert_array_equal(out, peers()[:, None] * 64 + np.arange(64))
    assert result.hazards == ()


@in_every_mode
@pytest.mark.parametrize("generic", [False, True])
def test_stores(generic: bool, visibility: str, schedule: str) -> None:
    store = "st.shared::cluster.u32 [%far], %c0;"
    if generic:
        store = "cvt.u64.u32 %d0, %far; cvta.shared::cluster.u64 %d0, %d0;"
        store += "st.u32 [%d0], %c0;"
    body = f"{REGISTERS} {MEET} {store} {MEET} ld.shared.u32 %v, [%at]; {STORE_V}"
    out, result = run(body, visibility=visibility, schedule=schedule)
    np.testing.assert_array_equal(out, peers(step=-1)[:, None] * 64 + np.arange(64))
    assert result.hazards == ()


@in_every_mode
@pytest.mark.parametrize("opcode", ["atom", "red"])
def test_atomics(opcode: str, visibility: str, schedule: str) -> None:
    """All threads of a cluster add to 16 numbers of the block of rank 0."""
    result_of = "%c5, " if opcode == "atom" else ""
    body = f"""{REGISTERS}
        mov.u32 %v, 0; st.shared.u32 [%at], %v;
        {MEET}
        and.b32 %c1, %i, 15; mad.lo.u32 %c1, %c1, 4, buffer;
        mapa.shared::cluster.u32 %far, %c1, 0; add.u32 %c2, %rank, 1;
        {opcode}.shared::cluster.add.u32 {result_of}[%far], %c2;
        {MEET}
        ld.shared.u32 %v, [%at]; {STORE_V}"""
    out, result = run(body, visibility=visibility, schedule=schedule)
    wanted = np.zeros((2 * RANKS, THREADS), np.uint32)
    wanted[::RANKS, :16] = (1 + 2 + 3 + 4) * (THREADS // 16)
    np.testing.assert_array_equal(out, wanted)
    assert result.hazards == ()


# --- mbarriers of other blocks ------------------------------------------------------

ARRIVE = "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%farbar]"


@in_every_mode
@pytest.mark.parametrize("form", ["each", "count", "drop"])
def test_remote_arrivals(form: str, visibility: str, schedule: str) -> None:
    arrive = f"{ARRIVE};"
    if form == "count":
        arrive = f"bar.sync 0; @!%p1 {ARRIVE}, 64;"
    if form == "drop":
        arrive = arrive.replace("arrive.", "arrive_drop.")
    body = (
        BEGIN.replace("COUNT", "64")
        + f"""
        st.shared::cluster.u32 [%far], %c0;
        {arrive}
        {WAIT} ld.shared.u32 %v, [%at]; {STORE_V}{LEAVE}"""
    )
    out, result = run(body, visibility=visibility, schedule=schedule)
    np.testing.assert_array_equal(out, peers(step=-1)[:, None] * 64 + np.arange(64))
    assert result.hazards == ()


@in_every_mode
def test_remote_bytes(visibility: str, schedule: str) -> None:
    """expect_tx with an arrival, and alone, and complete_tx, in another block."""
    where = "relaxed.cluster.shared::cluster.b64 [%farbar]"
    body = (
        BEGIN.replace("COUNT", "1")
        + f"""
        st.shared::cluster.u32 [%far], %c0;
        bar.sync 0;
        @%p1 bra ARRIVED;
        mbarrier.expect_tx.{where}, 16;
        {ARRIVE.replace("arrive", "arrive.expect_tx", 1)}, 48;
        mbarrier.complete_tx.{where}, 40;
        mbarrier.complete_tx.{where}, 24;
    ARRIVED:
        {WAIT} ld.shared.u32 %v, [%at]; {STORE_V}{LEAVE}"""
    )
    out, result = run(body, visibility=visibility, schedule=schedule)
    np.testing.assert_array_equal(out, peers(step=-1)[:, None] * 64 + np.arange(64))
    assert result.hazards == ()


# --- st.async and red.async ---------------------------------------------------------

EXPECT = "@!%p1 mbarrier.arrive.expect_tx.shared.b64 %d5, [bar], {};\n"
VALUES = {"": "%c0", ".v2": "{%c0, %c1}", ".v4": "{%c0, %c1, %c2, %c3}"}


@in_every_mode
@pytest.mark.parametrize(
    ("kind", "vector"),
    [("b32", ""), ("u32", ".v2"), ("b32", ".v4"), ("b64", ""), ("s64", ".v2")],
)
def test_st_async(kind: str, vector: str, visibility: str, schedule: str) -> None:
    wide, count = kind[1:] == "64", int(vector[2:] or 1)
    size = count * (8 if wide else 4)
    values = VALUES[vector]
    if wide:
        values = values.replace("%c", "%d")
    body = (
        BEGIN.replace("COUNT", "1")
        + EXPECT.format(64 * size)
        + f"""
        mov.u32 %at, buffer; mad.lo.u32 %at, %i, {size}, %at;
        mapa.shared::cluster.u32 %far, %at, %peer;
        add.u32 %c1, %c0, 1000; add.u32 %c2, %c0, 2000; add.u32 %c3, %c0, 3000;
        mul.wide.u32 %d0, %c0, 3; mul.wide.u32 %d1, %c1, 3;
        st.async.weak.shared::cluster.mbarrier::complete_tx::bytes{vector}.{kind}
            [%far], {values}, [%farbar];
        {WAIT} mov.u32 %v, 0; mov.u32 %at, buffer; mad.lo.u32 %at, %i, {size}, %at;
    """
    )
    for i in range(size // 4):
        body += f"ld.shared.u32 %c4, [%at+{4 * i}]; add.u32 %v, %v, %c4;\n"
    options: dict[str, Any] = {"visibility": visibility, "schedule": schedule}
    out, result = run(body + STORE_V + LEAVE, **options)
    first = peers(step=-1)[:, None] * 64 + np.arange(64)
    wanted = sum((3 if wide else 1) * (first + 1000 * i) for i in range(count))
    np.testing.assert_array_equal(out, wanted)
    assert result.hazards == ()


@in_every_mode
def test_st_async_without_its_wait(visibility: str, schedule: str) -> None:
    body = (
        BEGIN.replace("COUNT", "1")
        + EXPECT.format(256)
        + f"""
        st.async.shared::cluster.mbarrier::complete_tx::bytes.u32
            [%far], %c0, [%farbar];
        ld.shared.u32 %v, [%at]; {WAIT} {STORE_V}{LEAVE}"""
    )
    _, result = run(body, visibility=visibility, schedule=schedule)
    assert kinds(result) & {"read-in-flight", "read-after-write", "write-after-read"}


UPDATES = {
    "add.u32": lambda old, x: old + x,
    "min.s32": lambda old, x: np.minimum(old.view(np.int32), x.view(np.int32)),
    "max.u32": np.maximum,
    "inc.u32": lambda old, x: np.where(old >= x, 0, old + 1),
    "dec.u32": lambda old, x: np.where((old == 0) | (old > x), x, old - 1),
    "and.b32": np.bitwise_and,
    "or.b32": np.bitwise_or,
    "xor.b32": np.bitwise_xor,
}


@pytest.mark.parametrize("visibility", ["late", "early"])
@pytest.mark.parametrize("update", UPDATES)
def test_red_async(update: str, visibility: str) -> None:
    given = np.random.default_rng(5).integers(0, 2**32, (8, 64), np.uint32)
    body = (
        BEGIN.replace("COUNT", "1")
        + f"""
        ld.param.u64 %in, [p1]; mad.wide.u32 %in, %c0, 4, %in; ld.global.u32 %c2, [%in];
        add.u32 %c3, %c0, 0x7ffffff0; st.shared.u32 [%at], %c3;
        {MEET}{EXPECT.format(256)}
        red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.{update}
            [%far], %c2, [%farbar];
        {WAIT} ld.shared.u32 %v, [%at]; {STORE_V}{LEAVE}"""
    )
    out, result = run(body, 8, given, visibility=visibility)
    old = (np.arange(512, dtype=np.uint32) + np.uint32(0x7FFFFFF0)).reshape(8, 64)
    wanted = UPDATES[update](old, given[peers(step=-1)])
    np.testing.assert_array_equal(out, wanted.astype(np.uint32))
    assert result.hazards == ()


def test_red_async_of_64_bits_adds_up() -> None:
    """All threads of a cluster add to one number of its first block."""
    body = (
        BEGIN.replace("COUNT", "1")
        + f"""
        setp.ne.u32 %p2, %rank, 0;
        mov.u64 %d1, 0; @!%p1 st.shared.u64 [buffer], %d1;
        {MEET}
        @!%p1 mapa.shared::cluster.u32 %c3, %c1, 0;
        mapa.shared::cluster.u32 %farbar, %c1, 0;
        mapa.shared::cluster.u32 %far, buffer, 0;
        @%p2 bra SEND;
        {EXPECT.format(8 * 64 * RANKS)}
    SEND:
        mul.wide.u32 %d0, %c0, 0x10000000;
        red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u64
            [%far], %d0, [%farbar];
        mov.u32 %v, 0;
        @%p2 bra END;
        {WAIT} ld.shared.u32 %v, [buffer+4];
    END:
        {STORE_V}{LEAVE}"""
    )
    out, result = run(body)
    threads = np.arange(2 * RANKS * THREADS, dtype=np.uint64).reshape(2, -1)
    high = threads.sum(axis=1) * np.uint64(0x10000000) >> np.uint64(32)
    np.testing.assert_array_equal(out[::RANKS], np.repeat(high[:, None], 64, 1))
    assert result.hazards == ()


# --- copies from block to block -----------------------------------------------------

ACROSS = "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes"
COPY = f"""
    st.shared.u32 [%at], %c0;
    fence.proxy.async.shared::cta;
    bar.sync 0;
    mov.u32 %c2, buffer; add.u32 %c3, %c2, 4096;
    mapa.shared::cluster.u32 %far, %c3, %peer;
    @%p1 bra SENT;
    mbarrier.arrive.expect_tx.shared.b64 %d5, [bar], 256;
    {ACROSS} [%far], [%c2], 256, [%farbar];
SENT:
"""
READ_COPY = f"{WAIT} ld.shared.u32 %v, [%at+4096]; {STORE_V}"


@in_every_mode
def test_bulk_copy_across(visibility: str, schedule: str) -> None:
    body = BEGIN.replace("COUNT", "1") + COPY + READ_COPY + LEAVE
    options: dict[str, Any] = {"visibility": visibility, "schedule": schedule}
    out, result = run(body, **options)
    np.testing.assert_array_equal(out, peers(step=-1)[:, None] * 64 + np.arange(64))
    assert result.hazards == ()
    # Whoever overwrites the source has to know that the other block waited for it.
    again = body.replace(LEAVE, "st.shared.u32 [%at], 7;\n" + LEAVE)
    assert kinds(run(again, **options)[1]) <= {"write-while-read", "write-after-read"}
    assert kinds(run(again, **options)[1])
    ordered = body.replace(LEAVE, f"{LEAVE} st.shared.u32 [%at], 7;\n")
    assert kinds(run(ordered, **options)[1]) == set()
    unfenced = body.replace("fence.proxy.async.shared::cta;", "")
    assert "no-proxy-fence" in kinds(run(unfenced, **options)[1])


REDUCED = {
    "add.u32": np.add,
    "min.u32": np.minimum,
    "max.s32": np.maximum,
    "and.b32": np.bitwise_and,
    "xor.b32": np.bitwise_xor,
}


@pytest.mark.parametrize("visibility", ["late", "early"])
@pytest.mark.parametrize("update", REDUCED)
def test_bulk_reduction_across(update: str, visibility: str) -> None:
    reduce = ACROSS.replace("cp.async", "cp.reduce.async") + f".{update}"
    copy = COPY.replace(ACROSS, reduce).replace(
        "bar.sync 0;", f"st.shared.u32 [%at+4096], 77;\n{MEET}"
    )
    body = BEGIN.replace("COUNT", "1") + copy + READ_COPY + LEAVE
    out, result = run(body, visibility=visibility)
    sent = (peers(step=-1)[:, None] * 64 + np.arange(64)).astype(np.uint32)
    np.testing.assert_array_equal(out, REDUCED[update](sent, np.uint32(77)))
    assert result.hazards == ()


# --- multicast ----------------------------------------------------------------------


@in_every_mode
@pytest.mark.parametrize("tensor", [False, True])
def test_multicast(tensor: bool, visibility: str, schedule: str) -> None:
    """Each block copies a row to itself and to the one of the next rank."""
    name, source = "cp.async.bulk.shared::cluster.global", "[%in], 256"
    if tensor:
        name = name.replace("bulk", "bulk.tensor.2d")
        source = "[%in, {%c4, %c5}]"
    copy = f"{name}.mbarrier::complete_tx::bytes.multicast::cluster "
    copy += f"[%far], {source}, [bar], %mask;"
    body = (
        BEGIN.replace("COUNT", "1")
        + f"""
        ld.param.u64 %in, [p1]; mov.u32 %c5, %ctaid.x; mov.u32 %c4, 0;
        {"" if tensor else "mad.wide.u32 %in, %c5, 256, %in;"}
        mov.u32 %c2, 1; shl.b32 %c3, %c2, %rank; shl.b32 %c2, %c2, %peer;
        or.b32 %c2, %c2, %c3; cvt.u16.u32 %mask, %c2;
        mov.u32 %far, buffer; mad.lo.u32 %far, %rank, 256, %far;
        @%p1 bra SENT;
        mbarrier.arrive.expect_tx.shared.b64 %d5, [bar], 512;
        {copy}
    SENT:
        {WAIT}
        mad.lo.u32 %c2, %rank, 256, %at; ld.shared.u32 %v, [%c2];
        add.u32 %c3, %rank, 3; rem.u32 %c3, %c3, 4; mad.lo.u32 %c2, %c3, 256, %at;
        ld.shared.u32 %c4, [%c2]; mad.lo.u32 %v, %c4, 10000, %v; {STORE_V}{LEAVE}"""
    )
    given = np.arange(512, dtype=np.uint32).reshape(8, 64)
    more: Any = TensorMap(given, box=(1, 64)) if tensor else given
    text = text_of(body, kinds_of="u64 u64")
    if tensor:
        text = text.replace(".param .u64 p1", ".param .align 64 .b8 p1[128]")
        text = text.replace("ld.param.u64 %in, [p1];", "mov.b64 %in, p1;")
        text = text.replace("[%in, {", "[%d4, {").replace(
            "mov.b64 %in, p1;", "mov.b64 %d3, p1; cvta.param.u64 %d4, %d3;"
        )
    out = np.zeros((8, 64), np.uint32)
    options: dict[str, Any] = {"visibility": visibility, "schedule": schedule}
    result = launch(text, None, (8,), (THREADS,), [out, more], **options)
    wanted = given + given[peers(step=-1)] * 10000
    np.testing.assert_array_equal(out, wanted.astype(np.uint32))
    assert result.hazards == ()
    late = text.replace("@!%p0 bra LOOP;", "").replace("[bar], 0;", "[bar], 1;")
    found = launch(late, None, (8,), (THREADS,), [out, more], **options)
    assert kinds(found) & {"read-in-flight", "read-after-write", "block-ended"}


def test_a_multicast_to_nobody() -> None:
    body = (
        BEGIN.replace("COUNT", "1")
        + """
        ld.param.u64 %in, [p1]; mov.u16 %mask, 0x1001;
        cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster
            [buffer], [%in], 256, [bar], %mask;"""
    )
    with pytest.raises(
        EmulationError, match="multicast to blocks 0b1000000000001 of 4"
    ):
        run(body, 8, np.zeros(512, np.uint32))


def test_the_mbarrier_lies_with_the_destination() -> None:
    body = BEGIN.replace("COUNT", "1") + COPY.replace("[%farbar]", "[bar]")
    with pytest.raises(EmulationError, match="another block than its destination"):
        run(body + READ_COPY + LEAVE)
    store = (
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%far], %c0, [bar];"
    )
    with pytest.raises(EmulationError, match="another block than its target"):
        run(BEGIN.replace("COUNT", "1") + store + LEAVE)
