"""Kernels of models at published sizes, and the bytes that they move, do not rise."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs PyTorch: make test-torch")

sys.path.append(str(Path(__file__).resolve().parents[2] / "bench"))

from bench_models import Program
from moved_bytes import moved_by_kernel

from alcop_mlir import diagnostics
from alcop_mlir.compilation.compiler import Options
from alcop_mlir.target import find_target

# Of torch.export itself, about its own code.
pytestmark = pytest.mark.filterwarnings("ignore:.*LeafSpec.*:FutureWarning")


# As `python bench/bench_models.py --types f16 --published` prints them, but bytes.
@pytest.mark.parametrize(
    ("name", "batch", "tokens", "kernels", "moved"),
    [
        ("bert_layer", 1, 128, 7, 22_040_064),
        ("gpt2_block", 1, 1024, 7, 55_070_208),
        ("llama_block", 1, 1024, 7, 621_297_664),
        ("llama_step", 1, 128, 12, 449_255_464),
        ("resnet50", 1, 128, 60, 111_283_504),
    ],
)
def test_kernels_and_bytes_do_not_rise(
    name: str, batch: int, tokens: int, kernels: int, moved: int
) -> None:
    source, _ = Program(name, "f16", False, batch, tokens).loaded()
    with diagnostics.collect():
        found = moved_by_kernel(source, Options(find_target("sm_80")), "main")
    assert len(found) <= kernels
    assert sum(one.bytes for one in found) <= moved
