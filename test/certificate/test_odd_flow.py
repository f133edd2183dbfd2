"""What is known where ways meet: of arms of a branch, and of the turn before."""

from __future__ import annotations

import hashlib

import pytest
from odd_kernels import ANY_SIZE, kernel, outcome, verdict

from alcop_mlir.certificate.api import certify
from alcop_mlir.certificate.certificate import sealed
from alcop_mlir.certificate.search.answers import Found
from alcop_mlir.checker.check import check
from alcop_mlir.errors import CertificateError

START = """
mov.u32 %r18, buffer;
shl.b32 %r15, %r1, 2;
add.u32 %r16, %r18, %r15;
"""
CARRIED = """
ld.global.u32 %r2, [%a];
setp.eq.u32 %p4, %r2, 0;
mov.u32 %r3, 0;
LOOP:
setp.eq.u32 %p5, %r3, 0;
@%p5 bra FIRST;
shl.b32 %r5, %r3, 7;
add.u32 %r14, %r5, %r16;
xor.b32 %r13, %r15, 4;
add.u32 %r17, %r13, %r18;
add.u32 %r17, %r17, %r5;
st.shared.u32 [%r14], %r1;
@!%p4 bra PAST;
bar.sync 0;
PAST:
ld.shared.u32 %r19, [%r17];
bra.uni DONE;
FIRST:
@!%p4 bra DONE;
mov.u32 %r3, 1;
ld.global.u32 %r2, [%a+4];
{again}
bra.uni LOOP;
DONE:
"""
AGAIN = "setp.ne.u32 %p4, %r2, 0;"


@pytest.mark.parametrize(("again", "is_right"), [("", True), (AGAIN, False)])
def test_a_predicate_that_the_turn_sets_anew(again: str, is_right: bool) -> None:
    """The turn before has gone on where it held; that says nothing of the new one."""
    text = kernel(START + CARRIED.format(again=again))
    assert (outcome(text) == "clean") == is_right
    assert (verdict(text, False).status == "proven") == is_right


ARMS = """
xor.b32 %r13, %r15, 64;
add.u32 %r17, %r13, %r18;
ld.global.u32 %r7, [%a];
ld.param.u32 %r6, [n];
setp.lt.u32 %p2, %r1, 16;
setp.gt.u32 %p3, %r1, 1000;
mov.u32 %r5, 0;
@%p2 bra FEW;
add.u32 %r6, %r6, 1;
@%p3 bra JOIN;
bra.uni BOTH;
FEW:
and.b32 %r6, %r6, 7;
BOTH:
mul.lo.u32 %r5, %r6, %r7;
JOIN:
setp.eq.u32 %p1, {tested}, 0;
@%p1 st.shared.u32 [%r17], %r1;
@!%p1 st.shared.u32 [%r16], %r1;
"""


def test_what_both_arms_make_is_not_the_same() -> None:
    """Of the kernel that tests what is loaded instead the certificate is no other's."""
    right, wrong = (kernel(START + ARMS.format(tested=r)) for r in ("%r7", "%r5"))
    assert outcome(right, 1) == "clean"
    assert "write-after-write" in outcome(wrong, 1)
    assert certify(wrong).status != "proven"
    found = certify(right).certificate
    assert found is not None
    digest = hashlib.sha256(wrong.encode()).hexdigest()
    with pytest.raises(CertificateError):
        check(wrong, sealed({**found, "ptx_sha256": digest}), Found())


COUNTED = """
xor.b32 %r13, %r15, 4;
add.u32 %r17, %r13, %r18;
mov.u32 %r6, 0;
mov.u64 %d1, 0;
setp.lt.s64 %p2, %n, 1;
@%p2 bra DONE;
LOOP:
setp.ge.s32 %p1, %r6, 0x40000000;
st.shared.u32 [%r16], %r1;
@%p1 bra PAST;
bar.sync 0;
PAST:
ld.shared.u32 %r19, [%r17];
bar.sync 0;
add.u32 %r6, %r6, 0x20000000;
add.u64 %d1, %d1, 1;
setp.lt.u64 %p2, %d1, %n;
@%p2 bra LOOP;
DONE:
"""


def test_a_counter_beyond_half_of_its_range() -> None:
    """Where it does not wrap around: what a proof says of it is listed as assumed."""
    text = kernel(START + COUNTED)
    assert outcome(text) != "clean"
    assumed = "counters of loops stay in half of the range of their registers"
    report = certify(text, requirements={"n": ANY_SIZE})
    assert report.status != "proven" or assumed in report.assumptions
