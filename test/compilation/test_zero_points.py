"""Quantised matmuls: bytes less zero points, multiplied on tensor cores.

All quantised convolutions that linalg has names for are in `test_convolution_forms.py`.
"""

from __future__ import annotations

import numpy as np
import pytest

import alcop_mlir

M, N, K = 40, 24, 64


def text(points: tuple[int, int], is_open: bool) -> str:
    """A matmul; `is_open`: of sizes that are known at run time only."""
    a, b, c = (
        f"tensor<{'?x?' if is_open else f'{rows}x{columns}'}x{kind}>"
        for rows, columns, kind in ((M, K, "i8"), (K, N, "i8"), (M, N, "i32"))
    )
    first, second = points
    return f"""
      func.func @f(%a: {a}, %b: {b}, %e: {c}) -> {c} {{
        %zero = arith.constant 0 : i32
        %za = arith.constant {first} : i32
        %zb = arith.constant {second} : i32
        %i = linalg.fill ins(%zero : i32) outs(%e : {c}) -> {c}
        %y = linalg.quantized_matmul ins(%a, %b, %za, %zb : {a}, {b}, i32, i32)
          outs(%i : {c}) -> {c}
        return %y : {c}
      }}"""


@pytest.mark.parametrize(
    ("points", "is_open", "others"),
    [((7, -3), False, 2), ((-128, 0), True, 1), ((0, 0), False, 0)],
)
def test_zero_points(points: tuple[int, int], is_open: bool, others: int) -> None:
    """A kernel for each that is not 0; what they make is subtracted in the epilogue."""
    given = text(points, is_open)
    program = alcop_mlir.compile(given, device="emulator", variants=1)
    scheduled = [kernel.schedule is not None for kernel in program.function.kernels]
    assert sorted(scheduled) == [False] * others + [True]
    random = np.random.default_rng(0)
    a, b = (
        random.integers(-128, 128, shape).astype(np.int8) for shape in ((M, K), (K, N))
    )
    c = np.zeros((M, N), np.int32)
    program(a, b, c, out := np.empty_like(c))
    lhs, rhs = (
        one.astype(np.int64) - point for one, point in zip((a, b), points, strict=True)
    )
    np.testing.assert_array_equal(out, lhs @ rhs)
    assert program.function.reference
