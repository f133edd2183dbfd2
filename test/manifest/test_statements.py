"""What kernels of exported models are said to compute, by names of their parameters."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from alcop_mlir.compilation import compiler, inputs
from alcop_mlir.compilation.certification import launched_kernels
from alcop_mlir.manifest.arrays import Intermediate, Parameter
from alcop_mlir.manifest.held_values import Operand
from alcop_mlir.manifest.stated_arrays import merged
from alcop_mlir.target import find_target

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "compilation"))
from chain_forms import Form

FIXTURES = Path(__file__).resolve().parents[1] / "models" / "fixtures"
STATED = {
    "mlp_f16": (3, 3),
    "bert_layer_f16": (15, 15),
    "gpt2_block_f16": (15, 15),
    "llama_step_f16": (22, 22),
    "resnet_basic_f16": (11, 11),
    "resnet_bottleneck_f16": (14, 14),
}


# A weight of which the square root is computed once.
PREPARED = """
#row = affine_map<(m, n) -> (n)>
#each = affine_map<(m, n) -> (m, n)>
#one = affine_map<(n) -> (n)>
func.func @f(%v: tensor<16xf32> {alcop.weight}, %x: tensor<32x16xf32>)
    -> tensor<32x16xf32> {
  %e = tensor.empty() : tensor<16xf32>
  %s = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]}
      ins(%v : tensor<16xf32>) outs(%e : tensor<16xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = math.rsqrt %a : f32
    linalg.yield %0 : f32
  } -> tensor<16xf32>
  %g = tensor.empty() : tensor<32x16xf32>
  %r = linalg.generic {indexing_maps = [#each, #row, #each],
      iterator_types = ["parallel", "parallel"]}
      ins(%x, %s : tensor<32x16xf32>, tensor<16xf32>)
      outs(%g : tensor<32x16xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.mulf %a, %b : f32
    linalg.yield %0 : f32
  } -> tensor<32x16xf32>
  return %r : tensor<32x16xf32>
}"""


def stated(name: str) -> list[str]:
    """By kernel, its statement or why there is none."""
    return of_text((FIXTURES / f"{name}.mlir").read_text("utf-8"))


def of_text(text: str) -> list[str]:
    """By kernel of a program, its statement or why there is none."""
    options = compiler.Options(find_target("sm_80"), None, use_ptxas=False)
    made = compiler.compile_source(inputs.read_text(text), options)
    return [one.stated for one in launched_kernels(made)]


@pytest.mark.parametrize("name", STATED)
def test_kernels_of_models(name: str) -> None:
    every = stated(name)
    found = [one for one in every if one.startswith("{")]
    assert (len(found), len(every)) == STATED[name]


def test_what_is_prepared_is_not_stated() -> None:
    """Nor what prepares it: of that there is no reference."""
    assert {*of_text(PREPARED)} == {
        "the manifest has 0 contractions of its arrays",
        "weights that another function has prepared",
    }


def test_chains() -> None:
    """Heads that share keys are two loops; a mask is read for each score."""
    form = Form(heads=4, groups=2, tokens=True, mask="additive", d=64)
    (text,) = of_text(form.text())
    found = json.loads(text)
    chain = found["chain"]
    assert found["lhs"] == "*"
    assert len(chain["order"]) == 5
    assert chain["is_row"]
    q, k, v, mask = (found["arrays"][f"chain_param_{n}"][0] for n in range(4))
    assert (chain["lhs"], chain["rhs"]) == ("chain_param_0", "chain_param_1")
    assert chain["reads"] == ["chain_param_3"]
    (summed,) = {*q} - {*chain["order"]}
    (of_head,) = {*q} & {*found["order"]} - {*k} - {*mask}
    assert summed in k
    assert summed not in v + found["order"]
    assert of_head in chain["order"]
    assert found["outputs"] == {"chain_param_4": []}


def test_loops_of_elements_without_gaps_are_joined() -> None:
    """Where rows have a step of their own, elements are not one behind the other."""
    read, stored = Operand("x", (4, 8), "mn"), Operand("y", (4, 8), "mn")
    plain, apart = Intermediate("x", "f32", (4, 8)), Parameter("y", "f32", (4, 8))
    both = {"x": read, "y": stored}
    found, order = merged(both, "mn", {"x": plain, "y": apart})
    assert (order, found["x"]) == ("m", Operand("x", (32,), "m"))
    apart = Parameter("y", "f32", (4, 8), strides=(16, 1))
    assert merged(both, "mn", {"x": plain, "y": apart}) == (both, "mn")
