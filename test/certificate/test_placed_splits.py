"""Rows that end inside of blocks: indices are those of block and thread together."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from placed_cases import assert_misplaced, assert_proven

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
from certificate_kernels import Case

# Five blocks of 256 threads, each of which computes one element.
ELEMENTS = Case(
    "one element each",
    """
func.func @f(%A: memref<32x8xf32>, %B: memref<8x40xf32>, %C: memref<32x40xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%C : memref<32x40xf32>)
  linalg.matmul ins(%A, %B : memref<32x8xf32>, memref<8x40xf32>)
      outs(%C : memref<32x40xf32>)
  return
}""",
)


def test_split_rows_are_placed() -> None:
    assert_proven(ELEMENTS)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("%rs3, %rs2, 40;", "%rs3, %rs2, 39;"),  # columns beyond the end
        ("%rs2, %rs1, 1639;", "%rs2, %rs1, 1638;"),  # the row before, at its end
        ("%rd9, %r5, 4;", "%rd9, %r4, 4;"),  # columns that do not begin again
        ("shl.b16 %rs5, %rs2, 5;", "shl.b16 %rs5, %rs4, 5;"),
        ("%rd11, %r4, 4;", "%rd11, %r5, 4;"),  # all rows stored as the first
        ("[%rd12], %r37;", "[%rd12+4], %r37;"),  # the next element
        ("[%rd12], %r37;", "[%rd12+160], %r37;"),
        ("[%rd10+320];", "[%rd10+324];"),  # an element of another column
        ("[%rd8+8];", "[%rd8+12];"),
        ("add.rn.f32 %r21, %r17, %r20;", "mov.b32 %r21, %r17;"),
        ("add.rn.f32 %r21, %r17, %r20;", "add.rn.f32 %r21, %r13, %r20;"),
        ("%r3, %r1, 8;", "%r3, %r1, 7;"),  # blocks that overlap
    ],
)
def test_other_splits_are_not_placed(old: str, new: str) -> None:
    assert_misplaced(ELEMENTS, old, new)
