"""What tile code gathers of images, in each step, against divisions of its number."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pytest
from index_code import IndexCode

from alcop_mlir import register, run_pipeline
from alcop_mlir.analysis.ir.loops import constant
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.bindings import ir, make_context

COPIES = ("alcop.gather", "memref.copy", "alcop.copy")
TILE = 32  # rows and columns of a block
PASSES = (
    "builtin.module(func.func("
    "alcop-raise-contractions,alcop-split-k,alcop-tile-to-blocks))"
)


@dataclass(frozen=True)
class Case:
    """A window over images of `image` = (N, ..., C), gathered in steps of `step`.

    is_b:  whether the windows are the columns of C, not its rows
    parts: of K
    sweeps: over the taps
    wide:  of the rectangle of positions that a block has; 1 is rows
    """

    image: tuple[int, ...]
    size: tuple[int, ...]
    strides: tuple[int, ...] = (1, 1)
    dilations: tuple[int, ...] = (1, 1)
    low: tuple[int, ...] = (0, 0)
    high: tuple[int, ...] = (0, 0)
    groups: int = 1
    step: int = 32
    is_b: bool = False
    parts: int = 1
    sweeps: int = 1
    wide: int = 1

    @property
    def channels(self) -> int:
        """Of a group."""
        return self.image[-1] // self.groups

    @property
    def places(self) -> tuple[int, ...]:
        """How many there are along each dimension."""
        return tuple(
            (pixels + low + high - (size - 1) * dilation - 1) // stride + 1
            for pixels, size, stride, dilation, low, high in zip(
                self.image[1:-1],
                self.size,
                self.strides,
                self.dilations,
                self.low,
                self.high,
                strict=True,
            )
        )

    @property
    def steps(self) -> list[tuple[tuple[int, ...], int, int]]:
        """Of each step the tap, the first channel, and the number of channels."""
        own = self.channels // self.sweeps
        return [
            (tap, start, min(self.step, self.channels - start))
            for first in range(0, self.channels, own)
            for tap in product(*map(range, self.size))
            for start in range(first, first + own, self.step)
        ]

    def row(self, number: int) -> int | None:
        """The row of A with this number; None where a block's rectangle has none."""
        rows = self.image[0] * math.prod(self.places)
        if self.wide == 1:
            return number if number < rows else None
        p, q = self.places[-2:]
        down, across = -(-p * self.wide // TILE), -(-q // self.wide)
        tile, inside = divmod(number, TILE)
        tile, at_q = divmod(tile, across)
        image, at_p = divmod(tile, down)
        y, x = divmod(inside, self.wide)
        y, x = y + at_p * (TILE // self.wide), x + at_q * self.wide
        return (image * p + y) * q + x if y < p and x < q else None

    def element(self, row: int, tap: tuple[int, ...], channel: int) -> int | None:
        """Where in memory an element of the matrix is; None where it is zero."""
        *outer, channels = self.image
        place = np.unravel_index(row, (self.image[0], *self.places))
        pixel = [
            int(at) * stride + position * dilation - low
            for at, position, stride, dilation, low in zip(
                place[1:], tap, self.strides, self.dilations, self.low, strict=True
            )
        ]
        if any(not 0 <= at < n for at, n in zip(pixel, self.image[1:-1], strict=True)):
            return None
        at = np.ravel_multi_index((int(place[0]), *pixel), outer)
        return int(at) * channels + channel

    def text(self) -> str:
        """A contraction of the windows with a filter."""
        rows = self.image[0] * math.prod(self.places)
        k = math.prod(self.size) * self.channels
        g, group = ("g, ", f"{self.groups}x") if self.groups > 1 else ("", "")
        image = f"memref<{'x'.join(map(str, self.image))}xf16>"
        matrix = f"memref<{rows}x{group}{k}xf16>"
        weights = f"memref<{group}{TILE}x{k}xf16>"
        sizes = f"{TILE}x{rows}" if self.is_b else f"{rows}x{TILE}"
        out = f"memref<{group}{sizes}xf32>"
        loops = (f"m, {g}k", f"{g}n, k", f"{g}n, m" if self.is_b else f"{g}m, n")
        maps = ", ".join(f"affine_map<({g}m, n, k) -> ({one})>" for one in loops)
        kinds = ", ".join(['"parallel"'] * (3 if g else 2) + ['"reduction"'])
        window = ", ".join(
            f"{name} = {list(getattr(self, name))}"
            for name in ("size", "strides", "dilations", "low", "high")
        )
        return f"""
          func.func @conv(%x: {image}, %w: {weights}, %y: {out}) {{
            %A = "alcop.im2col"(%x) {{alcop.window = #alcop.window<{{{window},
              groups = {self.groups}}}>}} : ({image}) -> {matrix}
            linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}],
              alcop.schedule = #alcop.schedule<{{block = [{TILE}, {TILE}, {self.step}],
                warp = [32, 32], stages = [1, 1], split_k = {self.parts},
                sweeps = {self.sweeps}, rectangle = {self.wide}}}>}}
              ins(%A, %w : {matrix}, {weights}) outs(%y : {out}) {{
            ^bb0(%a: f16, %b: f16, %c: f32):
              %p = arith.extf %a : f16 to f32
              %q = arith.extf %b : f16 to f32
              %r = arith.mulf %p, %q : f32
              %s = arith.addf %c, %r : f32
              linalg.yield %s : f32
            }}
            return
          }}"""


CASES = [
    Case((1, 9, 7, 64), (3, 3), low=(1, 1), high=(1, 1)),
    Case((2, 9, 7, 32), (3, 3), low=(1, 1), high=(1, 1)),
    Case((1, 8, 8, 96), (3, 3), low=(0, 0), high=(1, 1), strides=(2, 2)),
    Case((1, 9, 9, 48), (3, 3), low=(2, 2), high=(2, 2), dilations=(2, 2)),
    Case((1, 9, 9, 40), (3, 3), low=(2, 0), high=(0, 1), strides=(1, 2)),
    Case((2, 7, 5, 24), (3, 2), low=(1, 0), high=(1, 1)),
    Case((1, 13, 11, 32), (7, 7), low=(3, 3), high=(3, 3), strides=(2, 2)),
    Case((1, 5, 7, 32), (1, 7), low=(0, 3), high=(0, 3)),
    Case((1, 9, 9, 64), (1, 1), strides=(2, 2)),
    Case((1, 4, 4, 40), (1, 1), low=(1, 1), high=(1, 1)),
    Case((1, 4, 4, 32), (6, 6), low=(3, 3), high=(3, 3)),
    Case((1, 20, 16), (40,), (1,), (1,), (20,), (20,), step=16),
    Case((1, 5, 6, 4, 32), (3, 3, 3), (1, 2, 1), (1, 1, 1), (1, 1, 1), (1, 1, 1)),
    Case((2, 6, 6, 64), (3, 3), low=(1, 1), high=(1, 1), groups=2),
    Case((1, 9, 7, 64), (3, 3), low=(1, 1), high=(1, 1), is_b=True),
    Case((1, 9, 7, 96), (3, 3), step=64),
    Case((1, 9, 7, 64), (3, 3), low=(1, 1), high=(1, 1), parts=6),
    Case((1, 9, 7, 96), (3, 3), low=(1, 1), high=(1, 1), parts=9),
    Case((1, 9, 7, 96), (3, 3), low=(1, 1), high=(1, 1), parts=27),
    Case((1, 9, 7, 40), (3, 3), low=(1, 1), high=(1, 1), parts=3),
    Case((1, 9, 7, 24), (5, 2), low=(1, 1), high=(1, 1), parts=2),
    Case((1, 9, 9, 64), (1, 1), strides=(2, 2), parts=2),
    Case((1, 9, 7, 64), (3, 3), low=(1, 1), high=(1, 1), sweeps=2),
    Case((1, 9, 7, 128), (3, 2), low=(1, 0), high=(1, 1), sweeps=2),
    Case((1, 9, 7, 192), (3, 3), strides=(2, 1), low=(1, 1), sweeps=2),
    Case((1, 13, 11, 64), (7, 7), low=(3, 3), high=(3, 3), strides=(2, 2), sweeps=2),
    Case(
        (1, 5, 6, 4, 64), (3, 3, 3), (1, 2, 1), (1,) * 3, (1,) * 3, (1,) * 3, sweeps=2
    ),
    Case((2, 6, 6, 128), (3, 3), low=(1, 1), high=(1, 1), groups=2, sweeps=2),
    Case((1, 9, 7, 64), (3, 3), low=(1, 1), high=(1, 1), is_b=True, sweeps=2),
    Case((2, 9, 7, 64), (3, 3), low=(1, 1), high=(1, 1), wide=4),
    Case((1, 9, 9, 40), (3, 3), low=(2, 0), high=(0, 1), strides=(1, 2), wide=2),
    Case((2, 7, 5, 24), (3, 2), low=(1, 0), high=(1, 1), wide=32),
    Case((2, 8, 16, 32), (3, 3), low=(1, 1), high=(1, 1), wide=8),
    Case((2, 9, 7, 64), (3, 3), wide=8, parts=6),
    Case((1, 9, 7, 64), (3, 3), low=(1, 1), high=(1, 1), wide=16, sweeps=2),
    Case((1, 5, 6, 4, 32), (3, 3, 3), (1, 2, 1), (1,) * 3, (1,) * 3, (1,) * 3, wide=4),
    Case((2, 6, 6, 64), (3, 3), low=(1, 1), high=(1, 1), groups=2, wide=4),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_each_step_gathers_what_divisions_say(case: Case) -> None:
    length = len(case.steps) // case.parts
    seen: set[int] = set()
    for first, group, part, steps in blocks(case):
        taken = 0
        own = case.steps[part * length :][:length]
        for (tap, channel, width), step in zip(own, steps, strict=True):
            if case.sweeps > 1:
                number = int(np.ravel_multi_index(tap, case.size))
                taken = number * case.channels + channel
            (gather,) = (one for one in step if one.name == "alcop.gather")
            assert gather.width == width
            (other,) = (one for one in step if one.name != "alcop.gather")
            assert other.first_k == taken
            taken += width
            for number, (begin, valid) in enumerate(gather.rows):
                row, element = case.row(first + number), None
                if row is not None:
                    seen.add(row)
                    start = group * case.channels + channel
                    element = case.element(row, tap, start)
                assert valid == (element is not None), (tap, first + number)
                assert not valid or begin == element, (tap, first + number)
    assert seen == {*range(case.image[0] * math.prod(case.places))}


@dataclass(frozen=True)
class Copy:
    """A copy of a tile: a gather's rows and width, or where along K another begins."""

    name: str
    rows: list[tuple[int, bool]]
    width: int
    first_k: int


def blocks(case: Case) -> Iterator[tuple[int, int, int, list[list[Copy]]]]:
    """Per block its first row, group and part of K, and the copies of each step."""
    context = make_context()
    register(context)
    with context, ir.Location.unknown():
        module = ir.Module.parse(case.text())
        run_pipeline(module, PASSES)
        (function,) = module.body.operations
        (launch,) = walk(module, "gpu.launch")
        body = launch.regions[0].blocks[0]
        grid = [constant(size) for size in list(launch.operands)[:3]]
        loop = next(op for op in walk(launch, "scf.for"))
        for place in product(*(range(size) for size in grid if size is not None)):
            code = IndexCode(function.regions[0].blocks[0])
            code.values.update(zip(body.arguments, map(np.int64, place), strict=False))
            code.run(body)
            steps = [
                [copy(op, code.values) for op in walk(loop, *COPIES)]
                for _ in code.steps(loop)
            ]
            first = place[0 if case.is_b else 1] * TILE
            group, part = (0, place[2]) if case.parts > 1 else (place[2], 0)
            yield first, group, part, steps


def copy(op: Any, values: dict[Any, Any]) -> Copy:
    """A copy with the values of its operands."""
    if op.name != "alcop.gather":
        view = op.operands[0].owner.operation
        return Copy(op.name, [], TILE, int(values[view.operands[2]]))
    _, target, begins, valid, *width = op.operands
    rows = [
        (int(begin), bool(there))
        for begin, there in zip(values[begins], values[valid], strict=True)
    ]
    full = target.type.shape[1]
    return Copy(op.name, rows, int(values[width[0]]) if width else full, 0)
