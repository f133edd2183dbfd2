"""Accesses to global memory: inside of arrays under what callers promise, or not shown.

Each guard that is weakened by one makes an access that may be outside.
"""

from __future__ import annotations

import copy
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from alcop_mlir.certificate.certificate import sealed
from alcop_mlir.certificate.preconditions import Array, Preconditions
from alcop_mlir.certificate.search.answers import Found
from alcop_mlir.certificate.state import Requirement
from alcop_mlir.checker.check import check
from alcop_mlir.compilation.certification import certified, launched_kernels
from alcop_mlir.errors import CertificateError

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
from certificate_kernels import CASES
from ring_kernels import steady_ring

_OPEN = (None, None, {}, 60)
SIDES = "before", "behind", "in none of the bytes of"
SIZE = Requirement(0, 2**31 - 1)


def kernel(body: str, parameters: str) -> str:
    listed = ", ".join(f".param .u64 {name}" for name in parameters.split())
    loads = "\n".join(
        f"ld.param.u64 %{name}, [{name}];\n" for name in parameters.split()
    )
    registers = ", ".join(f"%{name}" for name in parameters.split())
    return f"""
.version 8.0
.target sm_80
.address_size 64
.visible .entry f({listed})
.reqntid 128, 1, 1
{{
.reg .pred %p<9>;
.reg .f32 %f<9>;
.reg .b32 %r<9>;
.reg .b64 %d<20>, {registers};
{loads}
mov.u32 %r1, %tid.x;
mov.u32 %r2, %ctaid.x;
mov.u32 %r3, %ctaid.y;
mov.u32 %r4, %ctaid.z;
cvt.u64.u32 %d1, %r1;
{body}
DONE:
ret;
}}
"""


# One element of each matrix of a batch by each thread, plus one of its column.
_ADDRESS = """
mul.wide.u32 %d2, %r3, 16;
mul.wide.u32 %d3, %r2, 8;
cvt.u64.u32 %d4, %r4;
shr.u64 %d5, %d1, 3;
and.b64 %d6, %d1, 7;
or.b64 %d7, %d2, %d5;
or.b64 %d8, %d3, %d6;
"""
_ACCESS = """
mul.lo.s64 %d9, %d4, %stride;
mad.lo.s64 %d10, %d7, %lda, %d9;
add.s64 %d11, %d10, %d8;
shl.b64 %d11, %d11, 2;
add.s64 %d12, %a, %d11;
ld.global.f32 %f1, [%d12];
shl.b64 %d13, %d8, 2;
add.s64 %d14, %bias, %d13;
ld.global.f32 %f2, [%d14];
add.f32 %f3, %f1, %f2;
mad.lo.s64 %d15, %d4, %m, %d7;
mad.lo.s64 %d15, %d15, %n, %d8;
shl.b64 %d15, %d15, 2;
add.s64 %d16, %c, %d15;
st.global.f32 [%d16], %f3;
"""
_GUARDS = """
setp.ge.s64 %p1, %d7, %m;
@%p1 bra DONE;
setp.ge.s64 %p2, %d8, %n;
@%p2 bra DONE;
"""
_BATCH = "a bias c m n lda stride"


def of_batch(rows: str = "m", columns: str = "n", batches: str = "b") -> Preconditions:
    """4 * ((b - 1) * stride + (m - 1) * lda + n) bytes, and those of C and a bias."""
    b, m, n = (((1, (name,)),) for name in (batches, rows, columns))
    strided = (
        *((4, (batches, "stride")), (-4, ("stride",)), (4, (rows, "lda"))),
        *((-4, ("lda",)), (4, (columns,))),
    )
    arrays = {
        "a": Array(strided, (b, m, n)),
        "bias": Array(((4, (columns,)),)),
        "c": Array(((4, (batches, rows, columns)),)),
    }
    sizes = {name: SIZE for name in ("b", "m", "n", "lda", "stride")}
    grid = {"%ctaid.z": ((((1, ("b",)),), 1),)}
    return Preconditions(arrays, {}, sizes, grid)


def bounded(text: str, promised: Preconditions) -> bool:
    """Whether it is shown; else the line that is named has an access."""
    report = certified(text, "f" if "entry f(" in text else "ring", *_OPEN, promised)
    assert report.status == "proven", report.verdict
    assert report.certificate is not None
    check(text, report.certificate)
    if report.is_bounded:
        assert not report.loose
        return True
    line, why, access = report.loose.removeprefix("line ").split(": ")
    assert access in text.split("\n")[int(line) - 1]
    assert why in (
        "its address is not known",
        "its address is not computed of one array's",
        *(
            f"it may be {side} the array of {n}"
            for side in SIDES
            for n in promised.arrays
        ),
    )
    return False


