"""Kernels that know nothing of clusters do the same in them; and small clusters."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import test_warpgroup_gemm as warpgroup
from fixture_kernels import MODES, fixture, run_gemm
from kernel_text import launch, module
from warpgroup_kernels import SHARED

from alcop_mlir.errors import EmulationError
from alcop_mlir.runtime.emulator import TraceRequest

in_every_mode = pytest.mark.parametrize(("visibility", "schedule"), MODES)
CLUSTERS = [(2, 1, 1), (1, 2, 1), (2, 2, 1)]
ABOUT = {"target": "sm_90a", "version": "8.6"}


def gemm(**options: Any) -> Any:
    """Four blocks of 128 x 128; what was counted."""
    text = fixture("gemm_f16_3stage").replace(".target sm_80", ".target sm_90")
    result, wrong = run_gemm(text, 256, 256, 96, counters=True, **options)
    assert wrong == 0
    assert result.hazards == ()
    return result.counters


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_counters(cluster: tuple[int, int, int]) -> None:
    assert gemm(cluster=cluster) == gemm()


@pytest.mark.parametrize("schedule", ["lockstep", "descending"])
@pytest.mark.parametrize("block", range(4))
def test_traces(block: int, schedule: str, tmp_path: Path) -> None:
    found = []
    for cluster in (None, *CLUSTERS):
        path = tmp_path / f"{cluster}.json"
        gemm(cluster=cluster, trace=TraceRequest(path, block), schedule=schedule)
        events = json.loads(path.read_text())["traceEvents"]
        found.append([e for e in events if e.get("cat") != "cp.async"])
    assert len(found[0]) > 50
    key = str
    for other in found[1:]:
        assert sorted(other, key=key) == sorted(found[0], key=key)


@in_every_mode
def test_warpgroups(visibility: str, schedule: str) -> None:
    """Copy engine, mbarriers, wgmma, registers of a pool, named barriers: by block."""
    options = {"visibility": visibility, "schedule": schedule, "cluster": (2, 1, 1)}
    text = fixture("warpgroup_gemm")
    result, wrong = warpgroup.run(text, 512, 512, 128, 4, **options)
    assert not wrong
    assert result.hazards == ()
    assert result.notes == ()


@in_every_mode
def test_a_cluster_of_one(visibility: str, schedule: str) -> None:
    """Its only block is its own neighbour."""
    body = """
        .shared .align 128 .b8 buffer[512]; .shared .align 8 .b8 bar[8];
        .reg .b32 %i, %at, %far, %bar, %v; .reg .b64 %out, %in, %d<3>; .reg .b16 %mask;
        .reg .pred %p, %q;
        ld.param.u64 %out, [p0]; ld.param.u64 %in, [p1];
        mov.u32 %i, %tid.x; mad.wide.u32 %out, %i, 4, %out; setp.ne.u32 %q, %i, 0;
        mad.lo.u32 %at, %i, 4, buffer; mapa.shared::cluster.u32 %far, %at, 0;
        mov.u32 %v, bar; mapa.shared::cluster.u32 %bar, %v, 0; mov.u16 %mask, 1;
        @%q bra READY;
        mbarrier.init.shared.b64 [bar], 33; fence.mbarrier_init.release.cluster;
        mbarrier.arrive.expect_tx.shared.b64 %d0, [bar], 384;
        COPY
            [buffer], [%in], 128, [bar], %mask;
    READY:
        barrier.cluster.arrive; barrier.cluster.wait;
        STORE [%far+128], %i, [%bar];
        STORE [%far+256], 7, [%bar];
        mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%bar];
    WAIT:
        mbarrier.try_wait.parity.shared.b64 %p, [bar], 0; @!%p bra WAIT;
        ld.shared::cluster.u32 %v, [%far]; ld.shared.u32 %at, [%at+128];
        mad.lo.u32 %v, %at, 1000, %v; st.global.u32 [%out], %v;
        ret;
    """
    out, given = np.zeros(32, np.uint32), np.arange(5, 37, dtype=np.uint32)
    copy = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
    body = body.replace("COPY", f"{copy}.multicast::cluster")
    store = "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32"
    body = body.replace("STORE", store)
    text = module(body, ["u64", "u64"], **ABOUT)
    options: dict[str, Any] = {"visibility": visibility, "schedule": schedule}
    for cluster in (None, (1, 1, 1)):
        out[:] = 0
        result = launch(
            text, None, (1,), (32,), [out, given], cluster=cluster, **options
        )
        np.testing.assert_array_equal(out, np.arange(32) * 1000 + given)
        assert result.hazards == ()


# Blocks of five warps: the last one is in no warpgroup, and is left out, or not.
FIVE_WARPS = f"""
    .shared .align 1024 .b8 tile[3072];
    .reg .b32 %i, %at, %rank, %v, %w; .reg .b64 %out, %a, %b; .reg .pred %p, %one;
    .reg .f32 %d<4>;
    ld.param.u64 %out, [p0]; mov.u32 %i, %tid.x; mov.u32 %rank, %cluster_ctarank;
    mov.u32 %v, %ctaid.x; mad.lo.u32 %v, %v, 160, %i; mad.wide.u32 %out, %v, 4, %out;
    // ones, times what the rank says, in f16
    mov.u32 %w, 0x3c003c00; setp.ne.u32 %p, %rank, 0; @%p mov.u32 %w, 0x40004000;
    mov.u32 %v, %i;
