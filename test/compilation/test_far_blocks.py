"""Addresses are of 64 bits where arrays have more than 2^31 elements, or 2^32 bytes.

The emulator runs the last block of a grid, whose elements are farthest from the start,
on arrays that are mapped, but whose pages exist when they are touched only: addresses
are those of a real call. One computed in 32 bits would be outside of all arrays, or of
another element: what the block computes is compared with NumPy.
"""

from __future__ import annotations

import math
import mmap
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest

from alcop_mlir import dtypes
from alcop_mlir.compilation import compiler, inputs
from alcop_mlir.manifest.kernels import Argument, Pointer, SizeValue
from alcop_mlir.runtime.emulator.budget import Budget
from alcop_mlir.runtime.emulator.machine import memory as machine
from alcop_mlir.runtime.emulator.machine.batch import Batch
from alcop_mlir.runtime.emulator.machine.map_views import MapViews
from alcop_mlir.runtime.emulator.machine.memory import GlobalMemory
from alcop_mlir.runtime.emulator.machine.memory_map import map_memory
from alcop_mlir.runtime.emulator.machine.warps import Shape
from alcop_mlir.runtime.emulator.ptx.parser import parse_ptx
from alcop_mlir.runtime.emulator.ptx.program import link
from alcop_mlir.runtime.emulator.schedule import Runner
from alcop_mlir.runtime.emulator.translated_kernel import TranslatedKernel
from alcop_mlir.runtime.emulator.turns import make_picker
from alcop_mlir.runtime.guards import chooser
from alcop_mlir.runtime.launch import grid_of

NO_RESERVE = 0x4000  # Linux: no memory is set aside for pages that nobody touches
TILE = 32
SCHEDULE = "{block = [32, 32, 16], warp = [16, 32], stages = [3, 2]RASTER}"
PROMISE = "{alcop.row_alignment = 16 : i64}"
LARGE = 2**26  # times 40 and more of the other size


@dataclass(frozen=True)
class Case:
    """C = A * B, of which one block is run.

    lhs, rhs: the loops of A and B, in order
    pitches:  elements from row to row of A, B and C where rows have gaps
    promise:  whether rows are promised to be of 16 bytes
    is_open:  whether sizes are known at run time only
    """

    sizes: dict[str, int]
    lhs: str = "mk"
    rhs: str = "kn"
    pitches: dict[str, int] = field(default_factory=dict)
    promise: bool = True
    is_open: bool = True
    raster: int = 1

    @property
    def loops(self) -> dict[str, str]:
        batch = "b" if "b" in self.lhs else ""
        return {"A": self.lhs, "B": self.rhs, "C": f"{batch}mn"}

    def layout(self, name: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Shape and strides."""
        shape = tuple(self.sizes[loop] for loop in self.loops[name])
        if name in self.pitches:
            return shape, (self.pitches[name], 1)
        return shape, tuple(math.prod(shape[at + 1 :]) for at in range(len(shape)))

    def text(self) -> str:
        every = [
            loop for loop in "bmnk" if any(loop in one for one in self.loops.values())
        ]
        maps = ", ".join(
            f"affine_map<({', '.join(every)}) -> ({', '.join(one)})>"
            for one in self.loops.values()
        )
        kinds = ", ".join(
            f'"{"reduction" if one == "k" else "parallel"}"' for one in every
        )
        a, b, c = (self._type(name) for name in "ABC")
        promise = PROMISE if self.promise else ""
        raster = f", raster = {self.raster}" if self.raster > 1 else ""
        return f"""
        func.func @f(%A: {a} {promise}, %B: {b} {promise}, %C: {c} {promise}) {{
          %zero = arith.constant 0.0 : f32
          linalg.fill ins(%zero : f32) outs(%C : {c})
          linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}],
              alcop.schedule = #alcop.schedule<{SCHEDULE.replace("RASTER", raster)}>}}
            ins(%A, %B : {a}, {b}) outs(%C : {c}) {{
          ^bb0(%a: f16, %b: f16, %s: f32):
            %aw = arith.extf %a : f16 to f32
            %bw = arith.extf %b : f16 to f32
            %p = arith.mulf %aw, %bw : f32
            %r = arith.addf %s, %p : f32
            linalg.yield %r : f32
          }}
          return
        }}"""

    def _type(self, name: str) -> str:
        extents = ["?" if self.is_open else str(n) for n in self.layout(name)[0]]
        pitch = "?" if self.is_open else self.pitches.get(name)
        layout = f", strided<[{pitch}, 1]>" if name in self.pitches else ""
        kind = "f32" if name == "C" else "f16"
        return f"memref<{'x'.join((*extents, kind))}{layout}>"


TALL = {"m": LARGE + 21, "n": 40, "k": 72}
WIDE = {"m": 40, "n": LARGE + 24, "k": 72}
SMALL = {"m": 40, "n": 40, "k": 72}
FAR = {"A": 2**28, "B": 2**28, "C": 2**28}
CASES = {
    "rows": Case(TALL),
    "rows, no promise": Case({**TALL, "k": 71}, promise=False),
    "rows, aligned by chance": Case(TALL, promise=False),
    "rows of A transposed": Case({**TALL, "m": LARGE + 24}, lhs="km"),
    "rows, in groups": Case(TALL, raster=4),
    "rows, known": Case(TALL, is_open=False, promise=False),
    "columns": Case(WIDE),
    "columns of B transposed": Case(WIDE, rhs="nk"),
    "columns, no promise": Case({**WIDE, "n": LARGE + 23}, promise=False),
    "columns, known": Case(WIDE, is_open=False, promise=False),
    "distances": Case(SMALL, pitches=FAR),
    "distances, transposed": Case(SMALL, lhs="km", rhs="nk", pitches=FAR),
    "distances, known": Case(SMALL, pitches=FAR, is_open=False, promise=False),
    "batch": Case({"b": 70_001, "m": 264, "n": 248, "k": 256}, lhs="bmk", rhs="bkn"),
}


@pytest.fixture(autouse=True)
def _sparse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory of the emulator takes pages when they are touched only."""
    dense = machine.aligned_bytes

    def mapped(shape: tuple[int, ...], fill: int) -> np.ndarray:
        if math.prod(shape) < 2**30:
            return dense(shape, fill)
        assert fill == 0
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NO_RESERVE
        pages = mmap.mmap(-1, math.prod(shape), flags=flags)
        return np.frombuffer(pages, np.uint8).reshape(shape)

    monkeypatch.setattr(machine, "aligned_bytes", mapped)


