"""Rings of slots that the copy engine fills and empties: right, and each mutant found.

One lane of warp 0 copies rows to a ring; warps 1 and 2 add to each row and store it by
bulk copies out of buffers of their own.
"""

from __future__ import annotations

import numpy as np
import pytest
from fixture_kernels import MODES
from kernel_text import launch, module
from racy_kernels import kinds

from alcop_mlir.runtime.emulator import EmulationError, Result, TensorMap
from alcop_mlir.runtime.emulator.machine.clocks import Clocks

ROWS, SLOTS, WIDTH = 11, 3, 64  # rows of each block; 32-bit words of one
RING = """
    .shared .align 1024 .b8 slots[SIZE];
    .shared .align 1024 .b8 staged[512];
    .shared .align 8 .b8 bars[48];
    .reg .b32 %i, %warp, %lane, %row, %rows, %slot, %phase, %other, %full, %empty;
    .reg .b32 %at, %to, %v, %first, %line, %word;
    .reg .b64 %d0, %map, %into; .reg .pred %p<6>;
    mov.b64 %map, p0; mov.b64 %into, p1;
    cvta.param.u64 %map, %map; cvta.param.u64 %into, %into;
    mov.u32 %i, %tid.x; and.b32 %lane, %i, 31; shr.u32 %warp, %i, 5;
    mov.u32 %first, %ctaid.x; mul.lo.u32 %first, %first, ROWS;
    mov.u32 %rows, ROWS; LENGTH
    setp.ne.u32 %p1, %i, 0; @%p1 bra READY;
    mbarrier.init.shared.b64 [bars], 1; mbarrier.init.shared.b64 [bars+24], 2;
    mbarrier.init.shared.b64 [bars+8], 1; mbarrier.init.shared.b64 [bars+32], 2;
    mbarrier.init.shared.b64 [bars+16], 1; mbarrier.init.shared.b64 [bars+40], 2;
    fence.mbarrier_init.release.cluster;
READY:
    bar.sync 0;
    mov.u32 %row, 0; mov.u32 %slot, 0; mov.u32 %phase, 0;
    setp.ne.u32 %p2, %warp, 0; @%p2 bra CONSUMER;
    elect.sync %v|%p3, 0xffffffff; @!%p3 bra END;
    mov.u32 %other, 1;
PRODUCE:
    mov.u32 %full, bars; mad.lo.u32 %full, %slot, 8, %full; add.u32 %empty, %full, 24;
    mov.u32 %at, slots; mad.lo.u32 %at, %slot, 1024, %at;
EMPTY:
    mbarrier.try_wait.parity.shared.b64 %p0, [%empty], %other; // wait empty
    @!%p0 bra EMPTY;
    mbarrier.arrive.expect_tx.shared.b64 _, [%full], 256;
    add.u32 %line, %first, %row;
    cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes
        [%at], [%map, {0, %line}], [%full];
    add.u32 %slot, %slot, 1; setp.eq.u32 %p4, %slot, 3;
    @%p4 mov.u32 %slot, 0; @%p4 xor.b32 %other, %other, 1;
    add.u32 %row, %row, 1; setp.lt.u32 %p5, %row, %rows; @%p5 bra PRODUCE;
    bra END;
CONSUMER:
    mov.u32 %to, staged; mad.lo.u32 %to, %warp, 128, %to; add.u32 %to, %to, 0;
    mad.lo.u32 %to, %lane, 4, %to;
CONSUME:
    mov.u32 %full, bars; mad.lo.u32 %full, %slot, 8, %full; add.u32 %empty, %full, 24;
    mov.u32 %at, slots; mad.lo.u32 %at, %slot, 1024, %at;
    sub.u32 %v, %warp, 1; mad.lo.u32 %at, %v, 128, %at; mad.lo.u32 %at, %lane, 4, %at;
FULL:
    mbarrier.try_wait.parity.shared.b64 %p0, [%full], %phase; // wait full
    @!%p0 bra FULL;
    ld.shared.u32 %word, [%at];
    bar.warp.sync 0xffffffff;
    setp.ne.u32 %p3, %lane, 0;
    @!%p3 mbarrier.arrive.shared.b64 _, [%empty]; // release
    @!%p3 cp.async.bulk.wait_group.read 0; // read before
    bar.warp.sync 0xffffffff;
    add.u32 %word, %word, 1000;
    st.shared.u32 [%to], %word;
    fence.proxy.async.shared::cta; // proxy
    bar.warp.sync 0xffffffff;
    @%p3 bra NEXT;
    add.u32 %line, %first, %row; sub.u32 %other, %warp, 1; shl.b32 %other, %other, 5;
    cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group
        [%into, {%other, %line}], [%to];
    cp.async.bulk.commit_group;
NEXT:
    add.u32 %slot, %slot, 1; setp.eq.u32 %p4, %slot, 3;
    @%p4 mov.u32 %slot, 0; @%p4 xor.b32 %phase, %phase, 1;
    add.u32 %row, %row, 1; setp.lt.u32 %p5, %row, %rows; @%p5 bra CONSUME;
    @!%p3 cp.async.bulk.wait_group 0; // at the end
END:
    ret;
"""


