"""Results of open sizes that threads copy, and store, element by element."""

from __future__ import annotations

import hashlib
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from placed_cases import verdict

from alcop_mlir.certificate.certificate import sealed
from alcop_mlir.checker.check import check
from alcop_mlir.checker.machine.state import State
from alcop_mlir.checker.placed.open_placing import OpenPlacing
from alcop_mlir.errors import CertificateError

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
from certificate_kernels import Case, open_matmul

PLAIN = open_matmul("nn", "block=32,32,32 warp=16,16 stages=2,1")
ROTATED = open_matmul("nn", "block=32,64,32 warp=16,32 stages=2,1")
# Of the last of eight rows what N is above a multiple of 8 is computed of -N.
TURNED = Case(
    "from 0",
    """
func.func @f(%a: memref<?x?xf16>, %b: memref<?x?xf16>, %c: memref<?x?xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%c : memref<?x?xf32>)
  linalg.matmul ins(%a, %b : memref<?x?xf16>, memref<?x?xf16>)
    outs(%c : memref<?x?xf32>)
  return
}
""",
    "block=64,64,32 warp=32,64 stages=2,1",
)
SUMS = replace(TURNED, schedule="block=32,32,32 warp=16,16 stages=2,1")
BY_ELEMENTS = "f_matmul"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # One turn; none where there is one; what is instead of elements beyond the end.
        ("setp.lt.s64 %p26, %rd210, %rd76;", "setp.lt.s64 %p26, %rd76, %rd210;"),
        ("setp.lt.s64 %p15, %rd76, 1;", "setp.lt.s64 %p15, %rd76, 2;"),
        ("mov.b16 %rs2, 0x0000;", "mov.b16 %rs2, 0x3C00;"),
        # Elements left out along the sum, of A and of B; rows beyond the end.
        ("setp.lt.s32 %p17, %r2, 2;", "setp.lt.s32 %p17, %r2, 3;"),
        ("setp.lt.s32 %p22, %r3, 9;", "setp.lt.s32 %p22, %r3, 17;"),
        ("setp.ge.s64 %p28, %rd54, %rd75;", "setp.gt.s64 %p28, %rd54, %rd75;"),
        ("setp.ge.s64 %p28, %rd54, %rd75;", "setp.ge.s64 %p28, %rd54, 64;"),
    ],
)
def test_elements_one_by_one_are_not_placed_elsewhere(old: str, new: str) -> None:
    old, new = (one.replace(" %", " \t%", 1) for one in (old, new))
    head, entry, body = PLAIN.ptx.partition(f".entry {BY_ELEMENTS}(")
    assert old in body
    text = head + entry + body.replace(old, new, 1)
    report = verdict(PLAIN, text, BY_ELEMENTS)
    assert report.verdict != "proven"
    assert not report.is_placed


@pytest.mark.parametrize(
    ("line", "changed"),
    [
        # Where a row begins in the second half of 32 bytes another element is stored,
        # or nothing.
        (
            "and.b64 %rd387, %rd81, 31;",
            "shr.b32 %r143, %r75, 2; cvt.u64.u32 %rd502, %r143; "
            "and.b64 %rd387, %rd81, 31; xor.b64 %rd387, %rd387, %rd502;",
        ),
        (
            "st.global.b32 [%rd441], %r103;",
            "setp.lt.u32 %p82, %r75, 4; @%p82 st.global.b32 [%rd441], %r103;",
        ),
    ],
)
def test_what_is_wrong_for_some_residues_of_sizes_is_not_placed(
    line: str, changed: str
) -> None:
    head, entry, body = ROTATED.ptx.partition(f".entry {BY_ELEMENTS}(")
    body = body.replace(" \t", " ").replace("%p<82>", "%p<83>")
    body = body.replace("%r<143>", "%r<144>").replace("%rd<502>", "%rd<503>")
    assert body.count(line) == 1
    same = verdict(ROTATED, head + entry + body, BY_ELEMENTS)
    assert same.is_placed, same.misplaced
    report = verdict(ROTATED, head + entry + body.replace(line, changed), BY_ELEMENTS)
    assert report.missing == ("placed",)
    assert not report.is_placed


