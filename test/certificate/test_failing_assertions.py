"""Kernels that call `__assertfail`: nothing is said of runs in which one fails."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from placed_cases import assert_misplaced, verdict

from alcop_mlir.certificate.api import certify
from alcop_mlir.certificate.certificate import sealed
from alcop_mlir.certificate.code.assertions import NO_FAILURE
from alcop_mlir.checker.check import check
from alcop_mlir.checker.ptx.text import read_kernel
from alcop_mlir.errors import CertificateError

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
from certificate_kernels import Case

# What is divided by is not 0.
DIVIDED = Case(
    "divided",
    """
func.func @f(%A: memref<64xf32>, %C: memref<64xf32>) {
  %one = arith.constant 1.0 : f32
  %zero = arith.constant 0.0 : f32
  linalg.generic {
      indexing_maps = [affine_map<(m) -> (m)>, affine_map<(m) -> (m)>],
      iterator_types = ["parallel"]}
      ins(%A : memref<64xf32>) outs(%C : memref<64xf32>) {
    ^bb0(%a: f32, %c: f32):
      %is_fine = arith.cmpf une, %a, %zero : f32
      cf.assert %is_fine, "divided by 0"
      %part = arith.divf %one, %a : f32
      linalg.yield %part : f32
  }
  return
}""",
)
CALL = re.compile(r"\bcall\.uni __assertfail[^;]*;")


def test_is_proven_whole() -> None:
    report = verdict(DIVIDED, DIVIDED.ptx)
    assert report.verdict == "proven", (report.loose, report.misplaced)
    assert NO_FAILURE in report.assumptions


def test_what_is_assumed_is_listed() -> None:
    found = verdict(DIVIDED, DIVIDED.ptx).certificate
    assert found is not None
    less = [one for one in found["assumes"] if one != NO_FAILURE]
    with pytest.raises(CertificateError, match="does not say what it assumes"):
        check(DIVIDED.ptx, sealed({**found, "assumes": less}))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("st.global.b32 ([^;]*)\\]", "st.global.b32 \\1+4]"),
        ("st.global.b32 [^;]*;", ""),
        ("ld.global.b32 ([^;]*)\\]", "ld.global.b32 \\1+4]"),
    ],
)
def test_other_elements_are_refused(old: str, new: str) -> None:
    text = DIVIDED.ptx.replace(" \t", " ")
    (found,) = re.finditer(old, text)
    assert_misplaced(DIVIDED, found.group(), found.expand(new))


def test_no_result_is_left_out_by_it() -> None:
    """All threads fail: what they do not store is missing."""
    text, count = re.subn(r"(setp\S*\s[^;]*;\s*)@%p\d+ bra", r"\1bra", DIVIDED.ptx)
    assert count == 1
    jump = re.search(r"\tbra\.uni \t?(\S+);", text)
    assert jump is not None
    text = re.sub(r"(setp\S*\s[^;]*;\s*)bra\s+\S+;", rf"\1bra {jump[1]};", text)
    assert DIVIDED.behaviour(text) != "clean"
    assert not verdict(DIVIDED, text).is_placed


@pytest.mark.parametrize(
    "before",
    ["st.global.b32 [%rd1], 0;", "ld.global.b32 %r1, [%rd1];", "@%p1 ret;"],
)
def test_what_does_more_than_to_fail_is_gone_through(before: str) -> None:
    (call,) = CALL.finditer(DIVIDED.ptx)
    text = DIVIDED.ptx.replace(call.group(), f"{before} {call.group()}")
    assert not verdict(DIVIDED, text).is_placed


def test_a_call_that_not_all_make_is_no_end() -> None:
    (call,) = CALL.finditer(DIVIDED.ptx)
    text = DIVIDED.ptx.replace(call.group(), f"@%p1 {call.group()}")
    assert not verdict(DIVIDED, text).is_placed


def test_a_function_of_the_text_may_return() -> None:
    declared = re.search(
        r"\.extern (\.func __assertfail\s*\([^)]*\))\s*\.noreturn;", DIVIDED.ptx
    )
    assert declared is not None
    own = declared[1].replace(".param .b64 __assertfail_param_0", ".param .b64 a")
    text = DIVIDED.ptx.replace(declared.group(), f"{own}\n{{\n\tret;\n}}\n")
    name = re.search(r"\.entry (\w+)", text)
    assert name is not None
    assert not read_kernel(text, name[1]).may_fail
    assert read_kernel(DIVIDED.ptx, name[1]).may_fail
    assert not verdict(DIVIDED, text).is_placed


BARRIER = """
.version 7.8
.target sm_80
.address_size 64
.extern .func __assertfail(.param .b64 a, .param .b64 b) .noreturn;
.visible .entry k(.param .u64 in)
.reqntid 64
{
  .reg .pred %p<4>;
  .reg .b32 %r<8>;
  .reg .b64 %rd<8>;
  .shared .align 16 .b8 tile[256];
  ld.param.u64 %rd1, [in];
  mov.u32 %r1, %tid.x;
  shl.b32 %r2, %r1, 2;
  mov.u32 %r3, tile;
  add.s32 %r3, %r3, %r2;
  ld.global.b32 %r4, [%rd1];
  st.shared.b32 [%r3], %r4;
  setp.eq.s32 %p1, %r4, 0;
  @%p1 bra FAILED;
  WAIT
  xor.b32 %r5, %r3, 4;
  ld.shared.b32 %r6, [%r5];
  ret;
FAILED:
  mov.b64 %rd2, 0;
  {
  .param .b64 p0;
  .param .b64 p1;
  st.param.b64 [p0], %rd2;
  st.param.b64 [p1], %rd2;
  call.uni __assertfail, (p0, p1);
  }
  trap;
}
"""


def test_others_meet_at_barriers() -> None:
    """In a run in which none fails all threads execute the barrier."""
    assert certify(BARRIER.replace("WAIT", "bar.sync 0;")).status == "proven"


def test_others_need_barriers() -> None:
    assert certify(BARRIER.replace("WAIT", "")).status == "not proven"
