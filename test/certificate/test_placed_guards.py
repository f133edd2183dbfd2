"""Tiles that some threads copy, and guards that turns of a loop around decide."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from placed_cases import assert_misplaced, assert_proven

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
from certificate_kernels import Case


def matmul(m: int, n: int, k: int, schedule: str) -> Case:
    text = f"""
func.func @f(%A: memref<{m}x{k}xf16>, %B: memref<{k}x{n}xf16>,
             %C: memref<{m}x{n}xf32>) {{
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%C : memref<{m}x{n}xf32>)
  linalg.matmul ins(%A, %B : memref<{m}x{k}xf16>, memref<{k}x{n}xf16>)
      outs(%C : memref<{m}x{n}xf32>)
  return
}}"""
    return Case(f"{m}x{n}x{k}", text, schedule)


# Half of the threads have a chunk of each tile to copy.
SMALL = "block=32,32,16 warp=16,16 stages=3,2"
HALF = matmul(64, 64, 112, SMALL)
# Rows and columns are copied one by one, in loops inside of that along K.
SINGLE = matmul(127, 65, 131, "block=128,64,64 warp=64,32 stages=4,2")


@pytest.mark.parametrize(
    "case", [HALF, matmul(64, 64, 256, SMALL), SINGLE], ids=lambda case: case.name
)
def test_results_are_placed(case: Case) -> None:
    assert_proven(case)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("setp.gt.u32 %p1, %r59, 63;", "setp.gt.u32 %p1, %r59, 31;"),
        ("mad.lo.s64 %rd43, %rd134, 224", "mad.lo.s64 %rd43, %rd5, 224"),
        ("mad.lo.s64 %rd43, %rd134, 224", "mad.lo.s64 %rd43, %rd134, 208"),
        ("[%rd71+96]", "[%rd71+64]"),  # one tile twice
        ("[%rd48+5120], [%rd51+4096]", "[%rd48+5120], [%rd51+4080]"),
        ("[%rd48+5120], [%rd51+4096]", "[%rd48+5104], [%rd51+4096]"),
    ],
)
def test_other_elements_of_half_the_threads(old: str, new: str) -> None:
    assert_misplaced(HALF, old, new)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("add.s64 %rd457, %rd457, 8384;", "add.s64 %rd457, %rd457, 8122;"),
        ("add.s64 %rd455, %rd455, 128;", "add.s64 %rd455, %rd455, 126;"),
        ("or.b64 %rd192, %rd45, %rd456;", "mov.b64 %rd192, %rd45;"),
        ("setp.lt.u64 %p39, %rd456, 67;", "setp.lt.u64 %p39, %rd456, 3;"),
        ("sub.s64 %rd42, 131, %rd456;", "sub.s64 %rd42, 130, %rd456;"),
        ("min.u64 %rd44, %rd42, 64;", "min.u64 %rd44, %rd42, 63;"),
        ("setp.le.u64 %p2, %rd42, %rd3;", "setp.le.u64 %p2, %rd42, %rd2;"),
        ("st.shared.b16 [%rd188], %rs1;", "st.shared.b16 [%rd188], %rs2;"),
        ("mov.b64 %rd459, 32;", "mov.b64 %rd459, 31;"),
    ],
)
def test_other_elements_of_inner_loops(old: str, new: str) -> None:
    assert_misplaced(SINGLE, old, new)
