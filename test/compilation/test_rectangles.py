"""Blocks that compute rectangles of the positions of a window give what rows give.

Arrays hold whole numbers, so that every sum is exact; NumPy and the reference are
compared to the last bit.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from convolution_forms import NAMED, Form, Scatter, Window

from alcop_mlir import diagnostics
from alcop_mlir.compilation import compiler, inputs
from alcop_mlir.errors import CompileError
from alcop_mlir.runtime.launch import Program
from alcop_mlir.schedule import Schedule
from alcop_mlir.target import find_target
from alcop_mlir.tuning.space import check

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
import bench_rectangles as bench
from conv_layers import Layer

SCHEDULE = "block=32,32,16 warp=16,16 stages=3,2"
SIZES = dict(n=2, g=2, c=16, f=8)


def form(name: str, h: Window, w: Window, **more: object) -> Form:
    windows = dict(d=Window(3), h=h, w=w)
    layouts = NAMED.get(name, "nhwc hwcf nhwf")
    return Form(name, layouts, dict(SIZES), windows, **more)  # type: ignore[arg-type]


TWO = "conv_2d_nhwc_hwcf"
# Each with widths: rectangles that go over both edges, over one, over none; all in one.
CASES = {
    "odd places": (form(TWO, Window(9), Window(7)), "4 8 32"),
    "whole rectangles": (form(TWO, Window(8), Window(8)), "8"),
    "stride 2": (form(TWO, Window(13, stride=2), Window(11, stride=2)), "4"),
    "larger window": (form(TWO, Window(3, 5, low=2, high=3), Window(2, 3)), "4"),
    "half": (form(TWO, Window(9), Window(7), kinds=("f16", "f16")), "8"),
    "bytes": (form(TWO, Window(9), Window(7), kinds=("i8", "i32")), "8"),
    "groups": (form("conv_2d_nhwgc_gfhwc", Window(), Window()), "4"),
    "three dimensions": (form("conv_3d_ndhwc_dhwcf", Window(5), Window()), "4"),
    "transposed": (form("", Scatter(5, 4, 2), Scatter(6, 4, 2)), "4"),
}


@pytest.mark.parametrize("name", CASES)
def test_rectangles_give_what_rows_give(name: str) -> None:
    one, widths = CASES[name]
    schedule = SCHEDULE.replace("32,16", "32,32") if name == "bytes" else SCHEDULE
    for width in widths.split():
        program = one.check(f"{schedule} rectangle={width}")
        asked = [kernel.schedule for kernel in program.function.kernels]
        assert int(width) in {two.rectangle for two in asked if two is not None}


@pytest.mark.parametrize("more", ["split_k=3", "raster=2"])
def test_with_parts_of_k_and_groups_of_blocks(more: str) -> None:
    one = form(TWO, Window(9), Window(7))
    one.check(f"{SCHEDULE} rectangle=4 {more}")


EPILOGUE = """
  func.func @conv(%x: tensor<2x9x7x16xf16>, %w: tensor<3x3x16x40xf16>,
      %b: tensor<40xf32>, %r: tensor<2x9x7x40xf32>) -> tensor<2x9x7x40xf32> {
    %zero = arith.constant 0.0 : f16
    %none = arith.constant 0.0 : f32
    %p = tensor.pad %x low[0, 1, 1, 0] high[0, 1, 1, 0] {
    ^bb0(%i: index, %j: index, %k: index, %l: index):
      tensor.yield %zero : f16
    } : tensor<2x9x7x16xf16> to tensor<2x11x9x16xf16>
    %e = tensor.empty() : tensor<2x9x7x40xf32>
    %i = linalg.fill ins(%none : f32) outs(%e : tensor<2x9x7x40xf32>)
      -> tensor<2x9x7x40xf32>
    %y = linalg.conv_2d_nhwc_hwcf
      {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
      ins(%p, %w : tensor<2x11x9x16xf16>, tensor<3x3x16x40xf16>)
      outs(%i : tensor<2x9x7x40xf32>) -> tensor<2x9x7x40xf32>
    %s = linalg.generic {
        indexing_maps = [affine_map<(a, b, c, d) -> (a, b, c, d)>,
          affine_map<(a, b, c, d) -> (d)>, affine_map<(a, b, c, d) -> (a, b, c, d)>,
          affine_map<(a, b, c, d) -> (a, b, c, d)>],
        iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%y, %b, %r : tensor<2x9x7x40xf32>, tensor<40xf32>, tensor<2x9x7x40xf32>)
      outs(%e : tensor<2x9x7x40xf32>) {
    ^bb0(%a: f32, %c: f32, %d: f32, %o: f32):
      %1 = arith.addf %a, %c : f32
      %2 = arith.addf %1, %d : f32
      linalg.yield %2 : f32
    } -> tensor<2x9x7x40xf32>
    return %s : tensor<2x9x7x40xf32>
  }"""


def test_bias_and_residual_are_fused() -> None:
    """With filters that tiles exceed as well; what no row has is neither read nor
    written, or the emulator would see accesses beyond the end of arrays.
    """
    random = np.random.default_rng(0)
    shapes = ((2, 9, 7, 16), (3, 3, 16, 40), (40,), (2, 9, 7, 40))
    arrays = [
        random.integers(-3, 4, shape).astype("f2" if number < 2 else "f4")
        for number, shape in enumerate(shapes)
    ]
    found = []
    for more in ("", " rectangle=8", " rectangle=16"):
        options = compiler.Options(
            schedule=Schedule.parse(SCHEDULE + more), use_ptxas=False
        )
        with diagnostics.collect() as remarks:
            bundle = compiler.compile_source(inputs.read(EPILOGUE), options)
        assert not remarks
        assert len(bundle.functions[0].kernels) == 1
        out = np.full(shapes[3], np.nan, np.float32)
        Program(bundle, device="emulator")(*arrays, out)
        found.append(out)
    assert not np.isnan(found[0]).any()
    assert (found[0] == found[1]).all()
    assert (found[0] == found[2]).all()


@pytest.mark.parametrize(
    "one",
    [
        form("conv_1d_nwc_wcf", Window(), Window()),
        form(TWO, *[Window(taps=1, stride=2, low=0, high=0)] * 2),
        form(TWO, Window(), Window(), open="n"),
    ],
    ids=["one dimension", "one tap", "open"],
)
def test_what_has_no_rectangles_is_refused(one: Form) -> None:
    with pytest.raises(CompileError, match="the rows of A are no windows of several"):
        one.check(f"{SCHEDULE} rectangle=8")


@pytest.mark.parametrize("width", [1, 8])
def test_the_pixels_that_blocks_touch_are_counted(width: int) -> None:
    """What bench/bench_rectangles.py prints, against sets of pixels."""
    one = (1, 1)
    layer = Layer("odd", (9, 7), 16, 64, (3, 3), one, one, one, one, batch=2)
    target = find_target("sm_80")
    schedule = Schedule((32, 64, 16), (32, 32), (3, 2), rectangle=width)
    problem = bench.problem_of(layer)
    cost = check(problem, schedule, target)
    found = bench.count(layer, problem, schedule, cost, target)
    blocks: dict[object, set[tuple[int, int, int]]] = {}
    for n, p, q in np.ndindex(2, 9, 7):
        block: object = (n * 63 + p * 7 + q) // 32
        if width > 1:
            block = n, p // 4, q // 8
        blocks.setdefault(block, set()).update(
            (n, p + r - 1, q + s - 1)
            for r, s in np.ndindex(3, 3)
            if 0 <= p + r - 1 < 9 and 0 <= q + s - 1 < 7
        )
    assert found.blocks == len(blocks)
    assert found.block == sum(map(len, blocks.values())) / 126
    assert found.wave == 1
