"""End to end, with blocks in groups of rows: every tile of C once, for any grid."""

from __future__ import annotations

import numpy as np
import pytest

from alcop_mlir.compilation import compiler, inputs
from alcop_mlir.runtime.launch import Program
from alcop_mlir.schedule import Schedule

TILE = "block=16,16,16 warp=16,16 stages=3,1"


def program(m: object, n: object, k: int, batch: int, raster: int) -> Program:
    """C += A * B on batches, C of m x n elements; "?" for a size at run time."""
    a, b, c = (
        f"memref<{batch}x{rows}x{columns}x{kind}>"
        for rows, columns, kind in ((m, k, "f16"), (k, n, "f16"), (m, n, "f32"))
    )
    source = inputs.read(
        f"""
        func.func @matmul(%A: {a}, %B: {b}, %C: {c}) {{
          linalg.batch_matmul ins(%A, %B : {a}, {b}) outs(%C : {c})
          return
        }}"""
    )
    schedule = Schedule.parse(f"{TILE} raster={raster}")
    options = compiler.Options(schedule=schedule, use_ptxas=False)
    return Program(compiler.compile_source(source, options), device="emulator")


def check(program: Program, m: int, n: int, k: int, batch: int) -> None:
    """A * B is added to C once: a tile computed twice, or never, shows."""
    random = np.random.default_rng(m + n)
    a = random.uniform(-1, 1, (batch, m, k)).astype("f2")
    b = random.uniform(-1, 1, (batch, k, n)).astype("f2")
    c = random.uniform(-1, 1, (batch, m, n)).astype("f4")
    expected = c + a.astype("f8") @ b.astype("f8")
    program(a, b, c)
    np.testing.assert_allclose(c, expected, atol=k * 2.0**-22, rtol=0)


@pytest.mark.parametrize("raster", [2, 3, 8])
@pytest.mark.parametrize(("m", "n"), [(72, 56), (16, 80), (80, 16), (32, 130)])
def test_grids(m: int, n: int, raster: int) -> None:
    check(program(m, n, 48, 2, raster), m, n, 48, 2)


@pytest.mark.parametrize("raster", [2, 3])
def test_grids_of_any_size(raster: int) -> None:
    compiled = program("?", "?", 48, 1, raster)
    for m, n in ((72, 56), (1, 1), (16, 90), (90, 16), (64, 32), (0, 16)):
        check(compiled, m, n, 48, 1)


def test_the_bundle_says_so() -> None:
    (kernel,) = program(32, 32, 32, 1, 2).function.kernels
    assert kernel.schedule == Schedule.parse(f"{TILE} raster=2")
