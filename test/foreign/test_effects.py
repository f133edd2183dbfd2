"""Loops with ops that touch no memory are pipelined, and give the same bits."""

from __future__ import annotations

from pathlib import Path

import pytest
import reported_kernels as reported
from test_reported_failures import assert_refused, assert_right


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


# What an iteration makes of `%x`, the element that it reads of the buffer.
BODIES = {
    "shuffle": """
    %far = arith.constant 5 : i32
    %width = arith.constant 32 : i32
    %y, %valid = gpu.shuffle xor %x, %far, %width : f32""",
    "reduction": """
    %wide = vector.broadcast %x : f32 to vector<3xf32>
    %y = vector.reduction <add>, %wide, %x : vector<3xf32> into f32""",
    "stack": """
    %kept = memref.alloca() : memref<2xf32>
    memref.store %x, %kept[%c1] : memref<2xf32>
    %y = memref.load %kept[%c1] : memref<2xf32>""",
    "special_register": """
    %id = nvvm.read.ptx.sreg.laneid : i32
    %lane = arith.sitofp %id : i32 to f32
    %y = arith.mulf %x, %lane : f32""",
    "prefetch": """
    memref.prefetch %A[%k, %t], read, locality<3>, data : memref<256x64xf32>
    %y = arith.negf %x : f32""",
    "while": """
    %lane = arith.remui %t, %c4 : index
    %y, %last = scf.while (%p = %x, %i = %c0) : (f32, index) -> (f32, index) {
      %more = arith.cmpi ult, %i, %lane : index
      scf.condition(%more) %p, %i : f32, index
    } do {
    ^bb0(%p : f32, %i : index):
      %q = arith.mulf %p, %x : f32
      %j = arith.addi %i, %c1 : index
      scf.yield %q, %j : f32, index
    }""",
    "index_switch": """
    %lane = arith.remui %t, %c4 : index
    %y = scf.index_switch %lane -> f32
    case 1 {
      %q = arith.negf %x : f32
      scf.yield %q : f32
    }
    default {
      scf.yield %x : f32
    }""",
}


def with_body(body: str) -> str:
    read = "%x = memref.load %a[%other] : SHARED"
    return reported.kernel(
        reported.loop(
            reported.COPY, f"    {read}{body}\n    %next = arith.addf %acc, %y : f32"
        )
    )


@pytest.mark.parametrize("name", BODIES)
def test_ops_that_touch_no_memory(name: str) -> None:
    assert_right(with_body(BODIES[name]))


def test_an_address_may_be_divided() -> None:
    """It is computed early only for iterations that there are: n is not 0 then."""
    row = "    %row = arith.remui %k, %n : index"
    assert_right(
        reported.kernel(
            reported.loop(row + reported.COPY.replace("%k,", "%row,"), reported.READ)
        )
    )


def test_a_carried_address_may_not_be_divided() -> None:
    """The row after the last iteration would be a division by zero."""
    text = (
        reported.PLAIN.replace("%A[%k, %t]", "%A[%row, %t]")
        .replace("%sum =", "%sum:2 =")
        .replace("%acc = %zero) -> (f32)", "%acc = %zero, %row = %c1) -> (f32, index)")
        .replace(
            "    scf.yield %next : f32",
            "    %left = arith.subi %n, %k : index\n"
            "    %rest = arith.subi %left, %c1 : index\n"
            "    %some = arith.maxui %rest, %c1 : index\n"
            "    %after = arith.divui %c63, %some : index\n"
            "    scf.yield %next, %after : f32, index",
        )
        .replace("store %sum,", "store %sum#0,")
    )
    assert_refused(text, "its address depends on 'arith.divui' of an earlier iteration")
