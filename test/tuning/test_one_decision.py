"""What `explain` says is what is compiled, whatever is recorded."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest
from tuning_cases import CUDA, PROBLEM, SIMULATED, record, write_records

from alcop_mlir import variants
from alcop_mlir.schedule import Schedule
from alcop_mlir.tools import compile as compile_tool
from alcop_mlir.tools import tune
from alcop_mlir.tuning import models, records
from alcop_mlir.tuning.problem import Problem
from alcop_mlir.tuning.records import Setting

pytest.importorskip("torch_mlir", exc_type=ImportError)
from alcop_mlir.analysis.host.host_function import host_functions
from alcop_mlir.analysis.linalg.contractions import Contraction
from alcop_mlir.bindings import ir
from alcop_mlir.compilation import inputs
from alcop_mlir.dialects import alcop
from alcop_mlir.pipelines.driver import run_pipeline
from alcop_mlir.pipelines.named import steps_to_contractions
from alcop_mlir.transforms.schedules.schedule_decision import marked_contractions

DEMO = Path(__file__).resolve().parents[2] / "examples" / "matmul_f16.mlir"
SIZES = ((512, 512, 1024), (1024, 1024, 1024), (128, 4096, 4096), (64, 256, 4096))
UNKNOWN = "?"  # the first size, which no model covers
FIRST = Schedule((64, 64, 32), (32, 32), (2, 1))
OTHER_GPU = dataclasses.replace(CUDA, gpu="NVIDIA A30")


def matmul(m: object, n: int, k: int) -> str:
    return f"""
func.func @matmul(%A: memref<{m}x{k}xf16>, %B: memref<{k}x{n}xf16>,
                  %C: memref<{m}x{n}xf32>) {{
  linalg.matmul ins(%A, %B : memref<{m}x{k}xf16>, memref<{k}x{n}xf16>)
                outs(%C : memref<{m}x{n}xf32>)
  return
}}
"""


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Six contractions, the demo's first; the last has a size known at run time."""
    found = [DEMO]
    for sizes in (*SIZES[1:], (96, 80, 112), (UNKNOWN, 256, 256)):
        found.append(tmp_path / ("x".join(map(str, sizes)).replace("?", "m") + ".mlir"))
        found[-1].write_text(matmul(*sizes))
    return found


def selected(file: Path, variants: int) -> tuple[ir.Operation, Contraction]:
    """The contraction, after the compiler's own passes, and the module it lies in.

    An op that a walk found does not keep its module alive: who reads the op holds both.
    """
    module = inputs.read_file(file).module.operation
    select = f"func.func(alcop-select-schedule{{variants={variants}}})"
    steps = (*steps_to_contractions(False), select)
    run_pipeline(module, f"builtin.module({','.join(steps)})")
    (found,) = [c for func in host_functions(module) for c in marked_contractions(func)]
    return module, found


def compiled_variants(file: Path) -> list[str]:
    """The schedules and sources of a contraction with open sizes."""
    module, found = selected(file, 4)
    given = alcop.get_plain(found.op, alcop.VARIANTS)
    del module
    return [f"{one.schedule}, from {one.source}" for one in variants.from_list(given)]


def explained_variants(file: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    assert tune.main(["explain", str(file)]) == 0
    return re.findall(r"(?m)^  variant \d +(.*)$", capsys.readouterr().out)


def compiled(file: Path) -> tuple[str, str]:
    """The schedule and what has decided it."""
    module, found = selected(file, 1)
    parameters = alcop.get(found.op, alcop.ScheduleAttr)
    source = alcop.schedule_source(found.op)
    del module
    assert parameters is not None
    return str(Schedule.from_dict(parameters)), source


def explained(file: Path, capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    assert tune.main(["explain", str(file), "--variants", "1"]) == 0
    said = capsys.readouterr().out
    (schedule,) = re.findall(r"(?m)^  schedule +(.*)$", said)
    (source,) = re.findall(r"(?m)^  from +([a-z ]*)", said)
    return schedule, source


def record_all(setting: Setting) -> None:
    """A record of the demo's contraction; enough of another to learn from."""
    path = models.records_path()
    demo = Problem(*SIZES[0])
    records.append(path, [record(FIRST, 5e-6, setting, demo)])
    write_records(path, models.LEAST_RECORDS, setting, PROBLEM)


@pytest.mark.parametrize(
    ("setting", "sources"),
    [
        (None, ("analytical model", "analytical model")),
        (CUDA, ("record", "learned model")),
        (OTHER_GPU, ("analytical model", "analytical model")),
        (SIMULATED, ("analytical model", "analytical model")),
    ],
    ids=["none", "this GPU", "another GPU", "simulated"],
)
def test_explain_says_what_is_compiled(
    files: list[Path],
    setting: Setting | None,
    sources: tuple[str, str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    if setting is not None:
        record_all(setting)
    demo, *others, unknown = (compiled(file) for file in files)
    assert [demo[1], *{one[1] for one in others}, unknown[1]] == [*sources, "default"]
    assert [explained(file, capsys) for file in files] == [demo, *others, unknown]
    assert explained_variants(files[-1], capsys) == compiled_variants(files[-1])


@pytest.mark.parametrize("setting", [CUDA, SIMULATED], ids=["this GPU", "simulated"])
def test_the_summary_says_it_too(
    setting: Setting, capsys: pytest.CaptureFixture[str]
) -> None:
    record_all(setting)
    assert compile_tool.main([str(DEMO), "--no-ptxas"]) == 0
    said = capsys.readouterr().out
    schedule, source = explained(DEMO, capsys)
    assert f"  schedule   {schedule}\n  from       {source}\n" in said
