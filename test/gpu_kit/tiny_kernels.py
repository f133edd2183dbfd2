"""Kernels so small that a test can emulate them; makes `bench.gpu` importable."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))  # for the package `bench.gpu`, which is not installed

from bench.gpu.lists import Item  # noqa: E402
from bench.gpu.spec import LAYOUTS, Spec  # noqa: E402

SHAPE = (1, 32, 32, 64)
TILE = "block=16,32,16 warp=16,16"


def tiny(stages: str, layout: str = "nn", target: str = "sm_80") -> Spec:
    """A kernel of a few blocks; for an older GPU, so that its PTX is what is loaded."""
    schedule = f"{TILE} stages={stages}"
    return Spec("matmul", SHAPE, "f16", "f32", LAYOUTS[layout], schedule, target)


PROGRAM = Spec(schedule=f"{TILE} stages=2,2", target="sm_80", program="rows_f32")


def items() -> list[Item]:
    """All uses; one kernel that no compiler takes."""
    impossible = Spec(schedule="block=1,1,1 warp=1,1 stages=1,1", shape=SHAPE)
    return [
        Item(tiny("2,2"), "check", "stages", (SHAPE,), emulate=True),
        Item(tiny("1,1", "nt"), "check", "types", (SHAPE,), emulate=True),
        Item(impossible, "check", "tiles", (SHAPE,)),
        Item(PROGRAM, "program", "programs", ()),
        Item(tiny("2,2"), "bench", "paper", (SHAPE,), "S,2"),
        Item(tiny("2,1"), "bench", "paper", (SHAPE,), "2,1"),
        Item(tiny("1,1"), "bench", "paper", (SHAPE,), "1,1"),
    ]
