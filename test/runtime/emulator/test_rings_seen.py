"""Rings, groups of wgmma and roles of warps, in the counters and in the trace."""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from fixture_kernels import MODES, fixture
from test_warpgroup_gemm import run

from alcop_mlir.runtime.emulator import Counters, TraceRequest
from alcop_mlir.tools.profile import profile_rows

# The fixture: tiles of 128 x 256, K in steps of 64, four slots, two warpgroups that
# multiply and one that loads; two blocks with two tiles each.
SIZES = (256, 512, 256, 2)
TILES, STEPS, SLOTS, MULTIPLYING, BLOCKS = 4, 4, 4, 8, 2
SLOT_BYTES = (128 + 256) * 64 * 2


def counted(**options: Any) -> Counters:
    result, wrong = run(fixture("warpgroup_gemm"), *SIZES, counters=True, **options)
    assert not wrong
    assert result.counters is not None
    return result.counters


@pytest.mark.parametrize(("visibility", "schedule"), MODES)
def test_rings_are_counted(visibility: str, schedule: str) -> None:
    found = counted(visibility=visibility, schedule=schedule)
    full = [ring for ring in found.rings if ring.copies]
    empty = [ring for ring in found.rings if not ring.copies]
    assert len(full) == len(empty) == SLOTS
    for ring in full:
        assert ring.copies == TILES * STEPS // SLOTS * 2  # of A and of B
        assert ring.copied_bytes == TILES * STEPS // SLOTS * SLOT_BYTES
        # Lanes of a warp that come one after the other wait for themselves.
        waits = TILES * STEPS // SLOTS * MULTIPLYING
        assert ring.waits == waits or (ring.waits > waits and schedule != "lockstep")
    assert [ring.waits for ring in empty] == [TILES * STEPS // SLOTS] * SLOTS
    assert found.loaded_bytes == TILES * STEPS * SLOT_BYTES
    assert found.stored_bytes == 256 * 512 * 2


def test_bytes_in_flight() -> None:
    """Late copies fill the ring; early ones land one at a time."""
    assert counted().in_flight == SLOTS * SLOT_BYTES
    assert counted(visibility="early").in_flight == 256 * 64 * 2


def test_groups_of_wgmma_are_counted() -> None:
    groups = counted().multiply_groups
    assert sum(group.groups for group in groups) == TILES * STEPS * MULTIPLYING
    # The wait in the loop leaves one group in flight: a step's four wgmma come between.
    steady = max(groups, key=lambda group: group.groups)
    assert steady.groups == TILES * (STEPS - 2) * MULTIPLYING
    assert steady.multiplies_ahead == (4, 4.0, 4)


def test_the_profile_shows_them() -> None:
    rows = dict(profile_rows(counted()))
    assert rows["bulk"] == [
        "768 KiB to shared memory, 256 KiB from it",
        "192 KiB on their way to one block at most",
    ]
    assert len(rows["mbarriers"]) == 1 + 2 * SLOTS
    assert rows["wgmma"][0].split()[:2] == ["commit", "line"]


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    path: Path = tmp_path_factory.mktemp("trace") / "gemm.json"
    _, wrong = run(fixture("warpgroup_gemm"), *SIZES, trace=TraceRequest(path))
    assert not wrong
    return json.loads(path.read_text())["traceEvents"]


def test_rows_say_the_roles_of_warps(events: list[dict[str, Any]]) -> None:
    rows = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert rows[0] == "warp 0: loads"
    assert [rows[warp] for warp in range(4, 12)].count("warp 5: multiplies") == 1
    multiply = [warp for warp, name in rows.items() if "multiplies" in name]
    assert multiply == list(range(4, 12))


def test_what_rows_show(events: list[dict[str, Any]]) -> None:
    steps = TILES // BLOCKS * STEPS
    kinds = Counter((e["tid"], e["cat"]) for e in events if e["ph"] == "X")
    assert kinds[0, "bulk copy"] == 2 * steps
    assert kinds[0, "wait"] == steps  # for empty slots
    assert kinds[4, "commit"] == steps
    assert kinds[4, "mma"] == 4 * steps
    sizes = {e["name"] for e in events if e.get("cat") == "bulk copy" and not e["tid"]}
    assert sizes == {"load of 16,384 bytes", "load of 32,768 bytes"}


def test_loads_are_in_flight(events: list[dict[str, Any]]) -> None:
    """From issue to landing: up to all slots of the ring, and none at the end."""
    loads = [e for e in events if e.get("cat") == "bulk load"]
    begins = {e["id"]: e["ts"] for e in loads if e["ph"] == "b"}
    ends = {e["id"]: e["ts"] for e in loads if e["ph"] == "e"}
    assert len(begins) == 2 * TILES // BLOCKS * STEPS
    assert all(begins[number] < ends[number] for number in begins)
    counts = [(e["ts"], e["args"]["bytes"]) for e in events if e["ph"] == "C"]
    assert counts == sorted(counts)
    assert max(count for _, count in counts) == SLOTS * SLOT_BYTES
    assert counts[-1][1] == 0
    # The next ones are on their way while a step is multiplied.
    multiplies = [e["ts"] for e in events if e.get("cat") == "mma" and e["tid"] == 4]
    assert any(begins[n] < t < ends[n] for n in begins for t in multiplies)


def test_a_wait_ends_after_the_arrivals(events: list[dict[str, Any]]) -> None:
    """A slot is filled again after all warps that multiply have released it."""
    waits = [e for e in events if e.get("cat") == "wait" and e["tid"] == 0]
    last = max(e["ts"] + e["dur"] for e in waits)
    done = sorted(e["ts"] for e in events if e.get("cat") == "mma" and e["tid"] == 11)
    assert len(done) == 4 * TILES // BLOCKS * STEPS
    assert done[0] < last < done[-1]


def test_groups_of_wgmma_are_in_flight(events: list[dict[str, Any]]) -> None:
    """From commit to wait; in the loop the next wgmma begin before the wait."""
    groups = [e for e in events if e.get("cat") == "wgmma" and e["tid"] == 4]
    begins = {e["id"]: e["ts"] for e in groups if e["ph"] == "b"}
    ends = {e["id"]: e["ts"] for e in groups if e["ph"] == "e"}
    assert len(begins) == TILES // BLOCKS * STEPS
    assert begins.keys() == ends.keys()
    multiplies = [e["ts"] for e in events if e.get("cat") == "mma" and e["tid"] == 4]
    overlapped = [
        number
        for number, start in begins.items()
        if any(start < time < ends[number] for time in multiplies)
    ]
    assert len(overlapped) == TILES // BLOCKS * (STEPS - 1)


def test_slices_of_a_row_do_not_overlap(events: list[dict[str, Any]]) -> None:
    for warp in range(12):
        row = [e for e in events if e["ph"] == "X" and e["tid"] == warp]
        row.sort(key=lambda e: e["ts"])
        for one, other in pairwise(row):
            assert one["ts"] + one["dur"] <= other["ts"]
