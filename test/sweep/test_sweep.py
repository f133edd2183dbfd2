"""Layouts x types x shapes x stages x fusion: numbers, hazards, all on the emulator.

A sample of all combinations, chosen by a seed that is part of the tests' names. Every
result is compared with the float64 reference element by element.

    ALCOP_SWEEP_SEED=7        another sample
    ALCOP_SWEEP_CASES=10000   a larger one; `all` for all combinations
    ALCOP_SWEEP_CASE=42       one case, as a failure says
"""

from __future__ import annotations

import os
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
import sweep_running
from sweep_cases import (
    CONSUMERS,
    COUNT,
    FUSIONS,
    LAYOUTS,
    PLACEMENTS,
    PRODUCERS,
    SHAPES,
    STAGES,
    TILES,
    TYPES,
    Case,
    case,
    drawn,
    is_case,
)
from sweep_programs import source
from sweep_running import compiled, failure, run
from sweep_shapes import shape

SEED = int(os.environ.get("ALCOP_SWEEP_SEED", "0"))
CASES = os.environ.get("ALCOP_SWEEP_CASES", "400")
ONE = os.environ.get("ALCOP_SWEEP_CASE")
PARTS = 40  # run at the same time where there are workers
SHOWN = 3  # failures of each part
# Of a larger sample. C is a vector in place: warps without rows of it raced.
FAILED_ONCE = (216969,)


def chosen(part: int) -> list[int]:
    """The numbers of a part's cases."""
    if ONE is not None:
        return [int(ONE)]
    if CASES == "all":
        return [number for number in range(part, COUNT, PARTS) if is_case(number)]
    return sample(int(CASES))[part::PARTS]


def sample(runs: int) -> list[int]:
    """As many cases as make so many runs: some programs take arrays of any size."""
    numbers = []
    for number in drawn(SEED):
        if runs <= 0:
            break
        numbers.append(number)
        runs -= len(shape(case(number)).sizes)
    return numbers


@pytest.mark.parametrize("part", range(1 if ONE else PARTS))
@pytest.mark.parametrize("seed", [SEED])
def test_sweep(
    seed: int, part: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # a pass that crashes leaves a file
    results = (failure(case(number)) for number in chosen(part))
    found = list(islice(filter(None, results), SHOWN))
    assert not found, "\n\n".join(["", *found])


@pytest.mark.parametrize("number", FAILED_ONCE)
def test_what_failed_once(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert not failure(case(number))


def test_the_sample_is_large_and_the_same_for_all_workers() -> None:
    """No case occurs twice, none is excluded, every choice occurs."""
    made = [case(number) for number in sample(2000)]
    assert made == [case(number) for number in sample(2000)]
    assert sum(len(shape(one).sizes) for one in made) >= 2000
    assert len({one.number for one in made}) == len(made)
    assert {one.layout for one in made} == set(LAYOUTS)
    assert {one.types for one in made} == set(TYPES)
    assert {one.shape for one in made} == set(SHAPES)
    assert {one.stages for one in made} == set(STAGES)
    assert {one.fusion for one in made} == set(FUSIONS)
    assert {one.placement for one in made} == set(PLACEMENTS)
    assert {one.on_tensors for one in made} == {False, True}


@pytest.mark.parametrize("fusion", ["bias start", *CONSUMERS, *PRODUCERS])
def test_the_sweep_is_about_fused_kernels(fusion: str) -> None:
    """Else the sweep would test SIMT fallbacks."""
    one = plain(fusion)
    assert len(compiled(one, source(one)).function.kernels) == 1


def plain(fusion: str, shape: str = "ragged") -> Case:
    """A case without anything unusual."""
    types, stages = ("f16", "f16"), (3, 2)
    return Case(0, "nt", types, shape, stages, fusion, TILES[0], False, "")


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("scale", "relu"),
        ("zero", "scale"),
        ("relu", "silu"),
        ("residual", "in place"),
        ("relu lhs", "relu"),
    ],
)
def test_a_wrong_program_is_found(right: str, wrong: str) -> None:
    """One that computes something else, and one that is off by one per cent."""
    one, other = plain(right), plain(wrong)
    program = compiled(one, source(one))
    sizes = shape(one).sizes[0]
    assert run(program, source(one), sizes) is None
    reference = compiled(other, source(other)).function.reference
    program.function = replace(program.function, reference=reference)
    assert run(program, source(one), sizes) is not None


def test_one_per_cent_is_found() -> None:
    one = plain("scale")
    written = source(one)
    program = compiled(one, written)
    more = replace(written, text=written.text.replace("0.125", "0.12625"))
    reference = compiled(one, more).function.reference
    program.function = replace(program.function, reference=reference)
    assert run(program, written, shape(one).sizes[0]) is not None


def test_a_failure_tells_how_to_repeat_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep_running, "run", lambda *_: "error 1.0, tolerance 0.1")
    text = failure(plain("bias"))
    assert text is not None
    assert text.startswith("case 0: nt f16-f16, ragged, bias, on memrefs, block=32,32,")
    assert "error 1.0, tolerance 0.1 with sizes {" in text
    assert "func.func @sweep(" in text
    assert "again: ALCOP_SWEEP_CASE=0 pytest -q test/sweep" in text
    assert '--schedule "block=32,32,32 warp=16,16 stages=3,2"' in text
