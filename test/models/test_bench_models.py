"""bench/bench_models.py: figures of a program that are counted by hand."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[2] / "bench"))

import bench_models
import model_runs

# Two contractions that are equal, one of which K is one step, and two in f32.
PROGRAM = """
func.func @five(%a: tensor<64x64xf16>, %b: tensor<64x64xf16>, %w: tensor<64x64xf16>,
                %c: tensor<64x16xf16>, %d: tensor<16x64xf16>, %f: tensor<64x64xf32>)
    -> (tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32>) {
  %zero = arith.constant 0.0 : f16
  %e = tensor.empty() : tensor<64x64xf16>
  %init = linalg.fill ins(%zero : f16) outs(%e : tensor<64x64xf16>)
            -> tensor<64x64xf16>
  %0 = linalg.matmul ins(%a, %w : tensor<64x64xf16>, tensor<64x64xf16>)
         outs(%init : tensor<64x64xf16>) -> tensor<64x64xf16>
  %1 = linalg.matmul ins(%b, %w : tensor<64x64xf16>, tensor<64x64xf16>)
         outs(%init : tensor<64x64xf16>) -> tensor<64x64xf16>
  %2 = linalg.matmul ins(%c, %d : tensor<64x16xf16>, tensor<16x64xf16>)
         outs(%init : tensor<64x64xf16>) -> tensor<64x64xf16>
  %3 = linalg.matmul ins(%f, %f : tensor<64x64xf32>, tensor<64x64xf32>)
         outs(%f : tensor<64x64xf32>) -> tensor<64x64xf32>
  %4 = linalg.matmul ins(%3, %f : tensor<64x64xf32>, tensor<64x64xf32>)
         outs(%f : tensor<64x64xf32>) -> tensor<64x64xf32>
  return %0, %1, %2, %4
    : tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32>
}
"""


def test_counted_by_hand(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Five, three on tensor cores, two of these pipelined, and equal."""
    source = tmp_path / "five_f16.mlir"
    source.write_text(PROGRAM, "utf-8")
    found = bench_models.compiled(
        bench_models.Program(str(source), "f16", True), "sm_80"
    )
    figures = found.figures
    assert figures.contractions == 5
    assert (figures.on_tensor_cores, figures.pipelined) == (3, 2)
    assert (figures.kernels, figures.stored) == (7, 5)  # two copies of %f are equal
    assert figures.workspace == 64 * 64 * 4  # %3
    *simt, one_step = figures.reasons
    assert len(simt) == 2
    assert all("runs as a SIMT fallback" in one for one in simt)
    assert "is not pipelined: block=" in one_step
    assert one_step.endswith("stages=1,1")
    assert found.row()[:2] == ["five_f16", "f16"]
    capsys.readouterr()


# exp(w) is computed once, and added to the rows of x in each call.
WEIGHT = """
#row = affine_map<(m, n) -> (n)>
#all = affine_map<(m, n) -> (m, n)>
func.func @add(%w: tensor<32xf32> {alcop.weight}, %x: tensor<16x32xf32>)
    -> tensor<16x32xf32> {
  %e = tensor.empty() : tensor<32xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(n) -> (n)>, affine_map<(n) -> (n)>],
                       iterator_types = ["parallel"]}
      ins(%w : tensor<32xf32>) outs(%e : tensor<32xf32>) {
  ^bb0(%a: f32, %o: f32):
    %b = math.exp %a : f32
    linalg.yield %b : f32
  } -> tensor<32xf32>
  %f = tensor.empty() : tensor<16x32xf32>
  %y = linalg.generic {indexing_maps = [#row, #all, #all],
                       iterator_types = ["parallel", "parallel"]}
      ins(%s, %x : tensor<32xf32>, tensor<16x32xf32>) outs(%f : tensor<16x32xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %c = arith.addf %a, %b : f32
    linalg.yield %c : f32
  } -> tensor<16x32xf32>
  return %y : tensor<16x32xf32>
}
"""


def test_what_is_done_once_is_apart(tmp_path: Path) -> None:
    source = tmp_path / "add_f32.mlir"
    source.write_text(WEIGHT, "utf-8")
    found = bench_models.compiled(
        bench_models.Program(str(source), "f32", True), "sm_80"
    )
    figures = found.figures
    assert (figures.kernels, figures.once, figures.stored) == (1, 1, 2)
    assert found.moved == found.least == 2 * 16 * 32 * 4 + 32 * 4


def test_run_of_a_stored_model(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without torch: values are drawn, and results stored, as small.py does."""
    records: list[dict[str, object]] = []
    monkeypatch.setattr(bench_models, "store", lambda _, found: records.extend(found))
    monkeypatch.setattr(model_runs, "MODES", model_runs.MODES[:2])
    fixture = Path(__file__).resolve().parent / "fixtures" / "mlp_f16.mlir"
    assert bench_models.main(["--run", str(fixture)]) == 0
    (found,) = records
    assert found["contractions"] == found["pipelined"] == 3
    assert 0 < float(str(found["error"])) < 1e-3
    header, rule, row, *_ = capsys.readouterr().out.splitlines()
    assert row.startswith("| mlp_f16 | f16 | 3 |")
    assert header.count("|") == rule.count("|") == row.count("|")


def test_what_is_not_compiled(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line a program; the others are in the table."""
    monkeypatch.setattr(bench_models, "store", lambda name, records: len(records))
    missing = str(tmp_path / "missing_f16.mlir")
    assert bench_models.main([missing]) == 1
    shown = capsys.readouterr().out
    assert "| model | type | kernels |" in shown
    assert f"{missing} f16: " in shown
    assert shown.endswith("records: 0\n")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["resnet19"], "unknown model 'resnet19'"),
        (["--types", "f16,f61"], "unknown type 'f61'"),
    ],
)
def test_unknown_names(
    given: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        bench_models.main(given)
    assert stopped.value.code == 2
    assert told in capsys.readouterr().err
