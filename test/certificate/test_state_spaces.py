"""Accesses whose address alone says whether they are of shared memory."""

from __future__ import annotations

import pytest

from alcop_mlir.compilation.certification import certified

# All threads read what one has stored before the barrier, in each turn of nothing.
TEXT = """
.version 7.8
.target sm_80
.address_size 64
.visible .entry k(.param .u64 in)
.reqntid 64
{
  .reg .pred %p<4>;
  .reg .b32 %r<64>;
  .reg .b64 %rd<8>;
  .shared .align 16 .b8 tile[256];
  ld.param.u64 %rd1, [in];
  mov.u32 %r1, %tid.x;
  shl.b32 %r2, %r1, 2;
  mov.u32 %r3, tile;
  add.s32 %r3, %r3, %r2;
  mov.u64 %rd3, tile;
  cvta.shared.u64 %rd4, %rd3;
  mul.wide.u32 %rd5, %r1, 4;
  add.s64 %rd5, %rd1, %rd5;
  ld.global.b32 %r4, [%rd5];
  st.shared.b32 [%r3], %r4;
  setp.eq.s32 %p1, %r4, 0;
  MORE
L:
  bar.sync 0;
  mov.u32 %r7, tile;
  xor.b32 %r5, %r2, 4;
  add.s32 %r5, %r5, %r7;
  ld.shared.b32 %r6, [%r5];
  ret;
}
"""
# More than are worth to be computed.
MANY = " ".join(f"add.s32 %r{n}, %r4, {n};" for n in range(20, 60))


def status(more: str) -> str:
    return certified(TEXT.replace("MORE", more), "k", 64, None, {}, 60).status


@pytest.mark.parametrize(
    "more", ["", "@%p1 bra L;", f"@%p1 bra L; {MANY} st.global.b32 [%rd5], %r59;"]
)
def test_what_says_where_it_goes(more: str) -> None:
    assert status(more) == "proven"


@pytest.mark.parametrize(
    "more",
    [
        "st.b32 [%rd4], %r4;",
        "@%p1 st.b32 [%rd4], %r4;",
        "@%p1 bra L; st.b32 [%rd4], %r4;",
        f"@%p1 bra L; {MANY} st.b32 [%rd4], %r59;",
        f"@%p1 bra L; {MANY} ld.b32 %r59, [%rd4];",
        f"@%p1 bra L; {MANY} atom.add.u32 %r59, [%rd4], %r59;",
        "wmma.store.d.sync.aligned.row.m16n16k16.s32 [%rd4],"
        " {%r4, %r4, %r4, %r4, %r4, %r4, %r4, %r4};",
    ],
)
def test_what_may_be_of_shared_memory(more: str) -> None:
    """Also where nothing depends on it, or nobody knows which threads go there."""
    assert status(more) == "outside"
