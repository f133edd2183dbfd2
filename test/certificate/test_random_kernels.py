"""Random kernels: no run, at any trip count or in any mode, contradicts a proof.

A proven kernel has no hazard, no fault and no copy in flight at its end, and the same
result in all modes: what is proven has no race. ALCOP_CERTIFICATE_KERNELS=5000 tries so
many, from number ALCOP_CERTIFICATE_FIRST on.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest
from random_kernels import MOST_TILES, THREADS, Kernel, drawn

from alcop_mlir.certificate.api import Report
from alcop_mlir.certificate.state import Requirement
from alcop_mlir.compilation.certification import certified
from alcop_mlir.errors import EmulationError
from alcop_mlir.runtime.emulator import emulate

CHUNK = 12
COUNT = int(os.environ.get("ALCOP_CERTIFICATE_KERNELS", CHUNK))
FIRST = int(os.environ.get("ALCOP_CERTIFICATE_FIRST", 0))
SECONDS = 20.0
ANY_SIZE = {name: Requirement(0, 2**31 - 1) for name in ("n0", "n1", "n2")}
# Turns of the loops, and of the one around them.
TURNS = ((3, 4, 2), (0, 1, 1), (1, 0, 3), (2, 2, 2), (4, 3, 1), (5, 7, 2), (8, 6, 0))
MODES = (
    ("late", "lockstep"),
    ("early", "descending"),
    ("late", "random(1)"),
    ("early", "random(2)"),
)
DATA = np.random.default_rng(0).integers(-999, 999, MOST_TILES * THREADS * 4, np.int32)


def verdict(kernel: Kernel) -> Report:
    """Of prover and checker."""
    return certified(kernel.text(), "random", None, None, ANY_SIZE, SECONDS)


def faults(kernel: Kernel, seed: int) -> Iterator[str]:
    """What runs have found: at all trip counts in all modes, in `make test` at some."""
    return faults_of(kernel.text(), seed)


def faults_of(text: str, seed: int) -> Iterator[str]:
    """The same of a text."""
    is_sample = COUNT <= CHUNK
    for turns in TURNS[seed % 2 :: 2] if is_sample else TURNS:
        results = set()
        for visibility, schedule in MODES[seed % 3 :][:2] if is_sample else MODES:
            out = np.zeros(THREADS, np.int32)
            try:
                found = emulate(
                    text,
                    "random",
                    grid=(1, 1, 1),
                    block=(THREADS, 1, 1),
                    args=[DATA, out, *turns],
                    visibility=visibility,
                    schedule=schedule,
                )
            except EmulationError as error:
                yield f"{turns} {visibility} {schedule}: {error}"
                continue
            results.add(out.tobytes())
            for one in (*found.hazards, *found.notes):
                yield f"{turns} {visibility} {schedule}: {one}"
        if len(results) > 1:
            yield f"{turns}: {len(results)} results"


@pytest.mark.parametrize("first", range(FIRST, FIRST + COUNT, CHUNK))
def test_no_run_contradicts_a_proof(first: int) -> None:
    seen: Counter[str] = Counter()
    for seed in range(first, first + CHUNK):
        kernel = drawn(seed)
        report = verdict(kernel)
        found = next(faults(kernel, seed), None)
        assert report.status != "proven" or found is None, (seed, found)
        seen["misbehaves"] += report.status == "not proven" and found is not None
        assert "checker" not in report.why, seed
        seen[report.status] += 1
        seen["fresh"] += report.is_fresh
    print(f"kernels {first} to {first + CHUNK - 1}: {dict(seen)}")
    assert seen["proven"] >= CHUNK / 5, seen
    assert seen["not proven"] >= CHUNK / 5, seen
    # Few that are right are not proven: a search that finds nothing tells nothing.
    assert seen["misbehaves"] >= 0.6 * seen["not proven"], seen
