"""A warp-specialised kernel of Hopper: right and clean, and its mutants are found."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from fixture_kernels import MODES, fixture
from kernel_text import launch

from alcop_mlir.errors import EmulationError
from alcop_mlir.runtime.emulator import Result, TensorMap

SHARED = 229456  # bytes
THREADS = 384


def run(
    text: str, m: int, n: int, k: int, grid: int, **options: Any
) -> tuple[Result, bool]:
    """What a run found, and whether C is wrong."""
    generator = np.random.default_rng(m + n + k)
    a = generator.standard_normal((m, k)).astype(np.float16)
    b = generator.standard_normal((n, k)).astype(np.float16)
    c = np.full((m, n), np.nan, np.float16)
    boxes = [(a, (128, 64)), (b, (256, 64)), (c, (64, 64))]
    maps = [TensorMap(array, box=box, swizzle=128) for array, box in boxes]
    arguments = [*maps, m, n, k]
    result = launch(
        text, "gemm", (grid,), (THREADS,), arguments, dynamic_shared=SHARED, **options
    )
    wanted = a.astype(np.float32) @ b.astype(np.float32).T
    return result, not np.allclose(c, wanted, rtol=1e-3, atol=2e-2)


@pytest.mark.parametrize(("visibility", "schedule"), MODES)
@pytest.mark.parametrize("sizes", [(256, 512, 256, 2), (200, 328, 136, 3)], ids=str)
def test_right_and_clean(
    sizes: tuple[int, int, int, int], visibility: str, schedule: str
) -> None:
    text = fixture("warpgroup_gemm")
    options = {"visibility": visibility, "schedule": schedule}
    result, wrong = run(text, *sizes, **options)
    assert not wrong
    assert result.hazards == ()
    assert result.notes == ()


def released_by_one_warp() -> str:
    """One warp of each warpgroup, a different one, releases a slot for all four."""
    text = fixture("warpgroup_gemm").replace("mov.b32 \t%r30, 8;", "mov.b32 \t%r30, 2;")
    who = """{ .reg .pred %one; .reg .b32 %n, %g;
        mov.u32 %n, %tid.x; shr.u32 %g, %n, 7; shr.u32 %n, %n, 5; and.b32 %n, %n, 3;
        setp.eq.u32 %one, %n, %g; @%one """
    text, count = re.subn(r"(mbarrier\.arrive\.shared\S+.*;)", rf"{who}\1 }}", text)
    assert count == 2
    return text


@pytest.mark.parametrize(("visibility", "schedule"), MODES)
def test_whoever_waits_knows_of_all_four_warps(visibility: str, schedule: str) -> None:
    """As CUTLASS does where a cluster has several blocks."""
    options = {"visibility": visibility, "schedule": schedule}
    text = released_by_one_warp()
    result, wrong = run(text, 256, 512, 256, 2, **options)
    assert not wrong
    assert result.hazards == ()
    early = re.sub(r"(wait_group\.sync\.aligned \s*)1;", r"\g<1>2;", text)
    assert is_found(early, **options)


# Lines that are left out, or changed, one at a time; two tiles of C for a block.
_MUTANTS = re.compile(
    r"wgmma\.(fence|commit_group|wait_group)|mbarrier\.(arrive|try_wait)|bar\.sync"
    r"|fence\.proxy|cp\.async\.bulk\.(commit|wait)_group"
)
# Accumulators that only wgmma of one shape access need no fence between those (PTX ISA,
# "wgmma.fence"); this is the one inside of the loop.
LIMIT = 200_000  # warp instructions of a mutant; a kernel here has 15,000 at most
_EQUIVALENT = "wgmma.fence, 2 of 2"


def mutants() -> dict[str, tuple[int, str]]:
    """By name: the line, and what stands there instead."""
    lines = fixture("warpgroup_gemm").split("\n")
    found: dict[str, list[tuple[int, str]]] = {}
    for number, line in enumerate(lines):
        hit = _MUTANTS.search(line)
        if hit is None or line.startswith("//"):
            continue
        changed = ""
        if "try_wait" in line:
            changed = re.sub(r"mbarrier\S+ (P1),.*;", r"setp.eq.b32 \1, 0, 0;", line)
        found.setdefault(hit[0], []).append((number, changed))
        if "wait_group" in line:
            more = re.sub(r"\d+;", lambda one: f"{int(one[0][:-1]) + 1};", line)
            found.setdefault(f"{hit[0]} + 1", []).append((number, more))
    return {
        f"{name}, {i + 1} of {len(places)}": place
        for name, places in found.items()
        for i, place in enumerate(places)
    }


MUTANTS = mutants()


def is_found(text: str, **options: Any) -> bool:
    """Whether a report, a fault or the numbers show that it is wrong."""
    try:
        result, wrong = run(text, 256, 512, 256, 2, instruction_limit=LIMIT, **options)
    except EmulationError:
        return True
    return wrong or bool(result.hazards)


@pytest.mark.parametrize("name", MUTANTS)
def test_mutants_are_found(name: str) -> None:
    number, changed = MUTANTS[name]
    lines = fixture("warpgroup_gemm").split("\n")
    assert lines[number] != changed
    lines[number] = changed
    assert is_found("\n".join(lines)) == (name != _EQUIVALENT)


def test_every_line_has_its_mutants() -> None:
    assert len(MUTANTS) == 41
    assert _EQUIVALENT in MUTANTS
