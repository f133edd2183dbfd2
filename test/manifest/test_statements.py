"""What kernels of exported models are said to compute, by names of their parameters."""

from __future__ import annotations

from pathlib import Path

import pytest

from alcop_mlir.compilation import compiler, inputs
from alcop_mlir.compilation.certification import launched_kernels
from alcop_mlir.manifest.arrays import Intermediate, Parameter
from alcop_mlir.manifest.held_values import Operand
from alcop_mlir.manifest.stated_arrays import merged
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


def test_loops_of_elements_without_gaps_are_joined() -> None:
    """Where rows have a step of their own, elements are not one behind the other."""
    read, stored = Operand("x", (4, 8), "mn"), Operand("y", (4, 8), "mn")
    plain, apart = Intermediate("x", "f32", (4, 8)), Parameter("y", "f32", (4, 8))
    both = {"x": read, "y": stored}
    found, order = merged(both, "mn", {"x": plain, "y": apart})
    assert (order, found["x"]) == ("m", Operand("x", (32,), "m"))
    apart = Parameter("y", "f32", (4, 8), strides=(16, 1))
    assert merged(both, "mn", {"x": plain, "y": apart}) == (both, "mn")
