"""Loops with few turns, left where a counter is a number: each turn is its own."""

from __future__ import annotations

import pytest
from ring_kernels import Ring

from alcop_mlir.certificate.api import Report, certify
from alcop_mlir.checker.check import check


def verdict(turns: int, step: int = -16) -> Report:
    """Of a loop that stores a word of each slot of four in its turn."""
    text = (
        Ring(4, 2)
        .text()
        .replace(
            "ret;",
            f"""
  bar.sync 0;
  mov.b64 %rd25, 0;
  mov.b64 %rd26, %rd7;
LAST:
  st.shared.b32 [%rd26], %r5;
  add.s64 %rd26, %rd26, 256;
  add.s64 %rd25, %rd25, {step};
  setp.ne.s64 %p5, %rd25, {step * turns};
  @%p5 bra LAST;
  ret;""",
        )
    )
    report = certify(text)
    if report.certificate is not None:
        check(text, report.certificate)
    return report


@pytest.mark.parametrize("turns", [1, 2, 4])
@pytest.mark.parametrize("step", [-16, 1])
def test_all_turns_stay_in_their_slots(turns: int, step: int) -> None:
    report = verdict(turns, step=step)
    assert report.status == "proven", report.verdict


def test_one_turn_more_is_out_of_bounds() -> None:
    report = verdict(5)
    assert report.finding is not None
    assert report.finding.rule == "bounds"
