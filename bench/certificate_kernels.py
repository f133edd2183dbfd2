"""Small kernels whose mutants are proven and run: bench_certificate_mutants.py.

Matmuls of several layouts, types and stages, with sizes that are known or not, an
epilogue, a convolution, a kernel of rows, and attention; three more matmuls whose
results only are at stake. Each runs in a second or less
on the emulator, and its loops make several turns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from attention_tiles import Attention
from plain_attention import plain_attention

from alcop_mlir.compilation import compiler, inputs
from alcop_mlir.compilation.certification import Launched, launched_kernels
from alcop_mlir.errors import AlcopError
from alcop_mlir.manifest.functions import with_sizes
from alcop_mlir.manifest.kernels import Kernel
from alcop_mlir.runtime import checking
from alcop_mlir.runtime.bundle import Bundle, Code
from alcop_mlir.runtime.emulation import Emulation, EmulatorOptions
from alcop_mlir.runtime.launch import Program
from alcop_mlir.schedule import Schedule
from alcop_mlir.target import find_target

MODES = (
    EmulatorOptions(visibility="late", schedule="lockstep"),
    EmulatorOptions(visibility="early", schedule="random"),
)
_LIMIT = 20  # times what the kernel itself needs, in instructions
_NONE: Mapping[str, int] = {}


class Watched(Emulation):
    """Goes on where a kernel has hazards, and counts them.

    hazards:      of all launches, but for those in global memory
    conflicts:    those, between blocks or threads: the claim says nothing of them
                  where results are not placed
    instructions: of the launch that had most
    """

    hazards = 0
    conflicts = 0
    instructions = 0

    def launch(self, ptx: str, kernel: Kernel, grid: Any, arguments: Any) -> None:
        """Run one kernel; raises EmulationError on a fault."""
        found = self.run(
            ptx, kernel.name, grid, kernel.block, arguments, kernel.shared_bytes
        )
        conflicts = [one for one in found.hazards if one.space == "global"]
        self.conflicts += len(conflicts)
        self.hazards += len(found.hazards) - len(conflicts)
        self.instructions = max(self.instructions, found.warp_instructions)


@dataclass(frozen=True)
class Case:
    """A kernel, and how it is run.

    schedule: of contractions; "" for what passes choose
    sizes:    those that are not known, in the order of the arguments, for each run
    """

    name: str
    text: str
    schedule: str = ""
    sizes: tuple[tuple[int, ...], ...] = ((),)

    @cached_property
    def bundle(self) -> Bundle:
        """The kernel, compiled."""
        chosen = Schedule.parse(self.schedule) if self.schedule else None
        options = compiler.Options(find_target("sm_80"), chosen, use_ptxas=False)
        return compiler.compile_source(inputs.read_text(self.text), options)

    @cached_property
    def launched(self) -> Launched:
        """The launch that is proven: of what copies by cp.async, if anything does."""
        every = launched_kernels(self.bundle)
        return max(every, key=lambda one: self.entry_text(one.name).count("cp.async"))

    @property
    def ptx(self) -> str:
        """The text that mutants are made of."""
        return self.bundle.code[self.launched.module].ptx

    def entry_text(self, name: str) -> str:
        """From the entry's head to that of the next one."""
        (code,) = self.bundle.code.values()
        return code.ptx.partition(f".entry {name}(")[2].partition(".entry")[0]

    @cached_property
    def expected(self) -> tuple[tuple[list[bytes], int], ...]:
        """Of each run of the kernel as it is: results, and instructions."""
        found = []
        for sizes in self.sizes:
            watched = Watched(MODES[0])
            found.append((self._results(self.ptx, sizes, watched), watched))
            if watched.hazards or watched.conflicts:
                raise AssertionError(f"{self.name} has hazards itself")
        return tuple((made, watched.instructions) for made, watched in found)

    def behaviour(self, ptx: str) -> str:
        """Of runs with other PTX, until one misbehaves: "hazards", "fault", "wrong" or
        "clean", the largest size first.
        """
        for number in reversed(range(len(self.sizes))):
            for mode in MODES:
                if (found := self._behaviour(ptx, number, mode)) != "clean":
                    return found
        return "clean"

    def _behaviour(self, ptx: str, number: int, mode: EmulatorOptions) -> str:
        results, instructions = self.expected[number]
        watched = Watched(replace(mode, instruction_limit=_LIMIT * instructions))
        try:
            made = self._results(ptx, self.sizes[number], watched)
        except AlcopError as error:  # out of bounds, a deadlock, no end
            is_shared = " shared access" in str(error)
            return "hazards" if watched.hazards or is_shared else "fault"
        if watched.hazards or watched.conflicts:
            return "hazards" if watched.hazards else "fault"
        return "clean" if made == results else "wrong"

    def _results(
        self, ptx: str, sizes: tuple[int, ...], watched: Watched
    ) -> list[bytes]:
        module = self.launched.module
        bundle = replace(self.bundle, code={module: Code(ptx)})
        function = bundle.function()
        named = dict.fromkeys(_open_sizes(function.parameters))
        known = dict(zip(named, sizes, strict=True))
        arrays = checking.random_arrays(with_sizes(function, known), 1, "plain")
        Program(bundle, None, "emulator", watched)(**arrays)
        outs = [one.name for one in function.parameters if one.role != "in"]
        return [np.ascontiguousarray(arrays[name]).tobytes() for name in outs]


