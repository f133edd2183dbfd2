"""A sum that one kernel makes in parts, and another one adds up."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from placed_cases import restated, verdict

from alcop_mlir.checker.check import check
from alcop_mlir.errors import CertificateError

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
from certificate_kernels import matmul

CASE = matmul("nn", 32, 32, 256, "block=32,32,32 warp=16,16 stages=2,1 split_k=4")

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
