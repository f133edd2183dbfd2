"""Compiled kernels: what is proven of them, and that the checker accepts it."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from alcop_mlir.certificate.api import certify
from alcop_mlir.certificate.superfluous import superfluous
from alcop_mlir.checker.check import check
from alcop_mlir.compilation.certification import certify_bundle

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
from certificate_kernels import CASES

NAMES = ("nt bf16 K open 2,2", "nn f16 3,2", "attention")
# Of CPU time: what a launcher waits; more where bounds are of sizes that are not known.
CHECK_SECONDS, OPEN_SECONDS = 1.0, 2.0


@pytest.mark.parametrize("name", NAMES)
def test_all_ways_of_launching_are_proven(name: str) -> None:
    """Also where one loop is skipped and another one comes next."""
    (case,) = (one for one in CASES if one.name == name)
    for report in certify_bundle(case.bundle, 60):
        assert report.status == "proven", report.verdict
        start = time.process_time()
        check(case.ptx, report.certificate)
        limit = OPEN_SECONDS if "open" in name else CHECK_SECONDS
        assert time.process_time() - start < limit
        assert report.is_bounded, report.loose


def test_nothing_is_superfluous() -> None:
    """Each wait, barrier and commit is needed, those of the last turns too."""
    (case,) = (one for one in CASES if one.name == "nt f16 2,1")
    one = case.launched
    given = (one.name, one.threads, one.shared_bytes, dict(one.requirements), 60)
    assert certify(case.ptx, *given).is_fresh
    assert superfluous(case.ptx, *given) == []
