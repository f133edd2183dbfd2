"""Instructions that leave another number than one might think.

Each body makes `%p1` true. A kernel that is right where `%p1` is false is not proven.
"""

from __future__ import annotations

import pytest
from odd_kernels import BEHIND, NO_BARRIER, kernel, outcome, verdict

LEAST = "mov.u64 %d1, 0x8000000000000000;"
FEW = "ld.param.u32 %r2, [n]; and.b32 %r2, %r2, 31;"
TRUE = {
    "half of a pair": "mov.u64 %d1, 5; mov.b64 {_, %r2}, %d1; setp.ne.u32 %p1, %r2, 5;",
    "the second predicate": "setp.eq.u32 _|%p1, 1, 2;",
    "not of a number": "mov.u32 %r2, !2; setp.eq.u32 %p1, %r2, 0;",
    "not of a predicate": "mov.pred %p1, !2; not.pred %p1, %p1;",
    "rounded to f32": "mov.f32 %f1, 0d3FF0000000000000; mov.b32 %r2, %f1; "
    "setp.ne.u32 %p1, %r2, 0;",
    "widened to f64": "mov.f64 %d5, 0f3F800000; mov.b64 %d6, %d5; "
    "setp.ne.u64 %p1, %d6, 0x3f800000;",
    "the least number": f"{LEAST} div.s64 %d4, %d1, 2; setp.lt.s64 %p1, %d4, 0;",
    "a count of 32 bits": "mov.u16 %h1, 1; shl.b16 %h2, %h1, 65537; "
    "setp.eq.u16 %p1, %h2, 0;",
    "another count of 32 bits": "cvt.u16.u64 %h1, %n; and.b16 %h1, %h1, 31; "
    "shl.b16 %h2, %h1, 65536; setp.eq.u16 %p1, %h2, 0;",
    "an offset of 8 bits": f"{FEW} bfe.u32 %r3, %r2, 256, 8; setp.gt.u32 %p1, %r3, 0;",
    "a length of 8 bits": f"{FEW} bfe.u32 %r3, %r2, 0, -1; setp.gt.u32 %p1, %r3, 0;",
    "a wide number is added": "mad.wide.u32 %d4, %r1, 4, 0x100000000; "
    "setp.gt.u64 %p1, %d4, 0xffffffff;",
    "a negative one is added": "mad.wide.s32 %d4, %r1, 4, -1000; "
    "setp.lt.s64 %p1, %d4, 0;",
    "to a size one is added": f"{FEW} mov.u64 %d5, 0x100000000; "
    "mad.wide.u32 %d4, %r2, 4, %d5; setp.gt.u64 %p1, %d4, 0xffffffff;",
    "to nothing multiplied one is added": f"{FEW} mad.hi.u32 %r3, %r2, 0, 7; "
    "setp.eq.u32 %p1, %r3, 7;",
    "halves under a guard": "ld.global.u32 %r5, [%a]; setp.eq.u32 %p2, %r5, 0; "
    "mov.u32 %r2, 0; mov.u32 %r3, 0; mov.u64 %d1, 0x100000000; "
    "@%p2 mov.b64 {%r2, %r3}, %d1; setp.ne.u32 %p1, %r2, %r3;",
    "a predicate is no lowest bit": "mov.pred %p1, 2;",
    "where shared memory begins": "mov.u32 %r2, buffer; setp.ne.u32 %p1, %r2, 0;",
    "twice where it begins": "mov.u32 %r2, buffer; shl.b32 %r2, %r2, 1; "
    "cvt.u64.u32 %d1, %r2; setp.ne.u64 %p1, %d1, 0;",
    "a generic address": "mov.u64 %d5, 0; cvta.shared.u64 %d6, %d5; "
    "setp.ne.u64 %p1, %d6, 0;",
    "from a generic address": "mov.u64 %d5, 5; cvta.to.shared.u64 %d6, %d5; "
    "setp.ne.u64 %p1, %d6, 5;",
    "no debugger": "mov.pred %p1, 1; brkpt;",
    "a label of two scopes": "mov.u32 %r3, 0; { bra X; X: mov.u32 %r3, 1; } { X: } "
    "setp.eq.u32 %p1, %r3, 1;",
    "segments of a warp": "shfl.sync.idx.b32 %r2, %r1, 1, 0x1c1f, -1; "
    "and.b32 %r3, %r1, 28; or.b32 %r3, %r3, 1; setp.eq.u32 %p1, %r2, %r3;",
    "the last lane of a warp": "shfl.sync.idx.b32 %r2, %r1, 5, 3, -1; "
    "setp.ne.u32 %p1, %r2, 5;",
}


