"""`cf.assert` in the body of an op becomes an assertion of its kernel."""

from __future__ import annotations

import numpy as np
import pytest

import alcop_mlir
from alcop_mlir.errors import EmulationError
from alcop_mlir.runtime import checking

TEXT = """
  #id = affine_map<(i, j) -> (i, j)>
  #row = affine_map<(i, j) -> (i)>
  func.func @f(%x: tensor<8x40xf32>, %s: tensor<8xf32>) -> tensor<8x40xf32> {
    %zero = arith.constant 0.0 : f32
    %one = arith.constant 1.0 : f32
    %e = tensor.empty() : tensor<8xf32>
    %d = tensor.empty() : tensor<8x40xf32>
    %r = linalg.generic {
      indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]}
      ins(%s : tensor<8xf32>) outs(%e : tensor<8xf32>) {
    ^bb0(%a: f32, %b: f32):
      %is = arith.cmpf one, %a, %zero : f32
      cf.assert %is, "expected a scale that is not 0"
      %c = arith.divf %one, %a : f32
      linalg.yield %c : f32
    } -> tensor<8xf32>
    %y = linalg.generic {indexing_maps = [#id, #row, #id],
      iterator_types = ["parallel", "parallel"]}
      ins(%x, %r : tensor<8x40xf32>, tensor<8xf32>) outs(%d : tensor<8x40xf32>) {
    ^bb0(%a: f32, %b: f32, %c: f32):
      %p = arith.mulf %a, %b : f32
      linalg.yield %p : f32
    } -> tensor<8x40xf32>
    return %y : tensor<8x40xf32>
  }"""


def test_an_assertion_is_checked_where_the_kernel_runs() -> None:
    """Right where it holds, by the reference too; else an error with its message."""
    program = alcop_mlir.compile(TEXT, device="emulator")
    random = np.random.default_rng(0)
    x = random.standard_normal((8, 40)).astype(np.float32)
    scales = random.uniform(1, 2, 8).astype(np.float32)
    result = program(x, scales)
    before = {"arg0": x, "arg1": scales, "result": np.zeros_like(x)}
    assert checking.check(program.function, before, before | {"result": result}).ok
    scales[5] = 0
    with pytest.raises(EmulationError, match="expected a scale that is not 0") as error:
        program(x, scales)
    assert "lane 5" in str(error.value)
