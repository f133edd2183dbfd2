"""bench/bench_choosing.py and the times of others that it reads, on made-up files."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from tuning_cases import PROBLEM, TARGET, task

sys.path.append(str(Path(__file__).resolve().parents[2] / "bench"))

import bench_choosing
import choosing_logs
import choosing_strategies
import real_times
from real_times import CALIBRATION, HELD_BACK, Times

from alcop_mlir.errors import ConfigError
from alcop_mlir.schedule import Schedule
from alcop_mlir.tuning.problem import Problem
from alcop_mlir.tuning.search import History

HEAD = '{"shared_memory": 166912, "device_capa": [8, 0], "name": "mm"}\n'
COLUMNS = (
    "m,k,n,mat1_dtype,mat2_dtype,mat1_stride_0,mat1_stride_1,mat2_stride_0,"
    "mat2_stride_1,mat1_iscontig,mat2_iscontig,using_tf32,choice,feedback\n"
)
TILES = [(64, 64, 32), (64, 64, 64), (128, 64, 32), (128, 128, 32)]


def table(path: Path, *, rows: str = "", kind: str = "float16", m: int = 512) -> Path:
    """Times of 16 made-up kernels for m x 256 x 1024, and one of a library."""
    made = []
    for place, (tile_m, tile_n, tile_k) in enumerate(TILES):
        for stages in range(2, 6):
            choice = f"type=triton_BLOCK-M={tile_m}_BLOCK-K={tile_k}_BLOCK-N={tile_n}"
            choice += f"_numstages={stages}_numwarps=4"
            made += [(choice, 0.01 * (place + stages)), (choice, 0.5)]
            made.append((choice, 0.01 * (place + stages)))
    fixed = (
        f"{m},1024,256,torch.{kind},torch.{kind},1024,1,256,1,True,True,not_float_32"
    )
    text = "".join(f"{fixed},{choice},{time}\n" for choice, time in made)
    path.write_text(f"{HEAD}{COLUMNS}{text}{fixed},extern_mm,0.001\n{rows}")
    return path


def test_a_table_is_problems_and_schedules(tmp_path: Path) -> None:
    paths = [
        table(tmp_path / "a.txt"),
        table(tmp_path / "b.txt", m=300, kind="bfloat16"),
    ]
    first, second = real_times.read(paths)
    assert first.problem == Problem(512, 256, 1024, dtypes=("f16", "f16", "f32", "f16"))
    assert (first.target, second.problem.m) == ("sm_80", 300)
    assert second.problem.dtypes == ("bf16", "bf16", "f32", "bf16")
    schedule = Schedule((64, 64, 32), (32, 32), (2, 2), raster=8)
    assert first.milliseconds[schedule] == 0.02  # the median of three
    assert len(first.milliseconds) == 16


@pytest.mark.parametrize(
    ("tile", "warps", "along"),
    [
        ((128, 128), 4, (2, 2)),
        ((128, 64), 4, (4, 1)),
        ((64, 128), 8, (2, 4)),
        ((16, 32), 2, (1, 2)),
        ((128, 32), 4, (4, 1)),
    ],
)
def test_warps_as_triton_spreads_them(tile, warps: int, along) -> None:
    assert real_times.warps_of(tile[0], tile[1], warps) == along


def test_other_types_and_layouts_are_left_out(tmp_path: Path) -> None:
    assert real_times.read([table(tmp_path / "a.txt", kind="float32")]) == []
    path = table(tmp_path / "b.txt")
    apart = path.read_text().replace(",1024,1,256,1,", ",2048,1,256,1,")
    path.write_text(apart)
    assert real_times.read([path]) == []
    path.write_text(apart.replace(",2048,1,256,1,", ",1,512,1,1024,"))
    (found,) = real_times.read([path])
    assert found.problem.layout == "km,nk"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "expected a table of AutoHeuristic"),
        ("[]\n", "expected a table of AutoHeuristic"),
        (HEAD + "m,k,n\n", "no column mat1_dtype"),
        (HEAD + COLUMNS + "1,2\n", "line 3"),
        (HEAD + COLUMNS + "x,2,3,torch.float16,torch.float16\n", "line 3"),
    ],
)
def test_what_is_no_table_is_refused(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "a.txt"
    path.write_text(text)
    with pytest.raises(ConfigError, match=said):
        real_times.read([path])
    with pytest.raises(ConfigError, match="expected a table"):
        real_times.read([tmp_path / "missing.txt"])


def test_a_problem_is_in_one_half_always() -> None:
    times = [Times(Problem(m, 64, 64), "sm_80", {}) for m in range(1, 201)]
    halves = [real_times.of_half(times, half) for half in (CALIBRATION, HELD_BACK)]
    assert sum(map(len, halves)) == 200
    assert 70 < len(halves[0]) < 130
    assert Times(Problem(7, 64, 64), "sm_90", {}).half == times[6].half


def test_the_bench_judges_by_a_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bench_choosing, "store", lambda *_: tmp_path / "choosing.jsonl")
    half = Times(Problem(512, 256, 1024), "sm_80", {}).half
    real = ["--real", str(table(tmp_path / "a.txt")), "--half", half]
    choosers = ["--choosers", "random,analytical,hybrid"]
    bench_choosing.main([*real, *choosers, "--json"])
    rows = json.loads(capsys.readouterr().out)
    assert [row["chooser"] for row in rows] == ["random", "analytical", "hybrid"]
    for row in rows:
        assert 0 < row["after 0"] <= row["after 50"] == 1.0  # all 16 were tried
    bench_choosing.main([*real, *choosers])
    printed = capsys.readouterr().out
    assert "sm_80, 1 problems" in printed
    assert "yardstick" in printed


def test_simulated_times_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choosing_logs, "RESULTS", tmp_path)
    monkeypatch.setattr(
        choosing_logs, "operators", lambda: [PROBLEM, Problem(64, 64, 64)]
    )
    machine = choosing_logs.yardstick_device.MACHINES["sm_80"]
    said: list[str] = []
    (first,) = choosing_logs.simulated(TARGET, machine, 1, 5, said.append)
    assert said == [str(PROBLEM)]
    monkeypatch.setattr(choosing_logs.yardstick_device, "seconds", None)
    (again,) = choosing_logs.simulated(TARGET, machine, 1, 5, said.append)
    assert np.array_equal(first.seconds, again.seconds)
    assert len(first.seconds) == 5


def test_the_spread_is_of_what_differs_between_schedules() -> None:
    one = np.array([1.0, 2.0, 4.0])
    assert choosing_logs.spread([(one, 3 * one)]) == pytest.approx(0)
    assert choosing_logs.spread([(one, np.ones(3))]) > 0.5


def test_rank_loss_proposes_what_is_new(monkeypatch: pytest.MonkeyPatch) -> None:
    """XGBoost itself is in an extra: here the second parameter is the score."""
    monkeypatch.setattr(
        choosing_strategies, "ranks", lambda known, values, asked: asked[:, 1]
    )
    some = task(40)
    strategy = choosing_strategies.RankLoss(0)
    first = strategy.propose(some, History(), 8)
    assert len({*first}) == 8
    history = History({row: 1.0 + row for row in first})
    second = strategy.propose(some, history, 8)
    assert not {*first} & {*second}
    untried = [row for row in range(40) if row not in first]
    widest = max(some.candidates.schedules[row].block[1] for row in untried)
    assert widest in {some.candidates.schedules[row].block[1] for row in second}
