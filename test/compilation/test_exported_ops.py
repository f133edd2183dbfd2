"""Ops of models as frontends write them: compiled, run, checked by references."""

from __future__ import annotations

import numpy as np
import pytest

from alcop_mlir.compilation import compiler, inputs
from alcop_mlir.runtime import checking
from alcop_mlir.runtime.launch import Program

ID, ROW = "affine_map<(i, j) -> (i, j)>", "affine_map<(i, j) -> (i)>"
POOL = "affine_map<(n, c, y, x, u, v) -> (n, c, y, x)>"
TAPS = "affine_map<(n, c, y, x, u, v) -> (u, v)>"

LARGEST = f"""
func.func @f(%a: tensor<5x19xf16>) -> (tensor<5xf16>, tensor<5xi64>) {{
  %zero = arith.constant 0 : i64
  %least = arith.constant 0xFC00 : f16
  %e = tensor.empty() : tensor<5xf16>
  %n = tensor.empty() : tensor<5xi64>
  %m = linalg.fill ins(%least : f16) outs(%e : tensor<5xf16>) -> tensor<5xf16>
  %i = linalg.fill ins(%zero : i64) outs(%n : tensor<5xi64>) -> tensor<5xi64>
  %r:2 = linalg.generic {{indexing_maps = [{ID}, {ROW}, {ROW}],
      iterator_types = ["parallel", "reduction"]}} ins(%a : tensor<5x19xf16>)
      outs(%m, %i : tensor<5xf16>, tensor<5xi64>) {{
  ^bb0(%x: f16, %before: f16, %number: i64):
    %0 = linalg.index 1 : index
    %1 = arith.index_cast %0 : index to i64
    %2 = arith.maximumf %x, %before : f16
    %3 = arith.cmpf ogt, %x, %before : f16
    %4 = arith.select %3, %1, %number : i64
    linalg.yield %2, %4 : f16, i64
  }} -> (tensor<5xf16>, tensor<5xi64>)
  return %r#0, %r#1 : tensor<5xf16>, tensor<5xi64>
}}"""

# Which element of a padded image each window's maximum is, counted without the padding.
POOL_INDICES = f"""
func.func @f(%a: tensor<1x2x8x8xf32>) -> (tensor<1x2x4x4xf32>, tensor<1x2x4x4xi64>) {{
  %least = arith.constant 0xFF800000 : f32
  %none = arith.constant -1 : i64
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %p = tensor.pad %a low[0, 0, 1, 1] high[0, 0, 1, 1] {{
  ^bb0(%n: index, %c: index, %y: index, %x: index):
    tensor.yield %least : f32
  }} : tensor<1x2x8x8xf32> to tensor<1x2x10x10xf32>
  %e = tensor.empty() : tensor<1x2x4x4xf32>
  %w = tensor.empty() : tensor<3x3xf32>
  %z = linalg.fill ins(%least : f32) outs(%e : tensor<1x2x4x4xf32>)
    -> tensor<1x2x4x4xf32>
  %m = linalg.pooling_nchw_max
    {{dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>}}
    ins(%p, %w : tensor<1x2x10x10xf32>, tensor<3x3xf32>)
    outs(%z : tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
  %f = tensor.empty() : tensor<1x2x4x4xi64>
  %s = tensor.empty() : tensor<3x3xi64>
  %start = linalg.fill ins(%none : i64) outs(%f : tensor<1x2x4x4xi64>)
    -> tensor<1x2x4x4xi64>
  %r = linalg.generic {{indexing_maps = [{POOL}, {TAPS}, {POOL}], iterator_types =
      ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]}}
      ins(%m, %s : tensor<1x2x4x4xf32>, tensor<3x3xi64>)
      outs(%start : tensor<1x2x4x4xi64>) {{
  ^bb0(%most: f32, %tap: i64, %found: i64):
    %c = linalg.index 1 : index
    %y = linalg.index 2 : index
    %x = linalg.index 3 : index
    %u = linalg.index 4 : index
    %v = linalg.index 5 : index
    %0 = arith.muli %y, %c2 : index
    %1 = arith.addi %0, %u : index
    %2 = arith.muli %x, %c2 : index
    %3 = arith.addi %2, %v : index
    %own = tensor.extract %p[%c0, %c, %1, %3] : tensor<1x2x10x10xf32>
    %is = arith.cmpf oeq, %own, %most : f32
    %4 = arith.subi %1, %c1 : index
    %5 = arith.muli %4, %c8 : index
    %6 = arith.subi %3, %c1 : index
    %7 = arith.addi %5, %6 : index
    %8 = arith.index_cast %7 : index to i64
    %9 = arith.select %is, %8, %found : i64
    %open = arith.cmpi eq, %found, %none : i64
    %10 = arith.select %open, %9, %found : i64
    linalg.yield %10 : i64
  }} -> tensor<1x2x4x4xi64>
  return %m, %r : tensor<1x2x4x4xf32>, tensor<1x2x4x4xi64>
}}"""

