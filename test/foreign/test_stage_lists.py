"""Random stages and orders on loops of peers: refused, or right.

Each draw changes the lists of a row that has some. What `plan_check` accepts gives the
bits of the unpipelined loop on the emulator, and the verifier, which shares no code
with it, finds nothing; of what it refuses, the verifier finds most.

    ALCOP_LISTS=500   so many draws of each row, not a few
"""

from __future__ import annotations

import os
import random
import re
from dataclasses import dataclass

import pytest
from differential import context
from peer_rows import Row, rows
from test_peers import MODES, UNPIPELINED, compiled, expected, results

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
    "tvm/three_stage_compute",
)
DRAWN = [row for row in rows() if row.name in NAMES]
_LISTS = re.compile(r"stage = (\[[^]]*\]), order = (\[[^]]*\])")


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
        assert [str(one) for one in wrong] == [], text


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
