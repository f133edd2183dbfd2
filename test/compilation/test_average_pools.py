"""Average pools, with and without an edge, are one kernel, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from alcop_mlir.compilation import compiler, inputs
from alcop_mlir.runtime.bundle import Bundle
from alcop_mlir.runtime.launch import Program

CHANNELS, SIZE = 6, 13


def program(kind: str, window: int, step: int, edge: int) -> str:
    """A sum of windows, divided by how many elements they have, zeros among them."""
    padded, made = SIZE + 2 * edge, (SIZE + 2 * edge - window) // step + 1
    image, around, out = (
        f"tensor<2x{CHANNELS}x{one}x{one}x{kind}>" for one in (SIZE, padded, made)
    )
    pad = f"""
  %p = tensor.pad %x low[0, 0, {edge}, {edge}] high[0, 0, {edge}, {edge}] {{
  ^bb0(%n: index, %c: index, %h: index, %w: index):
    tensor.yield %zero : {kind}
  }} : {image} to {around}"""
    return f"""
#id = affine_map<(n, c, h, w) -> (n, c, h, w)>
func.func @pool(%x: {image}) -> {out} {{
  %zero = arith.constant 0.0 : {kind}
  %count = arith.constant {float(window * window)} : {kind}{pad if edge else ""}
  %window = tensor.empty() : tensor<{window}x{window}x{kind}>
  %e = tensor.empty() : {out}
  %z = linalg.fill ins(%zero : {kind}) outs(%e : {out}) -> {out}
  %s = linalg.pooling_nchw_sum {{strides = dense<{step}> : vector<2xi64>}}
      ins(%{"p" if edge else "x"}, %window : {around}, tensor<{window}x{window}x{kind}>)
      outs(%z : {out}) -> {out}
  %r = linalg.generic {{indexing_maps = [#id, #id],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}}
      ins(%s : {out}) outs(%e : {out}) {{
  ^bb0(%a: {kind}, %c: {kind}):
    %0 = arith.divf %a, %count : {kind}
    linalg.yield %0 : {kind}
  }} -> {out}
  return %r : {out}
}}
"""


def compiled(*form: Any) -> Bundle:
    source = inputs.read_text(program(*form))
    return compiler.compile_source(source, compiler.Options(use_ptxas=False))


def expected(x: Any, window: int, step: int, edge: int) -> Any:
    padded = np.pad(x.astype("f8"), [(0, 0)] * 2 + [(edge, edge)] * 2)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (window,) * 2, (2, 3))
    return windows[:, :, ::step, ::step].mean((-1, -2))


@pytest.mark.parametrize("kind", ["f16", "f32"])
@pytest.mark.parametrize("form", [(2, 2, 0), (3, 2, 1), (5, 1, 2)], ids=str)
def test_an_average_pool_is_one_kernel(kind: str, form: tuple[int, int, int]) -> None:
    dtype, error = {"f16": ("f2", 2.0**-10), "f32": ("f4", 2.0**-22)}[kind]
    x = np.random.default_rng(2).uniform(-1, 1, (2, CHANNELS, SIZE, SIZE)).astype(dtype)
    x[0, 1, 3, 4], x[1, 2, 12, 12] = np.nan, np.inf
    bundle = compiled(kind, *form)
    assert len(bundle.function().kernels) == 1
    found = np.asarray(Program(bundle, None, "emulator")(x))
    np.testing.assert_allclose(found, expected(x, *form), atol=error)


def test_windows_that_no_thread_holds_are_summed_up_apart() -> None:
    bundle = compiled("f32", 7, 3, 3)
    assert len(bundle.function().kernels) == 2


def test_sums_are_rounded_once() -> None:
    """In f16 2048 + 1 is 2048; here no partial sum is one of f16."""
    x = np.full((2, CHANNELS, SIZE, SIZE), 2047, "f2")
    found = np.asarray(Program(compiled("f16", 5, 1, 0), None, "emulator")(x))
    np.testing.assert_array_equal(found, np.float16(np.float16(2047 * 25) / 25))