@pytest.mark.parametrize("misbehaves", [BEHIND, NO_BARRIER], ids=["global", "shared"])
@pytest.mark.parametrize("body", TRUE.values(), ids=TRUE.keys())
def test_what_is_wrong_where_a_predicate_holds(body: str, misbehaves: str) -> None:
    text = kernel(body + misbehaves)
    assert outcome(text) != "clean"
    for is_open in (False, True):
        report = verdict(text, is_open)
        assert report.status != "proven" or not report.is_bounded
        assert report.status != "proven" or misbehaves == BEHIND


def test_what_is_right_where_it_does_not_hold() -> None:
    """So that the others are not proven for what makes it true."""
    no = "setp.eq.u32 %p1, 1, 2;"
    for text in (kernel(no + BEHIND), kernel(no + NO_BARRIER)):
        assert outcome(text) == "clean"
        for is_open in (False, True):
            report = verdict(text, is_open)
            assert report.status == "proven"
            assert report.is_bounded


CARRY = "add.cc.u32 %r2, %r1, 0xfffffff0; addc.u32 %r3, 0, 0;"
TURNED = "mov.b32 %r2, 65536; movmatrix.sync.aligned.m8n8.trans.b16 %r3, %r2;"
HALF = """
setp.ne.u32 %p1, %r3, 0;
mov.u32 %r6, buffer;
shl.b32 %r4, %r1, 2;
xor.b32 %r5, %r4, 80;
add.u32 %r4, %r6, %r4;
add.u32 %r5, %r6, %r5;
@%p1 st.shared.u32 [%r5], %r1;
@!%p1 st.shared.u32 [%r4], %r1;
"""


@pytest.mark.parametrize("made", [CARRY, TURNED])
def test_operands_that_all_share_do_not_say_all(made: str) -> None:
    """Half of the threads store where the other half does."""
    text = kernel(made + HALF)
    assert "write-after-write" in outcome(text)
    assert verdict(text, False).status != "proven"


@pytest.mark.parametrize("kind", ["acquire.gpu", "relaxed.sys", "volatile", "weak"])
def test_loads_of_what_others_change(kind: str) -> None:
    """Two threads may read two values: of weak ones it is assumed that none do."""
    load = f"ld.{kind}.global.u32 %r3, [%a];"
    report = verdict(kernel(load + HALF), False)
    assert (report.status == "proven") == (kind == "weak")


def test_a_scope_ends_for_the_name_of_a_register() -> None:
    """In it `%r5` is the outer one: the inner ones end at `%r3`."""
    inner = "{ .reg .b32 %r<4>; mov.u32 %r5, 2; }"
    body = f"mov.u32 %r5, 1; {inner} setp.eq.u32 %p1, %r5, 2;"
    assert not verdict(kernel(body + BEHIND), False).is_bounded
    body = f"mov.u32 %r5, 1; {inner.replace('%r5', '%r3')} setp.eq.u32 %p1, %r5, 2;"
    assert verdict(kernel(body + BEHIND), False).is_bounded
    assert outcome(kernel(body + BEHIND)) == "clean"


WORD = "mov.u32 %r4, buffer; shl.b32 %r3, %r1, 2; add.u32 %r2, %r4, %r3;"
COPY = "cp.async.ca.shared.global [%r2], [%a], 4; cp.async.commit_group;"
LOAD, STORE = "ld.shared.u32 %r5, [%r4];", "st.shared.u32 [%r4], %r1;"
WAIT, WARP = "cp.async.wait_group 0;", "bar.warp.sync -1;"


