"""bar.warp.sync orders accesses of one warp, for the prover and the checker."""

from __future__ import annotations

import pytest

from alcop_mlir.certificate.api import certify
from alcop_mlir.certificate.search.answers import Found
from alcop_mlir.checker.check import check

WARP = "bar.warp.sync -1;"
KERNEL = """
.version 7.8
.target sm_80
.address_size 64
.visible .entry turn()
.reqntid 64, 1, 1
{{
  .reg .b32 %r<8>;
  .shared .align 16 .b8 tile[256];
  mov.u32 %r1, %tid.x;
  shl.b32 %r2, %r1, 2;
  mov.u32 %r3, tile;
  add.s32 %r4, %r3, %r2;
  xor.b32 %r5, %r2, {distance};
  add.s32 %r5, %r3, %r5;
  st.shared.b32 [%r4], %r1;
  {first}
  ld.shared.b32 %r6, [%r5];
  {second}
  st.shared.b32 [%r4], %r6;
  ret;
}}
"""


@pytest.mark.parametrize(
    ("distance", "first", "second", "status"),
    [
        (4, WARP, WARP, "proven"),  # the lane beside
        (128, WARP, WARP, "not proven"),  # the other warp
        (128, "bar.sync 0;", "bar.sync 0;", "proven"),
        (4, "", WARP, "not proven"),
        (4, WARP, "", "not proven"),
        (4, "bar.warp.sync 1;", WARP, "not proven"),  # of one lane
    ],
)
def test_a_warp_barrier(distance: int, first: str, second: str, status: str) -> None:
    text = KERNEL.format(distance=distance, first=first, second=second)
    report = certify(text)
    assert report.status == status
    if report.certificate is not None:
        assert check(text, report.certificate, Found()).met == ()


HALF = """
.version 7.8
.target sm_80
.address_size 64
.visible .entry half()
.reqntid 64, 1, 1
{{
  .reg .pred %p<2>;
  .reg .b32 %r<8>;
  .shared .align 16 .b8 tile[256];
  mov.u32 %r1, %tid.x;
  setp.lt.u32 %p1, %r1, 32;
  @%p1 bra LOW;
  bra.uni HIGH;
LOW:
  shl.b32 %r2, %r1, {shift};
  mov.u32 %r3, tile;
  add.s32 %r4, %r3, %r2;
  st.shared.b64 [%r4], {{%r1, %r1}};
  bra.uni JOIN;
HIGH:
JOIN:
  bar.sync 0;
  shl.b32 %r5, %r1, 2;
  mov.u32 %r7, tile;
  add.s32 %r5, %r5, %r7;
  ld.shared.b32 %r6, [%r5];
  ret;
}}
""".replace("b64 [%r4]", "v2.b32 [%r4]")


@pytest.mark.parametrize(("shift", "status"), [(3, "proven"), (2, "not proven")])
def test_half_of_the_threads_store(shift: int, status: str) -> None:
    """An address that is computed in one arm is known there."""
    text = HALF.format(shift=shift)
    report = certify(text)
    assert report.status == status
    if report.certificate is not None:
        assert check(text, report.certificate, Found()).met == ()
