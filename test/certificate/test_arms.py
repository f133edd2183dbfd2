"""Groups committed in both arms of a branch, each by the threads that go it."""

from __future__ import annotations

import hashlib

import pytest

from alcop_mlir.certificate.api import certify
from alcop_mlir.certificate.certificate import sealed
from alcop_mlir.certificate.search.answers import Found
from alcop_mlir.checker.check import check
from alcop_mlir.errors import CertificateError

KERNEL = """
.version 7.8
.target sm_80
.address_size 64
.visible .entry arms(.param .u64 in)
.reqntid 64, 1, 1
{{
  .reg .pred %p<2>;
  .reg .b32 %r<8>;
  .reg .b64 %rd<8>;
  .shared .align 16 .b8 tile[512];
  ld.param.u64 %rd1, [in];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd3, %rd1, %rd2;
  mov.u32 %r3, tile;
  shl.b32 %r2, %r1, 2;
  add.s32 %r4, %r3, %r2;
  cp.async.ca.shared.global [%r4], [%rd3], 4;
  cp.async.commit_group;
  setp.lt.u32 %p1, %r1, 32;
  @%p1 bra LOW;
{high}
  bra.uni JOIN;
LOW:
{low}
JOIN:
{after}
  bar.sync 0;
  xor.b32 %r5, %r2, 4;
  add.s32 %r5, %r3, %r5;
  ld.shared.b32 %r6, [%r5];
  cp.async.wait_all;
  ret;
}}
"""
COPY = "  cp.async.ca.shared.global [%r4+256], [%rd3+256], 4;\n"
COMMIT, ONE = "  cp.async.commit_group;\n", "  cp.async.wait_group 1;\n"


@pytest.mark.parametrize(
    ("low", "high", "after", "status"),
    [
        (COPY + COMMIT, COMMIT, ONE, "proven"),
        (COPY + COMMIT + ONE, COMMIT + ONE, "", "proven"),
        (COPY + COMMIT + COMMIT, COMMIT + COMMIT, ONE, "proven"),
        (COPY + COMMIT, "", ONE, "not proven"),  # one group less: it waits for none
        (COPY + COMMIT + COMMIT, COMMIT, ONE, "not proven"),
        (COPY + COMMIT + ONE, COMMIT, "", "not proven"),  # the others do not wait
        (COMMIT + "  bar.sync 0;\n", COMMIT + "  bar.sync 0;\n", ONE, "not proven"),
    ],
)
def test_groups_in_arms(low: str, high: str, after: str, status: str) -> None:
    text = KERNEL.format(low=low, high=high, after=after)
    report = certify(text)
    assert report.status == status, report.verdict
    assert report.is_fresh == (status == "proven")
    if report.certificate is not None:
        assert check(text, report.certificate, Found()).met == ()


def test_another_number_of_groups_is_an_alarm() -> None:
    text = KERNEL.format(low=COPY + COMMIT + COMMIT, high=COMMIT, after=ONE)
    assert "as many groups" in certify(text).verdict


@pytest.mark.parametrize("other", ["high", "low"])
def test_what_one_arm_writes_holds_in_its_threads(other: str) -> None:
    """The certificate of arms that leave a register as it is, for others."""
    arms = {"low": COPY + COMMIT, "high": COMMIT}
    text = KERNEL.format(**arms, after=ONE)
    found = certify(text).certificate
    assert found is not None
    arms[other] += "  add.s32 %r3, %r3, 512;\n"  # behind the end of shared memory
    text = KERNEL.format(**arms, after=ONE)
    digest = hashlib.sha256(text.encode()).hexdigest()
    with pytest.raises(CertificateError, match="outside of shared memory"):
        check(text, sealed({**found, "ptx_sha256": digest}), Found())


def test_what_some_threads_may_write_is_not_known() -> None:
    """Behind a branch of which it is not known who goes it."""
    branch = (
        "  ld.global.b32 %r7, [%rd3];\n  setp.gt.s32 %p1, %r7, 0;\n  @%p1 bra OVER;\n"
    )
    arms = {"low": COPY + COMMIT, "high": COMMIT}
    text = KERNEL.format(**arms, after=f"{ONE}{branch}OVER:\n")
    found = certify(text).certificate
    assert found is not None
    written = f"{ONE}{branch}  add.s32 %r3, %r3, 512;\nOVER:\n"
    text = KERNEL.format(**arms, after=written)
    digest = hashlib.sha256(text.encode()).hexdigest()
    with pytest.raises(CertificateError, match="a shared address is not known"):
        check(text, sealed({**found, "ptx_sha256": digest}), Found())
