"""Copies under conditions and in loops: pipelined, with the bits of the program before.

And those that would be wrong: refused.
"""

from __future__ import annotations

import pytest
import reported_kernels as reported
from test_reported_failures import assert_refused, assert_right

ROWS = "memref<4x64xf32, #gpu.address_space<workgroup>>"
HALF = "memref<32xf32, #gpu.address_space<workgroup>>"
SOURCE = "memref<256x64xf32>"
TWO = "%a : SHARED, %b : SHARED"
READ_BOTH = """
    %x = memref.load %a[%other] : SHARED
    %y = memref.load %b[%other] : SHARED
    %p = arith.mulf %x, %y : f32
    %next = arith.addf %acc, %p : f32"""
READ_ROWS = f"""
    %x = memref.load %a[%c1, %other] : {ROWS}
    %y = memref.load %a[%c3, %t] : {ROWS}
    %p = arith.mulf %x, %y : f32
    %next = arith.addf %acc, %p : f32"""
CONSTANTS = """
  %c3 = arith.constant 3 : index
  %c8 = arith.constant 8 : index
  %c31 = arith.constant 31 : index
  %c32 = arith.constant 32 : index
  %least = arith.constant 0xFF800000 : f32
  %first = arith.cmpi ult, %t, %c32 : index
  %lane = arith.remui %t, %c32 : index
  %warp = arith.divui %t, %c32 : index
  %rows = arith.minsi %n, %c3 : index
"""


def kernel(copies: str, reads: str, buffers: str) -> str:
    text = CONSTANTS + reported.loop(copies, reads)
    return reported.kernel(text.replace("SOURCE", SOURCE), buffers)


def rows(body: str, head: str = "%j = %c0 to %c4 step %c1") -> str:
    """A loop that copies rows."""
    copies = f"""
    %k4 = arith.muli %k, %c4 : index
    scf.for {head} {{
      %row = arith.addi %k4, %j : index
{body}
    }}"""
    return kernel(copies, READ_ROWS, f"%a : {ROWS}")


def first_row(text: str) -> str:
    """The kernel, reading the first row only."""
    return text.replace("load %a[%c3", "load %a[%c0").replace(
        "load %a[%c1", "load %a[%c0"
    )


ROW = f"""
      %v = memref.load %A[%row, %t] : SOURCE
      memref.store %v, %a[%j, %t] : {ROWS}"""
FILLED_ROW = f"""
      %in = arith.cmpi ult, %row, %c31 : index
      scf.if %in {{
        %v = memref.load %A[%row, %t] : SOURCE
        memref.store %v, %a[%j, %t] : {ROWS}
      }} else {{
        memref.store FILL, %a[%j, %t] : {ROWS}
      }}"""
