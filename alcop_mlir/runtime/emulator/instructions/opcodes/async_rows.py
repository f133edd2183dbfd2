"""The rows of barriers, mbarriers, and what ends at them, for the table of opcodes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from alcop_mlir.runtime.emulator.instructions import (
    cluster,
    convert,
    mbarrier,
    memory,
)
from alcop_mlir.runtime.emulator.instructions.copies import (
    async_arrival,
    bulk_copy,
    bulk_pieces,
    bulk_store,
    cluster_store,
    map_changes,
    tensor_copy,
)
from alcop_mlir.runtime.emulator.instructions.opcodes.opcode import (
    Opcode,
    unsupported_form,
)
from alcop_mlir.runtime.emulator.instructions.opcodes.row_kinds import (
    GLOBAL,
    SHARED,
    copy_control,
)
from alcop_mlir.runtime.emulator.instructions.translator import Handler


def barrier_rows() -> Iterator[Opcode]:
    for unit in ("bar", "bar.cta", "barrier", "barrier.cta"):
        for form in ("sync", "arrive", "red"):
            yield Opcode(f"{unit}.{form}", ends="barrier", counted_as="barrier")


def cluster_rows() -> Iterator[Opcode]:
    """The barrier of a cluster, and stores that end at mbarriers of other blocks."""
    name = "barrier.cluster.arrive"
    yield Opcode(name, cluster.arrive, counted_as="barrier")
    for kind in ("aligned", "release.aligned", "relaxed.aligned"):
        yield Opcode(
            f"{name}.{kind}", cluster.arrive, meets="live", counted_as="barrier"
        )
    yield Opcode("barrier.cluster.wait", ends="cluster", counted_as="barrier")
    fence = "fence.proxy.tensormap::generic"
    yield Opcode(fence, map_changes.fence_maps, counted_as="barrier")
    yield _bulk(
        "tensormap.cp_fenceproxy",
        map_changes.copy_and_release,
        size=bulk_pieces.chunk_bytes,
        reads=SHARED,
        writes=GLOBAL,
        meets="warp",
        orders=True,
    )
    both = {"size": memory.accessed_bytes, "writes": SHARED, "counted_as": "bulk copy"}
    yield Opcode("st.async", cluster_store.store_async, **both)
    yield Opcode("red.async", cluster_store.reduce_async, reads=SHARED, **both)


def _bulk(name: str, translate: Handler, **fields: Any) -> Opcode:
    return Opcode(name, translate, counted_as="bulk copy", **fields)


def bulk_rows() -> Iterator[Opcode]:
    """Copies in both directions; the shared side moves in pieces of 16 bytes."""
    side = {"size": bulk_pieces.chunk_bytes}
    to_shared = {**side, "reads": GLOBAL, "writes": SHARED}
    to_global = {**side, "reads": SHARED, "writes": GLOBAL}
    across = {"reads": SHARED, "writes": SHARED}
    name = "cp.async.bulk"
    for shared in ("shared::cluster", "shared::cta"):
        yield _bulk(f"{name}.{shared}.global", bulk_copy.copy_in, **to_shared)
    yield _bulk(f"{name}.global.shared::cta", bulk_copy.copy_out, **to_global)
    reduced = "cp.reduce.async.bulk"
    there = "shared::cluster.shared::cta"
    yield _bulk(f"{name}.{there}", bulk_copy.copy_across, **side, **across)
    yield _bulk(
        f"{reduced}.{there}",
        bulk_copy.copy_across,
        size=memory.accessed_bytes,
        **across,
    )
    yield _bulk(f"{reduced}.global.shared::cta", bulk_copy.copy_out, **to_global)
    both = {**side, "reads": SHARED | GLOBAL, "writes": SHARED | GLOBAL}
    for start in (name, reduced):
        yield _bulk(f"{start}.tensor", tensor_copy.copy_tensor, **both)
    yield _bulk(f"{name}.prefetch", convert.ignored)
    yield _bulk("tensormap.replace", map_changes.replace, target="sm_90a", **both)
    yield _bulk(f"{name}.commit_group", bulk_store.commit_group)
    # What is copied out is read here.
    wait = {"reads": SHARED, "writes": GLOBAL}
    yield _bulk(f"{name}.wait_group", bulk_store.wait_group, **side, **wait)


def _mbarrier(name: str, translate: Handler, **fields: Any) -> Opcode:
    return Opcode(
        f"mbarrier.{name}",
        translate,
        size=mbarrier.object_bytes,
        writes=SHARED,
        counted_as="mbarrier",
        **fields,
    )


def mbarrier_rows() -> Iterator[Opcode]:
    yield _mbarrier("init", mbarrier.begin)
    yield _mbarrier("inval", mbarrier.end)
    yield _mbarrier("arrive", mbarrier.arrive)
    yield _mbarrier("arrive_drop", mbarrier.arrive)
    yield _mbarrier("expect_tx", mbarrier.count_bytes)
    yield _mbarrier("complete_tx", mbarrier.count_bytes)
    for wait in ("test_wait", "try_wait"):
        yield _mbarrier(wait, unsupported_form, ends="wait")
    yield Opcode(
        "mbarrier.pending_count", mbarrier.pending_count, counted_as="mbarrier"
    )
    yield replace(
        copy_control("cp.async.mbarrier.arrive", async_arrival.issue, SHARED),
        size=mbarrier.object_bytes,
    )