def test_rows_columns_and_batches() -> None:
    text = kernel(_ADDRESS + _GUARDS + _ACCESS, _BATCH)
    assert bounded(text, of_batch())


@pytest.mark.parametrize("register", ["%d7, %m", "%d8, %n"])
def test_a_guard_that_is_off_by_one(register: str) -> None:
    """`row <= m` lets one more row through."""
    text = kernel(_ADDRESS + _GUARDS + _ACCESS, _BATCH)
    old = f", {register}"
    line = next(
        one for one in text.split("\n") if one.startswith("setp") and old in one
    )
    assert not bounded(text.replace(line, line.replace(".ge", ".gt")), of_batch())


@pytest.mark.parametrize("number", [1, 2])
def test_a_guard_that_is_missing(number: int) -> None:
    text = kernel(_ADDRESS + _GUARDS + _ACCESS, _BATCH)
    assert not bounded(text.replace(f"@%p{number} bra DONE;", ""), of_batch())


# A number of 32 bits that may be negative, as one of 64 bits without a sign.
_WAYS = """
sub.s64 %d2, %n, %m;
sub.s64 %d2, %d2, %k;
cvt.u32.u64 %r5, %n;
cvt.u32.u64 %r6, %m;
cvt.u32.u64 %r7, %k;
sub.s32 %r5, %r5, %r6;
sub.s32 %r5, %r5, %r7;
setp.lt.s64 %p1, %d2, -1000;
@%p1 bra DONE;
setp.lt.s64 %p2, %d2, 0;
@%p2 bra BELOW;
cvt.s64.s32 %d3, %r5;
bra JOIN;
BELOW:
cvt.s64.s32 %d3, %r5;
JOIN:
cvt.u32.u64 %r8, %d3;
cvt.u64.u32 %d4, %r8;
setp.lt.s64 %p3, %d4, %least;
@%p3 bra DONE;
setp.ge.s64 %p4, %d3, %most;
@%p4 bra DONE;
shl.b64 %d5, %d4, 2;
add.s64 %d5, %a, %d5;
ld.global.f32 %f1, [%d5];
"""


@pytest.mark.parametrize("way", ["lt", "ge"])
def test_where_ways_meet_no_range_is_that_of_one_of_them(way: str) -> None:
    """What is not below 0 on the way that comes first may be on the other one."""
    names = "n m k least most"
    arrays = {"a": Array(((4, ("most",)),))}
    given = Preconditions(arrays, {}, dict.fromkeys(names.split(), SIZE), {})
    text = kernel(_WAYS, f"a {names}")
    assert not bounded(text.replace("setp.lt.s64 %p2", f"setp.{way}.s64 %p2"), given)
    alone = text.replace("%d2, -1000", "%d2, 0")
    assert bounded(alone, given)


# Of the bias or of the matrix, as what was loaded says.
_EITHER = """
setp.gt.f32 %p3, %f1, 0f00000000;
selp.b64 %d17, %d14, %d12, %p3;
ld.global.f32 %f2, [%d17];
"""


def test_a_load_from_one_of_two_addresses() -> None:
    load = "ld.global.f32 %f2, [%d14];"
    text = kernel(_ADDRESS + _GUARDS + _ACCESS, _BATCH)
    assert bounded(text.replace(load, _EITHER), of_batch())
    for address in ("%d14", "%d12"):
        far = f"add.s64 %d18, {address}, -4096;\n{_EITHER}"
        other = far.replace(f" {address}, %", " %d18, %")
        assert not bounded(text.replace(load, other), of_batch())


def test_more_blocks_than_matrices() -> None:
    text = kernel(_ADDRESS + _GUARDS + _ACCESS, _BATCH)
    more = replace(of_batch(), grid={"%ctaid.z": ((((1, ("b",)), (1, ())), 1),)})
    assert not bounded(text, more)
    assert not bounded(text, replace(of_batch(), grid={}))


def test_arrays_that_are_too_small() -> None:
    """By one element of the bias, and by rows that are shorter than is said."""
    text = kernel(_ADDRESS + _GUARDS + _ACCESS, _BATCH)
    given = of_batch()
    less = {**given.arrays, "bias": Array(((4, ("n",)), (-4, ())))}
    assert not bounded(text, replace(given, arrays=less))
    dense = {**given.arrays, "a": Array(((4, ("b", "m", "n")),))}
    assert not bounded(text, replace(given, arrays=dense))


