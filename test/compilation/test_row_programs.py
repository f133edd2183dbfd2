"""Programs of ops on rows, as frontends export them: how many kernels, and right."""

from __future__ import annotations

import numpy as np

import alcop_mlir

Array = np.ndarray

_ALL = "affine_map<(m, n) -> (m, n)>"
_ROW = "affine_map<(m, n) -> (m)>"


def _centred(source: str, target: str) -> str:
    """Each row of %source without its sum, which starts from %f."""
    return f"""
  %sum{target} = linalg.reduce {{ arith.addf }} ins(%{source} : tensor<6x96xf32>)
    outs(%f : tensor<6xf32>) dimensions = [1]
  %{target} = linalg.generic {{indexing_maps = [{_ALL}, {_ROW}, {_ALL}],
    iterator_types = ["parallel", "parallel"]}}
    ins(%{source}, %sum{target} : tensor<6x96xf32>, tensor<6xf32>)
    outs(%e : tensor<6x96xf32>) {{
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.subf %a, %b : f32
    linalg.yield %0 : f32
  }} -> tensor<6x96xf32>"""


def test_reductions_that_start_from_one_fill_are_apart() -> None:
    """Rows, then columns, then rows: one fill is no buffer with two lives."""
    program = alcop_mlir.compile(
        f"""
func.func @f(%x: tensor<6x96xf32>, %p: tensor<96x96xf32>) -> tensor<6x96xf32> {{
  %zero = arith.constant 0.0 : f32
  %g = tensor.empty() : tensor<6xf32>
  %f = linalg.fill ins(%zero : f32) outs(%g : tensor<6xf32>) -> tensor<6xf32>
  %e = tensor.empty() : tensor<6x96xf32>
  {_centred("x", "y")}
  %h = linalg.fill ins(%zero : f32) outs(%e : tensor<6x96xf32>) -> tensor<6x96xf32>
  %z = linalg.matmul ins(%y, %p : tensor<6x96xf32>, tensor<96x96xf32>)
    outs(%h : tensor<6x96xf32>) -> tensor<6x96xf32>
  {_centred("z", "w")}
  return %w : tensor<6x96xf32>
}}""",
        device="emulator",
    )
    assert len(program.function.kernels) == 3
    values = np.random.default_rng(0)
    x = values.uniform(-1, 1, (6, 96)).astype("f4")
    p = values.uniform(-0.1, 0.1, (96, 96)).astype("f4")
    y = x - x.sum(1, keepdims=True)
    z = y @ p
    result = np.zeros_like(x)
    program(x, p, result)
    np.testing.assert_allclose(result, z - z.sum(1, keepdims=True), atol=1e-3)
