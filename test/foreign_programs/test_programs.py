"""Programs that nvcc compiles: right on the emulator, and nothing is reported."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from cuda_programs import PROGRAMS, Program

from alcop_mlir.errors import EmulationError
from alcop_mlir.runtime.emulator import Result, emulate

NAMES = {program.name: program for program in PROGRAMS}


def run(program: Program, ptx: str, **options: Any) -> tuple[Result, bool]:
    """What the emulator says of a run, and whether y is right after it."""
    x, y, n = program.arrays()
    wanted = program.model(x, y.copy(), n)
    result = emulate(
        ptx,
        program.name,
        (program.blocks, 1, 1),
        (program.threads, 1, 1),
        [x, y, n],
        dynamic_shared=program.shared,
        cooperative=program.cooperative,
        **options,
    )
    return result, np.array_equal(y, wanted)


def test_there_are_enough() -> None:
    assert len(NAMES) == len(PROGRAMS) >= 60


@pytest.mark.parametrize("name", NAMES)
def test_a_correct_program(name: str, built: Callable[[str], str]) -> None:
    program = NAMES[name]
    result, right = run(program, built(program.file))
    assert right
    assert [str(hazard) for hazard in result.hazards] == []


# Mutants: one synchronisation of the kernel is left out -------------------------------

SYNCHRONISATION = re.compile(
    r"^\s*(?:bar(?:rier)?(?:\.warp)?\.sync|cp\.async\.wait_group)\b[^;]*;"
    r"|^\s*barrier\.cluster\.arrive;\s*barrier\.cluster\.wait;",
    re.M,
)
MUTATED = (
    "transpose_f",
    "tree_i",
    "product_f",
    "stencil",
    "scan",
    "bitonic",
    "async_sums",
    "red_rake",
    "cluster_exchange",
    "cluster_sums",
    "cluster_histogram",
    "cluster_ring",
    "cluster_scan",
)


def mutants(ptx: str, name: str) -> Iterator[str]:
    """The PTX without one synchronisation of a kernel, for each."""
    start = ptx.index(f".entry {name}(")
    stop = ptx.index("\n}", start)
    for found in SYNCHRONISATION.finditer(ptx, start, stop):
        yield ptx[: found.start()] + "\n" + ptx[found.end() :]


def is_caught(program: Program, ptx: str) -> bool:
    try:
        result, right = run(program, ptx)
    except EmulationError:
        return True
    return bool(result.hazards) or not right


# What may be left out, by its number in the kernel: after the last of these no thread
# writes shared memory that another one reads.
EQUIVALENT = {
    "tree_i": {7: "thread 0 reads the sum that it has written"},
    "product_f": {3: "no tile comes after the last one"},
    "scan": {7: "each thread reads what it has written"},
    "async_sums": {
        8: "no copy goes to the stage that was read: there are none left",
        11: "no copy comes after the last stage",
    },
    "cluster_scan": {14: "the barrier of the cluster comes after it"},
    "red_rake": {1: "bar.warp.sync before redux.sync, after all shared accesses"},
}
MODES = [
    {"schedule": schedule, "visibility": visibility}
    for schedule in ("lockstep", "ascending", "descending", "random(1)")
    for visibility in ("late", "early")
]


@pytest.mark.parametrize("name", MUTATED)
def test_a_synchronisation_that_is_missing_is_found(
    name: str, built: Callable[[str], str]
) -> None:
    program = NAMES[name]
    tried = list(mutants(built(program.file), name))
    equivalent = EQUIVALENT.get(name, {})
    assert len(tried) > len(equivalent)
    caught = [number for number, ptx in enumerate(tried) if is_caught(program, ptx)]
    assert [*range(len(tried))] == sorted({*caught, *equivalent})
    assert not {*caught} & {*equivalent}
    for number in equivalent:
        for mode in MODES:
            assert run(program, tried[number], **mode)[1]
