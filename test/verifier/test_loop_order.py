"""Plans that drop a barrier which mattered, or read early what the loop writes.

Each loop is planned, then the plan or the loop is changed: nothing after planning but
the verifier looks at that before the plan is executed.
"""

from __future__ import annotations

import re

import pytest

from alcop_mlir.bindings import ir
from alcop_mlir.pipelines.driver import run_pipeline
from alcop_mlir.verifier.plans import check_plans

ARGUMENTS = (
    "%A: memref<8x64xf32>, %T: memref<8xindex>, %C: memref<64xf32>, %n: index, "
    "%other: index"
)
A, T, C, _, OTHER = (f"%arg{number}" for number in range(5))
SHARED = "memref<64xf32, #gpu.address_space<workgroup>>"
# A row of %A, which row says %T; what is made of it goes to other threads by %p.
BODY = """
  %row = memref.load %T[%k] : memref<8xindex>
  %v = memref.load %A[%row, %t] : memref<8x64xf32>
  memref.store %v, %a[%t] : SHARED
  gpu.barrier
  %x = memref.load %a[%other] : SHARED
  memref.store %x, %p[%t] : SHARED
  gpu.barrier
  %y = memref.load %p[%other] : SHARED
  %next = arith.addf %acc, %y : f32
  gpu.barrier"""
# Fragments of the tile are read early: no barrier of the pipeline at a known place.
FRAGMENTS = """
  %v = memref.load %A[%k, %t] : memref<8x64xf32>
  memref.store %v, %a[%t] : SHARED
  gpu.barrier
  %next = scf.for %i = %c0 to %c4 step %c1 iter_args(%in = %acc) -> (f32) {
    %where = arith.xori %other, %i : index
    %x = memref.load %a[%where] : SHARED
    %old = memref.load %p[%other] : SHARED
    %sum = arith.addf %x, %old : f32
    memref.store %sum, %p[%t] : SHARED
    scf.yield %sum : f32
  }
  gpu.barrier"""

pytestmark = pytest.mark.usefixtures("context")


def planned(body: str = BODY, stages: str = "3,1", passes: str = "") -> str:
    """The module of a loop after alcop-plan-pipelines, as text."""
    text = f"""
func.func private @other()
func.func @kernel({ARGUMENTS}) attributes {{gpu.kernel}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  %t = gpu.thread_id x
  %a = memref.alloc() : SHARED
  %p = memref.alloc() : SHARED
  %own = memref.alloca() : memref<1xf32>
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f32) {{
{body}
  scf.yield %next : f32
  }}
  memref.store %sum, %C[%t] : memref<64xf32>
  return
}}"""
    module = ir.Module.parse(text.replace("SHARED", SHARED))
    options = f"{{stages={stages} assume-noalias-args=true}}"
    run_pipeline(module, f"builtin.module(alcop-plan-pipelines{options}{passes})")
    assert "alcop.pipeline" in str(module)
    return str(module)


def messages(text: str) -> list[str]:
    wrong = check_plans(ir.Module.parse(text).operation)
    return [f"{one.op.name} {one.message}" for one in wrong]


def kept(text: str) -> list[str]:
    """The numbers of the barriers that the plan names."""
    return re.findall(r"gpu\.barrier.* \{alcop\.op = (\d+)", text)


def without(text: str, number: str) -> str:
    """The module without the plan's name for a barrier."""
    entry = rf'\{{kind = "effect", name = "gpu.barrier", op = {number} : i64[^}}]*\}}'
    text, entries = re.subn(rf", {entry}|{entry}, ", "", text)
    text, marks = re.subn(rf" \{{alcop\.op = {number} : i64\}}", "", text)
    assert entries == marks == 1
    return text


def inserted(text: str, *lines: tuple[int, str]) -> str:
    """The module with lines in front of the loop's barriers of these numbers."""
    parts = re.split(r"(?=gpu\.barrier\b(?!\"))", text)
    for number, line in lines:
        parts[number] += line + "\n"
    return "".join(parts)


@pytest.mark.parametrize("passes", ["", ",alcop-multi-buffer"])
@pytest.mark.parametrize(
    ("body", "stages", "count"),
    [(BODY, "3,1", 1), (FRAGMENTS, "3,1", 0), (FRAGMENTS, "3,2", 2)],
)
def test_as_planned(body: str, stages: str, count: int, passes: str) -> None:
    text = planned(body, stages, passes)
    assert len(kept(text)) == count
    assert messages(text) == []


def test_a_barrier_that_is_dropped() -> None:
    text = planned()
    (number,) = kept(text)
    assert messages(without(text, number)) == [
        "gpu.barrier is not in the plan, and no barrier is left between 'memref.store' "
        f"and 'memref.load' of '{SHARED}'"
    ]