# Columns moved around, by parts whose types do not tell their sizes.
ROLL = """
func.func @f(%a: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = tensor.extract_slice %a[0, 6] [4, 2] [1, 1] : tensor<4x8xf32> to tensor<4x2xf32>
  %1 = tensor.cast %0 : tensor<4x2xf32> to tensor<4x?xf32>
  %2 = tensor.extract_slice %a[0, 0] [4, 6] [1, 1] : tensor<4x8xf32> to tensor<4x6xf32>
  %3 = tensor.cast %2 : tensor<4x6xf32> to tensor<4x?xf32>
  %4 = tensor.concat dim(1) %1, %3
    : (tensor<4x?xf32>, tensor<4x?xf32>) -> tensor<4x8xf32>
  return %4 : tensor<4x8xf32>
}"""

# Cosines of positions times frequencies, as rotary embeddings have them.
ANGLES = f"""
func.func @f(%a: tensor<64xf32>) -> tensor<9x64xf32> {{
  %far = arith.constant 1.0e6 : f32
  %e = tensor.empty() : tensor<9x64xf32>
  %r = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (j)>, {ID}],
      iterator_types = ["parallel", "parallel"]}}
      ins(%a : tensor<64xf32>) outs(%e : tensor<9x64xf32>) {{
  ^bb0(%x: f32, %u: f32):
    %0 = linalg.index 0 : index
    %1 = arith.index_cast %0 : index to i64
    %2 = arith.sitofp %1 : i64 to f32
    %3 = math.cos %x : f32
    %4 = arith.mulf %3, %2 : f32
    %5 = arith.mulf %x, %far : f32
    %6 = arith.remf %5, %far : f32
    %7 = arith.addf %4, %6 : f32
    linalg.yield %7 : f32
  }} -> tensor<9x64xf32>
  return %r : tensor<9x64xf32>
}}"""

PROGRAMS = {
    "largest": LARGEST,
    "pool indices": POOL_INDICES,
    "roll": ROLL,
    "angles": ANGLES,
}


def compiled(text: str) -> Program:
    options = compiler.Options(use_ptxas=False)
    bundle = compiler.compile_source(inputs.read(text), options)
    return Program(bundle, device="emulator")


@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_those_of_the_reference(name: str) -> None:
    program = compiled(PROGRAMS[name])
    function = program.bundle.function()
    before = checking.random_arrays(function)
    after = {key: array.copy() for key, array in before.items()}
    program(*after.values())
    found = checking.check(function, before, after)
    assert found.ok
    assert found.unchecked <= found.elements // 4


def test_the_first_of_equal_elements() -> None:
    given = np.zeros((5, 19), "f2")
    given[0, [7, 11]] = 3
    given[1] = -np.inf
    given[2, 4], given[2, 9] = np.nan, 5
    given[3, 18] = 1
    most, index = np.empty(5, "f2"), np.empty(5, "i8")
    compiled(LARGEST)(given, most, index)
    np.testing.assert_array_equal(most, [3, -np.inf, np.nan, 1, 0])
    np.testing.assert_array_equal(index, [7, 0, 0, 18, 0])
