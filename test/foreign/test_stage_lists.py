"""Random stages and orders on loops of peers: refused, or right.

Each draw changes the lists of a row that has some, with two warps, which need barriers
that one does not. What `plan_check` accepts gives the
bits of the unpipelined loop on the emulator, and the verifier, which shares no code
with it, finds nothing; of what it refuses, the verifier finds most.

    ALCOP_LISTS=500   so many draws of each row, not a few
"""

from __future__ import annotations

import os
import random
import re
from dataclasses import dataclass, replace
from functools import cached_property

import pytest
import reported_kernels as reported
from differential import context
from peer_rows import Row, rows
from test_peers import MODES, UNPIPELINED, compiled, expected, results
from test_reported_failures import results as reported_results

from alcop_mlir import diagnostics
from alcop_mlir.analysis.ir.loops import loops_in
from alcop_mlir.analysis.pipelining.plans.bound_plans import bound_plan
from alcop_mlir.analysis.pipelining.plans.plan_check import check as check_plan
from alcop_mlir.bindings import ir
from alcop_mlir.errors import PassError
from alcop_mlir.pipelines.driver import run_pipeline
from alcop_mlir.pipelines.running import PassFailure
from alcop_mlir.transforms.pipelining.plan_attributes import write_plan
from alcop_mlir.verifier.check import check
from alcop_mlir.verifier.plans import check_plans

DRAWS = int(os.environ.get("ALCOP_LISTS", "6"))
NAMES = (
    "tilelang/fill_before_copy",
    "tilelang/plan_bind_that_reads_atomic_target",
    "tilelang/waits_for_individual_commit_group",
    "tvm/async_producer_interleaving",
    "tvm/dag_interleaving",
    "tvm/dynamic_compute",
    "tvm/nested_pipeline_simple",
    "tvm/three_stage_compute",
)
_WIDER = (
    ("array<i32: 16, 1, 1>", "array<i32: 64, 1, 1>"),
    ("memref<16x16x", "memref<64x16x"),
    ("memref<16xf32, #ws>", "memref<64xf32, #ws>"),
    ("arith.constant 15 : index", "arith.constant 63 : index"),
)
_LISTS = re.compile(r"stage = (\[[^]]*\]), order = (\[[^]]*\])")


class Wide(Row):
    """A row whose block has 64 threads in place of 16."""

    @cached_property
    def text(self) -> str:
        text = super().text
        for one, other in _WIDER:
            text = text.replace(one, other)
        return text


DRAWN = [Wide(row.path) for row in rows() if row.name in NAMES]


@dataclass
class Shares:
    """What became of the draws."""

    drawn: int = 0
    accepted: int = 0
    wrong: int = 0  # refused by plan_check
    found: int = 0  # of these, by the verifier too

    def __str__(self) -> str:
        return (
            f"{self.accepted} of {self.drawn} lists carried out; the verifier finds "
            f"{self.found} of {self.wrong} that plan_check refuses"
        )


def drawn(row: Row, random_: random.Random) -> str:
    """The row's module with other lists: a few numbers changed, or all drawn anew."""
    match = _LISTS.search(row.text)
    assert match
    stages, order = ([int(n) for n in text[1:-1].split(",")] for text in match.groups())
    if random_.random() < 0.5:
        most = random_.randint(1, 3)
        stages = sorted(random_.randint(0, most) for _ in stages)
        order = list(range(len(stages)))
    for _ in range(random_.randint(0, 3)):
        stages[random_.randrange(len(stages))] = random_.randint(0, 3)
    for _ in range(random_.randint(0, 2)):
        moved = order.pop(random_.randrange(len(order)))
        order.insert(random_.randrange(len(order) + 1), moved)
    return _LISTS.sub(f"stage = {stages}, order = {order}", row.text, count=1)


def judged(text: str, shares: Shares) -> None:
    """Compare what `plan_check` and the verifier say of the plans of a module."""
    with context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        try:
            bound = next(filter(None, map(bound_plan, loops_in(module.operation))))
        except PassError:
            return
        write_plan(bound)
        bound = bound_plan(bound.loop)
        assert bound is not None
        wrong = check_plans(module.operation)
        try:
            check_plan(bound)
        except PassError:
            shares.wrong += 1
            shares.found += bool(wrong)
            return
        assert not wrong, (wrong[0].message, text)


