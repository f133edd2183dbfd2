"""Contractions whose results one element-wise op combines: one kernel computes it."""

from __future__ import annotations

import numpy as np
import pytest

import alcop_mlir

# Some contractions of %x; a gate that reads the first twice; what the others make is
# multiplied with it, has a bias added, and is rounded.
TEXT = """
#mk = affine_map<(m, n, k) -> (m, k)>
#W = affine_map<(m, n, k) -> (W)>
#mn = affine_map<(m, n, k) -> (m, n)>
#all = affine_map<(m, n) -> (m, n)>
#n = affine_map<(m, n) -> (n)>
func.func @f(%x: tensor<40x32xf16>, WEIGHTS, %bias: tensor<COLSxf16>)
    -> tensor<40xCOLSxf16> {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %e = tensor.empty() : tensor<40xCOLSxf32>
  %h = tensor.empty() : tensor<40xCOLSxf16>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<40xCOLSxf32>)
         -> tensor<40xCOLSxf32>
  CONTRACTIONS
  %s = linalg.generic {indexing_maps = [#all, #all],
      iterator_types = ["parallel", "parallel"]}
    ins(%c0 : tensor<40xCOLSxf32>) outs(%e : tensor<40xCOLSxf32>) {
  ^bb0(%a: f32, %o: f32):
    %n = arith.negf %a : f32
    %p = math.exp %n : f32
    %d = arith.addf %p, %one : f32
    %q = arith.divf %one, %d : f32
    linalg.yield %q : f32
  } -> tensor<40xCOLSxf32>
  %y0 = linalg.mul ins(%s, %c0 : tensor<40xCOLSxf32>, tensor<40xCOLSxf32>)
          outs(%e : tensor<40xCOLSxf32>) -> tensor<40xCOLSxf32>
  COMBINED
  %r = linalg.generic {indexing_maps = [#all, #n, #all],
      iterator_types = ["parallel", "parallel"]}
    ins(%yLAST, %bias : tensor<40xCOLSxf32>, tensor<COLSxf16>)
    outs(%h : tensor<40xCOLSxf16>) {
  ^bb0(%a: f32, %b: f16, %o: f16):
    %w = arith.extf %b : f16 to f32
    %t = arith.addf %a, %w : f32
    %u = arith.truncf %t : f32 to f16
    linalg.yield %u : f16
  } -> tensor<40xCOLSxf16>
  return %r : tensor<40xCOLSxf16>
}"""
CONTRACTION = """
  %cN = linalg.matmul indexing_maps = [#mk, #W, #mn]
    ins(%x, %wN : tensor<40x32xf16>, tensor<SHAPExf16>)
    outs(%i : tensor<40xCOLSxf32>) -> tensor<40xCOLSxf32>
"""
COMBINED = """
  %yN = linalg.mul ins(%yBEFORE, %cN : tensor<40xCOLSxf32>, tensor<40xCOLSxf32>)
          outs(%e : tensor<40xCOLSxf32>) -> tensor<40xCOLSxf32>
"""


def text(parts: int, columns: int, order: str, mark: str = "{alcop.weight}") -> str:
    """The program; `order`: of the loops that index weights, "n, k" or "k, n"."""
    shape = {"n, k": f"{columns}x32", "k, n": f"32x{columns}"}[order]
    numbers = range(parts)
    weights = ", ".join(f"%w{n}: tensor<{shape}xf16> {mark}" for n in numbers)
    every = "".join(CONTRACTION.replace("N", str(n)) for n in numbers)
    combined = "".join(
        COMBINED.replace("N", str(n)).replace("BEFORE", str(n - 1)) for n in numbers[1:]
    )
    made = TEXT.replace("CONTRACTIONS", every).replace("COMBINED", combined)
    made = made.replace("WEIGHTS", weights).replace("(W)", f"({order})")
    made = made.replace("SHAPE", shape).replace("LAST", str(parts - 1))
    return made.replace("COLS", str(columns))


def half(draw: np.random.Generator, *shape: int) -> np.ndarray:
    return draw.uniform(-1, 1, shape).astype(np.float16)


# A warp has whole turns: of two parts 32 columns, of four 64. Without, or where only
# calls know the matrices, what combines them is a kernel, and right too.
@pytest.mark.parametrize(
    ("parts", "columns", "order", "mark", "schedule", "kernels", "said"),
    [
        (2, 48, "n, k", "{alcop.weight}", "", 1, ""),
        (2, 32, "k, n", "{alcop.weight}", "block=16,64,32 warp=16,64", 1, ""),
        (4, 16, "n, k", "{alcop.weight}", "", 1, ""),
        (2, 16, "n, k", "{alcop.weight}", "block=16,16,32 warp=16,16", 2,
         "a warp has 16, expected a multiple of 32"),
        (2, 16, "n, k", "", "", 3, "are no weights ('alcop.weight')"),
    ],
)  # fmt: skip
def test_what_combines_contractions_is_their_epilogue(
    parts: int,
    columns: int,
    order: str,
    mark: str,
    schedule: str,
    kernels: int,
    said: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    made = text(parts, columns, order, mark)
    program = alcop_mlir.compile(made, schedule=schedule or None)
    assert len(program.function.launches) == kernels
    assert said in capsys.readouterr().err
    draw = np.random.default_rng(1)
    x, bias = half(draw, 40, 32), half(draw, columns)
    weights = [half(draw, columns, 32) / 2 for _ in range(parts)]
    given = [w if order == "n, k" else np.ascontiguousarray(w.T) for w in weights]
    got = program(x, *given, bias)
    first, *others = (x.astype(np.float64) @ w.T.astype(np.float64) for w in weights)
    wanted = first / (1 + np.exp(-first))
    for one in others:
        wanted = wanted * one
    wanted += bias
    assert np.abs(got - wanted).max() < 1e-3 * np.abs(wanted).max()
