"""That loops end: shown where each turn has a bound, never elsewhere."""

from __future__ import annotations

import re
from typing import Any

import pytest
from ring_kernels import Ring

from alcop_mlir.certificate.api import Report, certify
from alcop_mlir.certificate.certificate import sealed
from alcop_mlir.certificate.search.answers import Found
from alcop_mlir.certificate.state import Requirement
from alcop_mlir.checker.check import check
from alcop_mlir.errors import CertificateError
from alcop_mlir.runtime.emulator.ptx.parser import parse_ptx

ANY_SIZE = {"n": Requirement(0, 2**31 - 1)}


def verdict(text: str) -> Report:
    report = certify(text, requirements=ANY_SIZE)
    if report.certificate is not None:
        check(text, report.certificate, Found())
    return report


@pytest.mark.parametrize("slots", [2, 4])
def test_a_counter_up_to_a_size_ends(slots: int) -> None:
    assert verdict(Ring(slots, slots - 2).text()).is_ending


def with_loop(body: str) -> str:
    """The ring, with a loop at its end; `%rd25` is 0 before the first turn."""
    loop = f"mov.b64 %rd25, 0;\nLAST:\n  {body}\n  @%p5 bra LAST;\n  ret;"
    return Ring().text().replace("ret;", loop)


@pytest.mark.parametrize(
    ("body", "is_ending"),
    [
        ("add.s64 %rd25, %rd25, 2; setp.lt.s64 %p5, %rd25, %rd3;", True),
        ("sub.s64 %rd25, %rd25, 1; setp.gt.s64 %p5, %rd25, -9;", True),
        ("sub.s64 %rd25, %rd25, 1; setp.gt.s64 %p5, %rd25, %rd3;", True),
        ("add.s64 %rd25, %rd25, 1; setp.ge.s64 %p5, %rd25, 0;", False),
        ("setp.lt.s64 %p5, %rd25, %rd3;", False),
        ("ld.global.b64 %rd26, [%rd1]; setp.ne.s64 %p5, %rd26, 0;", False),
        # The bound grows as fast.
        (
            "add.s64 %rd25, %rd25, 1; add.s64 %rd3, %rd3, 1; "
            "setp.lt.s64 %p5, %rd25, %rd3;",
            False,
        ),
    ],
)
def test_the_last_loop(body: str, is_ending: bool) -> None:
    report = verdict(with_loop(body))
    assert (report.status, report.is_ending) == ("proven", is_ending)


def test_an_unsigned_test_of_what_was_negative() -> None:
    """What LLVM makes of two turns: on while the counter is less than before."""
    body = "mov.b64 %rd26, %rd25; add.s64 %rd25, %rd25, 32; "
    text = with_loop(f"{body}setp.lt.u64 %p5, %rd25, %rd26;")
    text = text.replace("mov.b64 %rd25, 0;", "mov.b64 %rd25, -32;")
    report = verdict(text)
    assert (report.status, report.is_ending) == ("proven", True)


def test_a_skipped_loop_is_not_said_to_end() -> None:
    """Threads leave it at different turns, and it orders nothing."""
    loop = (
        "ODD:\n  add.s32 %r9, %r9, 1;\n  setp.lt.s32 %p7, %r9, %r1;\n  @%p7 bra ODD;\n"
    )
    report = verdict(Ring().text().replace("DONE:", f"  mov.b32 %r9, 0;\n{loop}DONE:"))
    assert (report.status, report.is_ending) == ("proven", False)


def test_the_claim_cannot_be_added() -> None:
    text = with_loop("setp.lt.s64 %p5, %rd25, %rd3;")
    found: dict[str, Any] = certify(text, requirements=ANY_SIZE).certificate or {}
    with pytest.raises(CertificateError, match="wrong about the end of loops"):
        check(text, sealed({**found, "ends": True}), Found())


def test_a_parameter_may_be_named_as_turns_are() -> None:
    """Names of the text and names of proofs are apart."""
    pc = parse_ptx(Ring().text()).kernels["ring"].labels["LOOP"]
    named = re.sub(r"\bn\b", f"n{pc}", Ring().text())
    report = certify(named, requirements={f"n{pc}": ANY_SIZE["n"]})
    assert (report.status, report.is_ending) == ("proven", True)