@pytest.mark.parametrize("access", [LOAD, STORE])
@pytest.mark.parametrize("order", [(WARP, WAIT), (WAIT, WARP)])
def test_a_warp_waits_for_its_copies(order: tuple[str, str], access: str) -> None:
    """Before they meet: else one thread knows of its own copies only."""
    text = kernel(
        WORD
        + "xor.b32 %r3, %r3, 4; add.u32 %r4, %r4, %r3;"
        + COPY
        + "".join(order)
        + access
    )
    is_right = order == (WAIT, WARP)
    assert (outcome(text) == "clean") == is_right
    assert (verdict(text, False).status == "proven") == is_right


BEYOND = "add.s64 %d2, %a, 65536; mov.u32 %r2, buffer; shl.b32 %r3, %r1, 4;"
BEYOND += "add.u32 %r2, %r2, %r3; .reg .pred q; setp.eq.u32 q, 1, 2; not.pred %p1, q;"


@pytest.mark.parametrize("ignored", ["q", "!%p1"])
@pytest.mark.parametrize("is_open", [False, True])
def test_a_predicate_that_ignores_the_source(ignored: str, is_open: bool) -> None:
    copy = f"cp.async.ca.shared.global [%r2], [%d2], 16, {ignored}; cp.async.wait_all;"
    assert not verdict(kernel(BEYOND + copy), is_open).is_bounded


def test_what_discards_bytes_accesses_them() -> None:
    text = kernel("add.s64 %d2, %a, 65536; discard.global.L2 [%d2], 128;")
    assert not verdict(text, False).is_bounded


def test_a_parameter_of_a_call_is_none_of_the_kernel() -> None:
    body = "{ .param .b64 n; ld.param.b64 %d5, [n]; }"
    assert verdict(kernel(body), False).certificate is None


def test_registers_of_vectors_are_not_followed() -> None:
    body = ".reg .v2 .b32 %v; mov.u32 %v.x, 5; mov.u32 %v.y, 6;"
    assert verdict(kernel(body), False).certificate is None


def test_a_mask_of_several_signs_ends_nothing() -> None:
    """Of what no rule says, nothing is known."""
    body = "ld.param.u32 %r2, [n]; add.u32 %r2, %r2, %r1; sub.s32 %r3, %r1, 16;"
    body += "and.b32 %r4, %r2, %r3; setp.eq.u32 %p1, %r4, 77;"
    assert outcome(kernel(body + BEHIND)) == "clean"
    assert not verdict(kernel(body + BEHIND), True).is_bounded


@pytest.mark.parametrize(
    "place",
    [
        "mov.u32 %r2, 64;",
        "mov.u32 %r2, buffer; shl.b32 %r2, %r2, 1;",
        "mov.u32 %r2, buffer; mov.u32 %r3, buffer; sub.u32 %r2, %r2, %r3;",
        "mov.u32 %r2, 0; setp.eq.u32 %p1, %r1, 40; @%p1 mov.u32 %r2, buffer;",
    ],
)
def test_an_address_of_no_variable(place: str) -> None:
    """It is known behind where shared memory begins, and nobody knows where that is."""
    text = kernel(
        place + "shl.b32 %r4, %r1, 2; add.u32 %r2, %r2, %r4;st.shared.u32 [%r2], %r1;"
    )
    assert "shared access" in outcome(text)
    report = verdict(text, False)
    assert report.status == "outside", report.verdict


def test_an_address_of_another_lane_is_one() -> None:
    """As CuTe has it: the first lane's, which is the same in all."""
    text = kernel(
        "mov.u32 %r2, buffer; shfl.sync.idx.b32 %r2, %r2, 0, 31, -1;"
        "shl.b32 %r4, %r1, 2; add.u32 %r2, %r2, %r4; st.shared.u32 [%r2], %r1;"
    )
    assert outcome(text) == "clean"
    assert verdict(text, False).status == "proven"


@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize(("size", "is_right"), [("8", False), ("4", True)])
def test_a_copy_of_more_than_it_has(size: str, is_right: bool, is_open: bool) -> None:
    """PTX does not say what a source size does that is larger than the copy."""
    copy = "cp.async.ca.shared.global [%r2], [%a], 4, %r5; cp.async.wait_all;"
    text = kernel(WORD + f"mov.u32 %r5, {size};" + copy)
    assert (outcome(text) == "clean") == is_right
    assert verdict(text, is_open).is_bounded == is_right
