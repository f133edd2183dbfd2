"""Loads of global memory that run iterations early: the bits of the loop as it was.

Tables are exactly as long as the loop reads: the emulator finds what is read beyond.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from differential import SCHEDULES, VISIBILITIES, Compiled, Settings, launch
from test_reported_failures import compiled

THREADS = 64
SIZES = (0, 1, 2, 5, 8, 13)  # trip counts: fewer than the stages, no multiple of slots
STAGES = ((2, 1), (3, 2), (5, 1))
MODES = [(seen, order) for seen in VISIBILITIES for order in SCHEDULES]

KERNEL = """
module attributes {gpu.container_module} {
gpu.module @kernels {
gpu.func @kernel(%A: memref<256x64xf32>, %I: memref<4096xi32>, %J: memref<256xi32>,
    %C: memref<64xf32>, %n: index) workgroup(%a : SHARED)
    kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c7 = arith.constant 7 : index
  %c63 = arith.constant 63 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %other = arith.subi %c63, %t : index
  %sum:2 = scf.for %k = %c0 to %n step %c1
      iter_args(%acc = %zero, %p = %c7) -> (f32, index) {
BODY
    scf.yield YIELD : f32, index
  }
  memref.store %sum#0, %C[%t] : memref<64xf32>
  gpu.return
}
}
}
"""
COPY = """
    %v = memref.load %A[%row, %t] : memref<256x64xf32>
    memref.store %v, %a[%t] : SHARED
    gpu.barrier
    %x = memref.load %a[%other] : SHARED
    %next = arith.addf %acc, %x : f32
    gpu.barrier"""
ROW = """
    %i = memref.load %I[%k] : memref<4096xi32>
    %row = arith.index_cast %i : i32 to index"""
BODIES = {
    "row": ROW,
    "row of each thread": """
    %first = arith.muli %k, %c64 : index
    %at = arith.addi %first, %t : index
    %i = memref.load %I[%at] : memref<4096xi32>
    %row = arith.index_cast %i : i32 to index""",
    "two levels": """
    %i = memref.load %I[%k] : memref<4096xi32>
    %at = arith.index_cast %i : i32 to index
    %j = memref.load %J[%at] : memref<256xi32>
    %row = arith.index_cast %j : i32 to index""",
    "three levels": """
    %i = memref.load %I[%k] : memref<4096xi32>
    %at = arith.index_cast %i : i32 to index
    %j = memref.load %J[%at] : memref<256xi32>
    %there = arith.index_cast %j : i32 to index
    %r = memref.load %J[%there] : memref<256xi32>
    %row = arith.index_cast %r : i32 to index""",
    "both levels": """
    %i = memref.load %I[%k] : memref<4096xi32>
    %at = arith.index_cast %i : i32 to index
    %j = memref.load %J[%at] : memref<256xi32>
    %there = arith.index_cast %j : i32 to index
    %both = arith.addi %at, %there : index
    %row = arith.divui %both, %c7 : index""",
    "same in all iterations": """
    %j = memref.load %J[%c7] : memref<256xi32>
    %there = arith.index_cast %j : i32 to index
    %i = memref.load %J[%there] : memref<256xi32>
    %first = arith.index_cast %i : i32 to index
    %both = arith.addi %first, %k : index
    %row = arith.divui %both, %c7 : index""",
    "under a condition": """
    %is_odd = arith.cmpi ugt, %k, %c1 : index
    %i = scf.if %is_odd -> i32 {
      %one = memref.load %I[%k] : memref<4096xi32>
      scf.yield %one : i32
    } else {
      %one = memref.load %J[%k] : memref<256xi32>
      scf.yield %one : i32
    }
    %row = arith.index_cast %i : i32 to index""",
    "pointer chase": """
    %row = arith.addi %p, %c0 : index
    %j = memref.load %J[%p] : memref<256xi32>
    %q = arith.index_cast %j : i32 to index""",
    "pointer chase, then copy": """
    %j = memref.load %J[%p] : memref<256xi32>
    %row = arith.index_cast %j : i32 to index
    %q = arith.addi %row, %c0 : index""",
    "chase through a table": """
    %j = memref.load %J[%p] : memref<256xi32>
    %q = arith.index_cast %j : i32 to index
    %at = memref.load %J[%q] : memref<256xi32>
    %row = arith.index_cast %at : i32 to index""",
}
USED_TOO = (
    ROW
    + """
    %f = arith.sitofp %i : i32 to f32
    %more = arith.addf %acc, %f : f32"""
)


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def kernel(body: str) -> str:
    carried = "%q" if "%q =" in body else "%p"
    text = KERNEL.replace("BODY", body).replace("YIELD", f"%next, {carried}")
    return text.replace("SHARED", "memref<64xf32, #gpu.address_space<workgroup>>")


def results(body: str, done: Compiled, size: int, mode: tuple[str, str]) -> bytes:
    """What is stored; fails on a hazard."""
    random = np.random.default_rng(size)
    length = size * (THREADS if "%first, %t" in body else 1)
    by_index = "%A[%k" in body and "%A[%row" not in body
    rows = size if by_index else 256
    a = random.uniform(-1, 1, (rows, 64)).astype("f4")
    i = random.integers(0, 256, length).astype("i4")
    j = random.integers(0, 256, 256).astype("i4")
    c = np.full(64, 7, "f4")
    block = (THREADS, 1, 1)
    assert launch(done, (1, 1, 1), block, [a, i, j, c, size], mode) == ()
    return c.tobytes()


def assert_right(
    body: str, stage_counts: tuple[tuple[int, int], ...] = STAGES, level: str = "shared"
) -> None:
    """Pipelined at that level, and the bits of the unpipelined program."""
    text = kernel(body)
    base = compiled(text, Settings((1, 1)))
    expected = {size: results(body, base, size, MODES[0]) for size in SIZES}
    for number, stages in enumerate(stage_counts):
        done = compiled(text, Settings(stages, noalias=True))
        assert level in done.levels, done.report
        for place, size in enumerate(SIZES):
            mode = MODES[(number + place) % len(MODES)]
            assert results(body, done, size, mode) == expected[size], (stages, size)


@pytest.mark.parametrize("name", BODIES)
def test_rows_from_tables(name: str) -> None:
    assert_right(BODIES[name] + COPY)


def test_an_index_that_is_used_otherwise_too() -> None:
    assert_right(USED_TOO + COPY.replace("addf %acc, %x", "addf %more, %x"))


@pytest.mark.parametrize("trips", [1, 2, 3, 8])
def test_known_trip_counts(trips: int) -> None:
    """Of two levels: what is loaded before the loop is known to be there or not."""
    body = BODIES["two levels"] + COPY
    text = kernel(body).replace("to %n step", "to %last step")
    last = f"  %last = arith.constant {trips} : index\n"
    text = text.replace("  %t = gpu", f"{last}  %t = gpu")
    base = compiled(text, Settings((1, 1)))
    expected = results(body, base, trips, MODES[0])
    for stages in STAGES:
        done = compiled(text, Settings(stages, noalias=True))
        assert results(body, done, trips, MODES[-1]) == expected, stages


# -- loads that the arithmetic uses, without shared memory ----------------------------

REGISTER_STAGES = ((1, 2), (3, 3), (1, 4))
SUMS = {
    "row": """
    %v = memref.load %A[%k, %t] : memref<256x64xf32>
    %next = arith.addf %acc, %v : f32""",
    "two loads": """
    %v = memref.load %A[%k, %t] : memref<256x64xf32>
    %w = memref.load %A[%k, %other] : memref<256x64xf32>
    %m = arith.mulf %v, %w : f32
    %next = arith.addf %acc, %m : f32""",
    "vector": """
    %vs = vector.load %A[%k, %c0] : memref<256x64xf32>, vector<4xf32>
    %v = vector.reduction <add>, %vs : vector<4xf32> into f32
    %next = arith.addf %acc, %v : f32""",
    "row by a table": ROW
    + """
    %v = memref.load %A[%row, %t] : memref<256x64xf32>
    %next = arith.addf %acc, %v : f32""",
    "index and row": ROW
    + """
    %f = arith.sitofp %i : i32 to f32
    %v = memref.load %A[%row, %t] : memref<256x64xf32>
    %w = arith.addf %f, %v : f32
    %next = arith.addf %acc, %w : f32""",
    "linked list": """
    %v = memref.load %A[%p, %t] : memref<256x64xf32>
    %next = arith.addf %acc, %v : f32
    %j = memref.load %J[%p] : memref<256xi32>
    %q = arith.index_cast %j : i32 to index""",
    "running row": """
    %v = memref.load %A[%p, %t] : memref<256x64xf32>
    %next = arith.addf %acc, %v : f32
    %q = arith.addi %p, %c7 : index""",
    "under a condition": """
    %is_in = arith.cmpi ugt, %k, %t : index
    %v = scf.if %is_in -> f32 {
      %at = memref.load %A[%k, %t] : memref<256x64xf32>
      scf.yield %at : f32
    } else {
      scf.yield %zero : f32
    }
    %next = arith.addf %acc, %v : f32""",
    "the load is carried": """
    %v = memref.load %A[%k, %t] : memref<256x64xf32>
    %next = arith.mulf %v, %v : f32""",
}


@pytest.mark.parametrize("name", SUMS)
def test_sums(name: str) -> None:
    assert_right(SUMS[name], REGISTER_STAGES, "register")


# -- copies that compute, or that no asynchronous copy can do -------------------------

COMPUTED = {
    "doubled": COPY.replace(
        "    memref.store %v, %a",
        "    %w = arith.addf %v, %v : f32\n    memref.store %w, %a",
    ),
    "of two rows": COPY.replace(
        "    memref.store %v, %a",
        "    %u = memref.load %A[%k, %t] : memref<256x64xf32>\n"
        "    %w = arith.addf %v, %u : f32\n    memref.store %w, %a",
    ),
    "used otherwise too": COPY.replace("addf %acc, %x", "addf %v, %x"),
    "rounded": COPY.replace(
        "    memref.store %v, %a",
        "    %h = arith.truncf %v : f32 to f16\n"
        "    %w = arith.extf %h : f16 to f32\n    memref.store %w, %a",
    ),
}


@pytest.mark.parametrize("name", COMPUTED)
def test_copies_that_compute(name: str) -> None:
    """What is loaded waits in registers; its store and barriers stay."""
    assert_right(ROW + COMPUTED[name], REGISTER_STAGES, "register")


def test_loads_in_an_inner_loop() -> None:
    """The inner loop is a pipeline of its own, in one of copies."""
    inner = """
    %x = scf.for %l = %c0 to %k step %c1 iter_args(%part = %acc) -> (f32) {
      %u = memref.load %A[%l, %t] : memref<256x64xf32>
      %s = memref.load %a[%other] : SHARED
      %m = arith.mulf %u, %s : f32
      %more = arith.addf %part, %m : f32
      scf.yield %more : f32
    }"""
    body = ROW + COPY.replace("    %x = memref.load %a[%other] : SHARED", inner)
    assert_right(body, ((3, 2), (1, 2), (2, 3)), "register")


@pytest.mark.parametrize("stages", [(2, 2), (4, 3)])
def test_a_tail_that_wraps_around(stages: tuple[int, int]) -> None:
    """Copies start again at the first tile, the arithmetic's loads do not."""
    more = """
    %u = memref.load %A[%k, %other] : memref<256x64xf32>
    %more = arith.addf %acc, %u : f32"""
    body = "    %row = arith.addi %k, %c7 : index" + more
    body += COPY.replace("addf %acc, %x", "addf %more, %x")
    text = kernel(body)
    base = compiled(text, Settings((1, 1)))
    done = compiled(text, Settings(stages, tail="wrap", noalias=True))
    assert done.levels == {"shared", "register"}
    for size in SIZES:
        expected = results(body, base, size, MODES[0])
        assert results(body, done, size, MODES[size % 8]) == expected, size


# Of the load and the cast of the row, the two ops of the copy, the barrier, the read,
# the sum and the other barrier.
LISTS = {
    "before the copy": "0, 0, 1, 1, 3, 3, 3, 3",
    "with the copy": "0, 0, 0, 0, 2, 2, 2, 2",
    "long before": "0, 3, 3, 3, 4, 4, 4, 4",
}


@pytest.mark.parametrize("name", LISTS)
def test_plans_of_users(name: str) -> None:
    """A stage for each op: loads of rows at leads of their own."""
    body = ROW + COPY
    plain = kernel(body)
    lists = f"stage = [{LISTS[name]}], order = [0, 1, 2, 3, 4, 5, 6, 7]"
    plan = f"{{alcop.pipeline = #alcop.pipeline<{{{lists}}}>}}"
    text = plain.replace("f32, index\n  }", f"f32, index\n  }} {plan}")
    base = compiled(plain, Settings((1, 1)))
    done = compiled(text, Settings((1, 1)))
    assert done.ptx != base.ptx
    for size in SIZES:
        expected = results(body, base, size, MODES[0])
        assert results(body, done, size, MODES[size % 8]) == expected, size
