"""What passes before planning may not change: programs that break each if it guesses.

Their buffers hold what an older iteration, another loop or another thread has left
there. All that alcop-pipeline runs before it plans gives the bits of the program as it
was, and so do pipelines after that.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import reported_kernels as reported
from input_forms import MODES, PIPELINED, prepared
from test_peers import PREPARE
from test_reported_failures import UNPIPELINED, compiled, results

A = "memref<256x64xf32>"
C = "memref<64x64xf32>"
PARTS = "memref<1024xf32, #gpu.address_space<workgroup>>"
SLOTS = "memref<3x64xf32, #gpu.address_space<workgroup>>"


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


LOAD = f"""
    %row = arith.addi %k, %o : index
    %v = memref.load %A[%row, %t] : {A}"""
FILL = (
    LOAD
    + f"""
    memref.store %v, %a[%at] : {PARTS}"""
)
READ = f"""
    %x = memref.load %a[%from] : {PARTS}
    %next = arith.addf %acc, %x : f32"""
BARRIER = "\n    gpu.barrier"


def under(condition: str, body: str) -> str:
    """Under a condition on indices, as operands of an arith.cmpi."""
    return f"""
    %go = arith.cmpi {condition} : index
    scf.if %go {{{body}
    }}"""


def nest(body: str, buffer: str = PARTS) -> str:
    """Two runs of a loop over the parts of %a, with %at and %from in part %k."""
    return reported.kernel(
        f"""
  %c3 = arith.constant 3 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %sum = scf.for %o = %c0 to %c2 step %c1 iter_args(%sofar = %zero) -> (f32) {{
  %inner = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %sofar) -> (f32) {{
    %part = arith.muli %k, %c64 : index
    %at = arith.addi %part, %t : index
    %from = arith.addi %part, %other : index
{body}
    scf.yield %next : f32
  }}
  gpu.barrier
  scf.yield %inner : f32
  }}
  memref.store %sum, %C[%c0, %t] : {C}""",
        f"%a : {buffer}",
    )


def slots(text: str) -> str:
    """The same with a number for each of three slots."""
    text = text.replace("%a[%at]", "%a[%s, %t]").replace("%a[%from]", "%a[%s, %other]")
    return "    %s = arith.remui %k, %c3 : index" + text.replace(PARTS, SLOTS)


WARPS = "\n    gpu.barrier scope <subgroup>"
# The second run of the loop reads what the first one has left.
FIRST_RUN = under("eq, %o, %c0", FILL) + BARRIER + READ + BARRIER
# Iterations from the third on read what one three before them has filled.
FEW = under("ult, %k, %c3", FILL) + BARRIER + READ + BARRIER
# Threads from the 33rd on have filled their half in the first run only.
FILL_HALF = """
    %lane_or_all = arith.muli %t, %o : index""" + under("ult, %lane_or_all, %c32", FILL)
HALF = FILL_HALF + BARRIER + READ + BARRIER
# Parts of the first run are read by the second.
LATE = (
    under("eq, %o, %c0", FILL)
    + BARRIER
    + """
    %first_run = arith.cmpi eq, %o, %c0 : index
    %x = scf.if %first_run -> (f32) {
      scf.yield %zero : f32
    } else {"""
    + f"""
      %r = memref.load %a[%from] : {PARTS}
      scf.yield %r : f32
    }}
    %next = arith.addf %acc, %x : f32"""
    + BARRIER
)
# The first warp fills all of a part, and in the second run the first half.
BY_A_WARP = f"""
    %some = arith.subi %c2, %o : index
    scf.for %j = %c0 to %some step %c1 {{
      %half = arith.muli %j, %c32 : index
      %to = arith.addi %at, %half : index{LOAD}
      memref.store %v, %a[%to] : {PARTS}
    }}"""
INNER = under("ult, %t, %c32", BY_A_WARP) + BARRIER + READ + BARRIER
KERNELS = {
    "parts": nest(FILL + BARRIER + READ),
    "parts_of_first_run": nest(FIRST_RUN),
    "parts_half_filled": nest(HALF),
    "parts_read_late": nest(LATE),
    "parts_barrier_of_warps": nest(FILL + BARRIER + READ + WARPS),
    "slots_of_few": nest(slots(FEW), SLOTS),
    "slots_of_first_run": nest(
        slots(FIRST_RUN).replace("to %n step", "to %c3 step"), SLOTS
    ),
    "slots_barrier_of_warps": nest(slots(FILL + BARRIER + READ + WARPS), SLOTS),
    "parts_of_inner_loop": nest(INNER),
}
# Of these one slot is enough.
FOLDED = {"parts", "parts_barrier_of_warps", "slots_barrier_of_warps"}
# The first warp has barriers of its own, and reads what the other one has filled.
ITERATE = """scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {
BODY
    scf.yield %next : f32
  }"""


def iterate(body: str) -> str:
    return ITERATE.replace("BODY", body)


KERNELS["loop_of_a_warp"] = reported.kernel(f"""
  %c32 = arith.constant 32 : index
  %sum = {iterate(reported.COPY + BARRIER + reported.READ + BARRIER)}
  %few = arith.cmpi ult, %t, %c32 : index
  scf.if %few {{
    %sum2 = {iterate(reported.COPY + WARPS + reported.READ + WARPS)}
    memref.store %sum2, %C[%c1, %t] : {C}
  }}
  memref.store %sum, %C[%c0, %t] : {C}""")
# A condition keeps its divisions from 0; what is loaded decides, and is overwritten.
GUARD = f"""
    %d = arith.remui %k, %c3 : index
    %go = arith.cmpi ne, %d, %c0 : index
    %next = scf.if %go -> (f32) {{
      %s = arith.remui %k, %d : index
      %v = memref.load %A[%s, %t] : {A}
      memref.store %v, %a[%t] : SHARED
      gpu.barrier
      %x = memref.load %a[%other] : SHARED
      %y = memref.load %A[%s, %other] : {A}
      %xy = arith.addf %x, %y : f32
      gpu.barrier
      scf.yield %xy : f32
    }} else {{
      scf.yield %acc : f32
    }}"""
KERNELS["guard_of_division"] = reported.kernel(f"""
  %c3 = arith.constant 3 : index
  %sum = {iterate(GUARD)}
  memref.store %sum, %C[%c0, %t] : {C}""")
GUARD_CHANGES = f"""
    %m = memref.load %C[%c1, %c1] : {C}
    gpu.barrier
    %go = arith.cmpf ogt, %m, %zero : f32
    %next = scf.if %go -> (f32) {{
      %v = memref.load %A[%k, %t] : {A}
      memref.store %v, %a[%t] : SHARED
      gpu.barrier
      %x = memref.load %a[%other] : SHARED
      memref.store %x, %C[%c1, %t] : {C}
      gpu.barrier
      %y = memref.load %a[%t] : SHARED
      %both = arith.addf %x, %y : f32
      gpu.barrier
      scf.yield %both : f32
    }} else {{
      scf.yield %acc : f32
    }}
    gpu.barrier"""
KERNELS["guard_changes_its_condition"] = reported.kernel(f"""
  %sum = {iterate(GUARD_CHANGES)}
  memref.store %sum, %C[%c0, %t] : {C}""")


@pytest.mark.parametrize("name", KERNELS)
def test_same_bits(name: str) -> None:
    text = KERNELS[name]
    base = compiled(text, UNPIPELINED)
    after = prepared(text, ",".join(PREPARE))
    assert ("memref<1x64xf32" in after) == (name in FOLDED)
    every = [base, *(compiled(after, s) for s in (UNPIPELINED, PIPELINED[0]))]
    for size, mode in zip((2, 7), MODES, strict=False):
        expected, *found = (results(one, size, mode).tobytes() for one in every)
        assert found == [expected] * len(found), (size, mode)
