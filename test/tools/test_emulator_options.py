"""alcop-run on the emulator: counters, traces, modes."""

from __future__ import annotations

import json
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from alcop_mlir.runtime import launch
from alcop_mlir.tools import run as tool

SCHEDULE = "block=32,32,32 warp=16,16 stages=3,2"
WARPS, STEPS = 4, 8
SMALL = """
func.func @small(%A: memref<64x256xf16>, %B: memref<256x32xf16>,
                 %C: memref<64x32xf32>) {
  linalg.matmul ins(%A, %B : memref<64x256xf16>, memref<256x32xf16>)
                outs(%C : memref<64x32xf32>)
  return
}
"""
CHAIN = """
func.func @chain(%A: memref<32x32xf16>, %B: memref<32x32xf16>, %C: memref<32x32xf16>,
                 %D: memref<32x32xf16>, %E: memref<32x32xf32>) {
  linalg.matmul ins(%A, %B : memref<32x32xf16>, memref<32x32xf16>)
                outs(%C : memref<32x32xf16>)
  linalg.matmul ins(%C, %D : memref<32x32xf16>, memref<32x32xf16>)
                outs(%E : memref<32x32xf32>)
  return
}
"""
Event = dict[str, Any]


@pytest.fixture(autouse=True)
def _without_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same output everywhere."""
    monkeypatch.setitem(sys.modules, "cupy", None)


@pytest.fixture
def small(tmp_path: Path) -> list[str]:
    """A matmul of two blocks, and its schedule."""
    return [write(tmp_path, SMALL), "--schedule", SCHEDULE]


def write(folder: Path, source: str) -> str:
    file = folder / "source.mlir"
    file.write_text(source)
    return str(file)


def profile(text: str) -> dict[str, list[str]]:
    """The lines of the last profile, by label."""
    found: dict[str, list[str]] = {}
    label = ""
    for line in text[text.rindex("\nprofile of") :].splitlines()[2:]:
        label = line[2:13].strip() or label
        found.setdefault(label, []).append(line[13:])
    return found


def test_profile(small: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """What can be counted by hand: two blocks of four warps, eight steps."""
    assert tool.main([*small, "--profile"]) == 0
    text = capsys.readouterr().out
    assert "\nprofile of small\n" in text
    shown = profile(text)
    by_class = {line.split()[0]: line.split()[1] for line in shown["executed"]}
    assert by_class["mma"] == str(2 * WARPS * STEPS * 4)
    assert by_class["ldmatrix"] == str(2 * WARPS * STEPS * 4)
    assert shown["shared"][0].endswith(" 0 bank conflicts")
    # Ideal but for C, which lanes read 8 bytes at a time: two loads touch each sector.
    total, _, ideal = shown["global"][0].replace(",", " ").partition(" sectors")
    assert total.strip() == "2 816"
    assert ideal.strip().startswith("of 32 bytes  2 560 would be ideal")
    assert shown["cp.async"] == ["64 KiB copied"]  # two tiles of 2 KiB a step
    assert shown["groups"][0].split() == (
        "commit line wait line groups instructions between mma between".split()
    )
    # A pipeline: groups of the steady state have mma between commit and wait.
    assert any(int(line.split()[4]) > 0 for line in shown["groups"][1:])
    assert all(line.split()[2] == str(2 * WARPS) for line in shown["groups"][1:])


def test_every_launch_has_a_profile(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, trace = write(tmp_path, CHAIN), tmp_path / "trace.json"
    assert tool.main([file, "--profile", "--trace", str(trace)]) == 0
    assert capsys.readouterr().out.count("\nprofile of chain") == 2
    events = json.loads(trace.read_text())["traceEvents"]
    assert {e["pid"] for e in events} == {0, 1}
    starts = [e["id"] for e in events if e["ph"] == "b"]
    assert len(set(starts)) == len(starts)


@pytest.fixture
def events(small: list[str], tmp_path: Path) -> list[Event]:
    file = tmp_path / "trace.json"
    assert tool.main([*small, "--trace", str(file), "--trace-block", "1"]) == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["source.mlir", "trace.json"]
    return json.loads(file.read_text())["traceEvents"]


def test_trace_has_a_row_for_each_warp(events: list[Event]) -> None:
    names = [e["args"]["name"] for e in events if e["name"] == "thread_name"]
    assert names == [f"warp {warp}" for warp in range(WARPS)]
    (process,) = [e for e in events if e["name"] == "process_name"]
    assert process["args"]["name"] == "small, block 1"


def test_trace_rows_are_in_order(events: list[Event]) -> None:
    """Waits, barriers and mma, one after the other."""
    for warp in range(WARPS):
        row = [e for e in events if e["ph"] == "X" and e["tid"] == warp]
        assert {e["cat"] for e in row} == {"mma", "wait", "barrier", "commit"}
        row.sort(key=lambda e: e["ts"])
        assert row[0]["ts"] >= 0
        for one, other in pairwise(row):
            assert one["ts"] + one["dur"] <= other["ts"]
        assert sum(e["dur"] for e in row if e["cat"] == "mma") == 4 * STEPS


def test_trace_shows_copies_in_flight(events: list[Event]) -> None:
    """Two per K step and warp, each over mma of earlier steps in the steady state."""
    begins = {e["id"]: e for e in events if e["ph"] == "b"}
    ends = {e["id"]: e for e in events if e["ph"] == "e"}
    assert begins.keys() == ends.keys()
    assert len(begins) == 2 * STEPS * WARPS
    mmas = [e for e in events if e.get("cat") == "mma"]
    hidden = 0
    for number, begin in begins.items():
        end = ends[number]
        assert begin["ts"] < end["ts"]
        assert (begin["tid"], begin["cat"]) == (end["tid"], "cp.async")
        hidden += any(
            begin["ts"] < e["ts"] and e["ts"] + e["dur"] < end["ts"]
            for e in mmas
            if e["tid"] == begin["tid"]
        )
    assert hidden == 2 * (STEPS - 2) * WARPS  # all but those of the first two steps


@pytest.mark.parametrize("visibility", ["late", "early"])
@pytest.mark.parametrize("order", ["lockstep", "ascending", "descending", "random(3)"])
def test_modes(
    small: list[str],
    visibility: str,
    order: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = ["--visibility", visibility, "--emulator-schedule", order]
    assert tool.main([*small, *options]) == 0
    assert "OK: max relative error" in capsys.readouterr().out


def test_without_looking_for_hazards(small: list[str]) -> None:
    assert tool.main([*small, "--no-hazards"]) == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--instruction-limit", "100"], "limit of 100"),
        (["--instruction-limit", "0"], "expected 1 or more, got 0"),
        (["--instruction-limit", "x"], "'x' is no whole number"),
        (["--visibility", "soon"], "argument --visibility: invalid choice: 'soon'"),
        (["--emulator-schedule", "up"], "expected a schedule of lockstep,"),
        (["--trace-block", "1"], "give both"),
        (["--trace", "x.json", "--trace-block", "2"], "from 0 to 1, got 2"),
        (["--trace", "no/where.json"], "where.json': No such file or directory"),
        (["--profile", "--repeat", "2"], "not with --repeat"),
        (["--launch", "x.json"], "cannot read 'x.json': No such file"),
        (["--save-outputs", "x"], "--save-outputs is for runs with --launch"),
    ],
)
def test_mistakes(
    small: list[str],
    options: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """One line each, and no file left behind."""
    monkeypatch.chdir(tmp_path)
    assert tool.main([*small, *options]) == 1
    shown = capsys.readouterr()
    assert shown.err.startswith("error: ")
    assert message in shown.err
    assert shown.err.count("\n") == 1
    assert [p.name for p in tmp_path.iterdir()] == ["source.mlir"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--profile"], "--profile is for the emulator only: add --device emulator"),
        (
            ["--trace", "x", "--visibility", "late", "--no-hazards"],
            "--trace, --visibility, --no-hazards are for the emulator only",
        ),
        (["--emulator-schedule", "random"], "--emulator-schedule is for"),
        (["--instruction-limit", "5"], "--instruction-limit is for"),
    ],
)
def test_a_gpu_takes_none_of_them(
    small: list[str],
    options: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(launch, "cuda_is_available", lambda: True)
    assert tool.main([*small, "--device", "cuda", *options]) == 1
    shown = capsys.readouterr()
    assert shown.err.startswith(f"error: {message}")
    assert shown.err.count("\n") == 1
