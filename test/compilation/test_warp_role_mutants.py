"""Kernels with warps in roles of which one thing of their synchronisation is wrong.

The emulator finds each, by a hazard, a fault or a wrong number, but those that change
nothing.
"""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pytest
from test_warp_roles import compiled, operands, product, program

from alcop_mlir.errors import EmulationError
from alcop_mlir.manifest.kernels import Kernel, SizeValue, TensorMap
from alcop_mlir.runtime import tensor_maps
from alcop_mlir.runtime.emulation import Emulation, EmulatorOptions

# More K steps than slots, so that each slot is filled and freed several times.
KERNELS = {
    "a block": "block=128,64,64 warp=16,64 stages=3,2",
    "a cluster": "block=64,64,64 warp=16,64 stages=3,2 cluster=2",
    "in turn": "block=64,64,64 warp=16,64 stages=3,2 mode=pingpong",
}
SIZES = {
    "a block": {"m": 128, "n": 64, "k": 1024},
    "a cluster": {"m": 128, "n": 64, "k": 1024},
    # Three tiles for the first block, which alone is run.
    "in turn": {"m": 265 * 64, "n": 64, "k": 1024},
}
BLOCKS = {"a block": 1, "a cluster": 2, "in turn": 1}
TILES = {"in turn": (0, 132, 264)}
LIMIT = 200_000  # warp instructions of a mutant; a kernel here has 20,000 at most
MODES = (("late", "lockstep"), ("early", "lockstep"), ("late", "descending"))
# What is left out, and what a number becomes.
LEFT_OUT = re.compile(
    r"wgmma\.(?:fence|commit_group|wait_group)|mbarrier\.arrive\.expect_tx"
    r"|mbarrier\.arrive\.shared|bar\.sync|mbarrier\.init|fence\.mbarrier_init"
    r"|mbarrier\.try_wait|barrier\.cluster\.(?:arrive|wait)"
)
NUMBERS = {
    "wgmma.wait_group + 1": (r"(wgmma\.wait_group\.sync\.aligned\s+)1;", r"\g<1>2;"),
    "the last wgmma.wait_group + 1": (r"(wgmma\.wait_group\S+\s+)0;", r"\g<1>1;"),
    "multicast to a block alone": (r"mov\.b16 (\t%rs\d+), 3;", r"mov.b16 \g<1>, 1;"),
    "setmaxnreg + 8": (r"(setmaxnreg\.inc\.sync\.aligned\.u32\s+)232;", r"\g<1>240;"),
}
# The loop's fence: accumulators that only wgmma of one shape access need none between
# these (PTX ISA, "wgmma.fence").
EQUIVALENT = {"wgmma.fence, 2 of 2"}
# What only hardware would show.
UNCHECKED = {"fence.mbarrier_init, 1 of 1"}


@cache
def kernel(which: str) -> tuple[str, Kernel, tuple[str, ...]]:
    """The PTX, how it is launched, and the names of A, B and C."""
    bundle = compiled(program(SIZES[which], "nt", out="f32"), KERNELS[which])
    function = bundle.functions[0]
    (one,) = function.kernels
    names = tuple(parameter.name for parameter in function.parameters)
    return bundle.code_of(one).ptx, one, names


@cache
def numbers(which: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A, B, and C as it should be."""
    a, b = operands(SIZES[which], "nt")
    return a, b, product(a, b, "nt")


def mutants(which: str) -> dict[str, tuple[int, str]]:
    """By name: the line, and what stands there instead."""
    lines = kernel(which)[0].split("\n")
    found: dict[str, list[tuple[int, str]]] = {}
    for number, line in enumerate(lines):
        hit = LEFT_OUT.search(line)
        if hit is not None and not line.strip().startswith("//"):
            changed = ""
            if "try_wait" in line:
                changed = "setp.eq.b32 P1, 0, 0;"
            found.setdefault(hit[0].strip("."), []).append((number, changed))
        for name, (pattern, text) in NUMBERS.items():
            more = re.sub(pattern, text, line)
            if more != line:
                found.setdefault(name, []).append((number, more))
    return {
        f"{name}, {i + 1} of {len(places)}": place
        for name, places in found.items()
        for i, place in enumerate(places)
    }


def is_found(which: str, text: str) -> bool:
    """Whether a hazard, a fault or the numbers show that it is wrong."""
    _, one, names = kernel(which)
    a, b, want = numbers(which)
    for visibility, schedule in MODES:
        c = np.full(want.shape, np.nan, np.float32)
        arrays = dict(zip(names, (a, b, c), strict=True))
        given = [
            tensor_maps.on_emulator(argument, arrays[argument.array], {})
            if isinstance(argument, TensorMap)
            else arrays[argument.array]
            for argument in one.arguments
            if not isinstance(argument, SizeValue)
        ]
        options = EmulatorOptions(visibility, schedule, instruction_limit=LIMIT)
        grid = (BLOCKS[which], 1, 1)
        try:
            result = Emulation(options).run(
                text, one.name, grid, one.block, given, one.shared_bytes
            )
        except EmulationError:
            return True
        if result.hazards or not np.array_equal(_rows(which, c), _rows(which, want)):
            return True
    return False


def _rows(which: str, c: np.ndarray) -> np.ndarray:
    """Those that the blocks compute."""
    tiles = TILES.get(which)
    return c if tiles is None else c.reshape(-1, 64, c.shape[1])[list(tiles)]


@pytest.mark.parametrize("which", KERNELS)
def test_unchanged_it_is_right_and_clean(which: str) -> None:
    assert not is_found(which, kernel(which)[0])


@pytest.mark.sample(12)
@pytest.mark.parametrize(
    ("which", "name"),
    [
        (which, one)
        for which in KERNELS
        for one in mutants(which)
        if one not in UNCHECKED
    ],
)
def test_mutants_are_found(which: str, name: str) -> None:
    number, changed = mutants(which)[name]
    lines = kernel(which)[0].split("\n")
    assert lines[number] != changed
    lines[number] = changed
    assert is_found(which, "\n".join(lines)) == (name not in EQUIVALENT)
