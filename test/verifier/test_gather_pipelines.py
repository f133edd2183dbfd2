"""Pipelines of gathers: right ones pass the checks, seeded bugs are found."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from test_check import BARRIER, VIEW, WAIT, count, messages, ops, set_count, set_slot

from alcop_mlir import diagnostics
from alcop_mlir.bindings import ir, make_context
from alcop_mlir.dialects import alcop
from alcop_mlir.pipelines.driver import run_pipeline
from alcop_mlir.verifier.plans import check_plans

GATHER = "alcop.async_gather"
STAGES = ("2,1", "3,1", "4,2")
SHARED = "memref<4x32xf32, #gpu.address_space<workgroup>>"
OPERANDS = f"(memref<4096xf32>, {SHARED}, vector<4xindex>, vector<4xi1>) -> ()"

KERNEL = f"""
gpu.module @kernels {{
  gpu.func @kernel(%x: memref<4096xf32>, %table: memref<64xi32>, %y: memref<32xf32>,
                   %n: index)
      workgroup(%a : {SHARED}) kernel
      attributes {{known_block_size = array<i32: 32, 1, 1>}} {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c32 = arith.constant 32 : index
    %one = arith.constant 1 : i32
    %zero = arith.constant 0.0 : f32
    %t = gpu.thread_id x
    %none = arith.constant dense<0> : vector<4xi32>
    %masks = arith.constant dense<11> : vector<4xi32>
    %far = arith.constant dense<64> : vector<4xindex>
    %step = vector.step : vector<4xindex>
    %base = arith.muli %step, %far : vector<4xindex>
    %sum:3 = scf.for %k = %c0 to %n step %c1
        iter_args(%acc = %zero, %offset = %c0, %tap = %one) -> (f32, index, i32) {{
      %offsets = vector.broadcast %offset : index to vector<4xindex>
      %rows = arith.addi %base, %offsets : vector<4xindex>
      %taps = vector.broadcast %tap : i32 to vector<4xi32>
      %hit = arith.andi %masks, %taps : vector<4xi32>
      %valid = arith.cmpi ne, %hit, %none : vector<4xi32>
      "alcop.gather"(%x, %a, %rows, %valid) : {OPERANDS}
      gpu.barrier
      %in = scf.for %i = %c0 to %c4 step %c1 iter_args(%s = %acc) -> (f32) {{
        %v = memref.load %a[%i, %t] : {SHARED}
        %r = arith.addf %s, %v : f32
        scf.yield %r : f32
      }}
      gpu.barrier
      %next = arith.addi %offset, %c32 : index
      %moved = arith.shli %tap, %one : i32
      scf.yield %in, %next, %moved : f32, index, i32
    }}
    memref.store %sum#0, %y[%t] : memref<32xf32>
    gpu.return
  }}
}}"""


@pytest.fixture(autouse=True)
def context() -> Iterator[None]:
    with make_context(), ir.Location.unknown(), diagnostics.collect():
        alcop.load()
        yield


def planned(stages: str) -> Any:
    module = ir.Module.parse(KERNEL)
    plan = f"alcop-plan-pipelines{{stages={stages}}}"
    run_pipeline(module, f"builtin.module({plan})")
    return module


def placed(stages: str) -> Any:
    module = planned(stages)
    passes = "alcop-multi-buffer,alcop-expand-pipelines,canonicalize,cse"
    run_pipeline(module, f"builtin.module({passes},alcop-place-waits)")
    assert ops(module, GATHER)
    return module


@pytest.mark.parametrize("stages", STAGES)
def test_right_pipelines_pass(stages: str) -> None:
    assert not check_plans(planned(stages).operation)
    module = placed(stages)
    assert messages(module) == []
    run_pipeline(module, "builtin.module(alcop-distribute-copies)")
    assert ops(module, "nvgpu.device_async_copy")
    assert messages(module) == []


@pytest.mark.parametrize("stages", STAGES)
def test_each_wait_and_barrier_is_needed(stages: str) -> None:
    for name, said in ((WAIT, "in flight"), (BARRIER, "with no barrier since")):
        for number in range(len(ops(placed(stages), name))):
            module = placed(stages)
            ops(module, name)[number].erase()
            assert any(said in one for one in messages(module)), (name, number)


@pytest.mark.parametrize("stages", STAGES)
def test_no_wait_lets_more_groups_fly(stages: str) -> None:
    for number in range(len(ops(placed(stages), WAIT))):
        module = placed(stages)
        wait = ops(module, WAIT)[number]
        set_count(wait, count(wait) + 1)
        assert any("groups fly" in one for one in messages(module)), number


@pytest.mark.parametrize("gathers", [True, False])
@pytest.mark.parametrize("stages", STAGES)
def test_the_wrong_slot(stages: str, gathers: bool) -> None:
    """In the first loop all gathers, or all reads, go to slot 0."""
    module = placed(stages)
    loop = ops(module, "scf.for")[0]
    views = [
        view
        for view in ops(module, VIEW)
        if view.parent.operation == loop
        and gathers
        == any(use.owner.operation.name == GATHER for use in view.results[0].uses)
    ]
    assert views
    set_slot(views[0], 0)
    assert any(one.startswith("slot ") for one in messages(module))


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("slots = 3", "slots = 2", "leads and 2 slots do not fit"),
        ("lead = 2", "lead = 3", "leads and 3 slots do not fit"),
        ('name = "alcop.gather"', 'name = "alcop.copy"', "is planned as 'alcop.copy'"),
        (
            "%(\\w+) = vector.broadcast %\\w+ : i32 to vector<4xi32>",
            "%p = arith.constant 0 : i32 "
            "%\\1 = vector.transfer_read %arg1[%c0], %p {in_bounds = [true]} "
            ": memref<64xi32>, vector<4xi32>",
            "uses what 'vector.transfer_read' makes later",
        ),
    ],
)
def test_mutated_plans(old: str, new: str, expected: str) -> None:
    text, found = re.subn(old, new, str(planned("3,1")), count=1)
    assert found
    wrong = check_plans(ir.Module.parse(text).operation)
    assert any(expected in one.message for one in wrong), wrong
