"""A contraction with rows that a table names, from linalg on, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from alcop_mlir.compilation import compiler, inputs
from alcop_mlir.runtime.launch import Program
from alcop_mlir.schedule import Schedule

COLUMNS, TABLE = 24, 50


def text(rows: int, k: int, index: str) -> str:
    table, indices = f"memref<{TABLE}x{k}xf16>", f"memref<{rows}x{index}>"
    taken, weights = f"memref<{rows}x{k}xf16>", f"memref<{k}x{COLUMNS}xf16>"
    out = f"memref<{rows}x{COLUMNS}xf32>"
    return f"""
      func.func @rows(%t: {table}, %i: {indices}, %w: {weights}, %y: {out}) {{
        %zero = arith.constant 0.0 : f32
        %A = "alcop.take"(%t, %i) : ({table}, {indices}) -> {taken}
        linalg.fill ins(%zero : f32) outs(%y : {out})
        linalg.matmul ins(%A, %w : {taken}, {weights}) outs(%y : {out})
        return
      }}"""


@pytest.mark.parametrize(
    ("rows", "k", "index", "schedule"),
    [
        (40, 96, "i32", "block=32,32,32 warp=16,16 stages=3,2"),
        (40, 72, "i64", "block=32,32,32 warp=16,16 stages=2,1"),
        (40, 128, "i32", "block=32,32,32 warp=16,16 stages=2,1 split_k=2"),
        # Fewer chunks than threads: those without a row read no index of one.
        (16, 32, "i64", "block=16,32,16 warp=16,16 stages=2,2"),
        (16, 32, "i32", "block=16,64,16 warp=16,16 stages=1,1"),
    ],
)
def test_rows_are_those_that_indices_name(
    rows: int, k: int, index: str, schedule: str
) -> None:
    """Also where tiles exceed the rows, or K; and with K in parts."""
    options = compiler.Options(schedule=Schedule.parse(schedule), use_ptxas=False)
    bundle = compiler.compile_source(inputs.read(text(rows, k, index)), options)
    random = np.random.default_rng(0)
    table = random.uniform(-1, 1, (TABLE, k)).astype(np.float16)
    kind = {"i32": np.int32, "i64": np.int64}[index]
    indices = random.integers(0, TABLE, rows).astype(kind)
    table[np.setdiff1d(np.arange(TABLE), indices)] = np.nan  # are not read
    weights = random.uniform(-1, 1, (k, COLUMNS)).astype(np.float16)
    out = np.full((rows, COLUMNS), np.nan, np.float32)
    Program(bundle, device="emulator")(table, indices, weights, out)
    expected = table[indices].astype(np.float64) @ weights.astype(np.float64)
    np.testing.assert_allclose(out, expected, atol=k * 2.0**-22, rtol=0)
