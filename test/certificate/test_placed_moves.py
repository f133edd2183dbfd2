"""Kernels without a sum: elements that are moved, and ops on those of one index."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from placed_cases import assert_misplaced, assert_proven, restated, verdict

from alcop_mlir.checker.check import check
from alcop_mlir.errors import CertificateError

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
from certificate_kernels import Case

# The transpose of A, and of each of its columns a number is added.
TRANSPOSED = Case(
    "transposed",
    """
func.func @f(%A: memref<32x64xf16>, %b: memref<64xf16>, %C: memref<64x32xf32>) {
  linalg.generic {
      indexing_maps = [affine_map<(n, m) -> (m, n)>, affine_map<(n, m) -> (n)>,
                       affine_map<(n, m) -> (n, m)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%A, %b : memref<32x64xf16>, memref<64xf16>) outs(%C : memref<64x32xf32>) {
    ^bb0(%a: f16, %shift: f16, %c: f32):
      %sum = arith.addf %a, %shift : f16
      %wide = arith.extf %sum : f16 to f32
      linalg.yield %wide : f32
  }
  return
}""",
)
BROADCAST = Case(
    "broadcast",
    """
func.func @f(%b: memref<64xf16>, %C: memref<32x64xf16>) {
  linalg.generic {
      indexing_maps = [affine_map<(m, n) -> (n)>, affine_map<(m, n) -> (m, n)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%b : memref<64xf16>) outs(%C : memref<32x64xf16>) {
    ^bb0(%a: f16, %c: f16):
      linalg.yield %a : f16
  }
  return
}""",
)
TWO_LAYERS = Case("two layers", Path("examples/mlp_f16.mlir").read_text("utf-8"))


@pytest.mark.parametrize("case", [TRANSPOSED, BROADCAST], ids=lambda case: case.name)
def test_moves_are_placed(case: Case) -> None:
    assert_proven(case)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("%rd11, %rd10, 126;", "%rd11, %rd10, 124;"),  # columns twice, of A and b
        ("[%rd13];", "[%rd13+2];"),  # another column of b
        ("%rd7, %r4, 128;", "%rd7, %r4, 64;"),  # half as many rows
        ("[%rd15], %r6;", "[%rd15+128], %r6;"),  # stored as the next row
        ("%rd14, %r4, 4;", "%rd14, %r2, 4;"),  # all blocks store the same
        ("ld.global.b16 %rs2, [%rd13];", "ld.global.b16 %rs2, [%rd12];"),  # no b
        ("cvt.f32.f16 %r6, %rs3;", "mov.b32 %r6, 0;"),  # of nothing
        ("add.rn.f16 %rs3, %rs1, %rs2;", "add.rn.f16 %rs3, %rs1, %rs1;"),
    ],
)
def test_other_moves_are_not_placed(old: str, new: str) -> None:
    assert_misplaced(TRANSPOSED, old, new)


@pytest.mark.parametrize("mask", [62, 31])
def test_other_elements_for_all_rows_are_not_placed(mask: int) -> None:
    text = BROADCAST.ptx.replace("%rd5, 63;", f"%rd5, {mask};")
    assert BROADCAST.behaviour(text) != "clean"
    assert not verdict(BROADCAST, text).is_placed


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("arrays", "f_param_0", 1), [32, 1]),
        (("arrays", "f_param_0", 0), "ab"),
        (("outputs", "f_param_2"), ["f_param_0"]),
        (("extents", "a"), 128),
        (("rhs",), "f_param_1"),
        (("init",), "f_param_1"),
        (("lhs",), "f_param_0"),
    ],
)
def test_other_statements_are_refused(path: tuple[object, ...], value: object) -> None:
    found = verdict(TRANSPOSED, TRANSPOSED.ptx).certificate
    assert found is not None
    with pytest.raises(CertificateError):
        check(TRANSPOSED.ptx, restated(found, path, value))


@pytest.mark.parametrize("name", ["mlp_f16_matmul", "mlp_f16_matmul_1"])
def test_what_a_kernel_leaves_for_another_one(name: str) -> None:
    """The array between two layers is what one stores, and the other multiplies."""
    report = verdict(TWO_LAYERS, TWO_LAYERS.bundle.code["mlp_f16_kernels"].ptx, name)
    assert report.verdict == "proven", report.misplaced


SHIFTED = Case(
    "shifted",
    """
func.func @f(%A: memref<512xi32>, %B: memref<512xi32>, %C: memref<512xi32>) {
  %bits = arith.constant 3 : i32
  linalg.generic {
      indexing_maps = [affine_map<(n) -> (n)>, affine_map<(n) -> (n)>,
                       affine_map<(n) -> (n)>],
      iterator_types = ["parallel"]}
      ins(%A, %B : memref<512xi32>, memref<512xi32>) outs(%C : memref<512xi32>) {
    ^bb0(%a: i32, %b: i32, %c: i32):
      %part = arith.shrsi %a, %bits : i32
      %sum = arith.addi %part, %b : i32
      linalg.yield %sum : i32
  }
  return
}""",
)


def test_bits_of_an_element_are_of_it() -> None:
    """As the sign that an activation looks at; of another element they are not."""
    report = verdict(SHIFTED, SHIFTED.ptx)
    assert report.verdict == "proven", report.misplaced
    text = SHIFTED.ptx.replace(" \t", " ")
    old = "shr.s32 %r7, %r5, 3;"
    assert text.count(old) == 1
    assert not verdict(SHIFTED, text.replace(old, "shr.s32 %r7, %r6, 3;")).is_placed
