"""The trace of a block: valid Chrome trace JSON that shows what overlaps."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from fixture_kernels import SCHEDULES, fixture, run_gemm
from kernel_text import launch, module

from alcop_mlir.errors import EmulationError
from alcop_mlir.runtime.emulator import TraceRequest

TILES, WARPS = 4, 4
Event = dict[str, Any]


def traced(path: Path, schedule: str = "lockstep", block: int = 0) -> list[Event]:
    request = TraceRequest(path, block)
    result, wrong = run_gemm(
        fixture("gemm_f16_3stage"),
        256,
        128,
        32 * TILES,
        trace=request,
        schedule=schedule,
    )
    assert wrong == 0
    assert result.hazards == ()
    return json.loads(path.read_text())["traceEvents"]


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> list[Event]:
    return traced(tmp_path_factory.mktemp("trace") / "gemm.json")


def of(events: list[Event], category: str, warp: int) -> list[Event]:
    return [e for e in events if e.get("cat") == category and e["tid"] == warp]


def test_every_event_is_well_formed(events: list[Event]) -> None:
    for event in events:
        assert event["ph"] in ("M", "X", "b", "e", "i")
        assert isinstance(event["pid"], int)
        assert event["name"]
        if event["ph"] != "M":
            assert event["ts"] >= 0
            assert isinstance(event["tid"], int)
        if event["ph"] == "X":
            assert event["dur"] > 0


def test_one_named_row_per_warp(events: list[Event]) -> None:
    rows = {
        e["tid"]: e["args"]["name"]
        for e in events
        if e["ph"] == "M" and e["name"] == "thread_name"
    }
    assert rows == {warp: f"warp {warp}" for warp in range(WARPS)}
    (process,) = [e for e in events if e["name"] == "process_name"]
    assert "gemm" in process["args"]["name"]


@pytest.mark.parametrize("warp", range(WARPS))
def test_slices_of_a_warp_do_not_overlap(events: list[Event], warp: int) -> None:
    """A row shows one thing at a time, in the order of the program."""
    slices = [e for e in events if e["ph"] == "X" and e["tid"] == warp]
    slices.sort(key=lambda e: e["ts"])
    for one, other in pairwise(slices):
        assert one["ts"] + one["dur"] <= other["ts"]


@pytest.mark.parametrize("warp", range(WARPS))
def test_what_a_row_shows(events: list[Event], warp: int) -> None:
    assert len(of(events, "wait", warp)) == TILES
    assert len(of(events, "barrier", warp)) == TILES
    assert len(of(events, "commit", warp)) == TILES + 2
    products = of(events, "mma", warp)
    assert sum(e["dur"] for e in products) == 64 * TILES


def test_copies_begin_and_end(events: list[Event]) -> None:
    begins = {e["id"]: e for e in events if e["ph"] == "b"}
    ends = {e["id"]: e for e in events if e["ph"] == "e"}
    assert len(begins) == sum(e["ph"] == "b" for e in events)
    assert begins.keys() == ends.keys()
    assert len(begins) == 8 * TILES * WARPS
    for number, begin in begins.items():
        assert begin["cat"] == ends[number]["cat"] == "cp.async"
        assert begin["tid"] == ends[number]["tid"]
        assert begin["ts"] < ends[number]["ts"]


def test_copies_land_at_a_wait(events: list[Event]) -> None:
    for warp in range(WARPS):
        waits = {e["ts"] for e in of(events, "wait", warp)}
        ends = {e["ts"] for e in of(events, "cp.async", warp) if e["ph"] == "e"}
        assert ends <= waits


def test_copies_overlap_products(events: list[Event]) -> None:
    """Why the trace exists: in the steady state both go on at the same time."""
    flights = of(events, "cp.async", 0)
    begins = {e["id"]: e["ts"] for e in flights if e["ph"] == "b"}
    ends = {e["id"]: e["ts"] for e in flights if e["ph"] == "e"}
    covered = 0
    for product in of(events, "mma", 0):
        middle = product["ts"] + product["dur"] / 2
        covered += any(begins[n] < middle < ends[n] for n in begins)
    # all mma but those of the last tile, when nothing is left to copy
    runs = len(of(events, "mma", 0))
    assert covered == runs * (TILES - 1) // TILES


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_warps_leave_a_barrier_together(tmp_path: Path, schedule: str) -> None:
    events = traced(tmp_path / "gemm.json", schedule)
    leave = [
        [e["ts"] + e["dur"] for e in of(events, "barrier", warp)]
        for warp in range(WARPS)
    ]
    assert all(times == leave[0] for times in leave)
    assert len(leave[0]) == TILES


def test_another_block(tmp_path: Path) -> None:
    events = traced(tmp_path / "gemm.json", block=1)
    (process,) = [e for e in events if e["name"] == "process_name"]
    assert "block 1" in process["args"]["name"]
    assert sum(e["ph"] == "b" for e in events) == 8 * TILES * WARPS


@pytest.mark.parametrize("block", [-1, 2])
def test_a_block_that_is_not_there(tmp_path: Path, block: int) -> None:
    request = TraceRequest(tmp_path / "x.json", block)
    with pytest.raises(EmulationError, match=rf"0 to 1.*{block}"):
        launch(module("ret;"), "kernel", (2,), (32,), [], trace=request)


def test_a_path_that_cannot_be_written(tmp_path: Path) -> None:
    request = TraceRequest(tmp_path / "missing" / "x.json")
    with pytest.raises(EmulationError, match="the trace: cannot write"):
        launch(module("ret;"), "kernel", (1,), (32,), [], trace=request)