def _open_sizes(parameters: Any) -> Iterator[str]:
    for one in parameters:
        yield from (size for size in one.shape if isinstance(size, str))


@dataclass(frozen=True)
class _Matmul:
    """C = A B, as text; "?" for sizes that are not known.

    is_nt:  B is stored N x K; is_tn: A is stored K x M
    relu:   a bias along rows is added, and what is negative is 0
    """

    m: Any
    n: Any
    k: Any
    kind: str = "f16"
    out: str = "f32"
    is_nt: bool = False
    is_tn: bool = False
    relu: bool = False
    maps: str = field(default="", init=False)

    def text(self) -> str:
        shape = f"{self.k}x{self.m}" if self.is_tn else f"{self.m}x{self.k}"
        a = f"memref<{shape}x{self.kind}>"
        shape = f"{self.n}x{self.k}" if self.is_nt else f"{self.k}x{self.n}"
        b, c = f"memref<{shape}x{self.kind}>", f"memref<{self.m}x{self.n}x{self.out}>"
        rows = "(n, k)" if self.is_nt else "(k, n)"
        columns = "(k, m)" if self.is_tn else "(m, k)"
        bias = f", %v: memref<{self.n}x{self.out}>, %D: {c}" if self.relu else ""
        return f"""
func.func @f(%A: {a}, %B: {b}, %C: {c}{bias}) {{
  linalg.matmul indexing_maps = [affine_map<(m, n, k) -> {columns}>,
      affine_map<(m, n, k) -> {rows}>, affine_map<(m, n, k) -> (m, n)>]
    ins(%A, %B : {a}, {b}) outs(%C : {c})
{self._epilogue(c) if self.relu else ""}
  return
}}
"""

    def _epilogue(self, c: str) -> str:
        return f"""
  %zero = arith.constant 0.0 : {self.out}
  linalg.generic {{indexing_maps = [affine_map<(m, n) -> (m, n)>,
      affine_map<(m, n) -> (n)>, affine_map<(m, n) -> (m, n)>],
      iterator_types = ["parallel", "parallel"]}}
    ins(%C, %v : {c}, memref<{self.n}x{self.out}>) outs(%D : {c}) {{
  ^bb0(%a: {self.out}, %b: {self.out}, %o: {self.out}):
    %s = arith.addf %a, %b : {self.out}
    %r = arith.maximumf %s, %zero : {self.out}
    linalg.yield %r : {self.out}
  }}
"""


def matmul(layout: str, m: int, n: int, k: int, schedule: str) -> Case:
    """A case of f16; layout: "nn", "nt" or "tn"."""
    made = _Matmul(m, n, k, is_nt=layout == "nt", is_tn=layout == "tn")
    return Case(f"{layout} {m} {n} {k}", made.text(), schedule)


def open_matmul(layout: str, schedule: str, relu: bool = False) -> Case:
    """A case of f16 whose sizes are not known."""
    made = _Matmul("?", "?", "?", is_nt=layout == "nt", relu=relu)
    return Case(f"{layout} open{' relu' * relu}", made.text(), schedule)


