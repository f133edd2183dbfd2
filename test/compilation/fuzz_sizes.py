"""Tries variants at borders of guards: `python test/compilation/fuzz_sizes.py`.

Each case is a contraction with variants, compiled for open sizes, and sizes and strides
just inside and just outside of what a guard asks for, or 0, in arrays that begin at
elements just as far behind a multiple of 16 bytes. The emulator finds no
hazard; results of small whole numbers are NumPy's, and those of random numbers have the
bits of the kernel that is compiled for these sizes with the same schedule.

The state is a file with a line per form, so that a run goes on where the last stopped.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from test_guarded_variants import Form, bits, compiled, placed, with_variants, written

from alcop_mlir import dtypes
from alcop_mlir.errors import AlcopError
from alcop_mlir.manifest.functions import Function
from alcop_mlir.manifest.kernels import Aligned, AtMost, Condition
from alcop_mlir.runtime.launch import Program

PER_FORM = 12  # sizes: what is compiled takes as long as these
MOST = {"m": 72, "n": 72, "k": 80, "b": 3, "gap": 20}
EMPTY = 0.08  # share of sizes that are 0
TYPES = (("f16", "f32"), ("bf16", "f32"), ("f32", "f32"), ("i8", "i32"))


def draw_form(draw: random.Random) -> Form:
    """A contraction; what the compiler does not take with variants is left out."""
    kind, out = draw.choice(TYPES)
    form = Form(kind, out, draw.choice(("mk", "km")), draw.choice(("kn", "nk")))
    extra = draw.choice(("", "batch", "gaps", "epilogue"))
    numbers = draw.sample((0, 1, 2), draw.randint(1, 3))
    if extra == "batch":
        form = replace(form, lhs=f"b{form.lhs}", rhs=f"b{form.rhs}")
        numbers = [number for number in numbers if number != 1] or [0]
    elif extra == "epilogue" and out == "f32":
        form = replace(form, has_epilogue=True)
    elif extra == "gaps":
        form = replace(form, gaps=True)
    return replace(form, numbers=(*sorted(numbers), 3))


def draw_sizes(draw: random.Random, form: Form, function: Function) -> dict[str, int]:
    """Sizes at a border of one guard, if there is one along the loop that is chosen."""
    at = {loop: draw.randint(1, most) for loop, most in MOST.items()}
    if draw.random() < 0.5:  # such that the aligned variants are in reach
        at = {loop: -(-size // 16) * 16 for loop, size in at.items()} | {"b": at["b"]}
    (launch,) = function.launches
    guards = [one for variant in launch.variants for one in variant.guard]
    orders = [one for one in guards if not isinstance(one, Aligned)]
    if orders:
        condition, loop = draw.choice(orders), draw.choice(list("mnk") + ["gap"])
        most = 4 * MOST[loop]
        holds = [
            holds_at(condition, named(form, function, {**at, loop: size}), {})
            for size in range(1, most)
        ]
        borders = [
            size for size in range(1, most - 1) if holds[size - 1] != holds[size]
        ]
        if borders:
            at[loop] = draw.choice(borders[:6]) + draw.randint(0, 1)
    for loop in "mnkb":
        if draw.random() < EMPTY:
            at[loop] = 0
    return at


def draw_offsets(draw: random.Random, form: Form) -> list[int]:
    """Where each array begins, in elements: at, before or behind what a guard asks."""
    found = []
    for array in form.data(dict.fromkeys(MOST, 1), exact=True):
        borders = [bytes // array.itemsize for bytes in (0, 4, 8, 16)]
        near = [border + step for border in borders for step in (-1, 0, 1)]
        is_aligned = draw.random() < 0.7
        found.append(0 if is_aligned else draw.choice([n for n in near if n >= 0]))
    return found


def named(form: Form, function: Function, at: dict[str, int]) -> dict[str, int]:
    """The sizes and strides of a call, by the names that the bundle has for them."""
    found: dict[str, int] = {}
    for parameter, (loops, _) in zip(function.parameters, form.taken, strict=True):
        shape = [at[loop] for loop in loops]
        found |= _texts(parameter.shape, shape)
        if parameter.strides:
            found |= _texts(parameter.strides, [shape[-1] + at["gap"], 1])
    return found


def _texts(names: Sequence[str | int], given: list[int]) -> dict[str, int]:
    pairs = zip(names, given, strict=True)
    return {name: one for name, one in pairs if isinstance(name, str)}


def holds_at(
    condition: Condition, sizes: dict[str, int], addresses: Mapping[str, int]
) -> bool:
    """Whether it holds."""
    if isinstance(condition, Aligned):
        return addresses[condition.array] % condition.bytes == 0
    if isinstance(condition, AtMost):
        return condition.least.value(sizes) <= condition.most.value(sizes)
    return condition.value.value(sizes) % condition.by == 0


def try_form(seed: int, count: int = PER_FORM) -> Counter[str]:
    """What was seen; AssertionError or AlcopError where something is wrong."""
    draw, seen = random.Random(seed), Counter[str]()
    form = draw_form(draw)
    program = with_variants(form)
    function = program.function
    (launch,) = function.launches
    for number in range(count):
        at = draw_sizes(draw, form, function)
        sizes = named(form, function, at)
        offsets = draw_offsets(draw, form) if number % 2 else [0] * len(form.taken)
        arrays = placed(form.data(at, exact=True), offsets)
        names = [parameter.name for parameter in function.parameters]
        places = [array.ctypes.data for array in arrays]
        addresses = dict(zip(names, places, strict=True))
        wanted = next(
            place
            for place, variant in enumerate(launch.variants)
            if all(holds_at(one, sizes, addresses) for one in variant.guard)
        )
        where = f"seed {seed}, {form}, {at}, begins at {offsets}"
        try:
            expected = form.expected(arrays)
            program(*arrays)
            # An array without elements has no strides that a guard could ask for.
            if not (form.gaps and 0 in (at["m"], at["n"], at["k"])):
                assert program.last_variants == (wanted,), where
            found = dtypes.decode(arrays[-1], form.taken[-1][1])
            np.testing.assert_array_equal(found, expected, where)
            if number % 4 < 2 and min(at[loop] for loop in "mnkb"):
                _same_as_static(form, program, at, offsets, where)
                seen["same bits"] += 1
        except AlcopError as error:
            raise AssertionError(f"{where}: {error}") from error
        seen["cases"] += 1
        seen[f"variant {wanted} of {len(launch.variants)}"] += 1
        seen["unaligned"] += any(place % 16 for place in places)
        seen["empty"] += 0 in [at[loop] for loop in "mnk"]
    return seen


def _same_as_static(
    form: Form, program: Program, at: dict[str, int], offsets: list[int], where: str
) -> None:
    arrays, same = (form.data(at, exact=False) for _ in range(2))
    arrays = placed(arrays, offsets)
    program(*arrays)
    (ran,) = program.last_variants
    schedule = f"alcop.schedule = #alcop.schedule<{written(form.numbers[ran])}>"
    compiled(form.text(schedule, at))(*same)
    np.testing.assert_array_equal(bits(arrays[-1]), bits(same[-1]), where)


def main(arguments: Sequence[str]) -> int:
    """Exit status: 1 if a case failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--forms", type=int, default=200)
    parser.add_argument("--state", type=Path, default=Path("build/fuzz-sizes.jsonl"))
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
