"""End to end with split-K: right numbers, rounded once, the same in every run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest

from alcop_mlir import dtypes
from alcop_mlir.compilation import compiler, inputs
from alcop_mlir.runtime.launch import Program
from alcop_mlir.schedule import Schedule

TILE = Schedule.parse("block=32,32,32 warp=16,32 stages=3,2")


@dataclass(frozen=True)
class Matmul:
    """C = A * B of elements `kind`, into `out`.

    sizes:   M, N and K; `dynamic` names those that the program does not know
    maps:    loops of A and of B
    init:    what accumulators start from: "zero", "read" (C), "copy" (a fourth array)
    """

    sizes: tuple[int, int, int] = (72, 56, 384)
    kind: str = "f16"
    out: str = "f32"
    maps: tuple[str, str] = ("mk", "kn")
    init: str = "zero"
    dynamic: str = ""

    def text(self) -> str:
        a, b, c, d = (
            f"memref<{'x'.join(self._size(loop) for loop in loops)}x{kind}>"
            for loops, kind in self._arrays()
        )
        loops = ", ".join(
            f"affine_map<(m, n, k) -> ({', '.join(loops)})>"
            for loops in (*self.maps, "mn")
        )
        zero = "0" if dtypes.is_integer(self.out) else "0.0"
        before = {
            "zero": f"linalg.fill ins(%zero : {self.out}) outs(%C : {c})",
            "read": "",
            "copy": f"memref.copy %D, %C : {c} to {c}",
        }[self.init]
        promise = "{alcop.row_alignment = 16 : i64}" if self.dynamic else ""
        return f"""
          func.func @matmul(%A: {a} {promise}, %B: {b} {promise}, %C: {c} {promise},
                             %D: {d} {promise}) {{
            %zero = arith.constant {zero} : {self.out}
            {before}
            linalg.matmul indexing_maps = [{loops}]
              ins(%A, %B : {a}, {b}) outs(%C : {c})
            return
          }}"""

    def _size(self, loop: str) -> str:
        return "?" if loop in self.dynamic else str(self.sizes["mnk".index(loop)])

    def _arrays(self) -> list[tuple[str, str]]:
        """Loops and elements of A, B, C and D."""
        inputs = [(loops, self.kind) for loops in self.maps]
        return [*inputs, ("mn", self.out), ("mn", self.out)]

    def arrays(self) -> list[np.ndarray]:
        random = np.random.default_rng(sum(self.sizes))
        return [
            dtypes.random(
                random, tuple(self.sizes["mnk".index(i)] for i in loops), kind
            )
            for loops, kind in self._arrays()
        ]

    def expected(self, arrays: Sequence[np.ndarray]) -> np.ndarray:
        """In float64, from inputs as the kernel multiplies them."""
        kinds = [kind for _, kind in self._arrays()]
        a, b, c, d = (
            dtypes.decode(array, kind)
            for array, kind in zip(arrays, kinds, strict=True)
        )
        if self.kind == "f32":
            a, b = to_tf32(a), to_tf32(b)
        start = {"zero": 0.0, "read": c, "copy": d}[self.init]
        return np.einsum(f"{self.maps[0]},{self.maps[1]}->mn", a, b) + start

    def tolerance(self, expected: np.ndarray) -> float:
        """K terms accumulated in f32, and one rounding; integers are exact."""
        if self.kind == "i8":
            return 0.0
        rounding = dtypes.ROUNDING[self.out] if self.out != "f32" else 0.0
        return (self.sizes[2] * 2.0**-23 + rounding) * float(np.abs(expected).max())


def to_tf32(values: np.ndarray) -> np.ndarray:
    """To nearest, ties away from zero."""
    bits = values.astype(np.float32).view(np.uint32)
    return ((bits + 0x1000) & 0xFFFFE000).view(np.float32).astype(np.float64)


def compiled(matmul: Matmul, parts: int, tile: Schedule = TILE) -> Program:
    options = compiler.Options(
        schedule=replace(tile, split_k=parts),
        use_ptxas=False,
        allow_tf32=matmul.kind == "f32",
    )
    bundle = compiler.compile_source(inputs.read(matmul.text()), options)
    return Program(bundle, device="emulator")


def check(matmul: Matmul, program: Program) -> np.ndarray:
    """Run on the emulator, which raises on any hazard; C as it comes out."""
    arrays = matmul.arrays()
    expected = matmul.expected(arrays)
    program(*arrays)
    got = dtypes.decode(arrays[2], matmul.out)
    np.testing.assert_allclose(got, expected, atol=matmul.tolerance(expected), rtol=0)
    return arrays[2]


@pytest.mark.parametrize(
    "maps", [("mk", "kn"), ("mk", "nk"), ("km", "kn"), ("km", "nk")]
)
@pytest.mark.parametrize(
    ("kind", "out"),
    [("f16", "f32"), ("f16", "f16"), ("bf16", "bf16"), ("f32", "f32"), ("i8", "i32")],
)
def test_layouts_and_types(maps: tuple[str, str], kind: str, out: str) -> None:
    matmul = Matmul(kind=kind, out=out, maps=maps)
    program = compiled(matmul, 3)
    first, second = program.function.kernels
    assert first.grid[2] == 3
    assert second.schedule is None
    check(matmul, program)


@pytest.mark.parametrize("init", ["zero", "read", "copy"])
@pytest.mark.parametrize("out", ["f16", "f32"])
@pytest.mark.parametrize("parts", [2, 4, 6])
def test_what_it_starts_from(init: str, out: str, parts: int) -> None:
    matmul = Matmul(init=init, out=out)
    check(matmul, compiled(matmul, parts))


def test_every_run_gives_the_same_bits() -> None:
    """Parts are added in one order, whatever order they are computed in."""
    matmul = Matmul(out="f16")
    program = compiled(matmul, 4)
    results = {check(matmul, program).tobytes() for _ in range(2)}
    rastered = compiled(matmul, 4, replace(TILE, raster=2))
    assert results == {check(matmul, rastered).tobytes()}


@pytest.mark.parametrize("sizes", [(72, 56, 384), (8, 40, 384), (130, 8, 384)])
def test_rows_and_columns_known_at_run_time_only(sizes: tuple[int, int, int]) -> None:
    """With the promise of rows of 16 bytes, which parts keep."""
    matmul = Matmul(sizes, dynamic="mn", init="read")
    program = compiled(matmul, 4)
    levels = [copy.level for copy in program.function.kernels[0].pipelines]
    assert levels.count("shared") == 2
    check(matmul, program)


def test_parts_shorter_than_the_pipeline() -> None:
    matmul = Matmul((32, 32, 128))
    check(matmul, compiled(matmul, 8))
