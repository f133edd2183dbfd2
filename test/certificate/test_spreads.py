"""Addresses of thread, block and size: what low bits are known of, and what are not."""

from __future__ import annotations

import numpy as np
import pytest

from alcop_mlir.certificate.api import certify
from alcop_mlir.certificate.certificate import sealed
from alcop_mlir.certificate.search.answers import Found
from alcop_mlir.certificate.state import Requirement
from alcop_mlir.checker.check import check
from alcop_mlir.errors import CertificateError
from alcop_mlir.runtime.emulator import emulate

KERNEL = """
.version 7.8
.target sm_80
.address_size 64
.visible .entry rows(.param .u64 out, .param .u64 n)
.reqntid 64, 1, 1
{{
  .reg .pred %p<2>;
  .reg .b32 %r<16>;
  .reg .b64 %rd<16>;
  .shared .align 16 .b8 tile[512];
  ld.param.u64 %rd1, [out];
  ld.param.u64 %rd2, [n];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
  cvt.u64.u32 %rd3, %r1;
  mul.wide.u32 %rd4, %r2, 64;
  {row}
  {product}
  cvt.u32.u64 %r3, %rd6;
  and.b32 %r4, %r3, 3;
  shl.b32 %r5, %r1, 2;
  {shift}
  mov.u32 %r7, tile;
  add.s32 %r8, %r7, %r6;
  st.shared.b32 [%r8], %r1;
  bar.sync 0;
  ld.shared.b32 %r9, [%r8];
  ret;
}}
"""
ROW = "or.b64 %rd5, %rd3, %rd4;"
SHIFT = "shl.b32 %r6, %r4, 2; add.s32 %r6, %r5, %r6;"
STRIDED = "shl.b32 %r6, %r4, 8; and.b32 %r6, %r6, 256; add.s32 %r6, %r5, %r6;"
SIZE = {"n": Requirement(0, 2**31 - 1)}


def text(
    row: str = ROW,
    product: str = "mul.lo.s64 %rd6, %rd5, %rd2;",
    shift: str = STRIDED,
) -> str:
    return KERNEL.format(row=row, product=product, shift=shift)


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        # Two copies of a word, by a bit of row * size: each case is its own.
        ({}, "proven"),
        ({"row": "add.s64 %rd5, %rd3, %rd4;"}, "proven"),
        ({"product": "mul.lo.s64 %rd6, %rd5, 769;"}, "proven"),
        # All threads' words beside each other, by up to three: two of them meet.
        ({"shift": SHIFT}, "not proven"),
    ],
)
def test_a_row_times_a_size(changes: dict[str, str], status: str) -> None:
    found = text(**changes)
    report = certify(found, requirements=SIZE)
    assert report.status == status, report.verdict
    if report.certificate is not None:
        assert check(found, report.certificate, Found()).met == ()


@pytest.mark.parametrize(
    ("field", "status"),
    [
        ("0, 6", "proven"),  # the number of the thread
        ("1, 5", "not proven"),  # of two threads the same
        ("0, 7", "outside"),  # and a bit of the block's
    ],
)
def test_a_field_of_block_and_thread(field: str, status: str) -> None:
    shift = f"bfe.u64 %rd7, %rd5, {field}; cvt.u32.u64 %r6, %rd7; shl.b32 %r6, %r6, 2;"
    found = text(shift=shift)
    report = certify(found, requirements=SIZE)
    assert report.status == status, report.verdict
    if report.certificate is not None:
        check(found, report.certificate, Found())


@pytest.mark.parametrize("size", [1, 3, 6])
def test_the_emulator_agrees(size: int) -> None:
    """Beside each other, two words meet at some size; in copies of their own never."""
    assert not has_hazards(text(shift=STRIDED), size)
    assert has_hazards(text(shift=SHIFT), size) == (size % 2 == 1)


def has_hazards(kernel: str, size: int) -> bool:
    out = np.zeros(64, np.int32)
    grid, block = (2, 1, 1), (64, 1, 1)
    found = emulate(kernel, "rows", grid=grid, block=block, args=[out, size])
    return bool(found.hazards)


def test_what_each_thread_loads_is_not_known() -> None:
    loaded = "add.s64 %rd7, %rd1, %rd3; ld.global.b64 %rd6, [%rd7];"
    report = certify(text(product=loaded), requirements=SIZE)
    assert report.status == "outside"
    assert "not computed of known numbers" in report.why


def test_a_case_that_is_left_out_of_a_check_is_no_proof() -> None:
    """Where low bits are told apart the certificate says: the checker needs it."""
    found = certify(text(), requirements=SIZE).certificate
    assert found is not None
    assert found["skips"]
    with pytest.raises(CertificateError, match="a shared address is not known"):
        check(text(), sealed({**found, "skips": []}), Found())