FILL:
    mad.lo.u32 %at, %v, 4, tile; st.shared.u32 [%at], %w;
    add.u32 %v, %v, 160; setp.lt.u32 %p, %v, 768; @%p bra FILL;
    fence.proxy.async; bar.sync 0;
    mov.f32 %d0, 0f00000000; mov.f32 %d1, %d0; mov.f32 %d2, %d0; mov.f32 %d3, %d0;
    setp.ge.u32 %p, %i, LAST; @%p bra END;
    mov.u64 %a, {SHARED >> 4 | 128 >> 4 << 16 | 256 >> 4 << 32};
    add.u64 %b, %a, {2048 >> 4};
    setp.ne.u32 %one, %i, 1000;
    wgmma.fence.sync.aligned;
    wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {{%d0, %d1, %d2, %d3}}, %a, %b,
        %one, 1, 1, 0, 0;
    wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;
END:
    cvt.rni.u32.f32 %v, %d0; st.global.u32 [%out], %v;
    ret;
"""


@pytest.mark.parametrize("schedule", ["lockstep", "ascending", "random(4)"])
def test_warpgroups_of_blocks_of_five_warps(schedule: str) -> None:
    out = np.zeros((4, 160), np.uint32)
    text = module(FIVE_WARPS.replace("LAST", "128"), ["u64"], **ABOUT)
    options: dict[str, Any] = {"cluster": (2, 1, 1), "schedule": schedule}
    result = launch(text, None, (4,), (160,), [out], **options)
    assert result.hazards == ()
    wanted = np.zeros((4, 160))
    wanted[:, :128] = np.array([16, 64, 16, 64])[:, None]
    np.testing.assert_array_equal(out, wanted)
    text = module(FIVE_WARPS.replace("LAST", "160"), ["u64"], **ABOUT)
    with pytest.raises(EmulationError, match="no whole warpgroup"):
        launch(text, None, (4,), (160,), [out], **options)


def test_cooperative_launches() -> None:
    """All clusters of the grid are there at once: more than run together otherwise."""
    body = """
        .reg .b32 %v, %n; .reg .b64 %at; .reg .pred %p;
        ld.param.u64 %at, [p0];
        atom.add.release.gpu.global.u32 %v, [%at], 1;
    LOOP:
        ld.acquire.gpu.global.u32 %v, [%at]; setp.lt.u32 %p, %v, 160; @%p bra LOOP;
        ret;
    """
    out = np.zeros(1, np.uint32)
    text = module(body, ["u64"], **ABOUT)
    launch(text, None, (160,), (1,), [out], cluster=(8, 1, 1), cooperative=True)
    assert out[0] == 160
