"""Contractions that threads compute element by element, by `mul`, `add` and `fma`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from placed_cases import verdict

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
from certificate_kernels import Case

CASE = Case(
    "fallback",
    """
func.func @f(%A: memref<16x4xf32>, %B: memref<4x32xf32>, %C: memref<16x32xf32>) {
  linalg.matmul ins(%A, %B : memref<16x4xf32>, memref<4x32xf32>)
                outs(%C : memref<16x32xf32>)
  return
}""",
)


def test_products_are_placed() -> None:
    assert verdict(CASE, CASE.ptx).verdict == "proven"


@pytest.mark.parametrize(
    ("old", "new", "is_placed"),
    [
        ("fma.rn.f32 %r9, %r6, %r7, %r5;", "fma.rn.f32 %r9, %r7, %r6, %r5;", True),
        ("fma.rn.f32 %r9, %r6, %r7, %r5;", "add.rn.f32 %r9, %r5, %r6;", False),
        ("fma.rn.f32 %r9, %r6, %r7, %r5;", "mov.b32 %r9, %r5;", False),
        ("fma.rn.f32 %r9, %r6, %r7, %r5;", "fma.rn.f32 %r9, %r6, %r6, %r5;", False),
        ("fma.rn.f32 %r9, %r6, %r7, %r5;", "fma.rn.f32 %r9, %r6, %r7, %r6;", False),
        ("[%rd13+4]", "[%rd13+8]", False),  # of another k than B's
        ("[%rd13+4]", "[%rd13+20]", False),  # of another row
        ("[%rd15+128]", "[%rd15+132]", False),  # of another column
        ("[%rd10], %r", "[%rd10+4], %r", False),
    ],
)
def test_other_products(old: str, new: str, is_placed: bool) -> None:
    text = fused()
    assert text.count(old) == 1
    assert verdict(CASE, text.replace(old, new)).is_placed == is_placed


def test_a_product_that_is_added_twice() -> None:
    text = fused()
    last = "st.global.b32 [%rd10]"
    again = "fma.rn.f32 %r21, %r18, %r19, %r21;\n"
    assert text.count("%r18, %r19") == 1
    assert not verdict(CASE, text.replace(last, again + last)).is_placed


def fused() -> str:
    """The kernel with the first `mul` and `add` as one instruction."""
    text = CASE.ptx.replace(" \t", " ")
    pair = "mul.rn.f32 %r8, %r6, %r7;\n\tadd.rn.f32 %r9, %r5, %r8;"
    assert text.count(pair) == 1
    return text.replace(pair, "fma.rn.f32 %r9, %r6, %r7, %r5;")
