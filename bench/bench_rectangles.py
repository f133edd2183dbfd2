"""Pixels that blocks touch: rows of positions beside rectangles, without a GPU.

usage: python bench/bench_rectangles.py [--target sm_80] [LIST ...]

For the layers with windows of several taps, in f16: default those of the ALCOP paper.
Of the blocks that run together first, with the tile that the compiler chooses:

  block    distinct pixels that one touches over all taps, for each of its positions
  wave     the same for all of them together, which is what DRAM gives
  blocks   of the whole grid

each for rows, and for the rectangle, 8, 16 or 32 positions wide, that needs the fewest
blocks, and of these touches the fewest pixels. `model` is microseconds by the
analytical model. All taps of a tile are read from L2 where copies have 16 bytes, as
they do here: those bypass L1, and the pixels of a block do not matter.
"""

from __future__ import annotations

import argparse
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
from conv_layers import Layer, layers
from records import print_table

from alcop_mlir.rectangles import Rectangles
from alcop_mlir.resources import Resources
from alcop_mlir.schedule import Schedule
from alcop_mlir.taps import Taps
from alcop_mlir.target import Target, find_target
from alcop_mlir.tuning.analytical import predict
from alcop_mlir.tuning.candidates import Candidates
from alcop_mlir.tuning.problem import Problem
from alcop_mlir.tuning.selection import Chooser
from alcop_mlir.tuning.space import check

WIDTHS = (8, 16, 32)
FEWEST_CHANNELS = 16  # others are joined with taps
# On the numbers of many positions.
VECTORS: Any = SimpleNamespace(
    add=np.add, mul=np.multiply, div=np.floor_divide, rem=np.remainder
)


@dataclass(frozen=True)
class Counts:
    """Of a schedule: see above; `seconds` by the analytical model."""

    schedule: Schedule
    block: float
    wave: float
    blocks: int
    seconds: float


def problem_of(layer: Layer) -> Problem:
    """The layer as the tuner sees it."""
    taps = math.prod(layer.window)
    fresh = math.prod(map(min, layer.window, layer.stride))
    p, q = layer.places[-2:]
    return Problem(
        layer.batch * math.prod(layer.places),
        layer.filters,
        taps * layer.channels,
        dtypes=("f16", "f16", "f32", "f16"),
        taps=Taps("A", taps, fresh),
        places=(p, q),
    )


def rows_of(layer: Layer, schedule: Schedule, blocks: int) -> np.ndarray:
    """The rows of A of the first blocks, a line for each; -1 where there is none."""
    every = layer.batch * math.prod(layer.places)
    numbers = np.arange(blocks * schedule.block[0])
    if schedule.rectangle == 1:
        rows = np.where(numbers < every, numbers, -1)
    else:
        p, q = layer.places[-2:]
        rows, bounds = Rectangles((p, q), schedule.sides).row(numbers, VECTORS)
        for position, size in bounds:
            rows = np.where(position < size, rows, -1)
    return np.where(rows < every, rows, -1).reshape(blocks, -1)


def pixels_of(layer: Layer, rows: np.ndarray) -> np.ndarray:
    """The pixels that each line of rows touches with any tap; -1 outside of images."""
    shape = (layer.batch, *layer.places)
    image, *places = np.unravel_index(np.maximum(rows, 0), shape)
    found = []
    for tap in itertools.product(*map(range, layer.window)):
        number, inside = image, rows >= 0
        for place, at, stride, dilation, low, size in zip(
            places,
            tap,
            layer.stride,
            layer.dilation,
            layer.low,
            layer.image,
            strict=True,
        ):
            pixel = place * stride + at * dilation - low
            inside = inside & (pixel >= 0) & (pixel < size)
            number = number * size + pixel
        found.append(np.where(inside, number, -1))
    return np.concatenate(found, axis=1)


def distinct(pixels: np.ndarray) -> int:
    """How many pixels are in each line, added up."""
    ordered = np.sort(pixels, axis=1)
    is_first = np.diff(ordered, axis=1, prepend=-1) > 0
    return int(np.count_nonzero(is_first))


def count(
    layer: Layer, problem: Problem, schedule: Schedule, cost: Resources, target: Target
) -> Counts:
    """What the blocks touch that run together first."""
    order = Rectangles(problem.places or (1, 1), schedule.sides)
    rows = problem.m if schedule.rectangle == 1 else order.numbers(problem.m)
    down = -(-rows // schedule.block[0])
    across = -(-problem.n // schedule.block[1])
    at_once = -(-cost.blocks_per_sm * target.sms // across)
    some = rows_of(layer, schedule, min(down, at_once))
    pixels = pixels_of(layer, some)
    places = np.count_nonzero(some >= 0)
    candidates = Candidates([schedule], [cost])
    (seconds,) = predict(problem, candidates, target).seconds
    return Counts(
        schedule,
        distinct(pixels) / places,
        distinct(pixels.reshape(1, -1)) / places,
        down * across,
        seconds,
    )


def measure(layer: Layer, chooser: Chooser, target: Target) -> tuple[Counts, Counts]:
    """Rows, and the best rectangle, of the tile that is chosen for the layer."""
    problem = problem_of(layer)
    chosen = replace(chooser.choose(problem).schedule, split_k=1, rectangle=1)
    counts = [
        count(layer, problem, one, check(problem, one, target), target)
        for width in (1, *WIDTHS)
        if chosen.block[0] % width == 0
        for one in [replace(chosen, rectangle=width)]
    ]
    rows, *others = counts
    return rows, min(others, key=lambda one: (one.blocks, one.block))


def wanted(names: Sequence[str]) -> list[Layer]:
    """Layers with windows of several taps, of two dimensions or more."""
    every = layers(names or ["alcop2d", "alcop3d"], [64])
    return [
        one
        for one in every
        if math.prod(one.window) > 1
        and len(one.window) > 1
        and one.groups == 1
        and one.channels >= FEWEST_CHANNELS
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Count and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("lists", nargs="*", metavar="LIST")
    parser.add_argument("--target", default="sm_80")
    given = parser.parse_args(arguments)
    target = find_target(given.target)
    chooser = Chooser(target)
    table, best = [], {"rows": 0, "rectangle": 0}
    for layer in wanted(given.lists):
        rows, turned = measure(layer, chooser, target)
        high, wide = turned.schedule.sides
        is_better = turned.seconds < rows.seconds
        best["rectangle" if is_better else "rows"] += 1
        table.append(
            [
                f"{layer.network} {layer}",
                "{}x{}x{}".format(*rows.schedule.block),
                f"{high}x{wide}",
                f"{rows.block:.2f} {turned.block:.2f}",
                f"{rows.wave:.3f} {turned.wave:.3f}",
                f"{rows.blocks} {turned.blocks}",
                f"{1e6 * rows.seconds:.1f} {1e6 * turned.seconds:.1f}",
            ]
        )
    names = ["layer", "tile", "rectangle", "block", "wave", "blocks", "model"]
    print("pixels touched for each position, by rows and by rectangles")
    print_table(names, table)
    print(f"layers that the model gives {best}")


if __name__ == "__main__":
    main()
