"""Rows whose columns do not divide by threads: these leave the loop in other turns."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from placed_cases import assert_misplaced, assert_proven, verdict

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
from certificate_kernels import Case


def row_totals(columns: int) -> Case:
    return Case(
        f"totals of {columns}",
        f"""
func.func @f(%x: memref<64x{columns}xf32>, %y: memref<64xf32>) {{
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : memref<64xf32>)
  linalg.generic {{
      indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m)>],
      iterator_types = ["parallel", "reduction"]}}
      ins(%x : memref<64x{columns}xf32>) outs(%y : memref<64xf32>) {{
    ^bb0(%a: f32, %s: f32):
      %next = arith.addf %s, %a : f32
      linalg.yield %next : f32
  }}
  return
}}""",
    )


UNEVEN = row_totals(80)


@pytest.mark.parametrize("columns", [80, 33, 31, 257])
def test_all_columns_are_placed(columns: int) -> None:
    assert_proven(row_totals(columns))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("%rd12, 48;", "%rd12, 47;"),  # one thread leaves a turn too early
        ("%rd12, 48;", "%rd12, 49;"),  # one stays: an element of the next row
        ("setp.lt.u64 %p1", "setp.le.u64 %p1"),
        ("setp.lt.u64 %p1", "setp.ge.u64 %p1"),
        ("%rd12, 32;", "%rd12, 64;"),
        ("%rd13, 128;", "%rd13, 124;"),
        ("%rd13, 128;", "%rd13, 0;"),  # each thread reads one element in all turns
        ("add.rn.f32 %r17, %r17, %r6;", "mov.b32 %r17, %r6;"),  # the last turn's alone
        ("add.rn.f32 %r17, %r17, %r6;", "add.rn.f32 %r17, %r17, %r17;"),
        ("%r17, 16, 31, -1;", "%r17, 8, 31, -1;"),
        ("%rd3, 320, %rd9;", "%rd3, 316, %rd9;"),
        ("%rd2, -32;", "%rd2, -64;"),
        ("[%rd4], %r1;", "[%rd4], %r17;"),  # what one thread has read
    ],
)
def test_other_columns_are_not_placed(old: str, new: str) -> None:
    assert_misplaced(UNEVEN, old, new)


def test_threads_may_not_part_ways_too_often() -> None:
    """As often as each thread in a turn of its own would."""
    text = UNEVEN.ptx.replace(" \t", " ").replace("%rd12, 48;", "%rd12, 4096;")
    text = text.replace("add.s64 \t%rd12, %rd12, 32;", "add.s64 %rd12, %rd12, %rd8;")
    assert not verdict(UNEVEN, text).is_placed
