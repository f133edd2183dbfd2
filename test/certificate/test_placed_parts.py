"""A sum that one kernel makes in parts, and another one adds up."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from placed_cases import restated, verdict

from alcop_mlir.certificate.api import Report
from alcop_mlir.certificate.certificate import sealed
from alcop_mlir.checker.check import check
from alcop_mlir.errors import CertificateError

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
from certificate_kernels import Case, matmul

CASE = matmul("nn", 32, 32, 256, "block=32,32,32 warp=16,16 stages=2,1 split_k=4")

# Of any size, as the compiler chooses: a quarter of K, where K is long and C is small.
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
OPEN = Case("any size", (EXAMPLES / "matmul_any_size_f16.mlir").read_text())
PARTS = "matmul_any_size_f16_matmul_m2048_kfrom2048_mn1048576_split4"
WHOLE = "matmul_any_size_f16_map_1"

# Of 768 columns: a thread's column is a remainder, by a multiplication.
WIDE = matmul("nn", 32, 768, 128, "block=32,32,32 warp=16,16 stages=2,1 split_k=2")


@pytest.mark.parametrize("name", ["f_matmul", "f_map"])
def test_parts_and_their_sum_are_placed(name: str) -> None:
    report = verdict(CASE, CASE.ptx, name)
    assert report.verdict == "proven", report.misplaced
    assert report.certificate is not None
    check(CASE.ptx, report.certificate)


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        # Indices of two parts, and other parts of B than of A; where a part is stored.
        ("f_matmul", "mul.wide.u32 %rd16, %r1, 64;", "mul.wide.u32 %rd16, %r1, 32;"),
        ("f_matmul", "mul.wide.u32 %rd26, %r1, 128;", "mul.wide.u32 %rd26, %r1, 64;"),
        ("f_matmul", "mul.wide.u32 %rd61, %r1, 4096;", "mul.wide.u32 %rd61, %r1, 0;"),
        ("f_map", "[%rd7+8192]", "[%rd7+4096]"),  # a part twice
        ("f_map", "[%rd7+8192]", "[%rd7+8320]"),  # of the next row
        ("f_map", "add.rn.f32 %r11, %r10, %r7;", "mov.b32 %r11, %r10;"),  # left out
        ("f_map", "add.rn.f32 %r13, %r12, %r9;", "mov.b32 %r13, %r12;"),
        ("f_map", "add.rn.f32 %r11, %r10, %r7;", "mul.rn.f32 %r11, %r10, %r7;"),
        ("f_map", "add.rn.f32 %r10, %r5, %r6;", "add.rn.f32 %r10, %r6, %r6;"),
        ("f_map", "add.rn.f32 %r10, %r5, %r6;", "mov.b32 %r10, %r6;"),  # no start
        ("f_map", "st.global.b32 [%rd6]", "st.global.b32 [%rd6+128]"),
    ],
)
def test_other_sums_are_not_placed(name: str, old: str, new: str) -> None:
    text = CASE.ptx.replace(" \t", " ")
    assert text.count(old) == 1
    text = text.replace(old, new)
    assert CASE.behaviour(text) != "clean"
    report = verdict(CASE, text, name)
    assert report.verdict != "proven"
    assert not report.is_placed


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("sub.s64 %rd7, %rd5, %rd6;", "sub.s64 %rd7, %rd5, 0;"),
        ("cvt.u64.u16 %rd6, %rs5;", "cvt.u64.u16 %rd6, %rs4;"),
        ("mul.wide.u32 %rd13, %r7, 4;", "mul.wide.u32 %rd13, %r7, 2;"),
        ("[%rd14+98304]", "[%rd14+98300]"),
    ],
)
def test_other_remainders_are_not_placed(old: str, new: str) -> None:
    assert verdict(WIDE, WIDE.ptx, "f_map").verdict == "proven"
    text = WIDE.ptx.replace(" \t", " ")
    assert text.count(old) == 1
    text = text.replace(old, new)
    assert WIDE.behaviour(text) != "clean"
    assert not verdict(WIDE, text, "f_map").is_placed


@pytest.mark.parametrize(
    ("name", "path", "value"),
    [
        ("f_matmul", ("extents", "a"), 3),  # a part less
        ("f_matmul", ("extents", "k"), 32),
        ("f_matmul", ("arrays", "f_matmul_param_0", 1, 2), 32),  # parts that overlap
        ("f_map", ("extents", "a"), 3),
        ("f_map", ("init",), None),
        ("f_map", ("lhs",), "f_map_param_0"),
    ],
)
def test_of_other_parts_it_is_not_shown(name: str, path: tuple, value: object) -> None:
    found = verdict(CASE, CASE.ptx, name).certificate
    assert found is not None
    with pytest.raises(CertificateError):
        check(CASE.ptx, restated(found, path, value))


def of_any_size(name: str, old: str = "", new: str = "") -> Report:
    """On a kernel of any size, with another text in one place."""
    head, entry, text = OPEN.ptx.replace(" \t", " ").partition(f".entry {name}(")
    assert old in text.partition(".entry")[0]
    return verdict(OPEN, head + entry + text.replace(old, new, 1), name)


@pytest.mark.parametrize("name", [PARTS, WHOLE])
def test_parts_and_their_sum_are_placed_for_any_size(name: str) -> None:
    report = of_any_size(name)
    assert report.verdict == "proven", report.misplaced
    assert report.certificate is not None
    check(OPEN.ptx.replace(" \t", " "), report.certificate)


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        # Where a part begins, how long it is, and where it is stored.
        (PARTS, "shr.u64 %rd198, %rd195, 2;", "shr.u64 %rd198, %rd195, 1;"),
        (PARTS, "shr.u64 %rd198, %rd195, 2;", "shr.u64 %rd198, %rd195, 3;"),
        (PARTS, "mul.lo.s64 %rd27, %rd5, %rd17;", "mul.lo.s64 %rd27, %rd5, %rd18;"),
        (PARTS, "mul.lo.s64 %rd625, %rd179, %rd17;", "mov.b64 %rd625, 0;"),
        # A part twice, of other elements, left out; elements that two blocks store.
        (WHOLE, "add.s64 %rd28, %rd25, %rd26;", "add.s64 %rd28, %rd23, %rd26;"),
        (WHOLE, "shl.b64 %rd26, %rd4, 3;", "shl.b64 %rd26, %rd4, 2;"),
        (WHOLE, "ld.global.b32 %r7, [%rd25];", "ld.global.b32 %r7, [%rd25+4];"),
        (WHOLE, "mul.lo.s64 %rd4, %rd8, %rd7;", "mul.lo.s64 %rd4, %rd8, %rd8;"),
        (WHOLE, "add.rn.f32 %r12, %r11, %r9;", "mov.b32 %r12, %r11;"),
        (WHOLE, "mul.wide.u32 %rd14, %r1, 256;", "mul.wide.u32 %rd14, %r1, 128;"),
        (WHOLE, "setp.ge.u64 %p1, %rd3, %rd12;", "setp.ge.u64 %p1, %rd3, %rd5;"),
    ],
)
def test_other_sums_of_any_size_are_not_placed(name: str, old: str, new: str) -> None:
    report = of_any_size(name, old, new)
    assert report.verdict != "proven"
    assert not report.is_placed


def test_a_part_of_a_size_needs_that_it_divides() -> None:
    found = of_any_size(PARTS).certificate
    assert found is not None
    found = json.loads(json.dumps(found).replace("K/4", "K/5"))
    with pytest.raises(CertificateError, match="K is not known to have 5 equal parts"):
        check(OPEN.ptx.replace(" \t", " "), sealed(found))
