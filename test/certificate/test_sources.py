"""The right tile in every slot: loads that read their turn's bytes, and that do not."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from ring_kernels import steady_ring as ring

from alcop_mlir.certificate.api import Report, certify
from alcop_mlir.certificate.certificate import sealed
from alcop_mlir.certificate.search.answers import Found
from alcop_mlir.certificate.state import Requirement
from alcop_mlir.checker.check import check
from alcop_mlir.errors import CertificateError

ANY_SIZE = {"n": Requirement(0, 2**31 - 1)}


def verdict(text: str) -> Report:
    report = certify(text, requirements=ANY_SIZE)
    if report.certificate is not None:
        check(text, report.certificate, Found())
    return report


@pytest.mark.parametrize("slots", [2, 3, 5])
def test_a_ring_reads_the_tile_of_each_turn(slots: int) -> None:
    report = verdict(ring(slots))
    assert (report.status, report.is_steady) == ("proven", True)
    assert report.certificate is not None
    ((steps),) = report.certificate["steady"].values()
    assert list(steps.values()) == [256]  # bytes of a tile


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # The tile of this turn once more, not that of two turns later.
        ("add.s64 %rd25, %rd5, 512;", "mov.b64 %rd25, %rd5;"),
        # Every other tile.
        ("add.s64 %rd25, %rd25, 256;", "add.s64 %rd25, %rd25, 512;"),
        # The next thread's word.
        ("[%rd22+0], [%rd24], 4;", "[%rd22+0], [%rd24+4], 4;"),
        # The second tile at first.
        ("[%rd7+0], [%rd5+0], 4;", "[%rd7+0], [%rd5+256], 4;"),
        # From an address that is loaded.
        ("mov.b64 %rd24, %rd25;", "ld.global.b64 %rd24, [%rd25];"),
    ],
)
def test_wrong_tiles_are_not_steady(old: str, new: str) -> None:
    text = ring()
    assert old in text
    report = verdict(text.replace(old, new))
    assert (report.status, report.is_steady) == ("proven", False)


def steady() -> dict[str, Any]:
    found = verdict(ring()).certificate
    assert found is not None
    return found


def test_another_step_is_refused() -> None:
    found = copy.deepcopy(steady())
    (steps,) = found["steady"].values()
    (head,) = steps
    for step in (0, 255, 257):
        steps[head] = step
        with pytest.raises(CertificateError, match="not of its turn"):
            check(ring(), sealed(found), Found())


def test_a_load_that_is_not_listed_is_refused() -> None:
    with pytest.raises(CertificateError, match="where a load's bytes come from"):
        check(ring(), sealed({**steady(), "steady": {}}), Found())


def test_another_turn_is_refused() -> None:
    """What is listed of a known turn is not what later turns hold."""
    found = copy.deepcopy(steady())
    for head in found["heads"]:
        for name in head["turns"]:
            head["turns"][name] += 1
    with pytest.raises(CertificateError, match="is not listed"):
        check(ring(), sealed(found), Found())


def test_of_wrong_tiles_the_claim_cannot_be_made() -> None:
    text = ring().replace("[%rd24], 4;", "[%rd24+4], 4;")
    found = verdict(text).certificate
    assert found is not None
    listed = {**found, "steady": steady()["steady"]}
    with pytest.raises(CertificateError):
        check(text, sealed(listed), Found())


@pytest.mark.parametrize("shift", ["shl.b64 %rd30, %rd31, 7;", "mov.b64 %rd30, %rd31;"])
def test_rows_of_an_unknown_block(shift: str) -> None:
    """Low bits of what is shifted are known to be 0: others may be put there."""
    first = f"""ld.global.b64 %rd31, [%rd2];
  {shift}
  and.b64 %rd29, %rd4, 127;
  or.b64 %rd29, %rd29, %rd30;
  add.s64 %rd5, %rd5, %rd29;
  mov.b32 %r5, 0;"""
    report = verdict(ring().replace("mov.b32 %r5, 0;", first))
    assert (report.status, report.is_steady) == ("proven", "shl" in shift)
