"""Channels last from convolution to convolution: the same bits, in fewer kernels."""

from __future__ import annotations

import numpy as np
import pytest

import alcop_mlir
from alcop_mlir.pipelines import named

PLANES, PADDED = "tensor<1x16x6x6xf16>", "tensor<1x16x8x8xf16>"
SUMS, FILTER = "tensor<1x16x6x6xf32>", "tensor<16x16x3x3xf16>"
EACH = "affine_map<(n, c, y, x) -> (n, c, y, x)>"
CHANNEL = "affine_map<(n, c, y, x) -> (c)>"
ALL = 'iterator_types = ["parallel", "parallel", "parallel", "parallel"]'


def convolution(number: int, image: str, kernel: str) -> str:
    """%y of 3x3 windows of %image, padded with zeros."""
    return f"""
  %p{number} = tensor.pad %{image} low[0, 0, 1, 1] high[0, 0, 1, 1] {{
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f16
  }} : {PLANES} to {PADDED}
  %y{number} = linalg.conv_2d_nchw_fchw
    ins(%p{number}, %{kernel} : {PADDED}, {FILTER}) outs(%f : {SUMS}) -> {SUMS}"""


# Two convolutions; a channel's number is added between them, the image at the end.
BLOCK = f"""
func.func @f(%x: {PLANES}, %v: {FILTER}, %w: {FILTER}, %b: tensor<16xf16>)
    -> {PLANES} {{
  %zero = arith.constant 0.0 : f16
  %wide = arith.constant 0.0 : f32
  %d = tensor.empty() : {SUMS}
  %e = tensor.empty() : {PLANES}
  %f = linalg.fill ins(%wide : f32) outs(%d : {SUMS}) -> {SUMS}
  {convolution(1, "x", "v")}
  %m = linalg.generic {{indexing_maps = [{EACH}, {CHANNEL}, {EACH}], {ALL}}}
    ins(%y1, %b : {SUMS}, tensor<16xf16>) outs(%e : {PLANES}) {{
  ^bb0(%s: f32, %c: f16, %o: f16):
    %0 = arith.truncf %s : f32 to f16
    %1 = arith.addf %0, %c : f16
    %2 = linalg.index 1 : index
    %3 = arith.index_cast %2 : index to i32
    %4 = arith.sitofp %3 : i32 to f16
    %5 = arith.addf %1, %4 : f16
    linalg.yield %5 : f16
  }} -> {PLANES}
  {convolution(2, "m", "w")}
  %r = linalg.generic {{indexing_maps = [{EACH}, {EACH}, {EACH}], {ALL}}}
    ins(%y2, %x : {SUMS}, {PLANES}) outs(%e : {PLANES}) {{
  ^bb0(%s: f32, %c: f16, %o: f16):
    %0 = arith.truncf %s : f32 to f16
    %1 = arith.addf %0, %c : f16
    linalg.yield %1 : f16
  }} -> {PLANES}
  return %r : {PLANES}
}}"""


def test_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(0)
    shapes = (1, 16, 6, 6), (16, 16, 3, 3), (16, 16, 3, 3), (16,)
    inputs = [draw.uniform(-1, 1, one).astype(np.float16) for one in shapes]
    moved = alcop_mlir.compile(BLOCK)
    steps = [one.replace("alcop-propagate-layouts,", "") for one in named.PREPARE]
    assert steps != list(named.PREPARE)
    monkeypatch.setattr(named, "PREPARE", tuple(steps))
    plain = alcop_mlir.compile(BLOCK)
    assert np.array_equal(moved(*inputs), plain(*inputs))
