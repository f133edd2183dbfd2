"""Tries random convolutions: `python test/compilation/fuzz_convolutions.py`.

Sizes, windows, strides, dilations, zeros around the image and between its pixels,
groups, layouts, types, and sizes known at run time only are drawn; also convolutions
that add to windows of their outputs; of half of them, schedules with rectangles of
positions, where these have any. Each is run on the emulator, which finds no hazard, on
small whole numbers: results are NumPy's, and those of the reference. Programs of sizes
known at run time only are run at up to three.

The state is a file with a line per form, so that a run goes on where the last stopped.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from convolution_forms import NAMED, SPATIAL, Form, Scatter, Window

from alcop_mlir.errors import AlcopError, CompileError
from alcop_mlir.runtime.launch import Program

TYPES = (("f16", "f32"), ("f16", "f16"), ("bf16", "f32"), ("f32", "f32"), ("i8", "i32"))
CHANNELS = (16, 16, 24, 32, 40, 48, 64, 4, 17, 35)
FILTERS = (1, 8, 10, 16, 24, 40)
SCHEDULES = (
    "",
    "",
    "block=32,32,32 warp=16,16 stages=3,2 rectangle=4",
    "block=64,32,32 warp=32,16 stages=2,1 rectangle=8",
)
MOST_OPS = 3e6  # multiplications: the emulator runs some ten million per second


def draw_form(draw: random.Random) -> Form:
    """A convolution, named or generic, of which not every one runs on tensor cores."""
    names = [name for name in NAMED if _has_channels(name)]
    name = draw.choice(names if draw.random() < 0.8 else [*NAMED])
    layouts = NAMED[name]
    kinds = ("i8", "i32") if name.endswith("_q") else draw.choice(TYPES)
    is_plain = "_n" not in name  # has no strides and dilations
    windows = {letter: _draw_window(draw, is_plain) for letter in SPATIAL}
    sizes = {
        "n": draw.choice((1, 1, 2, 3)),
        "g": draw.choice((1, 2, 3)),
        "c": draw.choice(CHANNELS),
        "f": draw.choice(FILTERS),
    }
    form = Form(name, layouts, sizes, windows, kinds)
    if not name.endswith("_q") and draw.random() < 0.4:
        form = _generic(draw, form)
    if draw.random() < 0.25:
        form = _transposed(draw, form)
    if draw.random() < 0.2:
        letters = [*(("n",) if "n" in form.operands[0] else ()), *form.spatial]
        count = draw.randint(1, len(letters))
        form = replace(form, open="".join(draw.sample(letters, count)))
    return form


def _transposed(draw: random.Random, form: Form) -> Form:
    """One with zeros between pixels, or that adds to windows of its output."""
    if form.name or draw.random() < 0.5:
        windows = {
            letter: replace(window, step=draw.choice((1, 2, 2, 3, 4)))
            for letter, window in form.windows.items()
        }
        return replace(form, windows=windows)
    windows = {letter: _draw_scatter(draw) for letter in SPATIAL}
    return replace(form, windows=windows)


def _draw_scatter(draw: random.Random) -> Scatter:
    return Scatter(
        extent=draw.randint(1, 6),
        taps=draw.choice((1, 2, 3, 3, 4)),
        stride=draw.choice((1, 2, 2, 3)),
        dilation=draw.choice((1, 1, 2)),
        low=draw.choice((0, 0, 1)),
        high=draw.choice((0, 0, 1, 2)),
    )


def _has_channels(name: str) -> bool:
    return "c" in NAMED[name].split()[0]


def seeded(seed: int) -> random.Random:
    """What is drawn for a seed."""
    return random.Random(seed)


def _generic(draw: random.Random, form: Form) -> Form:
    """The same as a linalg.generic, perhaps in other orders, and backwards."""
    operands = form.operands
    if draw.random() < 0.5:
        operands = ["".join(draw.sample(one, len(one))) for one in operands]
    windows = {
        letter: replace(window, backwards=draw.random() < 0.2)
        for letter, window in form.windows.items()
    }
    return replace(form, name="", layouts=" ".join(operands), windows=windows)


def _draw_window(draw: random.Random, is_plain: bool) -> Window:
    """One that fits into the image and its border at least once."""
    while True:
        window = Window(
            extent=draw.randint(1, 9),
            taps=draw.choice((1, 1, 2, 3, 3, 5)),
            stride=1 if is_plain else draw.choice((1, 1, 2, 3)),
            dilation=1 if is_plain else draw.choice((1, 1, 2)),
            low=draw.choice((0, 1, 1, 2, 6)),
            high=draw.choice((0, 1, 1, 2, 6)),
        )
        if window.count >= 1:
            return window


def ops(form: Form) -> int:
    """Multiplications."""
    total = 1
    for letter in set("".join(form.operands)):
        window = form.windows.get(letter)
        if isinstance(window, Scatter):
            total *= window.extent * window.taps
            continue
        total *= window.count * window.taps if window else form.sizes[letter]
    return total


def try_form(seed: int) -> Counter[str]:
    """What was seen; AssertionError where something is wrong."""
    draw = seeded(seed)
    form = draw_form(draw)
    while ops(form) > MOST_OPS:
        form = draw_form(draw)
    try:
        program = _checked(form, draw.choice(SCHEDULES))
        for other in _of_other_sizes(draw, form):
            other.run(program)
    except (AlcopError, AssertionError) as error:
        raise AssertionError(f"seed {seed}, {form}: {error}") from error
    schedules = [kernel.schedule for kernel in program.function.kernels]
    scheduled = [one for one in schedules if one is not None]
    seen = Counter({"cases": 1})
    seen["on tensor cores"] += bool(scheduled)
    seen["rectangles"] += any(one.rectangle > 1 for one in scheduled)
    seen["generic"] += not form.name
    seen["transposed"] += _is_transposed(form)
    seen["sizes known at run time only"] += bool(form.open)
    return seen


def _of_other_sizes(draw: random.Random, form: Form) -> Iterator[Form]:
    """Two that the same program has to run: tiny ones, and some of odd sizes."""
    for _ in range(2 if form.open else 0):
        images = draw.randint(1, 4) if "n" in form.open else form.sizes["n"]
        extents = [
            draw.choice((1, 2, 3, 5, 7)) if one in form.open else window.extent
            for one, window in ((one, form.windows[one]) for one in form.spatial)
        ]
        other = form.of_extents(images, *extents)
        fits = all(other.windows[one].count > 0 for one in form.spatial)
        if fits and ops(other) <= MOST_OPS:
            yield other


def _checked(form: Form, schedule: str) -> Program:
    """With the schedule, if it can have that; else with the compiler's."""
    try:
        return form.check(schedule)
    except CompileError as error:
        if "leave rectangle out" not in str(error):
            raise
        return form.check()


def _is_transposed(form: Form) -> bool:
    steps = [form.windows[letter].step for letter in form.spatial]
    return form.is_scattered or max(steps, default=1) > 1


def main(arguments: Sequence[str]) -> int:
    """Exit status: 1 if a case failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--forms", type=int, default=1000)
    parser.add_argument("--state", type=Path, default=Path("build/fuzz-conv.jsonl"))
    options = parser.parse_args(arguments)
    options.state.parent.mkdir(parents=True, exist_ok=True)
    lines = options.state.read_text().splitlines() if options.state.exists() else []
    total, wrong = Counter[str](), 0
    for line in map(json.loads, lines):
        total.update(line["seen"])
        wrong += bool(line["wrong"])
    with options.state.open("a", encoding="utf-8") as state:
        for seed in range(len(lines), options.forms):
            seen, why = Counter[str](), ""
            try:
                seen = try_form(seed)
            except AssertionError as error:
                why, wrong = str(error), wrong + 1
                print(why, flush=True)
            total.update(seen)
            print(json.dumps({"seen": seen, "wrong": why}), file=state, flush=True)
    print(", ".join(f"{name}: {count}" for name, count in sorted(total.items())))
    print(f"{wrong} forms are wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
