"""Loops with few turns, left where a counter is a number: each turn is its own."""

from __future__ import annotations

import pytest
from ring_kernels import Ring

from alcop_mlir.certificate.api import Report, certify
from alcop_mlir.certificate.search.answers import Found
from alcop_mlir.checker.check import check


def ring_and(ending: str) -> str:
    """A kernel with a ring of four slots, and what follows its loop."""
    return Ring(4, 2).text().replace("ret;", ending)


def verdict(turns: int, step: int = -16) -> Report:
    """Of a loop that stores a word of each slot of four in its turn."""
    text = ring_and(f"""
  bar.sync 0;
  mov.b64 %rd25, 0;
  mov.b64 %rd26, %rd7;
LAST:
  st.shared.b32 [%rd26], %r5;
  add.s64 %rd26, %rd26, 256;
  add.s64 %rd25, %rd25, {step};
  setp.ne.s64 %p5, %rd25, {step * turns};
  @%p5 bra LAST;
  ret;""")
    report = certify(text)
    if report.certificate is not None:
        check(text, report.certificate, Found())
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


def test_a_loop_is_met_again_with_addresses_of_threads() -> None:
    """Those of the copies inside are the same each time that the loop starts."""
    text = ring_and("""
  bar.sync 0;
  mov.b64 %rd28, 0;
OUTER:
  mov.b64 %rd25, 0;
  mov.b64 %rd26, %rd7;
LAST:
  cp.async.ca.shared.global [%rd26], [%rd5], 4;
  cp.async.commit_group;
  add.s64 %rd26, %rd26, 256;
  add.s64 %rd25, %rd25, 1;
  setp.ne.s64 %p5, %rd25, 4;
  @%p5 bra LAST;
  cp.async.wait_all;
  bar.sync 0;
  add.s64 %rd28, %rd28, 1;
  setp.lt.s64 %p6, %rd28, %rd3;
  @%p6 bra OUTER;
  ret;""")
    report = certify(text)
    assert report.certificate is not None, report.verdict
    assert any(head["spreads"] for head in report.certificate["heads"])
    check(text, report.certificate, Found())


@pytest.mark.parametrize(
    ("first", "again", "status"),
    [(512, "0", "proven"), (768, "0", "not proven"), (512, "-1", "not proven")],
)
def test_a_predicate_counts_two_turns(first: int, again: str, status: str) -> None:
    """One that is true in the first turn; what is stored is behind the end else."""
    text = ring_and(f"""
  bar.sync 0;
  add.s64 %rd26, %rd7, {first};
  mov.pred %p0, -1;
LAST:
  mov.pred %p7, %p0;
  bar.sync 0;
  st.shared.b32 [%rd26], %r5;
  add.s64 %rd26, %rd26, 256;
  mov.pred %p0, {again};
  @%p7 bra LAST;
  ret;""")
    report = certify(text)
    assert report.status == status, report.verdict
    if report.certificate is not None:
        check(text, report.certificate, Found())
    elif again == "0":
        assert report.finding is not None
        assert report.finding.rule == "bounds"
