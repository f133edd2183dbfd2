"""Bytes that are taken out of registers and made wider on their way to the sum."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from placed_cases import assert_misplaced, assert_proven

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
from certificate_kernels import Case

WEIGHTS = Case(
    "weights of bytes",
    """
func.func @f(%x: memref<64x32xf16>, %w: memref<32x64xi8>, %y: memref<64x64xf32>) {
  %scale = arith.constant 3.906250e-03 : f16
  %zero = arith.constant 0.0 : f32
  %wide = memref.alloc() : memref<32x64xf16>
  linalg.generic {
      indexing_maps = [affine_map<(k, n) -> (k, n)>, affine_map<(k, n) -> (k, n)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%w : memref<32x64xi8>) outs(%wide : memref<32x64xf16>) {
    ^bb0(%in: i8, %out: f16):
      %float = arith.sitofp %in : i8 to f16
      %scaled = arith.mulf %float, %scale : f16
      linalg.yield %scaled : f16
  }
  linalg.fill ins(%zero : f32) outs(%y : memref<64x64xf32>)
  linalg.matmul ins(%x, %wide : memref<64x32xf16>, memref<32x64xf16>)
      outs(%y : memref<64x64xf32>)
  return
}""",
    "block=64,64,32 warp=32,32 stages=2,1",
)


def test_bytes_are_placed() -> None:
    assert_proven(WEIGHTS)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("shr.u32 %r27, %r23, 8;", "shr.u32 %r27, %r24, 8;"),  # of other rows
        ("shr.u32 %r27, %r23, 8;", "shr.u32 %r27, %r23, 0;"),  # lower bytes twice
        ("shr.u32 %r27, %r23, 8;", "shr.u32 %r27, %r23, 4;"),  # halves of bytes
        ("and.b32 %r31, %r23, 16711935;", "and.b32 %r31, %r23, 255;"),  # one only
        ("and.b32 %r31, %r23, 16711935;", "mov.b32 %r31, %r23;"),  # two in one
        ("and.b32 %r33, %r27, 16711935;", "mov.b32 %r33, %r23;"),
        ("xor.b32 %r35, %r31, 1686135936;", "xor.b32 %r35, %r31, %r32;"),
        ("xor.b32 %r35, %r31, 1686135936;", "xor.b32 %r35, %r31, %r23;"),
        ("xor.b32 %r35, %r31, 1686135936;", "or.b32 %r35, %r31, %r33;"),
        ("add.rn.f16x2 %r40, %r35, %r39;", "add.rn.f16x2 %r40, %r35, %r36;"),
        ("add.rn.f16x2 %r40, %r35, %r39;", "add.rn.f16x2 %r40, %r33, %r39;"),
        ("add.rn.f16x2 %r40, %r35, %r39;", "mov.b32 %r40, %r39;"),
    ],
)
def test_other_bytes_are_not_placed(old: str, new: str) -> None:
    assert_misplaced(WEIGHTS, old, new)