def test_barriers_that_are_dropped_where_reads_are_early() -> None:
    """One of them is enough to separate iterations."""
    text = planned(FRAGMENTS, "3,2")
    for number in kept(text):
        assert messages(without(text, number)) == []
    for number in kept(text):
        text = without(text, number)
    assert "no barrier is left between" in messages(text)[0]


def test_a_barrier_for_some_memory_is_not_enough() -> None:
    text = planned()
    (number,) = kept(text)
    name = f"{{alcop.op = {number} : i64}}"
    some = f"gpu.barrier memfence [#gpu.address_space<global>] {name}"
    weak = inserted(text.replace(f"gpu.barrier {name}", "gpu.barrier"), (1, some))
    assert "no barrier is left between" in messages(weak)[0]
    assert messages(text.replace(f"gpu.barrier {name}", some)) == []


STORE = f"memref.store %cst, {C}[%thread_id_x] : memref<64xf32>"
LOAD = f"%new = memref.load {C}[{OTHER}] : memref<64xf32>"


@pytest.mark.parametrize(
    ("first", "second", "is_wrong"),
    [
        # Of the barriers 0, 1 and 2 the second is kept.
        ((2, STORE), (0, LOAD), False),  # the pipeline's own is between
        ((1, STORE), (1, LOAD), False),  # as in the loop: none is between
        ((0, STORE), (2, LOAD), False),
        ((0, STORE), (1, LOAD), True),
        ((0, LOAD), (1, STORE), True),
        ((0, LOAD), (1, LOAD.replace("%new", "%newer")), False),
        ((0, f"scf.if %true {{\n{STORE}\n}}"), (1, LOAD), True),
        ((0, "func.call @other() : () -> ()"), (1, LOAD), True),
        (
            (0, "memref.store %cst, %alloca[%c0] : memref<1xf32>"),
            (1, "%new = memref.load %alloca[%c0] : memref<1xf32>"),
            False,
        ),
    ],
)
def test_accesses_round_dropped_barriers(
    first: tuple[int, str], second: tuple[int, str], is_wrong: bool
) -> None:
    text = planned().replace("%c0 =", "%true = arith.constant true\n%c0 =", 1)
    found = messages(inserted(text, first, second))
    assert any("no barrier is left" in one for one in found) == is_wrong, found


@pytest.mark.parametrize(("offset", "is_wrong"), [(32, False), (31, True)])
def test_parts_of_one_array(offset: int, is_wrong: bool) -> None:
    low, high = (
        f"memref<32xf32, strided<[1], offset: {at}>>".replace(", offset: 0", "")
        for at in (0, offset)
    )
    store = f"""%low = memref.subview {C}[0] [32] [1] : memref<64xf32> to {low}
    memref.store %cst, %low[%c0] : {low}"""
    load = f"""%high = memref.subview {C}[{offset}] [32] [1] : memref<64xf32> to {high}
    %new = memref.load %high[%c0] : {high}"""
    found = messages(inserted(planned(), (0, store), (1, load)))
    assert bool(found) == is_wrong, found


@pytest.mark.parametrize(
    ("line", "is_wrong"),
    [
        (f"memref.store %c0, {T}[%c4] : memref<8xindex>", True),
        (f"memref.store %cst, {A}[%c0, %c0] : memref<8x64xf32>", True),
        (f"scf.if %true {{\nmemref.store %c0, {T}[%c4] : memref<8xindex>\n}}", True),
        (f"memref.store %cst, {C}[%c0] : memref<64xf32>", False),
    ],
)
def test_what_is_read_early_is_not_written(line: str, is_wrong: bool) -> None:
    text = planned().replace("%c0 =", "%true = arith.constant true\n%c0 =", 1)
    found = messages(inserted(text, (0, line)))
    expected = (
        "memref.load runs early, and reads what 'memref.store' writes in the loop"
    )
    assert found == [expected] * is_wrong


def test_a_masked_load_is_one() -> None:
    """The address of a copy from what a masked load, which is not early, loads."""
    text = re.sub(
        rf"(%\w+) = memref.load {T}\[(%\w+)\] \{{.*\}} : memref<8xindex>",
        r"""%mask = arith.constant dense<true> : vector<1xi1>
%none = arith.constant dense<0> : vector<1xindex>
%rows = vector.maskedload %arg1[\2], %mask, %none : memref<8xindex>, vector<1xi1>,
    vector<1xindex> into vector<1xindex>
\1 = vector.extract %rows[0] : index from vector<1xindex>""",
        planned(),
    )
    text = re.sub(r'\{kind = "fetch"[^}]*\}, ', "", text)
    assert messages(text) == [
        "memref.store runs early, and uses what 'vector.maskedload' makes later"
    ]