@pytest.mark.sample(2)
@pytest.mark.parametrize("number", ["0f00000000", "0f3F800000"])
def test_a_sum_of_nothing_is_0(number: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where K is 0 a register holds that: if it is 0, it is as whole as any sum."""
    head, entry, body = SUMS.ptx.partition(f".entry {BY_ELEMENTS}(")
    body = body.replace(" \t", " ")
    (end,) = set(re.findall(r"@%p1 bra (\S+);", body))
    assert body.count("mov.b32 %r58, %r53;") == 1
    other = f"bra.uni OTHER;\nNOTHING: mov.b32 %r58, {number};\n{end}:"
    body = body.replace(f"@%p1 bra {end};", "@%p1 bra NOTHING;")
    assert body.count(f"\n{end}:") == 1
    body = body.replace(f"\n{end}:", f"\n{other}").replace("OTHER", end)
    covered: list[bool] = []
    covers = OpenPlacing.covers

    def look(self: OpenPlacing, key: tuple[int, bytes], state: State) -> bool:
        covered.append(covers(self, key, state))
        return covered[-1]

    monkeypatch.setattr(OpenPlacing, "covers", look)
    report = verdict(SUMS, head + entry + body, BY_ELEMENTS)
    is_right = number == "0f00000000"
    assert any(covered) == is_right
    assert (report.missing == ()) == is_right, report.misplaced
    assert report.is_placed == is_right


def test_columns_that_sizes_turn_are_placed() -> None:
    report = verdict(TURNED, TURNED.ptx, BY_ELEMENTS)
    assert report.verdict == "proven", report.misplaced


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("neg.s32 %r373, %r372;", "mov.b32 %r373, %r372;"),
        ("and.b32 %r374, %r373, 7;", "and.b32 %r374, %r373, 3;"),
        ("sub.s32 %r375, %r4, %r374;", "add.s32 %r375, %r4, %r374;"),
        ("sub.s32 %r377, %r333, %r374;", "sub.s32 %r377, %r4, %r374;"),
        ("and.b32 %r376, %r375, 63;", "and.b32 %r376, %r375, 31;"),
        ("st.global.b32 [%rd930], %r369;", "st.global.b32 [%rd930], %r370;"),
    ],
)
def test_columns_that_are_turned_otherwise_are_not_placed(old: str, new: str) -> None:
    old, new = (one.replace(" ", " \t", 1) for one in (old, new))
    head, entry, body = TURNED.ptx.partition(f".entry {BY_ELEMENTS}(")
    assert body.count(old) == 1
    report = verdict(TURNED, head + entry + body.replace(old, new), BY_ELEMENTS)
    assert not report.is_placed
    assert report.verdict != "proven"


def test_threads_read_what_others_store_in_no_case() -> None:
    """Of sizes that are 4 to 7 above a multiple of 8 the first warp does."""
    head, entry, body = ROTATED.ptx.partition(f".entry {BY_ELEMENTS}(")
    same = head + entry + body.replace(" \t", " ").replace("%p<82>", "%p<83>")
    report = verdict(ROTATED, same, BY_ELEMENTS)
    assert report.verdict == "proven"
    assert report.certificate is not None
    line = "and.b64 %rd387, %rd81, 31;"
    other = (
        f"{line} mov.u32 %r143, %tid.x; setp.lt.u32 %p82, %r143, 32; "
        "selp.b32 %r143, %r75, 0, %p82; and.b32 %r143, %r143, 4; "
        "cvt.u64.u32 %rd502, %r143; shl.b64 %rd502, %rd502, 8; "
        "add.s64 %rd387, %rd387, %rd502;"
    )
    text = same.replace(line, other)
    sha = hashlib.sha256(text.encode()).hexdigest()
    with pytest.raises(CertificateError, match="read that may not be there"):
        check(text, sealed({**report.certificate, "ptx_sha256": sha}))
