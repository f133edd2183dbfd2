"""Convolutions: SASS per mma.sync, registers, and what is read of global memory.

usage: python bench/bench_conv.py [--target sm_80] [--batch 64] [--triton]

Compiles 3x3 convolutions with a border of zeros, of images of 56 x 56, NHWC, with as
many filters as channels, but 128 at least, in f16 with f32 outputs, and reads the loop
along K from the cubin. Where K is so short that the compiler unrolls the loop as a
whole, the figure is that of all instructions from the first mma.sync to the barrier of
the last K step; the epilogue is mixed with what follows. Then
runs one block's worth of each on the emulator, and counts the sectors of global memory
that it reads and writes, against the least. Needs the extra `ptxas`.

`--triton` prints below them the code of an implicit GEMM in Triton with the same tiles,
warps and stages, compiled for the same sizes, where Triton is installed (the extra
`anchors`); its sectors are not counted. The raw records go to bench/results/conv.jsonl.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np
from bench_side_by_side import Tile, triton_kernel
from records import print_table, store
from sass import disassemble, loops, straight

from alcop_mlir.compilation import compiler, inputs
from alcop_mlir.runtime.emulator import emulate
from alcop_mlir.runtime.launch import grid_of
from alcop_mlir.schedule import Schedule
from alcop_mlir.target import find_target

SCHEDULES = (
    "block=128,128,32 warp=64,64 stages=4,2",
    "block=128,128,32 warp=64,64 stages=3,2",
    "block=128,128,64 warp=64,64 stages=4,2",
    "block=128,128,64 warp=64,64 stages=3,2",
)
LAYOUTS = ("fhwc", "hwcf")  # of filters
CHANNELS = (64, 128, 256)
STRIDES = (1, 2)
IMAGE = 56  # pixels along each side
EMULATED = 8  # the same, on the emulator


@dataclass(frozen=True)
class Case:
    """A convolution of 3x3 filters and its schedule."""

    channels: int
    stride: int
    layout: str
    schedule: str

    @property
    def filters(self) -> int:
        """How many filters: columns of C."""
        return max(128, self.channels)

    def shapes(self, batch: int, image: int) -> tuple[tuple[int, ...], ...]:
        """Of images, filters and output."""
        c, f, places = self.channels, self.filters, (image - 1) // self.stride + 1
        weights = {"fhwc": (f, 3, 3, c), "hwcf": (3, 3, c, f)}[self.layout]
        return (batch, image, image, c), weights, (batch, places, places, f)

    def text(self, batch: int, image: int) -> str:
        """As MLIR on tensors."""
        shapes = self.shapes(batch, image)
        padded = (batch, image + 2, image + 2, self.channels)
        x, w, y, p = (
            f"tensor<{'x'.join(map(str, shape))}x{kind}>"
            for shape, kind in zip(
                (*shapes, padded), ("f16", "f16", "f32", "f16"), strict=True
            )
        )
        return f"""
          func.func @conv(%x: {x}, %w: {w}) -> {y} {{
            %zero = arith.constant 0.0 : f16
            %none = arith.constant 0.0 : f32
            %p = tensor.pad %x low[0, 1, 1, 0] high[0, 1, 1, 0] {{
            ^bb0(%i: index, %j: index, %k: index, %l: index):
              tensor.yield %zero : f16
            }} : {x} to {p}
            %e = tensor.empty() : {y}
            %i = linalg.fill ins(%none : f32) outs(%e : {y}) -> {y}
            %y = linalg.conv_2d_nhwc_{self.layout} {{
              dilations = dense<1> : tensor<2xi64>,
              strides = dense<{self.stride}> : tensor<2xi64>}}
              ins(%p, %w : {p}, {w}) outs(%i : {y}) -> {y}
            return %y : {y}
          }}"""


def cases() -> list[Case]:
    """All of the project's figures."""
    return [
        Case(channels, stride, layout, schedule)
        for channels in CHANNELS
        for stride in STRIDES
        for layout in LAYOUTS
        for schedule in SCHEDULES
    ]


