"""Differential test: pipelining changes no bit of any kernel, and makes no hazard.

Random loop kernels are compiled as they are and pipelined, and run on the emulator. A
failure is shrunk, and printed as `.mlir` with all that is needed to run it again.

    ALCOP_FUZZ_MINUTES=60   go on with new seeds for so long, all shards together
    ALCOP_FUZZ_SEED=7       begin elsewhere; a failure prints the seed that found it
"""

from __future__ import annotations

import itertools
import os
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pytest
from differential import Settings, compile_kernel, run
from kernels import Buffer, Kernel, Loop
from strategies import Case, cases

from alcop_mlir.errors import AlcopError
from alcop_mlir.verifier.check import check

MINUTES = float(os.environ.get("ALCOP_FUZZ_MINUTES", "0"))
WORKERS = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
SEED = int(os.environ.get("ALCOP_FUZZ_SEED", "0"))
SHARDS = 8  # run at the same time where there are so many workers
CASES_PER_SHARD = 135
UNPIPELINED = Settings((1, 1))
# Of all cases; more than these are pipelined, else the test tests little.
LEAST_SHARES = {"shared": 0.25, "register": 0.2, "any": 0.45}


@pytest.mark.parametrize("shard", range(SHARDS))
def test_pipelining_changes_nothing(
    shard: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # a pass that crashes leaves a file
    end = time.monotonic() + 60 * MINUTES * WORKERS / SHARDS
    for number in itertools.count():
        seen = search(seed=SEED + shard + SHARDS * number)
        for what, share in LEAST_SHARES.items():
            assert seen[what] > share * seen["cases"], (what, seen)
        if time.monotonic() >= end:
            break


def search(seed: int) -> Counter[str]:
    """Try the cases of one seed; how many there were, and what was pipelined."""
    seen: Counter[str] = Counter()

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=CASES_PER_SHARD,
        derandomize=False,
        database=None,
        deadline=None,
        print_blob=False,
        suppress_health_check=[
            hypothesis.HealthCheck.data_too_large,
            hypothesis.HealthCheck.filter_too_much,
            hypothesis.HealthCheck.too_slow,
            hypothesis.HealthCheck.large_base_example,
        ],
    )
    @hypothesis.given(cases())
    def try_all(case: Case) -> None:
        seen["cases"] += 1
        levels, wrong = try_case(case)
        seen.update(levels)
        seen["any"] += bool(levels)
        if wrong:
            pytest.fail(f"seed {seed}: {wrong}\n{case.text()}", pytrace=False)

    try_all()
    return seen


def try_case(case: Case) -> tuple[frozenset[str], str]:
    """The levels that were pipelined; what is wrong, "" if nothing."""
    kernel = case.kernel
    try:
        expected, hazards = run(kernel, compile_kernel(kernel.text(), UNPIPELINED))
    except AlcopError as error:
        return frozenset(), f"unpipelined: {error}"
    if hazards:
        return frozenset(), f"unpipelined: {hazards[0]}"
    violations: list[str] = []

    def note(op: Any) -> None:
        violations.extend(found.message for found in check(op))

    try:
        compiled = compile_kernel(kernel.text(), case.settings, note)
        results, hazards = run(kernel, compiled, case.mode)
    except AlcopError as error:
        return frozenset(), str(error)
    if violations:
        return compiled.levels, f"structural check: {violations[0]}"
    if hazards:
        return compiled.levels, str(hazards[0])
    names = [array.name for array in kernel.arrays()]
    wrong = [
        name
        for name, one, other in zip(names, expected, results, strict=True)
        if one.tobytes() != other.tobytes()
    ]
    return compiled.levels, f"other bits in {', '.join(wrong)}" if wrong else ""


def test_a_wrong_pipeline_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hazards and bits tell a wrong pipeline from a right one."""
    monkeypatch.chdir(tmp_path)
    buffer = Buffer("f32", 1, ("scalar",), partner=-1)
    kernel = Kernel(64, (Loop((buffer,), trips=7, dynamic=True),))
    case = Case(kernel, Settings((3, 1)), ("late", "lockstep"))
    assert try_case(case) == (frozenset({"shared"}), "")
    good = compile_kernel(case.kernel.text(), case.settings)
    expected, _ = run(case.kernel, good)

    without_barriers = replace(good, ptx=good.ptx.replace("bar.sync", "//"))
    _, hazards = run(case.kernel, without_barriers)
    assert "read-after-write" in str(hazards[0])

    early = replace(good, ptx=good.ptx.replace("cp.async.wait_group", "//"))
    results, _ = run(case.kernel, early)
    assert any(np.any(a != b) for a, b in zip(expected, results, strict=True))
