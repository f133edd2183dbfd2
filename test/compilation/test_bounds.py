"""No byte outside of any array is read or written, whatever sizes do to vectors.

The emulator refuses accesses beyond the arguments. Sizes are such that a vector load of
2, 4, 8 or 16 bytes that covers the last elements would reach beyond the end.
"""

from __future__ import annotations

import numpy as np
import pytest

from alcop_mlir import dtypes
from alcop_mlir.compilation import compiler, inputs
from alcop_mlir.runtime import checking
from alcop_mlir.runtime.launch import Program
from alcop_mlir.schedule import Schedule

BIAS = """
#mn = affine_map<(m, n) -> (m, n)>
#n = affine_map<(m, n) -> (n)>
func.func @f(%A: memref<32x32x{a}>, %B: memref<32x{n}x{a}>, %C: memref<32x{n}x{acc}>,
             %E: memref<{n}x{acc}>) {{
  %z = arith.constant {zero} : {acc}
  %T = memref.alloc() : memref<32x{n}x{acc}>
  linalg.fill ins(%z : {acc}) outs(%T : memref<32x{n}x{acc}>)
  linalg.matmul ins(%A, %B : memref<32x32x{a}>, memref<32x{n}x{a}>)
    outs(%T : memref<32x{n}x{acc}>)
  linalg.generic {{indexing_maps = [#mn, #n, #mn],
      iterator_types = ["parallel", "parallel"]}}
      ins(%T, %E : memref<32x{n}x{acc}>, memref<{n}x{acc}>)
      outs(%C : memref<32x{n}x{acc}>) {{
  ^bb0(%t: {acc}, %e: {acc}, %c: {acc}):
    %y = {add} %t, %e : {acc}
    linalg.yield %y : {acc}
  }}
  return
}}"""
DOT = """
func.func @f(%a: memref<{k}x{kind}>, %b: memref<{k}x{kind}>, %c: memref<f32>) {{
  linalg.dot ins(%a, %b : memref<{k}x{kind}>, memref<{k}x{kind}>) outs(%c : memref<f32>)
  return
}}"""
ROWS = """
#m = affine_map<(i, k) -> (i, k)>
#v = affine_map<(i, k) -> (k)>
#o = affine_map<(i, k) -> (i)>
func.func @f(%a: memref<4x{k}xf32>, %b: memref<{k}x{kind}>, %c: memref<4xf32>) {{
  linalg.generic {{indexing_maps = [#m, #v, #o],
      iterator_types = ["parallel", "reduction"]}}
      ins(%a, %b : memref<4x{k}xf32>, memref<{k}x{kind}>) outs(%c : memref<4xf32>) {{
  ^bb0(%x: f32, %y: {kind}, %s: f32):
    %w = arith.extf %y : {kind} to f32
    %p = arith.mulf %x, %w : f32
    %r = arith.addf %s, %p : f32
    linalg.yield %r : f32
  }}
  return
}}"""


def check(text: str, schedule: str | None = None) -> None:
    options = compiler.Options(
        use_ptxas=False, schedule=Schedule.parse(schedule) if schedule else None
    )
    bundle = compiler.compile_source(inputs.read(text), options)
    (function,) = bundle.functions
    before = checking.random_arrays(function)
    after = {name: np.array(array) for name, array in before.items()}
    Program(bundle, device="emulator")(*after.values())
    assert checking.check(function, before, after).ok


@pytest.mark.parametrize("n", [93, 94, 95])
@pytest.mark.parametrize("a", ["i8", "f16", "bf16"])
def test_a_bias_that_ends_inside_a_vector(a: str, n: int) -> None:
    is_integer = dtypes.is_integer(a)
    acc, zero, add = ("i32", "0", "addi") if is_integer else ("f32", "0.0", "addf")
    text = BIAS.format(n=n, a=a, acc=acc, zero=zero, add=f"arith.{add}")
    check(text, "block=32,32,32 warp=16,16 stages=2,1")


@pytest.mark.parametrize("text", [DOT, ROWS], ids=["dot", "rows"])
@pytest.mark.parametrize("kind", ["f16", "bf16"])
@pytest.mark.parametrize("k", [3, 5, 7, 11, 13, 15])
def test_a_reduction_that_ends_inside_a_vector(text: str, kind: str, k: int) -> None:
    check(text.format(k=k, kind=kind))
