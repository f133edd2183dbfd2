"""What kernels of exported models are said to compute, by names of their parameters."""

from __future__ import annotations

from pathlib import Path

import pytest

from alcop_mlir.compilation import compiler, inputs
from alcop_mlir.compilation.certification import launched_kernels
from alcop_mlir.target import find_target

FIXTURES = Path(__file__).resolve().parents[1] / "models" / "fixtures"
STATED = {
    "mlp_f16": (3, 3),
    "bert_layer_f16": (15, 15),
    "gpt2_block_f16": (15, 15),
    "llama_step_f16": (22, 22),
    "resnet_basic_f16": (11, 11),
    "resnet_bottleneck_f16": (14, 14),
}


def stated(name: str) -> list[str]:
    """By kernel, its statement or why there is none."""
    text = (FIXTURES / f"{name}.mlir").read_text("utf-8")
    options = compiler.Options(find_target("sm_80"), None, use_ptxas=False)
    made = compiler.compile_source(inputs.read_text(text), options)
    return [one.stated for one in launched_kernels(made)]


@pytest.mark.parametrize("name", STATED)
def test_kernels_of_models(name: str) -> None:
    every = stated(name)
    found = [one for one in every if one.startswith("{")]
    assert (len(found), len(every)) == STATED[name]
