"""Loops that use other memory beside the copies: pipelined, and the same bits.

Barriers that order other memory stay, and so do copies that cannot be pipelined.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import reported_kernels as reported
from differential import Settings
from test_reported_failures import MODES, SIZES, UNPIPELINED, compiled, results

STAGES = ((2, 2), (3, 1), (5, 3))
BUFFERS = "%a : SHARED, %b : SHARED, %p : SHARED, %q : SHARED"
C = "memref<64x64xf32>"
A = "memref<256x64xf32>"
TOKEN = "!nvgpu.device.async.token"


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def loop(
    body: str,
    before: str = "",
    after: str = "",
    upper: str = "%n",
    start: str = "%zero",
) -> str:
    """A loop over %k that makes %next of %acc, in which nothing is synchronised yet."""
    return f"""
{before}
  %sum = scf.for %k = %c0 to {upper} step %c1 iter_args(%acc = {start}) -> (f32) {{
{body}
    scf.yield %next : f32
  }}
{after or f"  memref.store %sum, %C[%c0, %t] : {C}"}"""


COPY_B = """
    %w = memref.load %A[%k, %other] : memref<256x64xf32>
    memref.store %w, %b[%t] : SHARED"""
READ = """
    %x = memref.load %a[%other] : SHARED"""
ADD = """
    %next = arith.addf %acc, %x : f32"""
BARRIER = "\n    gpu.barrier"
FILL_Q = f"""
  %q0 = memref.load %A[%c63, %t] : {A}
  memref.store %q0, %q[%t] : SHARED"""
# Q lies in shared memory over the loop; P goes from thread to thread in each iteration.
ATTENTION = (
    reported.COPY
    + COPY_B
    + BARRIER
    + READ
    + """
    %y = memref.load %q[%other] : SHARED
    %s = arith.mulf %x, %y : f32
    memref.store %s, %p[%t] : SHARED
    gpu.barrier
    %r = memref.load %p[%other] : SHARED
    %v1 = memref.load %b[%other] : SHARED
    %rv = arith.mulf %r, %v1 : f32
    %next = arith.addf %acc, %rv : f32
    gpu.barrier"""
)
# The first threads add what the others have, half of them in each step.
REDUCTION = (
    reported.COPY
    + BARRIER
    + READ
    + """
    memref.store %x, %p[%t] : SHARED
    gpu.barrier
    scf.for %i = %c0 to %c4 step %c1 {
      %half = arith.shrui %c32, %i : index
      %few = arith.cmpi ult, %t, %half : index
      scf.if %few {
        %far = arith.addi %t, %half : index
        %one = memref.load %p[%t] : SHARED
        %two = memref.load %p[%far] : SHARED
        %both = arith.addf %one, %two : f32
        memref.store %both, %p[%t] : SHARED
      }
      gpu.barrier
    }
    %all = memref.load %p[%c0] : SHARED
    %next = arith.addf %acc, %all : f32
    gpu.barrier"""
)
# %b is filled from what the loop writes: it stays, with the barriers that it needs.
REFUSED_BESIDE = (
    reported.COPY
    + f"""
    %w = memref.load %C[%c1, %t] : {C}
    memref.store %w, %b[%t] : SHARED"""
    + BARRIER
    + READ
    + f"""
    %y = memref.load %b[%other] : SHARED
    %m = arith.addf %x, %y : f32
    memref.store %m, %C[%c1, %t] : {C}
    %next = arith.addf %acc, %m : f32
    gpu.barrier"""
)
BRANCH = (
    reported.COPY
    + BARRIER
    + READ
    + """
    %early = arith.cmpi ult, %k, %c2 : index
    %y = scf.if %early -> (f32) {
      memref.store %x, %p[%t] : SHARED
      gpu.barrier
      %r = memref.load %p[%other] : SHARED
      gpu.barrier
      scf.yield %r : f32
    } else {
      scf.yield %x : f32
    }
    %next = arith.addf %acc, %y : f32
    gpu.barrier"""
)
STACK = (
    reported.COPY
    + BARRIER
    + READ
    + """
    %o = memref.load %stack[%c1] : memref<2xf32>
    %next = arith.addf %o, %x : f32
    memref.store %next, %stack[%c1] : memref<2xf32>
    gpu.barrier"""
)
ON_STACK = """
  %stack = memref.alloca() : memref<2xf32>
  memref.store %zero, %stack[%c1] : memref<2xf32>"""
IN_PLACE = (
    reported.COPY
    + BARRIER
    + READ
    + f"""
    %o = memref.load %C[%c1, %t] : {C}
    %next = arith.addf %o, %x : f32
    memref.store %next, %C[%c1, %t] : {C}
    gpu.barrier"""
)
EXCHANGE = (
    reported.COPY
    + BARRIER
    + READ
    + f"""
    memref.store %x, %C[%c1, %t] : {C}
    gpu.barrier
    %o = memref.load %C[%c1, %other] : {C}
    %next = arith.addf %acc, %o : f32
    gpu.barrier"""
)
# What the last iteration passes to the threads that go on after the loop.
LAST = (
    reported.COPY + BARRIER + READ + ADD + "\n    memref.store %next, %p[%t] : SHARED"
)
FILL_P = FILL_Q.replace("%q[", "%p[") + "\n  gpu.barrier"
READ_LAST = f"""
  %l = memref.load %p[%other] : SHARED
  memref.store %l, %C[%c0, %t] : {C}"""
# ... and what they overwrite, which the last iteration has read.
READ_GLOBAL = (
    reported.COPY
    + BARRIER
    + READ
    + f"""
    %o = memref.load %C[%c1, %other] : {C}
    %m = arith.addf %o, %x : f32
    %next = arith.addf %acc, %m : f32
    gpu.barrier"""
)
OVERWRITE = f"""
  memref.store %sum, %C[%c1, %t] : {C}"""
WRITE_SOURCE = f"""
  scf.for %i = %c0 to %c4 step %c1 {{
    %f = arith.index_cast %i : index to i32
    %g = arith.sitofp %f : i32 to f32
    memref.store %g, %A[%i, %other] : {A}
  }}"""
ASYNC_A = f"""
    %ca = nvgpu.device_async_copy %A[%k, %t], %a[%t], 1 : {A} to SHARED"""
# %b is filled from what the loop writes.
ASYNC_B = f"""
    %cb = nvgpu.device_async_copy %C[%c1, %t], %b[%t], 1 : {C} to SHARED"""
USE_BOTH = f"""
    gpu.barrier
    %x = memref.load %a[%other] : SHARED
    %y = memref.load %b[%other] : SHARED
    %m = arith.addf %x, %y : f32
    memref.store %m, %C[%c1, %t] : {C}
    %next = arith.addf %acc, %m : f32
    gpu.barrier"""
ONE_GROUP = (
    ASYNC_A
    + ASYNC_B
    + f"""
    %g = "nvgpu.device_async_create_group"(%ca, %cb) : ({TOKEN}, {TOKEN}) -> {TOKEN}
    nvgpu.device_async_wait %g {{numGroups = 0 : i32}}"""
    + USE_BOTH
)
# The wait lets the group of %a fly, which is waited for later.
TWO_GROUPS = (
    ASYNC_B
    + """
    %gb = GROUP"""
    + ASYNC_A
    + """
    %ga = GROUP
    nvgpu.device_async_wait %gb {numGroups = 1 : i32}
    gpu.barrier
    %y = memref.load %b[%other] : SHARED
    nvgpu.device_async_wait %ga {numGroups = 0 : i32}"""
    + USE_BOTH.replace("    %y = memref.load %b[%other] : SHARED\n", "")
)
ASYNC_Q = f"""
  %cq = nvgpu.device_async_copy %A[%c63, %t], %q[%t], 1 : {A} to SHARED"""
# Q's copy is waited for in the first iteration, with that of the first tile.
ASYNC_ATTENTION = (
    ASYNC_A
    + """
    %g = GROUP
    nvgpu.device_async_wait %g {numGroups = 0 : i32}"""
    + BARRIER
    + """
    %x0 = memref.load %a[%other] : SHARED
    %y = memref.load %q[%other] : SHARED
    %x = arith.mulf %x0, %y : f32"""
    + ADD
    + BARRIER
)

# The scores of the step before are read in the next iteration, by another thread: the
# pipeline's barrier comes between the steps, where fragments are read early.
STEPS = f"""
    %v = memref.load %A[%k, %t] : {A}
    memref.store %v, %a[%t] : SHARED
    gpu.barrier
    %odd = arith.remui %k, %c2 : index
    %even = arith.subi %c1, %odd : index
    %to = arith.muli %odd, %c4 : index
    %from = arith.muli %even, %c4 : index
    %next = scf.for %i = %c0 to %c4 step %c1 iter_args(%in = %acc) -> (f32) {{
      %where = arith.xori %other, %i : index
      %x = memref.load %a[%where] : SHARED
      %back = arith.xori %i, %c3 : index
      %row = arith.addi %from, %back : index
      %old = memref.load %C[%row, %other] : {C}
      %one = arith.addf %in, %x : f32
      %both = arith.addf %one, %old : f32
      %now = arith.addi %to, %i : index
      memref.store %both, %C[%now, %t] : {C}
      scf.yield %both : f32
    }}
    gpu.barrier"""
# %b is refused: its fragments may not be read before it is filled.
STEPS_BESIDE = f"""
    %v = memref.load %A[%k, %t] : {A}
    memref.store %v, %a[%t] : SHARED
    %w = memref.load %C[%c1, %t] : {C}
    memref.store %w, %b[%t] : SHARED
    gpu.barrier
    %next = scf.for %i = %c0 to %c4 step %c1 iter_args(%in = %acc) -> (f32) {{
      %where = arith.xori %other, %i : index
      %x = memref.load %a[%where] : SHARED
      %y = memref.load %b[%where] : SHARED
      %m = arith.mulf %x, %y : f32
      %both = arith.addf %in, %m : f32
      memref.store %both, %C[%c1, %t] : {C}
      scf.yield %both : f32
    }}
    gpu.barrier"""
AWAIT_ALL = f"""
  %ge = GROUP
  nvgpu.device_async_wait %ge {{numGroups = 0 : i32}}
  memref.store %sum, %C[%c0, %t] : {C}"""
KERNELS = {
    "attention": loop(ATTENTION, FILL_Q),
    "reduction": "  %c32 = arith.constant 32 : index" + loop(REDUCTION),
    "refused_beside": loop(REFUSED_BESIDE),
    "branch": loop(BRANCH),
    "stack": loop(STACK, ON_STACK),
    "in_place": loop(IN_PLACE),
    "exchange": loop(EXCHANGE),
    "read_after": loop(LAST + BARRIER, FILL_P, READ_LAST),
    "written_after": loop(READ_GLOBAL, after=OVERWRITE),
    "source_written_for_a_warp": loop(
        BARRIER + reported.COPY + BARRIER + READ + ADD,
        WRITE_SOURCE + "\n  gpu.barrier scope <subgroup>",
    ),
    "source_written_before": loop(
        BARRIER + reported.COPY + BARRIER + READ + ADD, WRITE_SOURCE
    ),
    "one_group": loop(ONE_GROUP),
    "two_groups": loop(TWO_GROUPS),
    "open_before": loop(ASYNC_ATTENTION, ASYNC_Q, AWAIT_ALL),
    "committed_before": loop(ASYNC_ATTENTION, ASYNC_Q + "\n  %gq = GROUP", AWAIT_ALL),
}
KERNELS["steps_beside"] = loop(STEPS_BESIDE)
KERNELS["steps"] = "  %c3 = arith.constant 3 : index" + loop(
    STEPS, after=f"  memref.store %sum, %C[%c63, %t] : {C}"
)
KERNELS["persistent"] = f"""
  %last = scf.for %o = %c0 to %c2 step %c1 iter_args(%sofar = %zero) -> (f32) {{
{loop(ATTENTION, FILL_Q, "  scf.yield %sum : f32", start="%sofar")}
  }}
  memref.store %last, %C[%c0, %t] : {C}"""


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", KERNELS)
def test_same_bits(name: str) -> None:
    text = reported.kernel(KERNELS[name], BUFFERS)
    base = compiled(text, UNPIPELINED)
    expected = {size: results(base, size, MODES[0]) for size in SIZES}
    for number, stages in enumerate(STAGES):
        tail = ("predicated", "wrap")[number % 2]
        done = compiled(text, Settings(stages, tail=tail, noalias=True))
        assert "shared" in done.levels, stages
        for place, size in enumerate(SIZES):
            for mode in MODES[(number + place) % 4 :: 4]:
                found = results(done, size, mode)
                same = found.tobytes() == expected[size].tobytes()
                assert same, (stages, tail, size, mode)


# The same of users: marks, and a stage and an order for each op.
_MARK = "{alcop.pipeline = #alcop.pipeline<{shared = 3}>}"
_LISTS = (
    "{alcop.pipeline = #alcop.pipeline<{"
    f"stage = {[0] * 5 + [2] * 10}, order = {list(range(15))}}}>}}"
)


@pytest.mark.parametrize(
    "marks", [(_MARK, _MARK), ("", _LISTS)], ids=["marks", "lists"]
)
def test_plans_of_users(marks: tuple[str, str]) -> None:
    plain = KERNELS["attention"]
    of_copies, of_loop = marks
    planned = plain.replace(
        "yield %next : f32\n  }", f"yield %next : f32\n  }} {of_loop}"
    )
    for copy in ("store %v, %a[%t]", "store %w, %b[%t]"):
        planned = planned.replace(copy, f"{copy} {of_copies}")
    base, done = (
        compiled(reported.kernel(text, BUFFERS), UNPIPELINED)
        for text in (plain, planned)
    )
    assert "cp.async" in done.ptx
    for size, mode in zip(SIZES, MODES, strict=False):
        expected = results(base, size, mode)
        assert results(done, size, mode).tobytes() == expected.tobytes(), (size, mode)
