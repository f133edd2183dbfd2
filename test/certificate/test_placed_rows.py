"""Kernels of rows: what is made of an element, and of reductions of its row."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from placed_cases import assert_misplaced, assert_proven, restated, verdict

from alcop_mlir.checker.check import check
from alcop_mlir.errors import CertificateError

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
from certificate_kernels import Case

# Each row less its mean, times a number of each column.
CENTRED = Case(
    "centred",
    """
func.func @f(%x: memref<64x64xf16>, %g: memref<64xf16>, %y: memref<64x64xf16>) {
  %zero = arith.constant 0.0 : f32
  %part = arith.constant 1.562500e-02 : f32
  %sum = memref.alloc() : memref<64xf32>
  linalg.fill ins(%zero : f32) outs(%sum : memref<64xf32>)
  linalg.generic {
      indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m)>],
      iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<64x64xf16>) outs(%sum : memref<64xf32>) {
    ^bb0(%a: f16, %s: f32):
      %wide = arith.extf %a : f16 to f32
      %next = arith.addf %s, %wide : f32
      linalg.yield %next : f32
  }
  linalg.generic {
      indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m)>,
                       affine_map<(m, n) -> (n)>, affine_map<(m, n) -> (m, n)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%x, %sum, %g : memref<64x64xf16>, memref<64xf32>, memref<64xf16>)
      outs(%y : memref<64x64xf16>) {
    ^bb0(%a: f16, %s: f32, %by: f16, %b: f16):
      %wide = arith.extf %a : f16 to f32
      %factor = arith.extf %by : f16 to f32
      %mean = arith.mulf %s, %part : f32
      %less = arith.subf %wide, %mean : f32
      %scaled = arith.mulf %less, %factor : f32
      %short = arith.truncf %scaled : f32 to f16
      linalg.yield %short : f16
  }
  return
}""",
)
SUMS = Case(
    "reductions of rows",
    """
