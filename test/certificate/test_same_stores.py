"""Threads that store to one place at once: a race, unless they are taken to store the
same, which a certificate says then, and who checks it has to allow.
"""

from __future__ import annotations

import hashlib

import pytest

from alcop_mlir.certificate.api import certify
from alcop_mlir.certificate.certificate import sealed
from alcop_mlir.checker.check import check
from alcop_mlir.compilation.certification import certified
from alcop_mlir.errors import CertificateError

ASSUMED = "threads that store to one place at once store the same"
# Thread t stores to word t % 32; all read behind the barrier.
KERNEL = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry f(.param .u64 a)
.reqntid 64, 1, 1
{
  .reg .b32 %r<8>;
  .reg .b64 %rd<4>;
  .shared .align 16 .b8 tile[256];
  mov.u32 %r1, %tid.x;
  and.b32 %r2, %r1, 31;
  shl.b32 %r3, %r2, 2;
  mov.u32 %r4, tile;
  add.s32 %r5, %r4, %r3;
  ld.param.u64 %rd1, [a];
  STORE
  BETWEEN
  bar.sync 0;
  ld.shared.b32 %r7, [%r5];
  ret;
}
"""
STORE = "st.shared.b32 [%r5], %r2;"


def kernel(store: str = STORE, between: str = "") -> str:
    return KERNEL.replace("STORE", store).replace("BETWEEN", between)


def test_it_is_assumed_where_that_is_allowed() -> None:
    text = kernel()
    assert "two threads write the same bytes" in certify(text).verdict
    report = certified(text, "f", None, None, {}, 60, shares_stores=True)
    assert report.status == "proven"
    assert report.assumptions[-1] == ASSUMED
    check(text, report.certificate, shares_stores=True)
    with pytest.raises(CertificateError, match=ASSUMED):
        check(text, report.certificate)


def test_it_is_not_assumed_where_it_is_not_needed() -> None:
    text = kernel().replace("and.b32 %r2, %r1, 31", "and.b32 %r2, %r1, 63")
    report = certified(text, "f", None, None, {}, 60, shares_stores=True)
    assert report.status == "proven"
    assert ASSUMED not in report.assumptions
    check(text, report.certificate)


@pytest.mark.parametrize(
    ("store", "between", "why"),
    [
        (STORE, "ld.shared.b32 %r6, [%r5];", "reads"),
        (STORE, STORE, "overwrites"),
        (STORE, "st.shared.b32 [%r4], 1;", "overwrites"),
        (
            "cp.async.ca.shared.global [%r5], [%rd1], 4;\ncp.async.wait_all;",
            "",
            "two threads write the same bytes",
        ),
    ],
)
def test_what_it_does_not_allow(store: str, between: str, why: str) -> None:
    """Before a barrier none of them reads there, or stores something else."""
    report = certify(kernel(store, between), shares_stores=True)
    assert report.status == "not proven"
    assert why in report.verdict


@pytest.mark.parametrize("between", ["ld.shared.b32 %r6, [%r5];", STORE])
def test_nor_does_the_check(between: str) -> None:
    """Of the certificate of the right kernel, with the hash of another."""
    found = certify(kernel(), shares_stores=True).certificate
    assert found is not None
    text = kernel(between=between)
    moved = {**found, "ptx_sha256": hashlib.sha256(text.encode()).hexdigest()}
    with pytest.raises(CertificateError, match=r"may be in use|may not be there"):
        check(text, sealed(moved), shares_stores=True)
