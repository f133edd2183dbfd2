"""Kernels that take sizes, of sizes that are known: numbers, wherever they are used."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from alcop_mlir.certificate.api import Report
from alcop_mlir.certificate.certificate import sealed
from alcop_mlir.certificate.preconditions import Array, Preconditions
from alcop_mlir.certificate.search.answers import answered
from alcop_mlir.certificate.state import Requirement
from alcop_mlir.checker.check import check
from alcop_mlir.compilation.certification import certified

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
from certificate_kernels import CASES
from test_global_bounds import kernel

STATIC = CASES[0]  # its loop goes on up to index 191 of the sum
(OPEN,) = (one for one in CASES if one.name == "nn f16 open 3,1")


def with_a_size(text: str) -> str:
    """The static kernel with the end of its loop as a parameter."""
    for old, new in (
        (", 191;", ", %rd999;"),
        ("f_param_2\n", "f_param_2,\n.param .u64 f_param_3\n"),
        ("ld.param.b64", "ld.param.b64 %rd999, [f_param_3];\nld.param.b64"),
    ):
        assert old in text
        text = text.replace(old, new, 1)
    return re.sub(r"%rd<\d+>", "%rd<1000>", text)


def verdict(last: Requirement) -> Report:
    """Of that kernel; the check accepts what is kept of it."""
    one, text = STATIC.launched, with_a_size(STATIC.ptx)
    promised = replace(one.promised, sizes={"f_param_3": last}).with_numbers()
    task = text, one.name, one.threads, one.shared_bytes, {"f_param_3": last}, 60
    report = certified(*task, promised, one.stated)
    assert report.certificate is not None
    check(text, report.certificate)
    return report


def test_a_size_that_is_known() -> None:
    report = verdict(Requirement(191, 191))
    assert report.verdict == "proven", report.misplaced or report.loose
    found = report.certificate
    assert found is not None
    by_numbers = {**found["bounds"], "by_numbers": True}
    text = with_a_size(STATIC.ptx)
    answered(text, sealed({**found, "bounds": by_numbers}))


@pytest.mark.parametrize(
    "last", [Requirement(95, 95), Requirement(288, 288), Requirement(0, 2**20)]
)
def test_a_loop_with_other_turns(last: Requirement) -> None:
    assert not verdict(last).is_placed


def test_an_open_kernel_is_no_worse_with_numbers() -> None:
    """Facts that a size is in are lost where it is a number."""
    one = OPEN.launched
    known = {
        name: Requirement(n, n) for name, n in zip("MNK", (72, 80, 112), strict=True)
    }
    promised = replace(one.promised, sizes=known).with_numbers()
    task = OPEN.ptx, one.name, one.threads, one.shared_bytes, {}, 60
    report = certified(*task, promised)
    assert (report.status, report.is_bounded, report.is_ending) == (
        "proven",
        True,
        True,
    )
    assert report.certificate is not None
    check(OPEN.ptx, report.certificate)


# Word `n` of an array, of thread 0; n may be negative.
_WORD = """
setp.ne.u64 %p1, %d1, 0;
@%p1 bra DONE;
add.s64 %d2, %n, 1;
shl.b64 %d3, %d2, 2;
add.s64 %d4, %a, %d3;
ld.global.f32 %f1, [%d4];
"""


@pytest.mark.parametrize(
    ("n", "is_inside"), [(-1, True), (6, True), (-2, False), (7, False)]
)
def test_an_address_of_a_number(n: int, is_inside: bool) -> None:
    known = {"n": Requirement(n, n)}
    grid = {f"%ctaid.{axis}": ((((1, ()),), 1),) for axis in "xyz"}
    promised = Preconditions({"a": Array(((4 * 8, ()),))}, {}, known, grid)
    text = kernel(_WORD, "a n")
    report = certified(text, "f", None, None, {}, 60, promised.with_numbers())
    assert report.is_bounded == is_inside, report.loose
    assert ("behind" if n > 0 else "before") in report.loose or is_inside


def test_blocks_of_a_part_count() -> None:
    """Numbers of blocks are rounded up; of a size that is open nobody knows them."""
    one = (((1, ()),), 1)
    axes = {"%ctaid.x": ((((72, ()),), 64), (((80, ()),), 32)), "%ctaid.y": (one,)}
    promised = Preconditions(grid={**axes, "%ctaid.z": (one,)})
    assert promised.blocks == 6
    assert promised.requirements()["%ctaid.x"] == Requirement(0, 5)
    is_open = Preconditions(grid={**axes, "%ctaid.z": ((((1, ("n",)),), 2),)})
    assert is_open.blocks is None
    assert "%ctaid.z" not in is_open.requirements()
