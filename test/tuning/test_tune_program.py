"""alcop-tune of whole programs: what is tuned, in which order, and what is kept."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from tuning_cases import PROBLEM, SIMULATED, TARGET, record, some_candidates, task

from alcop_mlir.errors import ConfigError
from alcop_mlir.measurement.journal import Journal, key
from alcop_mlir.measurement.operators import Operator
from alcop_mlir.measurement.program_search import OperatorSearch, Trial, search
from alcop_mlir.schedule import Decision, Schedule
from alcop_mlir.tools import tune
from alcop_mlir.tuning import records
from alcop_mlir.tuning.search import BATCH, PATIENCE, Budget
from alcop_mlir.tuning.strategies import make

pytest.importorskip("torch_mlir", exc_type=ImportError)
from alcop_mlir.compilation import compiler, inputs
from alcop_mlir.measurement.program_operators import find_program

ROOT = Path(__file__).parents[2]
MODELS = ROOT / "test" / "models" / "fixtures"
TWO = """
func.func @two(%x: tensor<64x{m}xf16>, %v: tensor<{m}x32xf16>, %w: tensor<{m}x32xf16>,
               %y: tensor<64x{m}xf16>, %u: tensor<{n}x64xf16>, %z: tensor<64x128xf16>)
    -> (tensor<64x32xf32>, tensor<64x32xf32>, tensor<{n}x128xf32>) {{
  %0 = arith.constant 0.0 : f32
  %1 = tensor.empty() : tensor<64x32xf32>
  %2 = linalg.fill ins(%0 : f32) outs(%1 : tensor<64x32xf32>) -> tensor<64x32xf32>
  %3 = linalg.matmul ins(%x, %v : tensor<64x{m}xf16>, tensor<{m}x32xf16>)
                     outs(%2 : tensor<64x32xf32>) -> tensor<64x32xf32>
  %4 = linalg.matmul ins(%y, %w : tensor<64x{m}xf16>, tensor<{m}x32xf16>)
                     outs(%2 : tensor<64x32xf32>) -> tensor<64x32xf32>
  %5 = tensor.empty({size}) : tensor<{n}x128xf32>
  %6 = linalg.fill ins(%0 : f32) outs(%5 : tensor<{n}x128xf32>) -> tensor<{n}x128xf32>
  %7 = linalg.matmul ins(%u, %z : tensor<{n}x64xf16>, tensor<64x128xf16>)
                     outs(%6 : tensor<{n}x128xf32>) -> tensor<{n}x128xf32>
  return %3, %4, %7 : tensor<64x32xf32>, tensor<64x32xf32>, tensor<{n}x128xf32>
}}
"""
KNOWN = TWO.format(m=64, n=32, size="")
OPEN = TWO.replace(
    "%0 = arith", "%i = arith.constant 0 : index\n  %d = tensor.dim %u, %i : "
    "tensor<{n}x64xf16>\n  %0 = arith"
).format(m=64, n="?", size="%d")  # fmt: skip


def test_equal_operators_are_one() -> None:
    program = find_program(inputs.read_text(KNOWN), "two", False, "sm_80")
    found = [(one.count, str(one.problem)) for one in program.operators]
    assert found == [
        (2, "matmul 64x32x64 f16->f32"),
        (1, "matmul 32x128x64 f16->f32"),
    ]
    assert program.left_out == ()


def test_a_convolution_of_a_model_is_a_program_of_its_own() -> None:
    """That has a reference, by which its results are checked before its time counts."""
    source = inputs.read_file(MODELS / "resnet_basic_f16.mlir")
    program = find_program(source, "resnet", False, "sm_80")
    kinds = [str(one.problem) for one in program.operators]
    assert "matmul 64x32x9*32 f16->f32" in kinds
    one = program.operators[kinds.index("matmul 64x32x9*32 f16->f32")]
    again = find_program(inputs.read_text(one.source), "operator", False, "sm_80")
    assert again.operators[0].problem == one.problem
    schedules = some_candidates(9, one.problem).schedules
    whole = next(schedule for schedule in schedules if schedule.split_k == 1)
    options = compiler.Options(TARGET, whole)
    bundle = compiler.compile_source(inputs.read_text(one.source), options)
    assert bundle.functions[0].reference
    assert len(bundle.functions[0].launches) == 1


def test_what_is_left_out_has_a_line() -> None:
    program = find_program(inputs.read_text(OPEN), "two", False, "sm_80")
    assert [one.count for one in program.operators] == [2]
    assert program.left_out == (
        "1 contraction is left out: M is known at run time only",
    )
    every = OPEN.replace("64x64xf16", "?x64xf16").replace("64x32xf32", "?x32xf32")
    every = every.replace("empty() :", "empty(%d) :")
    with pytest.raises(ConfigError, match=r"none of its contractions .*: M is known"):
        find_program(inputs.read_text(every), "two", False, "sm_80")


class Instant:
    """Measures what it is told: a time for each operator's schedules, by a function."""

    def __init__(self, times: Sequence[dict[Schedule, float]]):
        self.times, self.order = times, list[int]()
        self._started: list[tuple[int, Schedule]] = []

    def wants_more(self) -> bool:
        return not self._started

    def start(self, number: int, schedules: Sequence[Schedule]) -> None:
        self.order.append(number)
        self._started += [(number, schedule) for schedule in schedules]

    def finished(self) -> Iterator[Trial]:
        for number, schedule in self._started:
            made = record(schedule, self.times[number].get(schedule, 1.0))
            yield Trial(number, schedule, made)
        self._started = []


