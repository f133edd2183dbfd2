"""Chains, such as attention, as problems of the tuner: tiles are searched, and kept."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tuning_cases import CUDA, SIMULATED, TARGET, record

from alcop_mlir.compilation import compiler, inputs
from alcop_mlir.errors import ConfigError
from alcop_mlir.measurement import chain_program, work
from alcop_mlir.measurement.chains_of import find_chains
from alcop_mlir.measurement.pool_tasks import Request, _read
from alcop_mlir.measurement.program_operators import find_program
from alcop_mlir.measurement.simulator import simulate
from alcop_mlir.runtime import bundle, checking, launch
from alcop_mlir.schedule import Schedule
from alcop_mlir.tools import tune
from alcop_mlir.tuning import gpus, models, records
from alcop_mlir.tuning.analytical import PARTS
from alcop_mlir.tuning.chain_schedule import problem_of, schedule_of, sizes_of, tiles_of
from alcop_mlir.tuning.fused.chain_problem import ChainSizes, ChainTiles
from alcop_mlir.tuning.problem import Problem
from alcop_mlir.tuning.search import Task
from alcop_mlir.tuning.selection import Chooser
from alcop_mlir.tuning.space import check, enumerate_space

F16 = ("f16", "f16", "f32", "f16")


def chain(
    *sizes: int,
    types: tuple[str, str, str, str] = F16,
    first: int | None = None,
    last: int | None = None,
    of_rows: int = 2,
) -> Problem:
    batch, m, n, k, d = sizes
    found = problem_of(ChainSizes(batch, m, n, k, d, first, last, of_rows), types)
    assert found is not None
    return found


SMALL = chain(2, 96, 128, 32, 32)
F32 = ("f16", "f16", "f32", "f32")
SQUARES = chain(2, 128, 128, 16, 16, types=F32, of_rows=0)
CHAINS = {
    "heads": chain(96, 512, 512, 64, 64),
    "causal": chain(6, 256, 256, 64, 64, last=0),
    "window": chain(4, 200, 256, 128, 128, first=-31, last=0),
    "one row": chain(8, 1, 4096, 128, 128),
    "squares": chain(4, 512, 640, 64, 64, of_rows=0),
    "bf16": chain(4, 128, 128, 64, 96, types=("bf16", "bf16", "f32", "f32")),
}


@pytest.mark.parametrize("problem", CHAINS.values(), ids=CHAINS)
def test_schedules_are_tiles(problem: Problem) -> None:
    candidates = enumerate_space(problem, TARGET)
    assert len(set(candidates.schedules)) == len(candidates) > 8
    sizes = sizes_of(problem)
    for schedule, cost in zip(candidates.schedules, candidates.resources, strict=True):
        assert schedule_of(sizes, tiles_of(schedule), TARGET) == schedule
        assert check(problem, schedule, TARGET) == cost
        assert Schedule.parse(str(schedule)) == schedule
    chosen = Chooser(TARGET).choose(problem)
    assert chosen.schedule in candidates.rows
    assert chosen.source == "analytical model"
    task = Task(problem, TARGET, candidates)
    row = candidates.rows[chosen.schedule]
    assert task.prediction.seconds[row] == pytest.approx(chosen.seconds)
    assert task.prediction.parts.keys() == {*PARTS}
    assert np.isfinite(task.features).all()


@pytest.mark.parametrize("problem", CHAINS.values(), ids=CHAINS)
def test_simulated_times_are_near_those_of_the_model(problem: Problem) -> None:
    task = Task(problem, TARGET, enumerate_space(problem, TARGET))
    times = simulate(problem, task.candidates, TARGET)
    errors = np.log(times / task.prediction.seconds)
    assert errors.std() < 0.35
    assert abs(np.median(errors)) < 0.6
    assert times.min() > gpus.least_seconds(problem, TARGET, TARGET.device)


@pytest.mark.parametrize("problem", CHAINS.values(), ids=CHAINS)
def test_a_chain_alone_is_the_same_problem(problem: Problem) -> None:
    source = inputs.read_text(chain_program.program(problem))
    assert [one.problem for one in find_chains(source, TARGET)] == [problem]


def test_records_of_chains_are_read_again() -> None:
    problem = CHAINS["window"]
    made = record(enumerate_space(problem, TARGET).schedules[0], problem=problem)
    assert records.from_json(records.to_json(made)) == made
    request = Request("s", problem, made.schedule, "sm_80", "cuda", ("1", "2"), 1, 2)
    assert _read(request.text) == request


def test_scores_that_a_mask_leaves_are_counted() -> None:
    for m, n, first, last in itertools.product(
        (3, 7), (4, 9), (None, -9, 0, 5), (-2, 3, 9)
    ):
        problem = chain(2, m, n, 16, 32, first=first, last=last)
        low = -n - m if first is None else first
        seen = sum(low <= j - i <= last for i in range(m) for j in range(n))
        assert problem.flops == 2 * 2 * seen * (16 + 32)


def test_what_is_no_schedule_of_a_chain_is_refused() -> None:
    good = Chooser(TARGET).choose(SMALL).schedule
    for wrong, why in (
        (replace(good, raster=8), "is not of chain 2x96x128"),
        (replace(good, block=(*good.block[:2], 64)), "is not of chain 2x96x128"),
        (replace(good, split_k=64), "has 64 parts, expected 1 to"),
        (replace(good, block=(4096, 128, 32), warp=(1024, 128)), "of shared"),
    ):
        with pytest.raises(ConfigError, match=re.escape(why)):
            check(SMALL, wrong, TARGET)
    with pytest.raises(ConfigError, match="op is matmul, with members of a chain"):
        replace(SMALL, op="matmul")


def test_a_record_decides_the_tiles(monkeypatch, capsys) -> None:
    source = inputs.read_text(chain_program.program(SMALL))
    own = tiles_of(Chooser(TARGET).choose(SMALL).schedule)
    (found,) = find_chains(source, TARGET)
    assert found.tiles == own
    assert _block(source) == 32 * own.warps
    other = ChainTiles(16, 2 if own.warps != 2 else 4, 32, parts=2)
    fastest = schedule_of(sizes_of(SMALL), other, TARGET)
    illegal = replace(fastest, raster=8)
    known = [
        record(illegal, 4e-6, CUDA, SMALL),
        record(fastest, 5e-6, CUDA, SMALL),
        record(schedule_of(sizes_of(SMALL), own, TARGET), 7e-6, CUDA, SMALL),
    ]
    records.append(models.records_path(), known)
    (found,) = find_chains(source, TARGET, Chooser(TARGET))
    assert found.tiles == other
    assert _block(source) == 32 * other.warps
    assert "a recorded schedule is not used" in capsys.readouterr().err
    # Of another GPU nothing is taken.
    monkeypatch.setenv("ALCOP_GPU", "NVIDIA A100 of another kind")
    assert _block(source) == 32 * own.warps


def _block(source: inputs.Input) -> int:
    made = compiler.compile_source(source, compiler.Options(TARGET, use_ptxas=False))
    return made.functions[0].kernels[0].block[0]


def test_forests_learn_nothing_of_chains() -> None:
    schedules = enumerate_space(CHAINS["heads"], TARGET).schedules
    assert len(schedules) >= 40
    known = [
        record(one, 1e-3, CUDA, problem)
        for problem in (CHAINS["heads"], CHAINS["one row"])
        for one in enumerate_space(problem, TARGET).schedules
    ]
    assert len(known) > models.LEAST_RECORDS
    records.append(models.records_path(), known)
    chooser = Chooser(TARGET)
    assert len(chooser.counted) == len(known)
    assert chooser.learned == (None, ())
    assert chooser.samples() == {}


# What the second contraction leaves of squares, in f32, is the result as it is.
@pytest.mark.parametrize("problem", [SMALL, SQUARES], ids=["softmax", "squares"])
@pytest.mark.parametrize("parts", [1, 2])
def test_candidates_are_compiled_and_right(
    problem: Problem, parts: int, tmp_path: Path
) -> None:
    schedule = schedule_of(sizes_of(problem), ChainTiles(16, 2, 64, parts), TARGET)
    text, path = chain_program.program(problem), tmp_path / "one.zip"
    work.compile_candidate(work.CompileTask(text, TARGET, False, schedule, path, True))
    program = launch.Program(bundle.load(path), device="emulator")
    function = program.function
    assert len(function.launches) == parts  # a merge is another
    before = checking.random_arrays(function)
    expected = checking.evaluate(function, before)
    arrays = launch.to_device(before, "emulator")
    program(*arrays.values())
    assert checking.compare(function, expected, launch.to_host(arrays)).ok


PROGRAM = (
    chain_program.program(SMALL)
    .replace("@operator(", "@model(%lhs: tensor<64x64xf16>, %rhs: tensor<64x32xf16>, ")
    .replace(
        ") -> tensor<2x96x32xf16>", ") -> (tensor<2x96x32xf16>, tensor<64x32xf32>)"
    )
    .replace(
        "return %r : tensor<2x96x32xf16>",
        """%em = tensor.empty() : tensor<64x32xf32>
