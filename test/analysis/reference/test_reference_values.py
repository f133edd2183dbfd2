"""References read from functions on tensors, evaluated and compared with NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from alcop_mlir.analysis.host.host_function import host_functions
from alcop_mlir.analysis.reference.computation import computation
from alcop_mlir.bindings import ir, make_context
from alcop_mlir.element_types import ELEMENT_TYPES
from alcop_mlir.reference.evaluation import Bounded
from alcop_mlir.reference.step_values import step_values

Array = np.ndarray[Any, Any]
ROW, ALL = "affine_map<(i, j) -> (i)>", "affine_map<(i, j) -> (i, j)>"


def values(text: str, *arrays: Array) -> list[Bounded]:
    """Of the results of the function in `text`."""
    with make_context():
        module = ir.Module.parse(text)
    (func,) = host_functions(module)
    found = computation(func)
    assert found.unknown is None, found.unknown
    names = {row.numpy: row.name for row in ELEMENT_TYPES.values() if row.numpy}
    given = {f"arg{number}": array for number, array in enumerate(arrays)}
    kinds = {name: names[array.dtype.name] for name, array in given.items()}
    made = step_values(found.steps, given, kinds, {})
    return [made[name] for name in sorted(made) if name.startswith("result")]


def largest(size: int, kind: str = "f32") -> str:
    """The largest element of each of 3 rows, and its index."""
    return f"""
    func.func @f(%a: tensor<3x{size}x{kind}>) -> (tensor<3x{kind}>, tensor<3xi64>) {{
      %zero = arith.constant 0 : i64
      %least = arith.constant 0xFF800000 : {kind}
      %e = tensor.empty() : tensor<3x{kind}>
      %n = tensor.empty() : tensor<3xi64>
      %m = linalg.fill ins(%least : {kind}) outs(%e : tensor<3x{kind}>)
        -> tensor<3x{kind}>
      %i = linalg.fill ins(%zero : i64) outs(%n : tensor<3xi64>) -> tensor<3xi64>
      %r:2 = linalg.generic {{indexing_maps = [{ALL}, {ROW}, {ROW}],
          iterator_types = ["parallel", "reduction"]}}
          ins(%a : tensor<3x{size}x{kind}>)
          outs(%m, %i : tensor<3x{kind}>, tensor<3xi64>) {{
      ^bb0(%x: {kind}, %before: {kind}, %number: i64):
        %0 = linalg.index 1 : index
        %1 = arith.index_cast %0 : index to i64
        %2 = arith.maximumf %x, %before : {kind}
        %3 = arith.cmpf ogt, %x, %before : {kind}
        %4 = arith.select %3, %1, %number : i64
        linalg.yield %2, %4 : {kind}, i64
      }} -> (tensor<3x{kind}>, tensor<3xi64>)
      return %r#0, %r#1 : tensor<3x{kind}>, tensor<3xi64>
    }}"""


def test_the_index_of_the_largest() -> None:
    """The first of equal ones; NaN is larger than none, though the maximum is NaN."""
    nan = np.nan
    given = np.array([[1, 7, 3, 7], [-np.inf] * 4, [2, nan, 9, 1]], "f4")
    found, index = values(largest(4), given)
    np.testing.assert_array_equal(found.values, [7, -np.inf, nan])
    np.testing.assert_array_equal(index.values, [1, 0, 0])
    assert not np.any(index.error)


def test_the_largest_numbers_are_exact() -> None:
    """Those of the type are no overflow, and a maximum is not rounded."""
    given = np.array([[1, 65504], [-65504, 3], [0.1, 0.2]], "f2")
    found, index = values(largest(2, "f16").replace("0xFF800000", "0xFC00"), given)
    np.testing.assert_array_equal(found.values, given.max(1))
    assert not np.any(found.error)
    np.testing.assert_array_equal(index.values, [1, 1, 1])
    assert not np.any(index.error)


def test_the_index_of_none() -> None:
    found, index = values(largest(0), np.zeros((3, 0), "f4"))
    np.testing.assert_array_equal(found.values, [-np.inf] * 3)
    np.testing.assert_array_equal(index.values, [0, 0, 0])


def test_an_index_is_unknown_where_two_may_be_the_largest() -> None:
    """Of values that a kernel rounds."""
    text = largest(2).replace("%2 = arith.max", "%y = math.exp %x : f32 %2 = arith.max")
    text = text.replace("ogt, %x", "ogt, %y").replace("maximumf %x", "maximumf %y")
    close = np.array([[1, np.nextafter(np.float32(1), np.float32(2))], [1, 2], [2, 1]])
    _, index = values(text, close.astype("f4"))
    assert index.error[0] > 0
    np.testing.assert_array_equal(index.error[1:], [0, 0])
    np.testing.assert_array_equal(index.values[1:], [1, 0])


def test_loops_that_are_numbers_and_dimensions_that_stay() -> None:
    """A sum over columns, times the column, in a result of one column."""
    text = f"""
    func.func @f(%a: tensor<3x5xf32>) -> tensor<3x1xf32> {{
      %e = tensor.empty() : tensor<3x1xf32>
      %two = arith.constant 2.0 : f32
      %z = linalg.fill ins(%two : f32) outs(%e : tensor<3x1xf32>) -> tensor<3x1xf32>
      %r = linalg.generic {{indexing_maps = [{ALL}, affine_map<(i, j) -> (i, 0)>],
          iterator_types = ["parallel", "reduction"]}}
          ins(%a : tensor<3x5xf32>) outs(%z : tensor<3x1xf32>) {{
      ^bb0(%x: f32, %s: f32):
        %0 = linalg.index 1 : index
        %1 = arith.index_cast %0 : index to i64
        %2 = arith.sitofp %1 : i64 to f32
        %3 = arith.mulf %x, %2 : f32
        %4 = arith.addf %s, %3 : f32
        linalg.yield %4 : f32
      }} -> tensor<3x1xf32>
      return %r : tensor<3x1xf32>
    }}"""
    given = np.random.default_rng(1).random((3, 5), "f4")
    (found,) = values(text, given)
    expected = 2 + (given.astype("f8") * np.arange(5)).sum(1, keepdims=True)
    np.testing.assert_allclose(found.values, expected, rtol=1e-12)


def test_arrays_one_after_the_other() -> None:
    text = """
    func.func @f(%a: tensor<2x3xf32>, %b: tensor<2x4xf32>) -> tensor<2x7xf32> {
      %r = tensor.concat dim(1) %a, %b
        : (tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<2x7xf32>
      return %r : tensor<2x7xf32>
    }"""
    a, b = np.arange(6.0).reshape(2, 3), np.arange(8.0).reshape(2, 4)
    (found,) = values(text, a.astype("f4"), b.astype("f4"))
    np.testing.assert_array_equal(found.values, np.concatenate([a, b], 1))


@pytest.mark.parametrize(("combine", "expected"), [("ori", [1, 0]), ("andi", [0, 0])])
def test_conditions_of_rows(combine: str, expected: list[int]) -> None:
    text = f"""
    func.func @f(%a: tensor<2x3xi32>) -> tensor<2xi1> {{
      %start = arith.constant {"true" if combine == "andi" else "false"}
      %zero = arith.constant 0 : i32
      %e = tensor.empty() : tensor<2xi1>
      %i = linalg.fill ins(%start : i1) outs(%e : tensor<2xi1>) -> tensor<2xi1>
      %r = linalg.generic {{indexing_maps = [{ALL}, {ROW}],
          iterator_types = ["parallel", "reduction"]}}
          ins(%a : tensor<2x3xi32>) outs(%i : tensor<2xi1>) {{
      ^bb0(%x: i32, %before: i1):
        %0 = arith.cmpi sgt, %x, %zero : i32
        %1 = arith.{combine} %0, %before : i1
        linalg.yield %1 : i1
      }} -> tensor<2xi1>
      return %r : tensor<2xi1>
    }}"""
    (found,) = values(text, np.array([[-1, 5, -3], [0, -1, -2]], "i4"))
    np.testing.assert_array_equal(found.values, expected)


@pytest.mark.parametrize("dimension", [0, 1])
def test_softmax(dimension: int) -> None:
    """NaN where a row has one, or nothing but -infinity."""
    text = f"""
    func.func @f(%a: tensor<3x3xf32>) -> tensor<3x3xf32> {{
      %e = tensor.empty() : tensor<3x3xf32>
      %r = linalg.softmax dimension({dimension}) ins(%a : tensor<3x3xf32>)
        outs(%e : tensor<3x3xf32>) -> tensor<3x3xf32>
      return %r : tensor<3x3xf32>
    }}"""
    given = np.array([[1, 2, -3], [-np.inf] * 3, [0, 1e30, 5]], "f4")
    if dimension == 0:
        given = given.T.copy()
    (found,) = values(text, given)
    with np.errstate(invalid="ignore"):
        powers = np.exp(given.astype("f8") - given.max(dimension, keepdims=True))
    expected = powers / powers.sum(dimension, keepdims=True)
    np.testing.assert_allclose(found.values, expected, rtol=1e-12)


def test_contractions_that_float64_does_not_hold() -> None:
    text = """
    func.func @f(%a: tensor<2x2xi64>, %b: tensor<2x2xi64>) -> tensor<2x2xi64> {
      %zero = arith.constant 0 : i64
      %e = tensor.empty() : tensor<2x2xi64>
      %z = linalg.fill ins(%zero : i64) outs(%e : tensor<2x2xi64>) -> tensor<2x2xi64>
      %r = linalg.matmul ins(%a, %b : tensor<2x2xi64>, tensor<2x2xi64>)
        outs(%z : tensor<2x2xi64>) -> tensor<2x2xi64>
      return %r : tensor<2x2xi64>
    }"""
    a, b = np.array([[2**60, 1], [3, 4]]), np.array([[1, 2], [-5, 6]])
    (found,) = values(text, a, b)
    np.testing.assert_array_equal(np.isinf(found.error), [[True] * 2, [False] * 2])
    np.testing.assert_array_equal(found.values[1], (a @ b)[1])


def test_integers_that_float64_does_not_hold() -> None:
    """Their order is known, what is added to them is not."""
    text = f"""
    func.func @f(%a: tensor<3x2xi64>) -> (tensor<3x2xi64>, tensor<3x2xi64>) {{
      %five = arith.constant 5 : i64
      %e = tensor.empty() : tensor<3x2xi64>
      %r:2 = linalg.generic {{indexing_maps = [{ALL}, {ALL}, {ALL}],
          iterator_types = ["parallel", "parallel"]}} ins(%a : tensor<3x2xi64>)
          outs(%e, %e : tensor<3x2xi64>, tensor<3x2xi64>) {{
      ^bb0(%x: i64, %u: i64, %v: i64):
        %0 = arith.minsi %x, %five : i64
        %1 = arith.addi %x, %five : i64
        linalg.yield %0, %1 : i64, i64
      }} -> (tensor<3x2xi64>, tensor<3x2xi64>)
      return %r#0, %r#1 : tensor<3x2xi64>, tensor<3x2xi64>
    }}"""
    about = np.iinfo(np.int64)
    given = np.array([[about.max, about.min], [7, -7], [2**53 + 1, 0]])
    least, total = values(text, given)
    np.testing.assert_array_equal(
        least.values, [[5, float(about.min)], [5, -7], [5, 0]]
    )
    assert not np.any(least.error)
    unknown = [[True, True], [False, False], [True, False]]
    np.testing.assert_array_equal(np.isinf(total.error), unknown)
    np.testing.assert_array_equal(total.values[1], [12, -2])
