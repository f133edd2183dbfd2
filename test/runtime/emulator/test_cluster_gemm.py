"""A GEMM of clusters of two blocks that share B by multicast: right, clean, mutated.

One warp of a block fills a ring by the copy engine, each block half of B for both; two
warpgroups multiply, and release slots in both blocks. Every instruction that
synchronises is left out, or changed, one at a time; `make test` takes a sample, all of
them are tried with `ALCOP_MUTANTS=all`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from fixture_kernels import MODES, fixture
from kernel_text import launch

from alcop_mlir.errors import EmulationError
from alcop_mlir.runtime.emulator import Result, TensorMap

SHARED = 229456  # bytes
THREADS = 384
# Two tiles of C for each block, and more slices of K than the ring has slots.
SIZES = (512, 256, 384, 2)
SAMPLE = 8  # one in so many


def run(
    text: str, m: int, n: int, k: int, grid: int, **options: Any
) -> tuple[Result, bool]:
    """What a run found, and whether C is wrong; small integers add up exactly."""
    generator = np.random.default_rng(m + n + k)
    a = generator.integers(-3, 4, (m, k)).astype(np.float16)
    b = generator.integers(-3, 4, (n, k)).astype(np.float16)
    c = np.full((m, n), np.nan, np.float16)
    boxes = [(a, (128, 64)), (b, (128, 64)), (c, (64, 64))]
    maps = [TensorMap(array, box=box, swizzle=128) for array, box in boxes]
    given = [*maps, m, n, k]
    sizes = {"dynamic_shared": SHARED, **options}
    result = launch(text, None, (grid,), (THREADS,), given, **sizes)
    wanted = (a.astype(np.float32) @ b.astype(np.float32).T).astype(np.float16)
    return result, not np.array_equal(c, wanted)


@pytest.mark.parametrize(("visibility", "schedule"), MODES)
@pytest.mark.parametrize("sizes", [(256, 512, 256, 2), (200, 328, 136, 4)], ids=str)
def test_right_and_clean(
    sizes: tuple[int, int, int, int], visibility: str, schedule: str
) -> None:
    options = {"visibility": visibility, "schedule": schedule}
    result, wrong = run(fixture("cluster_gemm"), *sizes, **options)
    assert not wrong
    assert result.hazards == ()
    assert result.notes == ()


# --- mutants ------------------------------------------------------------------------

# What is left out. An arrival may be guarded; with bytes it is changed instead.
LEFT_OUT = re.compile(
    r"bar\.sync|fence\.proxy|wgmma\.(fence|commit_group|wait_group)|setmaxnreg\.\w+"
    r"|fence\.mbarrier_init|mbarrier\.arrive\.release|barrier\.cluster\.(arrive|wait)"
    r"|cp\.async\.bulk\.(commit|wait)_group"
)
# What is changed: the pattern, and by what.
CHANGED = {
    "no wait": (r"mbarrier\.try_wait\S+\s+(\w+),.*", r"setp.eq.b32 \1, 0, 0;"),
    "other parity": (r"(mbarrier\.try_wait\S+\s+\w+, )(.*), (%r\d+), (.*)", "PARITY"),
    "fewer arrivals": (r"(mbarrier\.init.*), %r\d+;", r"\1, 7;"),
    "one arrival less": (r"(mbarrier\.init.*), %r\d+;", r"\1, 15;"),
    "one arrival more": (r"(mbarrier\.init.*), %r\d+;", r"\1, 17;"),
    "other bytes": (r"(mbarrier\.arrive\.expect_tx.*), \S+;", r"\1, 32768;"),
    "group + 1": (r"(wait_group\S*\s+)(\d+);", "MORE"),
    "other block": (r"(mapa.*), (\d);", "BLOCK"),
    "relaxed arrival": (r"arrive\.release\.cluster", "arrive.relaxed.cluster"),
    "relaxed barrier": (r"cluster\.arrive\.aligned", "cluster.arrive.relaxed.aligned"),
    "one block": (r"\.multicast::cluster( .*), %rs1;", r"\1;"),
}
# Accumulators that only wgmma of one shape access need no fence between those (PTX ISA,
# "wgmma.fence"); registers of PTX are virtual, so that it works without those it asks
# for.
EQUIVALENT = ("wgmma.fence, 2 of 2", "setmaxnreg.inc, 1 of 1")


def changed(name: str, line: str) -> str:
    """The line with one of the changes; the same where it does not fit."""
    pattern, new = CHANGED[name]
    if new == "PARITY":
        flip = r"xor.b32 \3, \3, 1; \1\2, \3, \4 xor.b32 \3, \3, 1;"
        return re.sub(pattern, flip, line)
    if new == "MORE":
        return re.sub(pattern, lambda one: f"{one[1]}{int(one[2]) + 1};", line)
    if new == "BLOCK":
        return re.sub(pattern, lambda one: f"{one[1]}, {1 - int(one[2])};", line)
    return re.sub(pattern, new, line)


def mutations() -> Iterator[tuple[str, int, str]]:
    """Kind, line, and what stands there instead."""
    for number, line in enumerate(fixture("cluster_gemm").split("\n")):
        if line.startswith("//"):
            continue
        hit = LEFT_OUT.search(line)
        if hit is not None:
            yield hit[0], number, ""
        for name in CHANGED:
            new = changed(name, line)
            if new != line:
                yield name, number, new


def mutants() -> dict[str, tuple[int, str]]:
    """By name: the line, and what stands there instead."""
    found: dict[str, list[tuple[int, str]]] = {}
    for kind, number, new in mutations():
        found.setdefault(kind, []).append((number, new))
    return {
        f"{kind}, {i + 1} of {len(places)}": place
        for kind, places in found.items()
        for i, place in enumerate(places)
    }


MUTANTS = mutants()
CHOSEN = [*MUTANTS]
if os.environ.get("ALCOP_MUTANTS") != "all":
    CHOSEN = [*dict.fromkeys([*CHOSEN[::SAMPLE], *EQUIVALENT])]


def is_found(text: str) -> bool:
    """Whether a report, a fault or the numbers show that it is wrong."""
    try:
        result, wrong = run(text, *SIZES, time_limit=20)
    except EmulationError:
        return True
    return wrong or bool(result.hazards)


@pytest.mark.parametrize("name", CHOSEN)
def test_mutants_are_found(name: str) -> None:
    number, new = MUTANTS[name]
    lines = fixture("cluster_gemm").split("\n")
    lines[number] = new
    assert is_found("\n".join(lines)) == (name not in EQUIVALENT)


def test_the_barrier_at_the_end_is_needed() -> None:
    """Without it a block ends while the other one still releases slots in it."""
    text = fixture("cluster_gemm")
    at = text.rindex("barrier.cluster.arrive.aligned;")
    end = text.index("barrier.cluster.wait.aligned;", at)
    text = text[:at] + text[end + len("barrier.cluster.wait.aligned;") :]
    result, _ = run(text, *SIZES)
    assert {hazard.kind for hazard in result.hazards} == {"block-ended"}


def test_every_instruction_has_its_mutants() -> None:
    assert set(EQUIVALENT) <= set(MUTANTS)
    kinds = {name.partition(",")[0] for name in MUTANTS}
    assert kinds >= set(CHANGED)
    assert len(MUTANTS) == 86
