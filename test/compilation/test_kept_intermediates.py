"""Epilogues with several results: what lies between is stored too, by one kernel."""

from __future__ import annotations

import numpy as np
import pytest

import alcop_mlir

# A matmul of 48 x 32 and 32 x 64, to which FIRST and SECOND are applied in turn; the
# function returns what both make, as training needs it.
TEXT = """
#all = affine_map<(m, n) -> (m, n)>
#n = affine_map<(m, n) -> (n)>
func.func @f(%x: tensor<48x32xf16>, %w: tensor<32x64xf16>, %b: tensor<64xf32>,
             %r: tensor<48x64xf32>) -> (tensor<48x64xf32>, tensor<48x64xKIND>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<48x64xf32>
  %h = tensor.empty() : tensor<48x64xKIND>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<48x64xf32>) -> tensor<48x64xf32>
  %c = linalg.matmul ins(%x, %w : tensor<48x32xf16>, tensor<32x64xf16>)
         outs(%i : tensor<48x64xf32>) -> tensor<48x64xf32>
  %p = linalg.generic {indexing_maps = [#all, #all, #n, #all],
      iterator_types = ["parallel", "parallel"]}
    ins(%c, %r, %b : tensor<48x64xf32>, tensor<48x64xf32>, tensor<64xf32>)
    outs(%e : tensor<48x64xf32>) {
  ^bb0(%a: f32, %s: f32, %v: f32, %o: f32):
    FIRST
    linalg.yield %t : f32
  } -> tensor<48x64xf32>
  %q = linalg.generic {indexing_maps = [#all, #all],
      iterator_types = ["parallel", "parallel"]}
    ins(%p : tensor<48x64xf32>) outs(%h : tensor<48x64xKIND>) {
  ^bb0(%a: f32, %o: KIND):
    SECOND
    linalg.yield %t : KIND
  } -> tensor<48x64xKIND>
  return %p, %q : tensor<48x64xf32>, tensor<48x64xKIND>
}"""
ADD = "%t = arith.addf %a, %s : f32"
BIAS = "%t = arith.addf %a, %v : f32"
SCALE = "%u = arith.mulf %a, %v : f32\n %t = arith.addf %u, %s : f32"
CAST = "%t = arith.truncf %a : f32 to f16"
RELU = "%z = arith.constant 0.0 : f32\n %t = arith.maximumf %a, %z : f32"
TANH = "%t = math.tanh %a : f32"


@pytest.mark.parametrize(
    ("first", "second", "kind"),
    [(ADD, CAST, "f16"), (BIAS, TANH, "f32"), (SCALE, RELU, "f32")],
    ids=["residual and its cast", "before an activation", "norm and relu"],
)
def test_both_results_are_stored_by_one_kernel(
    first: str, second: str, kind: str
) -> None:
    text = TEXT.replace("FIRST", first).replace("SECOND", second).replace("KIND", kind)
    program = alcop_mlir.compile(text)
    assert len(program.function.launches) == 1
    rng = np.random.default_rng(0)
    x, w, b, r = (
        rng.standard_normal(shape).astype(dtype)
        for shape, dtype in (
            ((48, 32), np.float16),
            ((32, 64), np.float16),
            ((64,), np.float32),
            ((48, 64), np.float32),
        )
    )
    kept, made = program(x, w, b, r)
    product = x.astype(np.float64) @ w.astype(np.float64)
    expected = {ADD: product + r, BIAS: product + b, SCALE: product * b + r}[first]
    after = {CAST: expected, TANH: np.tanh(expected), RELU: np.maximum(expected, 0)}
    np.testing.assert_allclose(kept, expected, rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(made, after[second], rtol=1e-3, atol=1e-4)