%fm = linalg.fill ins(%zero : f32) outs(%em : tensor<64x32xf32>) -> tensor<64x32xf32>
%mm = linalg.matmul ins(%lhs, %rhs : tensor<64x64xf16>, tensor<64x32xf16>)
                    outs(%fm : tensor<64x32xf32>) -> tensor<64x32xf32>
return %r, %mm : tensor<2x96x32xf16>, tensor<64x32xf32>""",
    )
)


def test_a_program_is_tuned_with_its_chains(tmp_path: Path, capsys) -> None:
    file = tmp_path / "model.mlir"
    file.write_text(PROGRAM)
    program = find_program(inputs.read_file(file), "model", False, "sm_80")
    assert [one.problem.chain is None for one in program.operators] == [True, False]
    assert program.operators[1].problem == SMALL
    assert tune.main([str(file), "--device", "simulated", "--budget", "48"]) == 0
    said = capsys.readouterr().out
    assert "1 contraction and 1 chain of 2 operators" in said
    known = records.read(models.records_path()).records
    mine = [one for one in known if one.problem == SMALL]
    assert len(mine) >= 8
    assert {one.setting.device for one in mine} == {"simulated"}
    # What was measured is not measured again.
    assert tune.main([str(file), "--device", "simulated", "--budget", "8"]) == 0
    again = records.read(models.records_path()).records
    assert len({(one.problem, one.schedule) for one in again}) == len(again)


def test_a_chain_of_its_own_is_tuned_and_explained(tmp_path: Path, capsys) -> None:
    file = tmp_path / "attention.mlir"
    file.write_text(chain_program.program(SMALL))
    assert tune.main([str(file), "--device", "simulated", "--budget", "200"]) == 0
    capsys.readouterr()
    known = records.read(models.records_path()).records
    best = min(known, key=lambda one: one.seconds or 1.0)
    every = enumerate_space(SMALL, TARGET)
    assert best.seconds == pytest.approx(simulate(SMALL, every, TARGET).min())
    assert tune.main(["explain", str(file), "--device", "simulated"]) == 0
    shown = capsys.readouterr()
    tiles = tiles_of(best.schedule)
    assert f"{tiles.block_rows} rows by {tiles.warps} warps" in shown.out
    assert f"on {SIMULATED.gpu}" in shown.out
    assert "no compile uses these records" in shown.err


def test_a_chain_of_open_size_is_left_out_with_its_reason() -> None:
    rows = "%at = arith.constant 1 : index\n%rows = tensor.dim %q, %at : tensor"
    text = PROGRAM.replace("2x96x", "2x?x")
    text = text.replace(
        "tensor.empty() : tensor<2x?", "tensor.empty(%rows) : tensor<2x?"
    )
    text = text.replace("%zero =", f"{rows}<2x?x32xf16>\n%zero =")
    program = find_program(inputs.read_text(text), "model", False, "sm_80")
    assert [one.problem.op for one in program.operators] == ["matmul"]
    (line,) = program.left_out
    assert "known at run time only" in line