@pytest.mark.parametrize("row", DRAWN, ids=[row.name for row in DRAWN])
def test_what_is_accepted_is_right(row: Row) -> None:
    random_, shares = random.Random(row.name), Shares()
    for _ in range(DRAWS):
        text = drawn(row, random_)
        shares.drawn += 1
        judged(text, shares)
        with context(), ir.Location.unknown(), diagnostics.collect():
            module = ir.Module.parse(text)
            try:
                run_pipeline(module, "builtin.module(alcop-multi-buffer)")
                run_pipeline(module, "builtin.module(alcop-expand-pipelines)")
            except PassFailure:
                continue
            assert check(module.operation) == [], text
            done = compiled(str(module), UNPIPELINED)
        shares.accepted += 1
        size = random_.choice(row.sizes)
        mode = random_.choice(MODES)
        assert results(row, done, size, mode) == expected(row, size), text
    print(row.name, shares)


ROWS = """
  scf.for %k = %c0 to %n step %c1 {
    %v = memref.load %A[%k, %t] : memref<256x64xf32>
    memref.store %v, %a[%t] : SHARED
    gpu.barrier
    %x = memref.load %a[%other] : SHARED
    %y = arith.addf %x, %x : f32
    memref.store %y, %C[%k, %t] : memref<64x64xf32>
    gpu.barrier
  } LISTS"""


@pytest.mark.parametrize(
    ("stage", "order"),
    [
        # A load into registers, stored to shared memory an iteration later.
        ([0, 1, 3, 3, 3, 3, 3], list(range(7))),
        # The copy is issued between parts of the arithmetic.
        ([0, 0, 2, 2, 2, 2, 2], [3, 4, 0, 1, 2, 5, 6]),
    ],
    ids=["stored later", "copied between"],
)
def test_lists_for_a_copy(stage: list[int], order: list[int]) -> None:
    lists = (
        f"{{alcop.pipeline = #alcop.pipeline<{{stage = {stage}, order = {order}}}>}}"
    )
    base = compiled(reported.kernel(ROWS.replace("LISTS", "")), UNPIPELINED)
    with context(), ir.Location.unknown(), diagnostics.collect():
        module = ir.Module.parse(reported.kernel(ROWS.replace("LISTS", lists)))
        run_pipeline(module, "builtin.module(alcop-multi-buffer)")
        run_pipeline(module, "builtin.module(alcop-expand-pipelines)")
        assert check(module.operation) == []
        assert "memref<3x64xf32" in str(module)
        done = compiled(str(module), UNPIPELINED)
    for size, mode in zip((0, 1, 2, 3, 8), MODES, strict=False):
        wanted = reported_results(base, size, mode)
        assert reported_results(done, size, mode).tobytes() == wanted.tobytes(), size


def test_a_barrier_that_is_left_out_is_found() -> None:
    """By `plan_check`, and by the verifier: it is between ops of one stage."""
    row = next(row for row in DRAWN if row.name == "tvm/dag_interleaving")
    with context(), ir.Location.unknown():
        module = ir.Module.parse(row.text)
        bound = next(filter(None, map(bound_plan, loops_in(module.operation))))
        barriers = [n for n, op in enumerate(bound.ops) if op.name == "gpu.barrier"]
        assert barriers
        left = [op for n, op in enumerate(bound.plan.ops) if n not in barriers]
        plan = replace(bound.plan, ops=tuple(left))
        ops = tuple(op for op in bound.ops if op.name != "gpu.barrier")
        write_plan(replace(bound, plan=plan, ops=ops))
        found = bound_plan(bound.loop)
        assert found is not None
        with pytest.raises(PassError, match=r"expected a gpu\.barrier between them"):
            check_plan(found)
        wrong = [one.message for one in check_plans(module.operation)]
        assert any("have no barrier between them any more" in one for one in wrong)


def test_barriers_of_an_inner_loop_stay() -> None:
    """Those that its own plan leaves before it, in the block of a planned loop."""
    row = next(row for row in DRAWN if row.name == "tvm/nested_pipeline_simple")
    lists = f"stage = [0, 0, 0, 0, 0, 1, 1, 1], order = {list(range(8))}"
    text = _LISTS.sub(lists, row.text, count=1)
    with context(), ir.Location.unknown(), diagnostics.collect():
        module = ir.Module.parse(text)
        run_pipeline(module, "builtin.module(alcop-multi-buffer)")
        run_pipeline(module, "builtin.module(alcop-expand-pipelines)")
        done = compiled(str(module), UNPIPELINED)
    assert results(row, done, (), MODES[0]) == expected(row, ())
