"""Convolutions, compiled and run on the emulator, against NumPy.

No race, no bank conflict, and, where the channels of a pixel fill sectors, no sector
that is read or written in part.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from alcop_mlir import dtypes
from alcop_mlir.compilation import compiler, inputs
from alcop_mlir.element_types import element_bytes
from alcop_mlir.runtime.bundle import Bundle
from alcop_mlir.runtime.emulator import emulate
from alcop_mlir.runtime.launch import Program, grid_of
from alcop_mlir.schedule import Schedule

SECTOR = 32  # bytes that global memory moves at once
ONE_KERNEL = "block=32,32,32 warp=16,16 stages=3,2"


@dataclass(frozen=True)
class Convolution:
    """Images N x H x W x C, with a border of zeros, and filters.

    low, high: zeros along H and W
    layout:    of the filters, as in the names of linalg's ops
    """

    image: tuple[int, int, int, int] = (1, 9, 7, 32)
    filters: int = 24
    size: tuple[int, int] = (3, 3)
    strides: tuple[int, int] = (1, 1)
    dilations: tuple[int, int] = (1, 1)
    low: tuple[int, int] = (1, 1)
    high: tuple[int, int] = (1, 1)
    layout: str = "hwcf"
    kind: str = "f16"
    out: str = "f32"

    @property
    def bordered(self) -> tuple[int, ...]:
        """The shape of the images with their borders."""
        n, h, w, c = self.image
        return n, h + self.low[0] + self.high[0], w + self.low[1] + self.high[1], c

    @property
    def shapes(self) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """Of images, filters and output."""
        n, *pixels, c = self.bordered
        windows = (
            (extent - (taps - 1) * dilation - 1) // stride + 1
            for extent, taps, dilation, stride in zip(
                pixels, self.size, self.dilations, self.strides, strict=True
            )
        )
        first, last = (self.filters, *self.size, c), (*self.size, c, self.filters)
        weights = first if self.layout == "fhwc" else last
        return self.image, weights, (n, *windows, self.filters)

    @property
    def fills_sectors(self) -> bool:
        """Whether the channels of a pixel begin and end where sectors do."""
        return self.image[-1] * element_bytes(self.kind) % SECTOR == 0

    def text(self) -> str:
        """The convolution, of images that are padded before."""
        shapes = (*self.shapes, self.bordered)
        kinds = (self.kind, self.kind, self.out, self.kind)
        x, w, y, p = (
            f"tensor<{'x'.join(map(str, shape))}x{kind}>"
            for shape, kind in zip(shapes, kinds, strict=True)
        )
        zero, none = (
            f"arith.constant {'0' if dtypes.is_integer(kind) else '0.0'} : {kind}"
            for kind in (self.kind, self.out)
        )
        (top, left), (bottom, right) = self.low, self.high
        return f"""
          func.func @conv(%x: {x}, %w: {w}) -> {y} {{
            %zero = {zero}
            %p = tensor.pad %x low[0, {top}, {left}, 0] high[0, {bottom}, {right}, 0] {{
            ^bb0(%n: index, %h: index, %v: index, %c: index):
              tensor.yield %zero : {self.kind}
            }} : {x} to {p}
            %none = {none}
            %e = tensor.empty() : {y}
            %i = linalg.fill ins(%none : {self.out}) outs(%e : {y}) -> {y}
            %y = linalg.conv_2d_nhwc_{self.layout} {{
              dilations = dense<{list(self.dilations)}> : tensor<2xi64>,
              strides = dense<{list(self.strides)}> : tensor<2xi64>}}
              ins(%p, %w : {p}, {w}) outs(%i : {y}) -> {y}
            return %y : {y}
          }}"""

    def arrays(self) -> list[np.ndarray]:
        """Random images and filters."""
        random = np.random.default_rng(0)
        return [dtypes.random(random, shape, self.kind) for shape in self.shapes[:2]]

    def expected(self, arrays: list[np.ndarray]) -> np.ndarray:
        """The output in float64."""
        x, w = (dtypes.decode(array, self.kind) for array in arrays)
        if self.kind == "f32":
            x, w = to_tf32(x), to_tf32(w)
        if self.layout == "fhwc":
            w = np.moveaxis(w, 0, -1)
        border = [(0, 0), *zip(self.low, self.high, strict=True), (0, 0)]
        padded = np.pad(x.astype(np.float64), border)
        _, p, q, _ = self.shapes[2]
        total = np.zeros(self.shapes[2])
        for tap in np.ndindex(self.size):
            rows, columns = (
                slice(at * dilation, at * dilation + (count - 1) * stride + 1, stride)
                for at, dilation, stride, count in zip(
                    tap, self.dilations, self.strides, (p, q), strict=True
                )
            )
            total += padded[:, rows, columns] @ w[tap].astype(np.float64)
        return total

    def tolerance(self, expected: np.ndarray) -> float:
        """The largest error of f32 accumulators, rounded once."""
        if dtypes.is_integer(self.out):
            return 0.0
        terms = np.prod(self.size) * self.image[-1] * 2.0**-23
        rounding = dtypes.ROUNDING[self.out] if self.out != "f32" else 0.0
        return float((terms + rounding) * np.abs(expected).max())


def to_tf32(values: np.ndarray) -> np.ndarray:
    """To nearest, ties away from zero."""
    bits = values.astype(np.float32).view(np.uint32)
    return ((bits + 0x1000) & 0xFFFFE000).view(np.float32)


def compiled(convolution: Convolution, schedule: str) -> Bundle:
    options = compiler.Options(
        schedule=Schedule.parse(schedule),
        use_ptxas=False,
        allow_tf32=convolution.kind == "f32",
    )
    return compiler.compile_source(inputs.read(convolution.text()), options)


def run(convolution: Convolution, schedule: str = ONE_KERNEL) -> np.ndarray:
    """The output of one kernel, checked."""
    bundle = compiled(convolution, schedule)
    (kernel,) = bundle.functions[0].kernels
    arrays = convolution.arrays()
    expected = convolution.expected(arrays)
    out = dtypes.random(np.random.default_rng(1), expected.shape, convolution.out)
    result = emulate(
        bundle.code_of(kernel).ptx,
        kernel.name,
        grid_of(kernel, {}),
        kernel.block,
        [*arrays, out],
        dynamic_shared=kernel.shared_bytes,
        counters=True,
    )
    assert not result.hazards
    assert result.counters is not None
    assert result.counters.bank_conflicts == 0
    if convolution.fills_sectors:
        assert result.counters.global_sectors == result.counters.global_sectors_ideal
    got = dtypes.decode(out, convolution.out)
    atol = convolution.tolerance(expected)
    np.testing.assert_allclose(got, expected, atol=atol, rtol=0)
    return out


def test_parts_of_k() -> None:
    """Each block begins at a tap and a channel of its own; the parts are added up."""
    convolution = Convolution((1, 7, 7, 96), 32)
    bundle = compiled(convolution, "block=32,32,32 warp=16,16 stages=1,1 split_k=27")
    assert len(bundle.functions[0].kernels) == 2
    arrays = convolution.arrays()
    expected = convolution.expected(arrays)
    out = np.full(expected.shape, np.nan, np.float32)
    Program(bundle, device="emulator")(*arrays, out)
    atol = convolution.tolerance(expected)
    np.testing.assert_allclose(out, expected, atol=atol, rtol=0)


CASES = {
    "stride 2": Convolution((1, 9, 7, 64), strides=(2, 2), layout="fhwc"),
    "dilation 2": Convolution(
        (1, 9, 7, 32), dilations=(2, 2), low=(2, 2), high=(2, 2), filters=64
    ),
    "one tap, stride 2": Convolution(
        (2, 9, 7, 96), 10, (1, 1), (2, 2), low=(0, 0), high=(0, 0)
    ),
    "one tap, padded": Convolution((1, 5, 4, 40), 32, (1, 1)),
    "1x7": Convolution((1, 9, 7, 48), 32, (1, 7), low=(0, 3), high=(0, 3)),
    "5x5, 16 channels": Convolution((1, 9, 7, 16), 16, (5, 5), low=(2, 2), high=(2, 2)),
    "7x7, 24 channels": Convolution(
        (1, 13, 11, 24), 32, (7, 7), (2, 2), low=(3, 3), high=(3, 3), layout="fhwc"
    ),
    "two images, 40 channels": Convolution((2, 9, 7, 40), layout="fhwc"),
    "48 channels, one side": Convolution(
        (1, 8, 8, 48), strides=(2, 2), low=(0, 0), high=(1, 1)
    ),
    "96 channels, ragged": Convolution((1, 9, 7, 96), 10),
    "window larger than the image": Convolution(
        (1, 3, 2, 32), 16, (5, 5), low=(2, 3), high=(3, 2)
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_windows(name: str) -> None:
    run(CASES[name])


@pytest.mark.parametrize(
    ("kind", "out", "schedule"),
    [
        ("f16", "f16", ONE_KERNEL),
        ("bf16", "f32", ONE_KERNEL),
        ("f32", "f32", "block=32,32,16 warp=16,16 stages=3,2"),
        ("i8", "i32", "block=32,32,64 warp=16,16 stages=3,2"),
        ("i8", "i32", "block=32,32,32 warp=16,16 stages=4,1"),
    ],
)
def test_types(kind: str, out: str, schedule: str) -> None:
    run(Convolution((1, 9, 7, 48), 32, kind=kind, out=out), schedule)


def test_an_odd_number_of_channels(capsys: pytest.CaptureFixture[str]) -> None:
    """Threads load single elements, one step before they store them as words."""
    convolution = Convolution((1, 7, 6, 17), 32)
    schedule = "block=32,32,32 warp=16,16 stages={}"
    found = [run(convolution, schedule.format(one)) for one in ("1,1", "2,1", "3,2")]
    assert len({out.tobytes() for out in found}) == 1
    capsys.readouterr()
    (kernel,) = compiled(convolution, schedule.format("3,2")).functions[0].kernels
    loaded = [(one.buffer, one.level, one.stages) for one in kernel.pipelines]
    assert ("arg0 f16", "register", 2) in loaded
    (line,) = capsys.readouterr().err.splitlines()
    assert "pipelined through registers only: the rows of argument 1" in line
    assert line.endswith("make rows a multiple of 16 bytes: of 8 elements, not 17")


@pytest.mark.parametrize("more", ["", " sweeps=2", " sweeps=4", " rectangle=4"])
def test_all_stages_give_the_same(more: str) -> None:
    """To the last bit, with slots that divide the steps of a tap and others."""
    convolution = Convolution((1, 8, 6, 64), 32)
    tile = f"block=32,32,16 warp=16,16{more}"
    plain = run(convolution, f"{tile} stages=1,1")
    for shared, registers in ((2, 1), (3, 1), (4, 1), (6, 1)):
        stages = f"{tile} stages={shared},{registers}"
        assert (run(convolution, stages) == plain).all()
