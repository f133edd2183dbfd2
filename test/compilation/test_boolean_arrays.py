"""Arrays of i1, a byte per element: masks and conditions, as arguments and results."""

from __future__ import annotations

import numpy as np
import pytest

from alcop_mlir import dtypes
from alcop_mlir.compilation import compiler, inputs
from alcop_mlir.runtime import checking
from alcop_mlir.runtime.launch import Program

ALL = "affine_map<(i, j) -> (i, j)>"
MASKED = f"""
func.func @f(%a: tensor<33x7xf32>, %m: tensor<33x7xi1>)
    -> (tensor<33x7xf32>, tensor<33x7xi1>) {{
  %low = arith.constant -1.0e4 : f32
  %e = tensor.empty() : tensor<33x7xf32>
  %c = tensor.empty() : tensor<33x7xi1>
  %r:2 = linalg.generic {{indexing_maps = [{ALL}, {ALL}, {ALL}, {ALL}],
      iterator_types = ["parallel", "parallel"]}}
      ins(%a, %m : tensor<33x7xf32>, tensor<33x7xi1>)
      outs(%e, %c : tensor<33x7xf32>, tensor<33x7xi1>) {{
  ^bb0(%x: f32, %is: i1, %u: f32, %v: i1):
    %0 = arith.select %is, %x, %low : f32
    %1 = arith.cmpf ogt, %x, %low : f32
    %2 = arith.andi %1, %is : i1
    linalg.yield %0, %2 : f32, i1
  }} -> (tensor<33x7xf32>, tensor<33x7xi1>)
  return %r#0, %r#1 : tensor<33x7xf32>, tensor<33x7xi1>
}}"""


@pytest.fixture(scope="module")
def program() -> Program:
    options = compiler.Options(use_ptxas=False)
    bundle = compiler.compile_source(inputs.read(MASKED), options)
    return Program(bundle, device="emulator")


def test_masks_and_conditions(program: Program) -> None:
    random = np.random.default_rng(2)
    given = random.normal(0, 1e4, (33, 7)).astype("f4")
    mask = random.random((33, 7)) < 0.5
    result, condition = np.empty_like(given), dtypes.unwritten((33, 7), "i1")
    program(given, mask, result, condition)
    np.testing.assert_array_equal(result, np.where(mask, given, np.float32(-1e4)))
    np.testing.assert_array_equal(condition, mask & (given > -1e4))


def test_what_is_not_written_shows(program: Program) -> None:
    """Of booleans too: neither true nor false."""
    function = program.bundle.function()
    before = checking.random_arrays(function)
    assert before[function.parameters[1].name].any()
    after = {name: array.copy() for name, array in before.items()}
    program(*after.values())
    assert checking.check(function, before, after).ok
    last = function.parameters[-1].name
    after[last].view(np.uint8)[4, 5] = dtypes.unwritten((1,), "i1").view(np.uint8)[0]
    assert not checking.check(function, before, after).ok
