"""bench/model_exports.py: the models that bench_models.py names."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs PyTorch: make test-torch")

sys.path.append(str(Path(__file__).resolve().parents[2] / "bench"))

import bench_models
import model_exports

# Of torch.export itself, about its own code.
pytestmark = pytest.mark.filterwarnings("ignore:.*LeafSpec.*:FutureWarning")


def test_all_models_have_both_sizes() -> None:
    assert {*bench_models.MODELS, *bench_models.SCALE} == model_exports.REAL.keys()
    assert model_exports.SMALL.keys() > {*bench_models.MODELS}


def test_run_against_torch_in_f64(capsys: pytest.CaptureFixture[str]) -> None:
    """bf16, whose values are passed as bits: three roundings to 8 bits, at least."""
    program = bench_models.Program("mlp", "bf16", small=True)
    found = bench_models.compiled(program, "sm_80", runs=True)
    capsys.readouterr()  # remarks
    assert found.error is not None
    assert 2**-10 < found.error < 2**-6
    assert found.row()[-1] == "4"