_CONVOLUTION = """
func.func @f(%x: tensor<1x8x8x32xf16>, %w: tensor<3x3x32x64xf16>)
    -> tensor<1x8x8x64xf32> {
  %border = arith.constant 0.0 : f16
  %zero = arith.constant 0.0 : f32
  %p = tensor.pad %x low[0, 1, 1, 0] high[0, 1, 1, 0] {
  ^bb0(%n: index, %h: index, %v: index, %c: index):
    tensor.yield %border : f16
  } : tensor<1x8x8x32xf16> to tensor<1x10x10x32xf16>
  %e = tensor.empty() : tensor<1x8x8x64xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<1x8x8x64xf32>)
    -> tensor<1x8x8x64xf32>
  %o = linalg.conv_2d_nhwc_hwcf
    ins(%p, %w : tensor<1x10x10x32xf16>, tensor<3x3x32x64xf16>)
    outs(%i : tensor<1x8x8x64xf32>) -> tensor<1x8x8x64xf32>
  return %o : tensor<1x8x8x64xf32>
}
"""
_ROWS = """
func.func @f(%x: tensor<3x4096xf32>) -> tensor<3x4096xf32> {
  %e = tensor.empty() : tensor<3x4096xf32>
  %y = linalg.softmax dimension(1) ins(%x : tensor<3x4096xf32>)
    outs(%e : tensor<3x4096xf32>) -> tensor<3x4096xf32>
  return %y : tensor<3x4096xf32>
}
"""
_TILES = "block=64,64,32 warp=32,32 stages="
_SMALL = "block=32,32,32 warp=16,16 stages="
_STEPS = ((64, 8), (40, 64), (64, 104), (64, 320))  # N and K where they are not known

CASES = (
    Case("nn f16 3,2", _Matmul(64, 64, 320).text(), f"{_TILES}3,2"),
    Case(
        "nt f16 2,1", _Matmul(64, 64, 640, out="f16", is_nt=True).text(), f"{_TILES}2,1"
    ),
    Case(
        "nt i8 3,1",
        _Matmul(64, 64, 1280, "i8", "i32", is_nt=True).text(),
        "block=64,64,64 warp=32,32 stages=3,1",
    ),
    Case(
        "nt bf16 K open 2,2",
        _Matmul(64, 64, "?", "bf16", is_nt=True).text(),
        f"{_TILES}2,2",
        ((8,), (64,), (104,), (320,)),
    ),
    Case(
        "nn f16 open 2,1",
        _Matmul("?", "?", "?").text(),
        f"{_TILES}2,1",
        tuple((m, k, n) for m, (n, k) in zip((64, 24, 64, 64), _STEPS, strict=True)),
    ),
    Case(
        "nn f16 open 3,1",
        _Matmul("?", "?", "?", out="f16").text(),
        f"{_TILES}3,1",
        tuple((m, k, n) for m, (n, k) in zip((64, 64, 24, 64), _STEPS, strict=True)),
    ),
    Case("epilogue 4,1", _Matmul(64, 64, 640, relu=True).text(), f"{_TILES}4,1"),
    Case("convolution 3,1", _CONVOLUTION, f"{_TILES}3,1"),
    Case("rows", _ROWS),
    Case("attention", plain_attention(Attention(1, 512, 32))),
)
# Extents that tiles do not divide, by copies and element by element; K in parts; a
# raster whose last group is smaller, also of open sizes; K that ends inside of a tile,
# in a loop.
EDGES = (
    Case("edges 2,1", _Matmul(65, 72, 40).text(), f"{_TILES}2,1"),
    Case("single elements 2,1", _Matmul(33, 71, 40).text(), f"{_TILES}2,1"),
    Case("split K 2,1", _Matmul(64, 64, 256).text(), f"{_TILES}2,1 split_k=4"),
    Case("raster 2,1", _Matmul(160, 96, 64).text(), f"{_SMALL}2,1 raster=4"),
    Case(
        "open raster 2,1",
        _Matmul("?", "?", "?").text(),
        f"{_SMALL}2,1 raster=4",
        ((32, 104, 160), (72, 40, 32), (160, 64, 96)),
    ),
    Case("turns 1,1", _Matmul(64, 64, 712).text(), f"{_SMALL}1,1"),
    Case("single turns 3,1", _Matmul(40, 65, 643).text(), f"{_SMALL}3,1"),
)
