"""Layers of models that PyTorch exported: how many of their kernels are proven whole.

What intermediate arrays hold is found out by reading the reference: a kernel that is
stated as another one is not placed.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from alcop_mlir.compilation import compiler, inputs
from alcop_mlir.compilation.certification import certify_bundle
from alcop_mlir.target import find_target

FIXTURES = Path(__file__).resolve().parents[1] / "models" / "fixtures"


@pytest.mark.parametrize(
    ("name", "proven", "kernels"),
    [
        ("bert_layer_f16", 15, 15),
        ("gpt2_block_f16", 15, 15),
        ("llama_step_f16", 22, 22),
        ("resnet_basic_f16", 11, 11),  # one calls __assertfail
        ("resnet_bottleneck_f16", 14, 14),
    ],
)
def test_layers(name: str, proven: int, kernels: int) -> None:
    text = (FIXTURES / f"{name}.mlir").read_text("utf-8")
    options = compiler.Options(find_target("sm_80"), None, use_ptxas=False)
    reports = certify_bundle(
        compiler.compile_source(inputs.read_text(text), options), 60
    )
    assert len(reports) == kernels
    assert sum(one.verdict == "proven" for one in reports) == proven