_LOOP = """
mov.u64 %d2, 0;
mov.u64 %d3, %a;
LOOP:
setp.ge.s64 %p1, %d2, %n;
@%p1 bra DONE;
shl.b64 %d4, %d1, 2;
add.s64 %d5, %d3, %d4;
ld.global.f32 %f1, [%d5];
add.s64 %d3, %d3, 512;
add.s64 %d2, %d2, 1;
bra LOOP;
"""


@pytest.mark.parametrize(
    ("old", "new", "is_shown"),
    [
        ("", "", True),
        (", 512;", ", 516;", False),
        (".ge.s64 %p1", ".gt.s64 %p1", False),
        ("%d2, 0;", "%d2, -1;", False),
        ("%d2, 1;", "%d2, 2;", True),
        ("ld.global.f32 %f1", "ld.global.v2.f32 {%f1, %f2}", False),
    ],
)
def test_a_loop(old: str, new: str, is_shown: bool) -> None:
    text = kernel(_LOOP.replace(old, new), "a n")
    arrays = {"a": Array(((512, ("n",)),))}
    assert bounded(text, Preconditions(arrays, {}, {"n": SIZE})) == is_shown


def told(member: str, name: str | int, value: Any) -> None:
    """Checks the loop by what is said of its turns, with one thing said otherwise."""
    text = kernel(_LOOP, "a n")
    promised = Preconditions({"a": Array(((512, ("n",)),))}, {}, {"n": SIZE})
    found = certified(text, "f", *_OPEN, promised).certificate
    assert found is not None
    ((head, said),) = copy.deepcopy(found["answers"]["turns"]).items()
    assert said["steps"] == {"%d2": [1], "%d3": [512]}
    quotient = {"dividend": [0, ["%d2", 1]], "by": [0, ["nHEAD", 1]], "is_rest": False}
    said["symbols"]["#"] = quotient
    said[member][name] = value
    turns = json.loads(json.dumps({head: said}).replace("HEAD", head))
    answers = Found()
    answers.turn = lambda head, ways: turns[str(head)]
    check(text, found, answers)


def test_what_is_said_of_turns() -> None:
    told("symbols", "#", {"factors": [".n", ".n"]})
    told("steps", "%d9", [7])  # which no turn writes
    told("steps", "%d4", [7])  # of which nothing is known before


@pytest.mark.parametrize(
    ("member", "name", "value", "says"),
    [
        ("steps", "%d3", [508], "does not add"),
        ("steps", "%d2", [2], "does not add"),
        ("steps", "%d3", [512, ["nHEAD", 1]], "do not add the same"),
        ("steps", "%d3", [512, ["uHEAD.0", 1]], "do not add the same"),
        ("steps", "%d3", [512, ["#", 1]], "do not add the same"),
        ("left", "%d4", 0, "does not add"),
        ("left", "%d3", None, "no certificate"),
        ("facts", 0, [[0, ["nHEAD", -1]]], "does not leave"),
        ("facts", 0, [[-2, [".n/1", 1], ["nHEAD", -1]]], "does not leave"),
        ("facts", 0, [[0, ["nHEAD", 1], ["hHEAD.%d2", 1]]], "does not know"),
        ("facts", 0, [[0, ["#", 1]]], "does not know"),
        ("facts", 0, [[0, [".n/1", 1]]], "does not know"),
        ("facts", 0, 7, "no certificate"),
        ("steps", "%d3", None, "no certificate"),
    ],
)
def test_what_turns_do_not_do(
    member: str, name: str | int, value: Any, says: str
) -> None:
    with pytest.raises(CertificateError, match=says):
        told(member, name, value)


def test_turns_of_which_nothing_is_said() -> None:
    text = kernel(_LOOP, "a n")
    promised = Preconditions({"a": Array(((512, ("n",)),))}, {}, {"n": SIZE})
    found = certified(text, "f", *_OPEN, promised).certificate
    assert found is not None
    answers = {**found["answers"], "turns": {}}
    with pytest.raises(CertificateError, match="says nothing"):
        check(text, sealed({**found, "answers": answers}))


_DIVIDED = """
mul.wide.u32 %d2, %r2, 128;
add.s64 %d2, %d2, %d1;
mul.lo.s64 %d9, %m, %n;
setp.ge.s64 %p1, %d2, %d9;
@%p1 bra DONE;
div.u64 %d3, %d2, %n;
mul.lo.s64 %d4, %d3, %n;
sub.s64 %d5, %d2, %d4;
shl.b64 %d6, %REGISTER, 2;
add.s64 %d7, %a, %d6;
ld.global.f32 %f1, [%d7];
"""