@pytest.mark.parametrize("name", CASES)
def test_the_last_block_computes_the_last_tile(name: str) -> None:
    case = CASES[name]
    shapes, strides = zip(*map(case.layout, "ABC"), strict=True)
    arrays = Arrays(case.text(), shapes, strides)
    assert max(arrays.bytes) > 2**32
    last = {
        loop: slice((size - 1) // TILE * TILE, size)
        for loop, size in case.sizes.items()
    }
    last |= {
        "k": slice(None),
        "b": slice(case.sizes.get("b", 1) - 1, None),
    }
    tiles = [
        view[tuple(last[loop] for loop in loops)]
        for view, loops in zip(arrays.views, case.loops.values(), strict=True)
    ]
    random = np.random.default_rng(0)
    for tile in tiles:
        tile[...] = random.integers(-4, 5, tile.shape)
    arrays.run_last_block()
    a, b, c = tiles
    maps = f"{case.lhs},{case.rhs}->{case.loops['C']}"
    np.testing.assert_array_equal(c, np.einsum(maps, a, b, dtype=np.float32))


def test_the_last_thread_of_a_simt_fallback() -> None:
    kind = "memref<?x?xf32>"
    shape = (2**16 + 1, 2**15 + 3)
    arrays = Arrays(
        f"""
        func.func @f(%A: {kind}, %B: {kind}) {{
          linalg.negf ins(%A : {kind}) outs(%B : {kind})
          return
        }}""",
        [shape] * 2,
        [(shape[1], 1)] * 2,
    )
    a, b = arrays.views
    a[-1, -3:] = 1, 2, 3
    arrays.run_last_block()
    assert b[-1, -3:].tolist() == [-1, -2, -3]


class Arrays:
    """The arguments of a compiled function, in memory of which few pages exist.

    shapes, strides: in elements
    """

    def __init__(
        self,
        text: str,
        shapes: Sequence[tuple[int, ...]],
        strides: Sequence[tuple[int, ...]],
    ):
        options = compiler.Options(use_ptxas=False)
        bundle = compiler.compile_source(inputs.read(text), options)
        (function,) = bundle.functions
        self.sizes: dict[str, int] = {}
        kinds: list[np.dtype] = []
        for parameter, shape, steps in zip(
            function.parameters, shapes, strides, strict=True
        ):
            names = (*parameter.shape, *(parameter.strides or [0] * len(steps)))
            given = zip(names, (*shape, *steps), strict=True)
            self.sizes |= {name: one for name, one in given if isinstance(name, str)}
            kinds.append(np.dtype(dtypes.NUMPY_DTYPES[parameter.dtype]))
        self.bytes = [
            kind.itemsize
            * (1 + sum((n - 1) * s for n, s in zip(shape, steps, strict=True)))
            for kind, shape, steps in zip(kinds, shapes, strides, strict=True)
        ]
        names = [parameter.name for parameter in function.parameters]
        self.memory = GlobalMemory(
            [(name, size, True) for name, size in zip(names, self.bytes, strict=True)]
        )
        self.views = [
            np.lib.stride_tricks.as_strided(
                self.memory.bytes_of(buffer).view(kind),
                shape,
                [step * kind.itemsize for step in steps],
            )
            for buffer, kind, shape, steps in zip(
                self.memory.buffers, kinds, shapes, strides, strict=True
            )
        ]

        places = {buffer.name: buffer.start for buffer in self.memory.buffers}
        (launch,) = function.launches
        variant = launch.variants[chooser(launch)(self.sizes, places)]
        (self.kernel,) = variant.kernels
        self.ptx = bundle.code_of(self.kernel).ptx

    def run_last_block(self) -> None:
        grid = grid_of(self.kernel, self.sizes)
        number = math.prod(grid) - 1
        module = parse_ptx(self.ptx)
        code = link(module, module.kernels[self.kernel.name])
        places = {buffer.name: buffer.start for buffer in self.memory.buffers}
        data = b"".join(
            self._value(argument, places).to_bytes(8, "little")
            for argument in self.kernel.arguments
        )
        shared = self.kernel.shared_bytes
        with np.errstate(all="ignore"):
            layout = map_memory(code, module, shared, data, {})
            translated = TranslatedKernel(code, layout, shared)
            batch = Batch(
                translated.loaded,
                np.array([number]),
                Shape(grid, self.kernel.block),
                self.memory,
                MapViews(self.memory),
                early=False,
            )
            budget, picker = Budget.from_now(None, None), make_picker("lockstep")
            Runner(translated, batch, "lockstep", picker, budget, []).run()

    def _value(self, argument: Argument, places: dict[str, int]) -> int:
        """A parameter of the kernel."""
        if isinstance(argument, Pointer):
            return places[argument.array]
        assert isinstance(argument, SizeValue)
        size = argument.size
        assert isinstance(size, int | str)
        return self.sizes[size] if isinstance(size, str) else size