PIPELINED = {
    "by some threads": kernel(
        f"""
    scf.if %first {{
      %v = memref.load %A[%k, %t] : SOURCE
      memref.store %v, %a[%t] : {HALF}
    }}""",
        f"""
    %far = arith.subi %c31, %lane : index
    %x = memref.load %a[%far] : {HALF}
    %next = arith.addf %acc, %x : f32""",
        f"%a : {HALF}",
    ),
    "two under one condition": kernel(
        f"""
    %half = arith.divui %t, %c2 : index
    scf.if %first {{
      %v = memref.load %A[%k, %t] : SOURCE
      memref.store %v, %a[%t] : {HALF}
      %k1 = arith.addi %k, %c1 : index
      %w = memref.load %A[%k1, %t] : SOURCE
      memref.store %w, %b[%t] : {HALF}
    }}""",
        f"""
    %x = memref.load %a[%lane] : {HALF}
    %y = memref.load %b[%half] : {HALF}
    %p = arith.mulf %x, %y : f32
    %next = arith.addf %acc, %p : f32""",
        f"%a : {HALF}, %b : {HALF}",
    ),
    "filled with -inf": kernel(
        """
    %in = arith.cmpi ult, %k, %c4 : index
    scf.if %in {
      %v = memref.load %A[%k, %t] : SOURCE
      memref.store %v, %a[%t] : SHARED
    } else {
      memref.store %least, %a[%t] : SHARED
    }""",
        reported.READ,
        "%a : SHARED",
    ),
    "-inf is chosen": kernel(
        """
    %in = arith.cmpi ult, %k, %c4 : index
    %v = scf.if %in -> (f32) {
      %back = arith.subi %c63, %k : index
      %l = memref.load %A[%back, %t] : SOURCE
      scf.yield %l : f32
    } else {
      scf.yield %least : f32
    }
    memref.store %v, %a[%t] : SHARED""",
        reported.READ,
        "%a : SHARED",
    ),
    "one of two sources": kernel(
        """
    %in = arith.cmpi ult, %t, %k : index
    scf.if %in {
      %v = memref.load %A[%k, %t] : SOURCE
      memref.store %v, %a[%t] : SHARED
    } else {
      %w = memref.load %A[%k, %other] : SOURCE
      memref.store %w, %a[%t] : SHARED
    }""",
        reported.READ,
        "%a : SHARED",
    ),
    "one buffer of two is filled with a number": kernel(
        """
    %in = arith.cmpi ult, %t, %k : index
    %f = arith.index_cast %k : index to i32
    %g = arith.sitofp %f : i32 to f32
    scf.if %in {
      %v = memref.load %A[%k, %t] : SOURCE
      memref.store %v, %a[%t] : SHARED
      memref.store %g, %b[%t] : SHARED
    } else {
      memref.store %zero, %a[%t] : SHARED
      memref.store %least, %b[%t] : SHARED
    }""",
        READ_BOTH,
        TWO,
    ),
    "row by row": rows(ROW),
    "as many rows as there are": first_row(rows(ROW, "%j = %c0 to %rows step %c1")),
    "rows of each warp": rows(
        f"""
      %v:2 = scf.for %i = %c0 to %c2 step %c1 iter_args(%at = %lane, %once = %c0)
          -> (index, index) {{
        %w = memref.load %A[%row, %at] : SOURCE
        %i32 = arith.muli %i, %c32 : index
        %to = arith.addi %i32, %lane : index
        memref.store %w, %a[%j, %to] : {ROWS}
        %after = arith.addi %at, %c32 : index
        scf.yield %after, %once : index, index
      }}""",
        "%j = %warp to %c4 step %c2",
    ),
    "rows that exist, else zero": rows(FILLED_ROW.replace("FILL", "%zero")),
    "rows that exist, else -inf": rows(FILLED_ROW.replace("FILL", "%least")),
    "rows chosen": rows(
        f"""
      %in = arith.cmpi ult, %row, %c31 : index
      %v = scf.if %in -> (f32) {{
        %l = memref.load %A[%row, %t] : SOURCE
        scf.yield %l : f32
      }} else {{
        scf.yield %least : f32
      }}
      memref.store %v, %a[%j, %t] : {ROWS}"""
    ),
    "rows of tiles": rows(
        f"""
      %from = memref.subview %A[%row, 0] [1, 64] [1, 1]
          : SOURCE to memref<64xf32, strided<[1], offset: ?>>
      %to = memref.subview %a[%j, 0] [1, 64] [1, 1] : {ROWS}
          to memref<64xf32, strided<[1], offset: ?>, #gpu.address_space<workgroup>>
      memref.copy %from, %to : memref<64xf32, strided<[1], offset: ?>>
          to memref<64xf32, strided<[1], offset: ?>, #gpu.address_space<workgroup>>"""
    ),
    "asynchronous copies": rows(
        f"""
      %c = nvgpu.device_async_copy %A[%row, %t], %a[%j, %t], 1 : SOURCE to {ROWS}"""
    ).replace(
        "    gpu.barrier",
        f"    %g = {reported.GROUP}\n    nvgpu.device_async_wait %g\n    gpu.barrier",
        1,
    ),
}


@pytest.mark.parametrize("name", PIPELINED)
def test_pipelined(name: str) -> None:
    assert_right(PIPELINED[name], every=((3, 1),))


REFUSED = {
    "the condition changes": (
        kernel(
            """
    %in = arith.cmpi ult, %t, %k : index
    scf.if %in {
      %v = memref.load %A[%k, %t] : SOURCE
      memref.store %v, %a[%t] : SHARED
    }""",
            reported.READ,
            "%a : SHARED",
        ).replace(
            "  %sum",
            "  memref.store %zero, %a[%t] : "
            + reported.SHARED
            + "\n  gpu.barrier\n  %sum",
        ),
        "its condition changes from iteration to iteration",
    ),
    "the number of rows changes": (
        first_row(rows(ROW, "%j = %c0 to %few step %c1")).replace(
            "    scf.for",
            "    %k1 = arith.addi %k, %c1 : index\n"
            "    %few = arith.minsi %k1, %c4 : index\n    scf.for",
        ),
        "how often its loops run changes from iteration to iteration",
    ),
    "the last row wins": (
        first_row(rows(ROW.replace("%a[%j", "%a[%c0"))),
        "may fill the same elements of its buffer several times in an iteration",
    ),
    "rows that overlap": (
        first_row(
            rows(
                ROW.replace("%a[%j, %t]", "%a[%half, %t]").replace(
                    "      %v =",
                    "      %half = arith.divui %j, %c2 : index\n      %v =",
                )
            )
        ),
        "may fill the same elements of its buffer several times in an iteration",
    ),
    "filled, then copied": (
        rows(f"\n      memref.store %zero, %a[%j, %t] : {ROWS}" + ROW),
        "another copy of the iteration may fill the same elements",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    text, remark = REFUSED[name]
    assert_refused(text, remark)