@pytest.mark.parametrize(
    ("register", "of", "is_shown"),
    [("d5", "n", True), ("d3", "m", True), ("d5", "m", False), ("d3", "n", False)],
)
def test_rows_and_columns_of_a_number(register: str, of: str, is_shown: bool) -> None:
    """By a division by what is not known."""
    text = kernel(_DIVIDED.replace("REGISTER", register), "a m n")
    sizes = {name: Requirement(1, 2**20) for name in ("m", "n")}
    given = Preconditions({"a": Array(((4, (of,)),))}, {}, sizes)
    assert bounded(text, given) == is_shown


def test_a_quotient_of_the_turn_before() -> None:
    """A guard on n / k says nothing of (n + 1) / k."""
    text = """
mov.u64 %d2, 0;
mov.u64 %d4, 0;
LOOP:
div.u64 %d3, %d2, %k;
shl.b64 %d5, %d3, 2;
add.s64 %d6, %a, %d5;
ld.global.f32 %f1, [%d6];
add.s64 %d2, %d2, 1;
setp.lt.s64 %p1, %d3, %n;
@%p1 bra LOOP;
"""
    sizes = {"k": Requirement(1, 100), "n": SIZE}
    for more, is_shown in ((4, False), (8, False)):
        bytes_ = ((4, ("n",)), (more, ()))
        given = Preconditions({"a": Array(bytes_)}, {}, sizes)
        assert bounded(kernel(text, "a k n"), given) == is_shown


def test_copies_of_no_bytes() -> None:
    """A source size of 0 accesses nothing, wherever the address is."""
    text = """
setp.lt.s64 %p1, %d1, %n;
selp.b32 %r5, 4, 0, %p1;
shl.b64 %d2, %d1, 2;
add.s64 %d3, %a, %d2;
cvt.u32.u64 %r6, %d2;
mov.u32 %r7, buf;
add.u32 %r6, %r6, %r7;
cp.async.ca.shared.global [%r6], [%d3], 4, %r5;
cp.async.wait_all;
"""
    given = Preconditions({"a": Array(((4, ("n",)),))}, {}, {"n": SIZE})
    shared = ".reg .pred %p<9>;", ".shared .b8 buf[512];\n.reg .pred %p<9>;"
    ptx = kernel(text, "a n").replace(*shared)
    assert bounded(ptx, given)
    assert not bounded(ptx.replace("setp.lt", "setp.le"), given)
    assert not bounded(ptx.replace("4, 0, %p1", "4, 4, %p1"), given)


def test_a_ring() -> None:
    sizes = {"n": SIZE}
    arrays = {"in": Array(((256, ("n",)),)), "out": Array(((256, ()),))}
    assert bounded(steady_ring(), Preconditions(arrays, {}, sizes))
    less = {**arrays, "in": Array(((256, ("n",)), (-4, ())))}
    assert not bounded(steady_ring(), Preconditions(less, {}, sizes))


def test_a_compiled_kernel() -> None:
    """Rows and columns that are not known; and with a guard of rows off by one."""
    (case,) = (one for one in CASES if one.name == "nn f16 open 2,1")
    one = case.launched
    text = case.ptx
    old, new = "setp.ge.s64 \t%p1, ", "setp.gt.s64 \t%p1, "
    assert old in text
    for ptx, why in ((text, ""), (text.replace(old, new), "behind the array")):
        given = (one.name, one.threads, one.shared_bytes, dict(one.requirements), 60)
        report = certified(ptx, *given, one.promised)
        assert report.is_bounded == (not why), report.loose
        assert why in report.loose


def test_promises_of_a_manifest() -> None:
    """A certificate with smaller arrays is refused, and one of other sizes too."""
    (case,) = (one for one in CASES if one.name == "nt bf16 K open 2,2")
    one = next(k for k in launched_kernels(case.bundle) if "rows16" in k.name)
    given = (one.name, one.threads, one.shared_bytes, dict(one.requirements), 60)
    found = certified(case.ptx, *given, one.promised).certificate
    assert found is not None
    bounds = found["bounds"]
    for member, changed in (
        ("arrays", {n: [[[127, ["K"]]], []] for n in bounds["arrays"]}),
        ("arrays", {}),
        ("values", {n: [[2, ["K"]]] for n in bounds["values"]}),
    ):
        listed = sealed({**found, "bounds": {**bounds, member: changed}})
        with pytest.raises(CertificateError):
            check(case.ptx, listed, Found())
