"""alcop-tune: what it prints, what it keeps, and its error lines."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[2] / "bench"))

from attention_tiles import Attention
from plain_attention import plain_attention
from tuning_cases import (
    CUDA,
    PROBLEM,
    TARGET,
    record,
    some_candidates,
    write_records,
)

from alcop_mlir.errors import ConfigError
from alcop_mlir.measurement import devices, exchange
from alcop_mlir.runtime import launch
from alcop_mlir.runtime.measure import Timing
from alcop_mlir.tools import compile as compile_tool
from alcop_mlir.tools import tune
from alcop_mlir.tuning import records
from alcop_mlir.tuning.problem import Problem
from alcop_mlir.tuning.selection import Chooser

pytest.importorskip("torch_mlir", exc_type=ImportError)
from alcop_mlir.compilation import inputs
from alcop_mlir.measurement.tunables import find_tunable

MATMUL = """
func.func @matmul(%A: memref<{m}x256xf16>, %B: memref<256x256xf16>,
                  %C: memref<{m}x256xf32>) {{
  linalg.matmul ins(%A, %B : memref<{m}x256xf16>, memref<256x256xf16>)
                outs(%C : memref<{m}x256xf32>)
  return
}}
"""
BATCHED = """
func.func @batched(%A: tensor<4x128x64xf16>, %B: tensor<4x64x32xf16>,
                   %C: tensor<4x128x32xf32>) -> tensor<4x128x32xf32> {
  %0 = linalg.batch_matmul ins(%A, %B : tensor<4x128x64xf16>, tensor<4x64x32xf16>)
                           outs(%C : tensor<4x128x32xf32>) -> tensor<4x128x32xf32>
  return %0 : tensor<4x128x32xf32>
}
"""

SWAPPED = """
#b = affine_map<(d0, d1, d2) -> (d2, d1)>
#a = affine_map<(d0, d1, d2) -> (d0, d2)>
#c = affine_map<(d0, d1, d2) -> (d0, d1)>
func.func @swapped(%B: memref<64x32xf16>, %A: memref<128x64xf16>,
                   %C: memref<128x32xf32>) {
  linalg.generic {indexing_maps = [#b, #a, #c],
                  iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%B, %A : memref<64x32xf16>, memref<128x64xf16>)
      outs(%C : memref<128x32xf32>) {
  ^body(%b: f16, %a: f16, %c: f32):
    %0 = arith.extf %b : f16 to f32
    %1 = arith.extf %a : f16 to f32
    %2 = arith.mulf %0, %1 : f32
    %3 = arith.addf %c, %2 : f32
    linalg.yield %3 : f32
  }
  return
}
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "matmul.mlir"
    path.write_text(MATMUL.format(m=256))
    return str(path)


SIMULATED = ["--device", "simulated"]


def test_a_search_records_and_goes_on(
    file: str, cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tune.main([file, *SIMULATED, "--budget", "12"]) == 0
    said = capsys.readouterr().out
    assert "matmul 256x256x256 f16->f32 on sm_80 (simulated): small space, " in said
    assert "12 tried: best" in said
    assert "TFLOP/s (simulated)" in said
    assert len(records.read(cache / "records.jsonl").records) == 12
    assert tune.main([file, *SIMULATED, "--budget", "12"]) == 0
    assert "12 tried, 12 known before" in capsys.readouterr().out
    tried = [one.schedule for one in records.read(cache / "records.jsonl").records]
    assert len(tried) == len(set(tried)) == 24


def test_explain_says_what_and_why(
    file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tune.main(["explain", file, *SIMULATED, "--target", "sm_90"]) == 0
    said = capsys.readouterr().out
    for word in ("schedule", "analytical model", "limit", "tensor cores", "runners-up"):
        assert word in said
    tune.main([file, *SIMULATED, "--budget", "8", "--target", "sm_90"])
    capsys.readouterr()
    assert tune.main(["explain", file, *SIMULATED, "--target", "sm_90"]) == 0
    assert "from       record" in capsys.readouterr().out


def test_explain_says_which_tiles_attention_gets(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    case = Attention(32, 1024, 128, (128, 64), 8, causal=True)
    path = tmp_path / "attention.mlir"
    path.write_text(plain_attention(case))
    assert tune.main(["explain", str(path), "--target", "sm_80"]) == 0
    said = capsys.readouterr().out
    assert "chain 32x1024x1024, rows of 128 and 128, masked on sm_80" in said
    assert "tiles      64 rows by 4 warps, 64 columns" in said
    for part in ("tensor cores", "scores", "last blocks", "others"):
        assert part in said


def test_explain_says_why_of_wgmma_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "large.mlir"
    path.write_text(MATMUL.format(m=32768))
    target = ["--target", "sm_90a"]
    assert tune.main(["explain", str(path), *SIMULATED, *target]) == 0
    said = capsys.readouterr().out
    assert re.search(r"schedule +block=.* engine=wgmma", said)
    assert "from       analytical model" in said
    for word in ("TFLOP/s", "limit", "tensor cores", "start", "runners-up"):
        assert word in said
    tune.main([str(path), *SIMULATED, "--budget", "8", *target])
    assert "engine=wgmma" in capsys.readouterr().out
    assert tune.main(["explain", str(path), *SIMULATED, *target]) == 0
    said = capsys.readouterr().out
    assert "from       record" in said
    assert re.search(r"schedule +block=.* engine=wgmma", said)


def test_batches_on_tensors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "batched.mlir"
    path.write_text(BATCHED)
    assert tune.main(["explain", str(path), *SIMULATED]) == 0
    assert "batch_matmul 4x128x32x64 f16->f32 on sm_80" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("kinds", "dtypes"),
    [
        (("f32", "f32"), ("tf32", "tf32", "f32", "f32")),
        (("i8", "i32"), ("i8", "i8", "i32", "i32")),
    ],
)
def test_types_of_operands_and_accumulators_are_in_the_key(
    kinds: tuple[str, ...], dtypes: tuple[str, ...]
) -> None:
    """tf32 differs from f32, and integers are accumulated as integers."""
    kind, out = kinds
    text = MATMUL.format(m=128).replace("f32", out).replace("f16", kind)
    tunable = find_tunable(inputs.read_text(text), "-", allow_tf32=True)
    assert tunable.problem.dtypes == dtypes


def test_floats_of_eight_bits_are_tuned_where_they_are_multiplied() -> None:
    """Elsewhere they are widened first, of which no model knows the time."""
    source = inputs.read_text(MATMUL.format(m=128).replace("f16", "f8E4M3FN"))
    problem = find_tunable(source, "-", target="sm_89").problem
    assert problem.dtypes == ("f8E4M3FN", "f8E4M3FN", "f32", "f32")
    with pytest.raises(ConfigError, match="other types than the f16 multiplied"):
        assert find_tunable(source, "-", target="sm_90").problem


def test_f32_has_to_be_asked_for(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path(file).write_text(MATMUL.format(m=256).replace("f16", "f32"))
    assert tune.main(["explain", file, *SIMULATED]) == 1
    assert "no contractions that can be tuned, expected one: " in (
        said := capsys.readouterr().err
    )
    assert "done with the option 'allow-tf32' only" in said
    assert tune.main(["explain", file, *SIMULATED, "--allow-tf32"]) == 0
    assert "matmul 256x256x256 tf32->f32 on sm_80" in capsys.readouterr().out


def test_a_contraction_whose_first_input_is_b() -> None:
    source = inputs.read_text(SWAPPED)
    assert find_tunable(source, "-").problem == Problem(128, 32, 64)


def test_candidates_are_exported_measured_and_imported(
    file: str, tmp_path: Path, cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    package, measured = str(tmp_path / "c.zip"), str(tmp_path / "r.jsonl")
    options = ["--budget", "3", "--target", "sm_80", "--workers", "2"]
    assert tune.main([file, "--export", package, *options]) == 0
    assert "c.zip: 3 candidates" in capsys.readouterr().out
    assert tune.main(["--measure", package, *SIMULATED, "-o", measured]) == 0
    assert "3 candidates measured (simulated)" in capsys.readouterr().out
    for new in (3, 0):
        assert tune.main(["--import", measured]) == 0
        assert f"{new} new records in" in capsys.readouterr().out
    assert len(records.read(cache / "records.jsonl").records) == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["FILE", "--budget", "0"], "budget '0', expected more than nothing"),
        (["FILE", "--target", "sm_1"], "unknown target 'sm_1', expected one of sm_80"),
        (["FILE", "--space", "huge"], "unknown space 'huge', expected one of small"),
        (["FILE", "--strategy", "luck"], "unknown strategy 'luck', expected one of"),
        (["FILE", "--device", "tpu"], "unknown device 'tpu', expected one of auto"),
        (["FILE", "--workers", "0"], "argument --workers: expected 1 or more, got 0"),
        ([], "no file given; see alcop-tune --help"),
        (["nothing.mlir"], "cannot read 'nothing.mlir': No such file or directory"),
        (["explain"], "no file given; see alcop-tune --help"),
        (["--import", "nothing.jsonl"], "no such file: 'nothing.jsonl'"),
        (["--measure", "nothing.zip"], "cannot read 'nothing.zip': No such file"),
        (["report"], "nothing is recorded, there is nothing to draw"),
    ],
)
def test_one_line_for_each_error(
    file: str, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert tune.main([file if one == "FILE" else one for one in arguments]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"error: {message}")
    assert said.count("\n") == 1


def test_a_file_without_a_contraction_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "odd.mlir"
    path.write_text("func.func @f() { return }")
    assert tune.main([str(path), *SIMULATED]) == 1
    assert "computes no contractions that can be tuned" in capsys.readouterr().err


def test_sizes_that_no_tile_divides(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "odd.mlir"
    path.write_text(MATMUL.format(m=100))
    assert tune.main(["explain", str(path), *SIMULATED]) == 0
    assert "matmul 100x256x256 f16->f32 on sm_80" in capsys.readouterr().out


def test_records_that_cannot_be_written_end_the_search(
    file: str, cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cache.write_text("a file where the folder should be")
    assert tune.main([file, *SIMULATED, "--budget", "8"]) == 1
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("error: cannot ")


def test_damaged_records_are_reported_and_kept(
    file: str, cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = cache / "records.jsonl"
    cache.mkdir()
    path.write_text('{"schema": 9}\n{"torn')
    assert tune.main([file, *SIMULATED, "--budget", "8"]) == 0
    said = capsys.readouterr().err
    assert f"note: {path}:2: line skipped: no JSON: " in said
    assert "1 record(s) of schema 9 skipped" in said
    assert path.read_text().startswith('{"schema": 9}\n{"torn\n')


# The tool, whose search continues when nothing gets better: it must not end by itself.
# Where the tests run in the background, it would inherit that Ctrl-C is ignored.
_TUNE_WITHOUT_END = """
import signal, sys
from alcop_mlir.tools import tune
from alcop_mlir.tuning import search
search.search.__kwdefaults__["patience"] = None
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.exit(tune.main(sys.argv[1:]))
"""


def _holds_something(path: Path) -> bool:
    return path.exists() and path.stat().st_size > 0


def test_ctrl_c_keeps_what_was_measured(file: str, cache: Path) -> None:
    path = cache / "records.jsonl"
    command = [sys.executable, "-c", _TUNE_WITHOUT_END, file, *SIMULATED]
    tool = subprocess.Popen(
        [*command, "--budget", "600s", "--space", "full"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    try:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not _holds_something(path):
            time.sleep(0.01)
        tool.send_signal(signal.SIGINT)
        said = tool.communicate(timeout=60)[1].decode()
    finally:
        tool.kill()
    assert tool.returncode == 130
    assert "the same command goes on" in said
    assert "Traceback" not in said
    log = records.read(path)
    assert log.notes == ()
    assert len(log.records) >= 1


def test_the_report_draws_three_pictures_twice(
    tmp_path: Path, cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    write_records(cache / "records.jsonl", 10)
    assert tune.main(["report", "-o", str(tmp_path / "out")]) == 0
    names = {path.name for path in (tmp_path / "out").iterdir()}
    stems = ("best-so-far", "predicted-measured", "latency")
    assert names == {f"{s}-simulated.{kind}" for s in stems for kind in ("png", "svg")}
    assert all((tmp_path / "out" / name).stat().st_size > 1000 for name in names)


def test_wrong_results_and_failures_are_recorded_not_ranked() -> None:
    schedule = some_candidates(1).schedules[0]
    setting = devices.cuda_setting(TARGET, ("0.1.0", "abc"))
    with devices.Cuda(PROBLEM, TARGET, setting, 1, 1.0, 1, print) as device:
        failed = device.record(schedule, None, "wrong result")
        good = device.record(schedule, Timing((1e-5, 1e-5, 1e-5, 1e-5)), "")
    assert (failed.seconds, failed.error) == (None, "wrong result")
    assert (good.seconds, good.spread, good.repeats) == (1e-5, 0.0, 4)
    assert records.ranked([failed, good], PROBLEM, "sm_80", "cuda") == [good]


def test_a_search_says_whether_compiles_use_it(
    file: str, cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tune.main([file, *SIMULATED, "--budget", "8"]) == 0
    said = capsys.readouterr().out
    assert "no compile uses what is found: simulated times are of no GPU\n" in said
    compiled = Chooser(TARGET).choose(Problem(256, 256, 256)).schedule
    assert f"  compile    {compiled}, from analytical model\n" in said
    assert "no compile uses these records: simulated times are of no GPU\n" in said


def test_an_import_says_which_records_compiles_use(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "r.jsonl"
    write_records(path, 2)
    write_records(path, 3, CUDA)
    assert tune.main(["--import", str(path)]) == 0
    _, said = capsys.readouterr().out.splitlines()
    assert said == (
        "no compile uses 2 of them (sm_80, simulated SM): simulated times are of no GPU"
    )


def test_explain_with_other_records_says_that_compiles_read_others(
    file: str, tmp_path: Path, cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, schedule = tmp_path / "own.jsonl", some_candidates(1).schedules[0]
    records.append(path, [record(schedule, 5e-6, CUDA, Problem(256, 256, 256))])
    assert tune.main(["explain", file, "--records", str(path)]) == 0
    said = capsys.readouterr().out
    assert f"  schedule   {schedule}\n  from       record\n" in said
    assert f"no compile uses these records: it reads {cache}/records.jsonl\n" in said
    compiled = Chooser(TARGET).choose(Problem(256, 256, 256)).schedule
    assert f"  compile    {compiled}, from analytical model\n" in said


def test_explain_tells_of_records_of_another_gpu(
    file: str, cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_records(cache / "records.jsonl", 3, replace(CUDA, gpu="NVIDIA A30"))
    assert tune.main(["explain", file]) == 0
    assert capsys.readouterr().err == (
        "note: 3 record(s) of NVIDIA A30 do not count, only those of "
        "NVIDIA A100-SXM4-80GB\n"
    )


def test_the_reason_that_no_model_covers_it(
    file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    why = "M is known at run time only"
    Path(file).write_text(MATMUL.format(m="?"))
    assert tune.main([file, *SIMULATED]) == 1
    assert capsys.readouterr().err == f"error: '{file}': {why}; no model covers that\n"
    assert tune.main(["explain", file, "--variants", "1"]) == 0
    said = capsys.readouterr().out
    assert f"  from       default\n  models     none: {why}\n" in said


def test_nothing_is_left_of_a_contraction_without_rows(
    file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(file).write_text(MATMUL.format(m="0"))
    assert tune.main([file, *SIMULATED]) == 1
    why = "computes no contractions that can be tuned, expected one"
    assert capsys.readouterr().err.endswith(f"{why}\n")


def test_a_gpu_is_not_replaced_by_a_simulation_when_measuring(
    file: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(launch, "cuda_is_available", lambda: False)
    package = tmp_path / "c.zip"
    exchange.save(exchange.Package(PROBLEM, TARGET, ("0", "0"), []), package)
    assert tune.main(["--measure", str(package)]) == 1
    said = capsys.readouterr().err
    assert said.startswith("error: no GPU is found to measure on; --device simulated")
    assert not package.with_suffix(".jsonl").exists()


def test_a_search_that_goes_on_shows_the_best_that_is_known(
    file: str, cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tune.main([file, *SIMULATED, "--budget", "8"]) == 0
    first = re.findall("8 tried: (best .*) ", capsys.readouterr().out)
    arguments = [file, *SIMULATED, "--strategy", "random", "--budget", "1"]
    assert tune.main(arguments) == 0
    assert re.findall("1 tried: (best .*) ", capsys.readouterr().out) == first


def test_a_bad_line_is_one_warning_and_compiling_goes_on(
    file: str, cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a module of two functions."""
    path = cache / "records.jsonl"
    cache.mkdir()
    good = json.dumps(records.to_json(record(some_candidates(1).schedules[0])))
    bad = good.replace('"seconds": 1e-05', '"seconds": "fast"')
    path.write_text(f"{good}\n{bad}\n" + "[" * 100_000 + "\n")
    text = MATMUL.format(m=256)
    Path(file).write_text(text + text.replace("@matmul", "@again"))
    assert compile_tool.main([file, "--no-ptxas"]) == 0
    said = capsys.readouterr().err.splitlines()
    assert [line.partition(" warning: ")[2] for line in said] == [
        f"{path}:2: line skipped: seconds: expected a number above 0 or null, got "
        '"fast"',
        f"{path}:3: line skipped: no JSON: nested too deep",
    ]


def test_the_report_says_what_compiles_take(
    tmp_path: Path, cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fastest = min(
        write_records(cache / "records.jsonl", 3, CUDA),
        key=lambda one: one.seconds or 1,
    )
    write_records(cache / "records.jsonl", 2)
    records.append(
        cache / "records.jsonl",
        [record(fastest.schedule, 1e-5, replace(CUDA, target="sm_1"))],
    )
    tune.main(["report", "-o", str(tmp_path / "out")])  # may lack matplotlib
    said = capsys.readouterr()
    assert said.out.startswith(
        "compiled for sm_80 (NVIDIA A100-SXM4-80GB)\n"
        "  problem    matmul 512x512x512 f16->f32: "
        f"{fastest.schedule}, from record\n"
        "  records    5\n"
        "             no compile uses 2 of them (sm_80, simulated SM): simulated times"
    )
    assert "note: 1 record(s) of unknown targets left out\n" in said.err
