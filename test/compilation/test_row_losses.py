"""The loss of a row looks up one column: one kernel with the row's statistics."""

from __future__ import annotations

import numpy as np
import pytest

import alcop_mlir

ROWS, COLUMNS = 24, 80
# Cross entropy as torch decomposes it: no loss where the target is -100.
TEXT = """
#n = affine_map<(n) -> (n)>
#row = affine_map<(m, n) -> (m)>
#all = affine_map<(m, n) -> (m, n)>
func.func @f(%x: tensor<MxNxTYPE>, %t: tensor<Mxi64>) -> RESULTS {
  %ignored = arith.constant -100 : i64
  %first = arith.constant 0 : i64
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<MxNxf32>
  %w = linalg.generic {indexing_maps = [#all, #all],
      iterator_types = ["parallel", "parallel"]}
    ins(%x : tensor<MxNxTYPE>) outs(%e : tensor<MxNxf32>) {
  ^bb0(%a: TYPE, %o: f32):
    %v = WIDENED
    linalg.yield %v : f32
  } -> tensor<MxNxf32>
  %ev = tensor.empty() : tensor<Mxf32>
  %lows = linalg.fill ins(%low : f32) outs(%ev : tensor<Mxf32>) -> tensor<Mxf32>
  %max = linalg.reduce { arith.maximumf } ins(%w : tensor<MxNxf32>)
    outs(%lows : tensor<Mxf32>) dimensions = [1]
  %s = linalg.generic {indexing_maps = [#all, #row, #all],
      iterator_types = ["parallel", "parallel"]}
    ins(%w, %max : tensor<MxNxf32>, tensor<Mxf32>) outs(%e : tensor<MxNxf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %v = arith.subf %a, %b : f32
    linalg.yield %v : f32
  } -> tensor<MxNxf32>
  %p = linalg.exp ins(%s : tensor<MxNxf32>) outs(%e : tensor<MxNxf32>)
         -> tensor<MxNxf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%ev : tensor<Mxf32>) -> tensor<Mxf32>
  %sum = linalg.reduce { arith.addf } ins(%p : tensor<MxNxf32>)
    outs(%zeros : tensor<Mxf32>) dimensions = [1]
  %log = linalg.log ins(%sum : tensor<Mxf32>) outs(%ev : tensor<Mxf32>) -> tensor<Mxf32>
  %l = linalg.generic {indexing_maps = [#all, #row, #all],
      iterator_types = ["parallel", "parallel"]}
    ins(%s, %log : tensor<MxNxf32>, tensor<Mxf32>) outs(%e : tensor<MxNxf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %v = arith.subf %a, %b : f32
    linalg.yield %v : f32
  } -> tensor<MxNxf32>
  %et = tensor.empty() : tensor<Mxi64>
  %at = linalg.generic {indexing_maps = [#n, #n], iterator_types = ["parallel"]}
    ins(%t : tensor<Mxi64>) outs(%et : tensor<Mxi64>) {
  ^bb0(%a: i64, %o: i64):
    %c = arith.cmpi ne, %a, %ignored : i64
    %v = arith.select %c, %a, %first : i64
    linalg.yield %v : i64
  } -> tensor<Mxi64>
  %columns = tensor.expand_shape %at [[0, 1]] output_shape [M, 1]
    : tensor<Mxi64> into tensor<Mx1xi64>
  %ek = tensor.empty() : tensor<Mx1xf32>
  %starts = linalg.fill ins(%zero : f32) outs(%ek : tensor<Mx1xf32>) -> tensor<Mx1xf32>
  %looked = linalg.generic {indexing_maps = [#all, #all],
      iterator_types = ["parallel", "parallel"]}
    ins(%columns : tensor<Mx1xi64>) outs(%starts : tensor<Mx1xf32>) {
  ^bb0(%a: i64, %o: f32):
    %m = linalg.index 0 : index
    %n = arith.index_cast %a : i64 to index
    %v = tensor.extract %l[%m, %n] : tensor<MxNxf32>
    linalg.yield %v : f32
  } -> tensor<Mx1xf32>
  %picked = tensor.collapse_shape %looked [[0, 1]]
    : tensor<Mx1xf32> into tensor<Mxf32>
  %y = linalg.generic {indexing_maps = [#n, #n, #n], iterator_types = ["parallel"]}
    ins(%t, %picked : tensor<Mxi64>, tensor<Mxf32>) outs(%ev : tensor<Mxf32>) {
  ^bb0(%a: i64, %b: f32, %o: f32):
    %c = arith.cmpi ne, %a, %ignored : i64
    %d = arith.negf %b : f32
    %v = arith.select %c, %d, %zero : f32
    linalg.yield %v : f32
  } -> tensor<Mxf32>
  return RETURNED
}"""
WIDENED = {"f16": "arith.extf %a : f16 to f32", "f32": "arith.addf %a, %zero : f32"}
LOSS, BOTH = "tensor<Mxf32>", "(tensor<Mxf32>, tensor<MxNxf32>)"


def text(dtype: str, with_rows: bool) -> str:
    returned = (
        "%y, %l : tensor<Mxf32>, tensor<MxNxf32>" if with_rows else f"%y : {LOSS}"
    )
    made = TEXT.replace("RESULTS", BOTH if with_rows else LOSS)
    made = made.replace("RETURNED", returned).replace("WIDENED", WIDENED[dtype])
    made = made.replace("TYPE", dtype).replace("MxN", f"{ROWS}x{COLUMNS}")
    return made.replace("<Mx", f"<{ROWS}x").replace("[M, 1]", f"[{ROWS}, 1]")


@pytest.mark.parametrize(
    ("dtype", "with_rows"), [("f32", False), ("f16", False), ("f16", True)]
)
def test_a_loss_is_one_kernel(dtype: str, with_rows: bool) -> None:
    program = alcop_mlir.compile(text(dtype, with_rows))
    assert len(program.function.launches) == 1
    draw = np.random.default_rng(7)
    x = (3 * draw.normal(size=(ROWS, COLUMNS))).astype(
        {"f16": "f2", "f32": "f4"}[dtype]
    )
    targets = draw.integers(0, COLUMNS, ROWS)
    targets[::5] = -100
    x[1], x[2, 3], x[3], x[4, 9] = -np.inf, np.nan, 1000, np.inf
    targets[6], x[6, 11] = 11, -np.inf
    got = program(x, targets)
    with np.errstate(invalid="ignore", divide="ignore"):
        wide = x.astype(np.float64)
        shifted = wide - wide.max(1, keepdims=True)
        rows = shifted - np.log(np.exp(shifted).sum(1, keepdims=True))
    picked = rows[np.arange(ROWS), np.where(targets < 0, 0, targets)]
    wanted = np.where(targets == -100, 0, -picked)
    losses = got[0] if with_rows else got
    np.testing.assert_allclose(losses, wanted, rtol=2e-5, atol=2e-5)
    if with_rows:
        np.testing.assert_allclose(got[1], rows, rtol=2e-5, atol=2e-5)
