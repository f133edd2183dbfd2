"""Proofs on rings of slots, against runs on the emulator at many trip counts."""

from __future__ import annotations

import itertools

import pytest
from ring_kernels import Ring, misbehaves

from alcop_mlir.certificate.api import Report, certify
from alcop_mlir.certificate.state import Requirement
from alcop_mlir.certificate.superfluous import superfluous

TURNS = (0, 1, 3, 5)
ANY_SIZE = {"n": Requirement(0, 2**31 - 1)}


def verdict(ring: Ring) -> Report:
    return certify(ring.text(), requirements=ANY_SIZE)


@pytest.mark.parametrize("slots", [2, 3, 4, 5])
def test_a_ring_is_proven_at_all_trip_counts(slots: int) -> None:
    report = verdict(Ring(slots, slots - 2))
    assert (report.status, report.is_fresh) == ("proven", True)
    assert report.seconds < 5
    assert not any(misbehaves(Ring(slots, slots - 2), n) for n in TURNS)


@pytest.mark.parametrize("waits", [0, 1])
def test_a_stricter_wait_is_proven_too(waits: int) -> None:
    assert verdict(Ring(4, waits)).status == "proven"


def test_what_may_misbehave_is_never_proven() -> None:
    """All forms of a ring: what has hazards at any trip count that is tried, or wrong
    results, is not proven, or not to read what is fresh. All others are proven.
    """
    proven = 0
    for slots, waits, barrier, early, committed, counted in itertools.product(
        (2, 3), (None, 0, 1), (True, False), (True, False), (True, False), (-1, 0)
    ):
        ring = Ring(slots, waits, barrier, early, committed, 0, slots + counted)
        report = verdict(ring)
        is_wrong = any(misbehaves(ring, n) for n in TURNS)
        if is_wrong:
            assert report.status != "proven" or not report.is_fresh, ring
            assert report.status != "proven" or not report.is_steady, ring
        else:
            assert report.status == "proven", (ring, report)
            proven += report.is_fresh
    assert proven == 4


def test_the_alarm_says_where() -> None:
    """Both lines, the threads, the byte, and the turn of the loop."""
    ring = Ring(3, 2)
    finding = verdict(ring).finding
    lines = ring.text().split("\n")
    assert finding is not None
    assert finding.rule == "not landed"
    assert lines[finding.line - 1].strip().startswith("ld.shared")
    assert finding.other is not None
    assert "cp.async.ca" in lines[finding.other - 1]
    assert finding.threads == (0, 1)
    assert finding.address == 4
    assert [turn for _, turn in finding.turns] == ["turn 0"]


def test_without_the_promise_that_it_is_no_huge_number_more_is_unknown() -> None:
    report = certify(Ring().text(), requirements={})
    assert report.status == "proven"  # a counter up to n needs no more


def test_a_barrier_that_nothing_needs_is_found() -> None:
    text = Ring().text().replace("bar.sync 0;", "bar.sync 0;\n  bar.sync 0;")
    line = text[: text.index("bar.sync")].count("\n") + 1
    arguments = ("ring", None, None, ANY_SIZE, 60)
    found = superfluous(text, *arguments)
    assert [(one.line, one.text, one.together) for one in found[:2]] == [
        (line, "bar.sync 0", True),
        (line + 1, "bar.sync 0", False),
    ]
    once = [(one.text, one.together) for one in superfluous(Ring().text(), *arguments)]
    assert once == [("cp.async.wait_all", True)]  # of groups without copies


def test_outside_says_which_line() -> None:
    text = Ring().text().replace("bar.sync 0;", "bar.sync 1, 32;", 1)
    report = certify(text, requirements=ANY_SIZE)
    assert (report.status, report.line) == (
        "outside",
        text[: text.index("bar.sync 1")].count("\n") + 1,
    )
    assert "other than all threads" in report.why


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (".reqntid 64, 1, 1", ".reqntid 32, 2, 1", "more than one dimension"),
        ("mov.u32 %r1, %tid.x;", "mov.u32 %r1, %warpid;", "of known numbers"),
        ("ld.shared.b32 %r6", "ld.shared::cluster.b32 %r6", "not modelled"),
        ("ld.shared.b32 %r6, [%rd15]", "ld.b32 %r6, [%rd15]", "no known state space"),
        ("bar.sync 0;", "mbarrier.inval.shared.b64 [%rd6];", "not modelled"),
    ],
)
def test_what_the_model_does_not_have_is_outside(old: str, new: str, why: str) -> None:
    text = Ring().text()
    assert old in text
    report = certify(text.replace(old, new), requirements=ANY_SIZE)
    assert report.status == "outside"
    assert why in report.why


def test_a_proof_that_takes_too_long_is_none() -> None:
    report = certify(Ring().text(), requirements=ANY_SIZE, seconds=0)
    assert (report.status, report.why) == (
        "not proven",
        "no proof and no alarm in the time that was given",
    )
