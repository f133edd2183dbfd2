"""End to end: every stage count gives the right numbers, the same bits, no hazard."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from alcop_mlir.compilation import compiler, inputs
from alcop_mlir.runtime.launch import Program
from alcop_mlir.schedule import Schedule

TILE = 64  # block M and N; two by two warps
K_STEP = 32
DTYPES = {"f16": np.float16, "f32": np.float32}
SHARED_STAGES = (1, 2, 3, 4, 5)
REGISTER_STAGES = (1, 2)


@dataclass(frozen=True)
class Matmul:
    """A matmul of `m` by `n` by `k`, B stored as n x k where `transposed`."""

    m: int
    n: int
    k: int
    transposed: bool = False
    out: str = "f32"
    reads_c: bool = False

    def text(self) -> str:
        a = f"memref<{self.m}x{self.k}xf16>"
        b = f"memref<{self.n}x{self.k}xf16>"
        if not self.transposed:
            b = f"memref<{self.k}x{self.n}xf16>"
        c = f"memref<{self.m}x{self.n}x{self.out}>"
        maps = (
            "indexing_maps = [affine_map<(m, n, k) -> (m, k)>, "
            f"affine_map<(m, n, k) -> {'(n, k)' if self.transposed else '(k, n)'}>, "
            "affine_map<(m, n, k) -> (m, n)>]"
        )
        fill = (
            "" if self.reads_c else f"linalg.fill ins(%z : {self.out}) outs(%C : {c})"
        )
        return f"""
          func.func @matmul(%A: {a}, %B: {b}, %C: {c}) {{
            %z = arith.constant 0.0 : {self.out}
            {fill}
            linalg.matmul {maps} ins(%A, %B : {a}, {b}) outs(%C : {c})
            return
          }}"""

    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        random = np.random.default_rng(self.k)
        b_shape = (self.n, self.k) if self.transposed else (self.k, self.n)
        a, b, c = (
            random.uniform(-1, 1, shape)
            for shape in ((self.m, self.k), b_shape, (self.m, self.n))
        )
        return a.astype("f2"), b.astype("f2"), c.astype(DTYPES[self.out])

    def expected(self, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        right = b.T if self.transposed else b
        matmul = a.astype("f8") @ right.astype("f8")
        return matmul + c.astype("f8") if self.reads_c else matmul


def run(matmul: Matmul, schedule: Schedule) -> np.ndarray:
    """C as the emulator computes it; it raises on any hazard."""
    options = compiler.Options(schedule=schedule, use_ptxas=False)
    bundle = compiler.compile_source(inputs.read(matmul.text()), options)
    a, b, c = matmul.arrays()
    Program(bundle, device="emulator")(a, b, c)
    return c


def tolerance(matmul: Matmul) -> float:
    """f32 accumulators of f16 inputs; an f16 result is rounded once more."""
    exact = matmul.k * 2.0**-22
    return exact + 2.0**-10 * matmul.k**0.5 if matmul.out == "f16" else exact


# One K tile, two (fewer than most pipelines have stages), and more than all have.
@pytest.mark.sample(4)
@pytest.mark.parametrize("k", [K_STEP, 2 * K_STEP, 7 * K_STEP])
@pytest.mark.parametrize("reads_c", [False, True], ids=["zero", "read"])
@pytest.mark.parametrize("out", ["f32", "f16"])
@pytest.mark.parametrize("transposed", [False, True], ids=["nn", "nt"])
def test_stage_counts_agree(transposed: bool, out: str, reads_c: bool, k: int) -> None:
    matmul = Matmul(TILE, 2 * TILE, k, transposed, out, reads_c)
    expected = matmul.expected(*matmul.arrays())
    unpipelined = run(matmul, Schedule((TILE, TILE, K_STEP), (32, 32), (1, 1)))
    np.testing.assert_allclose(unpipelined, expected, atol=tolerance(matmul), rtol=0)
    for shared in SHARED_STAGES:
        for register in REGISTER_STAGES:
            schedule = Schedule((TILE, TILE, K_STEP), (32, 32), (shared, register))
            result = run(matmul, schedule)
            assert result.tobytes() == unpipelined.tobytes(), str(schedule)


@pytest.mark.parametrize(
    "schedule",
    [
        "block=64,64,16 warp=32,32 stages=4,2",  # one fragment step per tile
        "block=64,64,16 warp=32,32 stages=3,4",  # fragments of later tiles
        "block=64,64,64 warp=32,32 stages=3,3",
        "block=32,64,32 warp=16,16 stages=6,4",
        "block=128,64,32 warp=64,32 stages=8,1",
        "block=16,16,16 warp=16,16 stages=2,2",  # a single warp
    ],
)
def test_shapes_of_pipelines(schedule: str) -> None:
    matmul = Matmul(128, 64, 192)
    result = run(matmul, Schedule.parse(schedule))
    expected = matmul.expected(*matmul.arrays())
    np.testing.assert_allclose(result, expected, atol=tolerance(matmul), rtol=0)
