"""Contractions that share an input as one kernel, whose parts others read as views."""

from __future__ import annotations

import numpy as np
import pytest

import alcop_mlir

# Queries, keys and values of 48 rows; their scores, and those times the values.
TEXT = """
#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#all = affine_map<(m, n) -> (m, n)>
#n = affine_map<(m, n) -> (n)>
func.func @f(%x: tensor<48x32xf16>, WEIGHTS) -> tensor<48x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<48x16xf32>
  %h = tensor.empty() : tensor<48x16xf16>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<48x16xf32>) -> tensor<48x16xf32>
  PRODUCTS
  %es = tensor.empty() : tensor<48x48xf32>
  %is = linalg.fill ins(%zero : f32) outs(%es : tensor<48x48xf32>) -> tensor<48x48xf32>
  %s = linalg.matmul indexing_maps = [#mk, #nk, #mn]
    ins(%q, %k : tensor<48x16xf16>, tensor<48x16xf16>)
    outs(%is : tensor<48x48xf32>) -> tensor<48x48xf32>
  %hs = tensor.empty() : tensor<48x48xf16>
  %p = linalg.generic {indexing_maps = [#all, #all],
      iterator_types = ["parallel", "parallel"]}
    ins(%s : tensor<48x48xf32>) outs(%hs : tensor<48x48xf16>) {
  ^bb0(%a: f32, %o: f16):
    %t = arith.truncf %a : f32 to f16
    linalg.yield %t : f16
  } -> tensor<48x48xf16>
  %y = linalg.matmul indexing_maps = [#mk, #kn, #mn]
    ins(%p, %v : tensor<48x48xf16>, tensor<48x16xf16>)
    outs(%i : tensor<48x16xf32>) -> tensor<48x16xf32>
  return %y : tensor<48x16xf32>
}"""
PRODUCT = """
  %cN = linalg.matmul indexing_maps = [#mk, #nk, #mn]
    ins(%x, %wN : tensor<48x32xf16>, tensor<16x32xf16>)
    outs(%i : tensor<48x16xf32>) -> tensor<48x16xf32>
  %N = linalg.generic {indexing_maps = [#all, #n, #all],
      iterator_types = ["parallel", "parallel"]}
    ins(%cN, %bN : tensor<48x16xf32>, tensor<16xf16>)
    outs(%h : tensor<48x16xf16>) {
  ^bb0(%a: f32, %b: f16, %o: f16):
    %w = arith.extf %b : f16 to f32
    %t = arith.addf %a, %w : f32
    %u = arith.truncf %t : f32 to f16
    linalg.yield %u : f16
  } -> tensor<48x16xf16>
"""
NAMES = ("q", "k", "v")


def text(mark: str) -> str:
    weights = [
        f"%w{n}: tensor<16x32xf16> {mark}, %b{n}: tensor<16xf16> {mark}" for n in NAMES
    ]
    products = "".join(PRODUCT.replace("N", name) for name in NAMES)
    joined = TEXT.replace("WEIGHTS", ", ".join(weights))
    return joined.replace("PRODUCTS", products)


def half(draw: np.random.Generator, *shape: int) -> np.ndarray:
    return draw.uniform(-1, 1, shape).astype(np.float16)


@pytest.mark.parametrize(("mark", "kernels"), [("{alcop.weight}", 3), ("", 5)])
def test_parts_are_read_as_views(
    mark: str, kernels: int, capsys: pytest.CaptureFixture[str]
) -> None:
    program = alcop_mlir.compile(text(mark))
    assert len(program.function.launches) == kernels
    said = capsys.readouterr().err
    assert ("are no weights ('alcop.weight')" in said) == (not mark)
    draw = np.random.default_rng(1)
    x = half(draw, 48, 32)
    weights = [(half(draw, 16, 32) / 4, half(draw, 16)) for _ in NAMES]
    got = program(x, *[one for pair in weights for one in pair])
    wide = x.astype(np.float64)
    q, k, v = (
        (wide @ w.astype(np.float64).T + b).astype(np.float16).astype(np.float64)
        for w, b in weights
    )
    wanted = (q @ k.T).astype(np.float16).astype(np.float64) @ v
    assert np.abs(got - wanted).max() < 4e-3 * np.abs(wanted).max()


HEADS = """%rN = tensor.expand_shape %N [[0], [1, 2]] output_shape [48, 2, 8]
    : tensor<48x16xf16> into tensor<48x2x8xf16>
"""
RETURNED = {  # what of the three the function returns, and how many kernels make all
    "v": ("return %y, %v : tensor<48x16xf32>, tensor<48x16xf16>", "v", 4),
    "all, in heads": (
        "".join(HEADS.replace("N", name) for name in NAMES)
        + "return %rq, %rk, %rv : "
        + ", ".join(["tensor<48x2x8xf16>"] * 3),
        "qkv",
        3,
    ),
}


@pytest.mark.parametrize("case", RETURNED)
def test_what_is_returned_is_not_copied(
    case: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ending, names, kernels = RETURNED[case]
    kinds = ending.rsplit(" : ", 1)[1]
    given = (
        text("{alcop.weight}")
        .replace("return %y : tensor<48x16xf32>", ending)
        .replace("-> tensor<48x16xf32> {\n  %zero", f"-> ({kinds}) {{\n  %zero")
    )
    program = alcop_mlir.compile(given)
    assert len(program.function.launches) == kernels
    assert "the function returns one of them" in capsys.readouterr().err
    draw = np.random.default_rng(2)
    x = half(draw, 48, 32)
    weights = [(half(draw, 16, 32) / 4, half(draw, 16)) for _ in NAMES]
    got = program(x, *[one for pair in weights for one in pair])
    wanted = {
        name: x.astype(np.float64) @ w.astype(np.float64).T + b
        for name, (w, b) in zip(NAMES, weights, strict=True)
    }
    for array, name in zip(got[-len(names) :], names, strict=True):
        error = np.abs(array.reshape(48, 16) - wanted[name]).max()
        assert error < 2e-3 * np.abs(wanted[name]).max()