def some_searches(*weights: tuple[int, float]) -> list[OperatorSearch]:
    """Operators: how many contractions, and the seconds of each before."""
    found, some = [], task(120)
    for number, (count, seconds) in enumerate(weights):
        before = Decision(some.candidates.schedules[7], "analytical model", (), seconds)
        strategy = make("random", seed=number)
        found.append(
            OperatorSearch(
                Operator(PROBLEM, "", count), some, before, 1e-9, lambda s=strategy: s
            )
        )
    return found


def test_the_largest_share_comes_first_and_the_budget_is_kept() -> None:
    searches = some_searches((1, 1e-5), (12, 1e-5), (1, 3e-5))
    flat = dict.fromkeys(searches[0].task.candidates.schedules, 1e-5)
    slow = dict.fromkeys(flat, 3e-5)
    device = Instant([flat, flat, slow])
    trials = list(search(searches, device, Budget(trials=52)))
    assert len(trials) == 52
    assert device.order[0] == 1
    shares = Counter(trial.number for trial in trials)
    assert shares[1] > shares[2] > shares[0]
    # What is chosen without a search is tried first.
    assert trials[0].schedule == searches[1].before.schedule
    assert searches[1].measured_before == 1e-5


def test_an_operator_that_gets_better_is_worth_more() -> None:
    better, flat = some_searches((1, 1e-5), (1, 1e-5))
    for number in range(2 * BATCH):
        better.add(better.task.candidates.schedules[number], 1e-5 / (1 + number))
        flat.add(flat.task.candidates.schedules[number], 1e-5)
    assert better.value() / better.seconds > flat.value() / flat.seconds


def test_a_search_ends_where_nothing_gets_better() -> None:
    searches = some_searches((1, 1e-5))
    flat = dict.fromkeys(searches[0].task.candidates.schedules, 1e-5)
    trials = list(search(searches, Instant([flat]), Budget(trials=10_000)))
    assert len(trials) == BATCH * (PATIENCE + 1)


def test_a_program_is_tuned_and_goes_on(
    tmp_path: Path, cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "two.mlir"
    path.write_text(KNOWN)
    command = [str(path), "--device", "simulated", "--target", "sm_90"]
    command += ["--strategy", "analytical"]
    assert tune.main([*command, "--budget", "20"]) == 0
    said = capsys.readouterr().out
    assert "two.mlir on sm_90 (simulated): 3 contractions of 2 operators" in said
    assert "  trials     20 tried, 0 known before (simulated)\n" in said
    assert re.search(r" \d+%  2 x matmul 64x32x64 f16->f32 +\d+ +[\d.]+ us +", said)
    assert re.search(r"program +[\d.]+ us before, [\d.]+ us after: [\d.]+x\n", said)
    assert tune.main([*command, "--budget", "20"]) == 0
    assert "20 tried, 20 known before" in capsys.readouterr().out
    found = records.read(cache / "records.jsonl").records
    assert len(found) == len({key(one) for one in found}) == 40


def test_a_program_of_several_operators_is_not_exported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "two.mlir"
    path.write_text(KNOWN)
    assert tune.main([str(path), "--export", str(tmp_path / "c.zip")]) == 1
    said = capsys.readouterr().err
    assert said == f"error: '{path}' has 2 operators, --export takes one\n"


def test_a_measurement_is_recorded_once(tmp_path: Path) -> None:
    """Two searches that write to one file see what the other has measured."""
    path = tmp_path / "r.jsonl"
    first, second = Journal(path), Journal(path)
    one, two = some_candidates(2).schedules
    made = record(one, 1e-5)
    assert first.append(made) == made
    assert second.append(record(one, 2e-5)) == made
    assert second.append(record(two, 3e-5)).seconds == 3e-5
    assert len(first.refresh()) == 2
    assert len(records.read(path).records) == 2


def test_a_torn_line_costs_no_other(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    one, two = some_candidates(2).schedules
    journal = Journal(path)
    journal.append(record(one))
    with path.open("ab") as file:
        file.write(b'{"schema": 1, "time": "20')
    journal.append(record(two))
    log = records.read(path)
    assert [made.schedule for made in log.records] == [one, two]
    assert len(log.notes) == 1
    assert {made.setting for made in Journal(path).refresh().values()} == {SIMULATED}
