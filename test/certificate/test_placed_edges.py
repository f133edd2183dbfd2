"""Results of extents that tiles do not divide: what is outside is 0, or not stored."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from alcop_mlir.certificate.api import Report
from alcop_mlir.checker.check import check
from alcop_mlir.compilation.certification import certified

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
from certificate_kernels import Case, matmul

ROWS = matmul("nn", 20, 64, 96, "block=32,64,32 warp=16,32 stages=2,1")


def verdict(case: Case, text: str) -> Report:
    one = case.launched
    given = (one.name, one.threads, one.shared_bytes, dict(one.requirements), 60)
    return certified(text, *given, one.promised, one.stated)


@pytest.mark.parametrize(
    "case",
    [ROWS, matmul("nn", 1, 64, 96, "block=16,64,32 warp=16,32 stages=2,1")],
    ids=lambda one: one.name,
)
def test_extents_that_tiles_do_not_divide_are_placed(case: Case) -> None:
    report = verdict(case, case.ptx)
    assert report.verdict == "proven", report.misplaced
    assert report.certificate is not None
    check(case.ptx, report.certificate)


@pytest.mark.parametrize(
    ("case", "old", "new"),
    [
        (ROWS, "setp.lt.u32 \t%p3, %r27, 80;", "setp.lt.u32 \t%p3, %r27, 76;"),
        (ROWS, "setp.lt.u32 \t%p3, %r27, 80;", "setp.ge.u32 \t%p3, %r27, 80;"),
        (ROWS, "setp.gt.u64 \t%p5, %rd24, 19;", "setp.gt.u64 \t%p5, %rd24, 18;"),
        (ROWS, "setp.gt.u64 \t%p5, %rd24, 19;", "setp.gt.u64 \t%p5, %rd24, 20;"),
    ],
    ids=["row is 0", "other rows", "row not stored", "row too many"],
)
def test_other_edges_are_not_placed(case: Case, old: str, new: str) -> None:
    """Rows that are read or stored, and rows that are not."""
    assert case.ptx.count(old) == 1
    text = case.ptx.replace(old, new)
    assert case.behaviour(text) != "clean"
    report = verdict(case, text)
    assert report.verdict != "proven"
    assert not report.is_placed
