"""Functions that are given numbers: arrays of one element in kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from alcop_mlir.compilation import compiler, inputs
from alcop_mlir.errors import LaunchError
from alcop_mlir.runtime import checking
from alcop_mlir.runtime.launch import Program

ALL = "affine_map<(i, j) -> (i, j)>"
SCALED = f"""
func.func @f(%alpha: f32, %a: tensor<16x32xf16>, %b: tensor<32x24xf16>, %beta: f32,
    %n: i32, %keep: i1) -> tensor<16x24xf32> {{
  %e = tensor.empty() : tensor<16x24xf32>
  %two = arith.constant 2.0 : f32
  %twice = arith.mulf %beta, %two : f32
  %i = linalg.fill ins(%twice : f32) outs(%e : tensor<16x24xf32>) -> tensor<16x24xf32>
  %p = linalg.matmul ins(%a, %b : tensor<16x32xf16>, tensor<32x24xf16>)
    outs(%i : tensor<16x24xf32>) -> tensor<16x24xf32>
  %r = linalg.generic {{indexing_maps = [{ALL}, {ALL}],
      iterator_types = ["parallel", "parallel"]}}
      ins(%p : tensor<16x24xf32>) outs(%e : tensor<16x24xf32>) {{
  ^bb0(%x: f32, %u: f32):
    %0 = arith.mulf %x, %alpha : f32
    %1 = arith.sitofp %n : i32 to f32
    %2 = arith.addf %0, %1 : f32
    %3 = arith.select %keep, %2, %x : f32
    linalg.yield %3 : f32
  }} -> tensor<16x24xf32>
  return %r : tensor<16x24xf32>
}}"""


@pytest.fixture(scope="module")
def program() -> Program:
    options = compiler.Options(use_ptxas=False)
    bundle = compiler.compile_source(inputs.read(SCALED), options)
    return Program(bundle, device="emulator")


def matrices() -> tuple[Any, Any]:
    random = np.random.default_rng(0)
    a, b = random.integers(-4, 5, 16 * 32), random.integers(-4, 5, 32 * 24)
    return a.astype("f2").reshape(16, 32), b.astype("f2").reshape(32, 24)


@pytest.mark.parametrize("keep", [True, False])
def test_numbers_are_given_as_they_are(program: Program, keep: bool) -> None:
    a, b = matrices()
    made = program(0.5, a, b, np.float32(1.5), 7, keep)
    product = 3 + a.astype("f4") @ b.astype("f4")
    np.testing.assert_array_equal(made, product * 0.5 + 7 if keep else product)


def test_the_product_is_computed_on_tensor_cores(program: Program) -> None:
    assert any(one.schedule for one in program.bundle.function().kernels)


def test_it_has_a_reference(program: Program) -> None:
    function = program.bundle.function()
    before = checking.random_arrays(function)
    after = {name: array.copy() for name, array in before.items()}
    program(*after.values())
    assert checking.check(function, before, after).ok


def test_arrays_are_taken_too(program: Program) -> None:
    a, b = matrices()
    half, beta, n = np.array(0.5, "f4"), np.array(1.5, "f4"), np.array(7, "i4")
    of_arrays = program(half, a, b, beta, n, np.array(True))
    np.testing.assert_array_equal(of_arrays, program(0.5, a, b, 1.5, 7, True))


@pytest.mark.parametrize(
    ("number", "given", "message"),
    [
        (1, 2.0, r"argument 2 \('arg1'\) is a number, expected an array of shape \(16"),
        (4, 0.5, r"argument 5 \('arg4'\) is 0.5, which is no i32"),
        (4, 2**31, r"argument 5 \('arg4'\) is 2147483648, which is no i32"),
        (4, 2**80, r"argument 5 \('arg4'\) is 1208925819614629174706176, which is no"),
        (5, 2, r"argument 6 \('arg5'\) is 2, which is no i1"),
    ],
)
def test_numbers_that_do_not_fit(
    program: Program, number: int, given: Any, message: str
) -> None:
    arguments = [0.5, *matrices(), 1.5, 7, True]
    arguments[number] = given
    with pytest.raises(LaunchError, match=message):
        program(*arguments)
