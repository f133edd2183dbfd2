"""bench/bench_measured.py, and the tables of what others measured that it reads."""

from __future__ import annotations

import gzip
import itertools
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).resolve().parents[2] / "bench"))

import bench_measured
import measured_times
from measured_times import CALIBRATING, SGLANG_SPACE, MeasuredSpace
from real_times import CALIBRATION, HELD_BACK

COLLECT = measured_times.FOLDER / "collect.py"
CHOSEN = {
    "BLOCK_SIZE_M": 64,
    "BLOCK_SIZE_N": 128,
    "BLOCK_SIZE_K": 128,
    "GROUP_SIZE_M": 16,
    "num_warps": 4,
    "num_stages": 3,
}


def test_each_problem_is_in_one_half() -> None:
    halves = [measured_times.best(half) for half in (CALIBRATION, HELD_BACK)]
    keys = [{(one.device, one.problem) for one in half} for half in halves]
    assert not keys[0] & keys[1]
    assert [len(half) for half in halves] == [594, 558]
    assert all(one.chosen in SGLANG_SPACE for half in halves for one in half)


def test_each_space_is_in_one_half() -> None:
    judging = measured_times.spaces(HELD_BACK)
    assert not {*CALIBRATING} & {one.name for one in judging}
    assert {one.name for one in measured_times.spaces(CALIBRATION)} == {*CALIBRATING}
    for space in judging:
        assert len(space.milliseconds) == len(space.parameters) > 1000
        assert (space.milliseconds > 0).all()


def test_a_kernel_of_tritons_is_a_schedule() -> None:
    made = measured_times.schedule((64, 128, 128, 16, 4, 3))
    assert str(made) == "block=64,128,128 warp=32,64 stages=3,2 raster=16"
    rows = itertools.islice(bench_measured.of_best(HELD_BACK), 20)
    ranks = [row["rank"] for row in rows]
    assert all(0 <= one <= 1 for one in ranks)
    assert np.mean(ranks) < 0.4  # at random 0.5


@pytest.mark.parametrize("chooser", ["_random", "_by_residuals"])
def test_no_kernel_is_tried_twice(chooser: str) -> None:
    steps = [(2.0**x, 2.0**y) for x in range(8) for y in range(8)]
    parameters = np.array(steps, np.float64)
    times = 1.0 + np.abs(np.log2(parameters) - 5).sum(axis=1)  # all differ a little
    times += np.arange(64) * 1e-6
    space = MeasuredSpace("made", ("x", "y"), parameters, times)
    taken = getattr(bench_measured, chooser)(space, seed=0)[:50]
    assert len({*taken.tolist()}) == 50
    if chooser == "_by_residuals":
        assert taken[:24].min() < 1.1, "the one minimum of 64 is found"


def test_tables_are_made_of_what_is_published(tmp_path: Path) -> None:
    wheel, hub = tmp_path / "sglang.whl", tmp_path / "hub"
    name = "N=512,K=1024,device_name=NVIDIA_H200,dtype=fp8_w8a8,block_shape=[128, 128]"
    folder = "sglang/srt/layers/quantization/configs"
    with zipfile.ZipFile(wheel, "w") as files:
        files.writestr(f"{folder}/{name}.json", json.dumps({"16": CHOSEN}))
        files.writestr(f"{folder}/README.md", "none")
    times = {
        "1,2": {"x": 1, "y": 2, "one": 5, "time": 0.123456},
        "2,2": {"x": 2, "y": 2, "one": 5, "time": "RuntimeFailedConfig"},
    }
    cache = {"tune_params": {"x": [1, 2], "y": [2, 4], "one": [5]}, "cache": times}
    script = tmp_path / "collect.py"  # writes beside itself
    script.write_text(COLLECT.read_text())
    for path in json.loads(_run(script, "HUB")):
        (hub / path).parent.mkdir(parents=True, exist_ok=True)
        (hub / path).write_bytes(gzip.compress(json.dumps(cache).encode()))
    subprocess.run(
        [sys.executable, script, "--sglang", wheel, "--hub", hub], check=True
    )
    lines = (tmp_path / "sglang.csv").read_text().splitlines()
    assert lines[1:] == ["NVIDIA_H200,fp8_w8a8,16,512,1024,64,128,128,16,4,3"]
    packed = (tmp_path / "gemm-RTX3090.csv.gz").read_bytes()
    assert gzip.decompress(packed).decode() == "x,y,milliseconds\n1,2,0.12346\n"


def _run(script: Path, name: str) -> str:
    code = f"import json, collect; print(json.dumps(list(collect.{name})))"
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=script.parent,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