def measure(case: Case, target: str, batch: int) -> dict[str, object]:
    """One record."""
    options = compiler.Options(find_target(target), Schedule.parse(case.schedule))
    source = inputs.read_text(case.text(batch, IMAGE))
    bundle = compiler.compile_source(source, options)
    (function,) = bundle.functions
    (kernel,) = function.kernels
    cubin = bundle.code_of(kernel).cubin
    if cubin is None:
        raise SystemExit("error: no ptxas, pip install 'alcop-mlir[compiler]'")
    read, least = sectors(case, target)
    return {
        "compiler": "alcop_mlir",
        **vars(case),
        "target": target,
        "batch": batch,
        **figures(cubin),
        "registers": kernel.registers,
        "spill_bytes": kernel.spill_bytes,
        "shared_bytes": kernel.shared_bytes,
        "sectors": read,
        "least_sectors": least,
    }


def tritons(case: Case, target: str, batch: int) -> dict[str, object]:
    """The record of Triton's kernel; ImportError where it is missing."""
    schedule = Schedule.parse(case.schedule)
    tile = Tile(schedule.block, schedule.warp, schedule.stages[0])
    (_, h, w, c), _, (_, out_h, out_w, f) = case.shapes(batch, IMAGE)
    w_k, w_f = {"fhwc": (1, 9 * c), "hwcf": (f, 1)}[case.layout]
    constants = {"H": h, "W": w, "C": c, "OUT_H": out_h, "OUT_W": out_w, "F": f}
    constants |= {"TAPS": 3, "STRIDE": case.stride, "BORDER": 1}
    constants |= {"W_K": w_k, "W_F": w_f}
    constants |= dict(zip(("BLOCK_M", "BLOCK_N", "BLOCK_K"), tile.block, strict=True))
    made = triton_kernel(
        ("bench.gpu.triton_conv", "conv"),
        {"x_ptr": "*fp16", "w_ptr": "*fp16", "y_ptr": "*fp32"},
        constants,
        tile,
        target,
    )
    return {
        "compiler": made.compiler,
        **vars(case),
        "target": target,
        "batch": batch,
        **figures(made.cubin),
        "registers": made.registers,
        "spill_bytes": made.spill_bytes,
        "shared_bytes": made.shared_bytes,
    }


def figures(cubin: bytes) -> dict[str, object]:
    """Of the loop along K, or of all instructions where it is unrolled as a whole."""
    listing = disassemble(cubin)
    found = loops(listing)
    code = found[0] if found else straight(listing)
    return {
        "unrolled": not found,
        "per_mma": code.per_matrix,
        "instructions": code.size,
        "mma": code.matrix,
        "mix": dict(code.instructions.most_common()),
    }


def sectors(case: Case, target: str) -> tuple[int, int]:
    """Of global memory, that a small image takes on the emulator, and the least."""
    options = compiler.Options(
        find_target(target), Schedule.parse(case.schedule), use_ptxas=False
    )
    source = inputs.read_text(case.text(1, EMULATED))
    bundle = compiler.compile_source(source, options)
    (kernel,) = bundle.functions[0].kernels
    *given, out = case.shapes(1, EMULATED)
    arrays = [np.ones(shape, np.float16) for shape in given]
    result = emulate(
        bundle.code_of(kernel).ptx,
        kernel.name,
        grid_of(kernel, {}),
        kernel.block,
        [*arrays, np.zeros(out, np.float32)],
        dynamic_shared=kernel.shared_bytes,
        counters=True,
    )
    assert result.counters is not None
    return result.counters.global_sectors, result.counters.global_sectors_ideal


def main() -> None:
    """Measure, print, store."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--target", default="sm_80")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--triton", action="store_true", help="its code too")
    given = parser.parse_args()
    records = [measure(case, given.target, given.batch) for case in cases()]
    if given.triton:
        try:
            records += [tritons(case, given.target, given.batch) for case in cases()]
        except ImportError as error:
            print(f"Triton is left out: {error}; pip install 'alcop-mlir[anchors]'")
    names = ("compiler", "channels", "stride", "layout", "schedule")
    columns = ("registers", "spill_bytes", "shared_bytes", "sectors", "least_sectors")
    print(
        f"3x3 convolutions of {given.batch} images of {IMAGE} x {IMAGE}, "
        f"{given.target}: loop of the steady state (* all of an unrolled loop)"
    )
    print_table(
        ["compiler", "channels", "stride", "filters", "schedule", "SASS per mma"]
        + [*columns],
        [
            [
                *(r[name] for name in names),
                f"{r['per_mma']:.2f}{'*' if r['unrolled'] else ' '}",
                *(r.get(name, "") for name in columns),
            ]
            for r in records
        ],
    )
    print(f"\nrecords: {store('conv', records)}")


if __name__ == "__main__":
    main()