def ring(*changes: tuple[str, str], length: str = "") -> str:
    text = RING.replace("SIZE", str(SLOTS * 1024)).replace("ROWS", str(ROWS))
    text = text.replace("LENGTH", length)
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new, 1)
    whole = module(text, [], target="sm_90a", version="8.6")
    maps = ".param .align 64 .b8 p0[128], .param .align 64 .b8 p1[128]"
    return whole.replace("kernel()", f"kernel({maps})")


def run(text: str, blocks: int = 2, **options: str) -> tuple[bool, Result]:
    shape = (blocks * ROWS, WIDTH)
    given = np.random.default_rng(0).integers(0, 99, shape).astype(np.uint32)
    out = np.zeros(shape, np.uint32)
    maps = [TensorMap(given, (1, WIDTH)), TensorMap(out, (1, 32))]
    result = launch(text, None, (blocks,), (96,), maps, **options)
    return bool((out == given + 1000).all()), result


@pytest.mark.parametrize(("visibility", "schedule"), MODES)
def test_ring(visibility: str, schedule: str) -> None:
    right, result = run(ring(), visibility=visibility, schedule=schedule)
    assert right
    assert result.hazards == ()
    assert result.notes == ()


def test_blocks_of_different_length() -> None:
    """Two blocks leave out rows; their phases differ from those of the others."""
    length = "mov.u32 %v, %ctaid.x; min.u32 %v, %v, 1; sub.u32 %rows, %rows, %v;"
    shape = (4 * ROWS, WIDTH)
    given = np.random.default_rng(1).integers(0, 99, shape).astype(np.uint32)
    out = np.zeros(shape, np.uint32)
    maps = [TensorMap(given, (1, WIDTH)), TensorMap(out, (1, 32))]
    result = launch(ring(length=length), None, (4,), (96,), maps)
    wanted = (given + 1000).reshape(4, ROWS, WIDTH)
    wanted[1:, -1] = 0
    np.testing.assert_array_equal(out.reshape(wanted.shape), wanted)
    assert result.hazards == ()


def test_blocks_that_agree_are_checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(clocks: Clocks, blocks: int) -> None:
        raise AssertionError("the blocks are told apart")

    monkeypatch.setattr(Clocks, "widen", fail)
    right, _ = run(ring(), blocks=4)
    assert right


WAIT = "    mbarrier.try_wait.parity.shared.b64 %p0, [{}], {};"
TRUE = "    setp.eq.u32 %p0, 0, 0;"
MUTANTS = {
    "no wait for full": (WAIT.format("%full", "%phase"), TRUE),
    "no wait for empty": (WAIT.format("%empty", "%other"), TRUE),
    "full by the other parity": ("[%full], %phase;", "[%full], %other;"),
    "producer warp starts at parity 0": ("mov.u32 %other, 1;", "mov.u32 %other, 0;"),
    "too many bytes": ("[%full], 256;", "[%full], 272;"),
    "too few bytes": ("[%full], 256;", "[%full], 240;"),
    "no release": ("@!%p3 mbarrier.arrive.shared.b64 _, [%empty];", ""),
    "empty counts one": ("[bars+24], 2;", "[bars+24], 1;"),
    "empty counts three": ("[bars+24], 2;", "[bars+24], 3;"),
    "no barrier after init": ("bar.sync 0;", ""),
    "no fence": ("fence.proxy.async.shared::cta;", ""),
    "no commit": ("cp.async.bulk.commit_group;", ""),
    "source not waited for": ("@!%p3 cp.async.bulk.wait_group.read 0;", ""),
    "source waited for late": ("wait_group.read 0;", "wait_group.read 1;"),
    "no wait at the end": ("@!%p3 cp.async.bulk.wait_group 0;", ""),
    "slots that overlap": ("mad.lo.u32 %at, %slot, 1024, %at;", ""),
}


@pytest.mark.sample(5)
@pytest.mark.parametrize("schedule", ["lockstep", "descending", "random(1)"])
@pytest.mark.parametrize("name", list(MUTANTS))
def test_mutants_are_found(name: str, schedule: str) -> None:
    """By a report, or by a fault: a deadlock, too many arrivals."""
    fault, found = "", set[str]()
    try:
        found = kinds(run(ring(MUTANTS[name]), schedule=schedule)[1])
    except EmulationError as error:
        fault = str(error)
    assert fault or found
    assert "\n" not in fault