func.func @f(%x: memref<64x32xf32>, %y: memref<64xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : memref<64xf32>)
  linalg.generic {
      indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m)>],
      iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<64x32xf32>) outs(%y : memref<64xf32>) {
    ^bb0(%a: f32, %s: f32):
      %next = arith.addf %s, %a : f32
      linalg.yield %next : f32
  }
  return
}""",
)
# A row of four warps, whose reductions meet in shared memory.
WIDE = Case(
    "wide rows",
    CENTRED.text.replace("64x64", "4x1024")
    .replace("memref<64xf32>", "memref<4xf32>")
    .replace("memref<64xf16>", "memref<1024xf16>"),
)


@pytest.mark.parametrize("case", [CENTRED, SUMS, WIDE], ids=lambda case: case.name)
def test_rows_are_placed(case: Case) -> None:
    assert_proven(case)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("%r9, 16, 31, -1;", "%r9, 8, 31, -1;"),  # columns twice, others not
        ("%r17, 1, 31, -1;", "%r17, 0, 31, -1;"),
        ("add.rn.f32 %r19, %r18, %r17;", "mov.b32 %r19, %r17;"),  # half of them
        ("cvt.f32.f16 %r8, %rs2;", "cvt.f32.f16 %r8, %rs1;"),
        ("add.rn.f32 %r13, %r12, %r11;", "add.rn.f32 %r13, %r12, %r9;"),
        (  # some of them again
            "add.rn.f32 %r17, %r16, %r15;",
            "add.rn.f32 %r17, %r16, %r15; add.rn.f32 %r17, %r17, %r15;",
        ),
        (  # all of them again, by another step
            "add.rn.f32 %r20, %r19, 0f00000000;",
            "shfl.sync.bfly.b32 %r18, %r19, 1, 31, -1; add.rn.f32 %r20, %r19, %r18;",
        ),
        ("[%rd10];", "[%rd10+128];"),  # another row
        ("[%rd13], %r29;", "[%rd13+128], %r29;"),
        ("sub.rn.f32 %r27, %r8, %r23;", "sub.rn.f32 %r27, %r7, %r23;"),
        ("sub.rn.f32 %r27, %r8, %r23;", "mov.b32 %r27, %r8;"),  # without the mean
        ("sub.rn.f32 %r27, %r8, %r23;", "sub.rn.f32 %r27, %r8, %r17;"),  # part of it
        ("cvt.f32.f16 %r26, %rs4;", "cvt.f32.f16 %r26, %rs3;"),
        ("mul.rn.f32 %r28, %r27, %r26;", "mov.b32 %r28, %r27;"),
    ],
)
def test_other_rows_are_not_placed(old: str, new: str) -> None:
    assert_misplaced(CENTRED, old, new)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("%rd17, %rd10, 3, 4;", "%rd17, %rd10, 3, 3;"),  # two warps in one place
        ("[__dynamic_shmem__0+4];", "[__dynamic_shmem__0+8];"),  # one warp twice
        ("add.rn.f32 %r36, %r34, %r35;", "mov.b32 %r36, %r34;"),  # without one
        ("add.rn.f32 %r9, %r33, %r32;", "mov.b32 %r9, %r32;"),
        ("[%rd5], %r9;", "[%rd5], %r1;"),  # one element instead of the sum
        ("%rd12, %r13, 8;", "%rd12, %r11, 8;"),  # all blocks read the first row
    ],
)
def test_other_wide_rows_are_not_placed(old: str, new: str) -> None:
    assert_misplaced(WIDE, old, new)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("rows", "arrays"), []),
        (("rows", "arrays"), ["f_param_1"]),
        (("rows", "arrays"), ["f_param_0", "f_param_1"]),
        (("rows", "loops"), "a"),
        (("rows", "loops"), "ab"),
        (("outputs", "f_param_2"), ["f_param_1"]),
        (("arrays", "f_param_0", 0), "ba"),
        (("extents", "b"), 32),
        (("lhs",), "f_param_0"),
    ],
)
def test_other_rows_are_refused(path: tuple[object, ...], value: object) -> None:
    found = verdict(CENTRED, CENTRED.ptx).certificate
    assert found is not None
    with pytest.raises(CertificateError):
        check(CENTRED.ptx, restated(found, path, value))


LAYER = Case(
    "llama", Path("test/models/fixtures/llama_step_f16.mlir").read_text("utf-8")
)


def _turned(old: str, new: str, name: str = "main_map_7") -> bool:
    """Whether the kernel is placed that turns halves of a row by angles, and puts them
    together.
    """
    (code,) = LAYER.bundle.code.values()
    text = code.ptx.replace(" \t", " ").replace(old, new)
    return verdict(LAYER, text, name).is_placed


def test_parts_that_are_put_together_are_placed() -> None:
    assert _turned("", "")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("ld.global.b16 %rs5, [%rd33+16];", "ld.global.b16 %rs5, [%rd33];"),
        ("add.s64 %rd36, %rd11, %rd34;", "add.s64 %rd36, %rd9, %rd34;"),  # no sines
        ("and.b64 %rd28, %rd15, 64;", "and.b64 %rd28, %rd15, 0;"),  # another sequence
        ("bfe.u64 %rd16, %rd13, 4, 5;", "bfe.u64 %rd16, %rd13, 5, 5;"),
        ("selp.b16 %rs7, %rs6, %rs3, %p1;", "mov.b16 %rs7, %rs6;"),  # without the rest
        ("sub.rn.f32 %r14, %r12, %r11;", "mov.b32 %r14, %r12;"),
        ("st.global.b16 [%rd38], %rs7;", "st.global.b16 [%rd38+2], %rs7;"),
    ],
)
def test_parts_that_more_elements_share(old: str, new: str) -> None:
    """All rows of a cache: elements have no index along these."""
    assert _turned("", "", "main_map_4")
    assert not _turned(old, new, "main_map_4")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("ld.global.b16 %rs2, [%rd24+16];", "ld.global.b16 %rs2, [%rd24];"),
        ("and.b64 %rd14, %rd9, 119;", "and.b64 %rd14, %rd9, 118;"),  # another element
        ("and.b64 %rd12, %rd9, 48;", "and.b64 %rd12, %rd9, 32;"),  # of another head
        ("bfe.u64 %rd11, %rd9, 3, 1;", "bfe.u64 %rd11, %rd9, 4, 1;"),
        ("sub.rn.f32 %r11, %r9, %r8;", "mov.b32 %r11, %r9;"),  # one half only
        ("mul.rn.f32 %r8, %r3, %r6;", "mov.b32 %r8, %r6;"),  # without one angle
        ("st.global.b32 [%rd31], %r14;", "st.global.b32 [%rd31+4], %r14;"),
    ],
)
def test_other_parts_are_not_placed(old: str, new: str) -> None:
    assert not _turned(old, new)
