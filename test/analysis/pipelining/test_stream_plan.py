"""Pipelines as values: written, printed, parsed back, checked, executed or refused.

TVM's lists of stages and orders, and the roles of a warp-specialised kernel for Hopper,
are such values too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from alcop_mlir.analysis.pipelining.plans.bound_plans import bound_plan, pipelined_ops
from alcop_mlir.analysis.pipelining.plans.plan_check import check
from alcop_mlir.analysis.pipelining.plans.stream_plan import (
    Ring,
    Stream,
    StreamOp,
    StreamPlan,
    from_parameters,
    to_parameters,
)
from alcop_mlir.bindings import ir
from alcop_mlir.dialects import alcop
from alcop_mlir.errors import PassError
from alcop_mlir.pipelines.driver import run_pipeline
from alcop_mlir.pipelines.running import PassFailure

# A loop that copies a row, and uses it: 7 ops.
ROWS = """
#ws = #gpu.address_space<workgroup>
func.func @rows(%A: memref<16x64xf32>, %C: memref<16x64xf32>, %n: index, %t: index) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = memref.alloc() : memref<64xf32, #ws>
  scf.for %k = %c0 to %n step %c1 {{
    %v = memref.load %A[%k, %t] : memref<16x64xf32>
    memref.store %v, %a[%t] {fill} : memref<64xf32, #ws>
    gpu.barrier
    %x = memref.load %a[%t] {read} : memref<64xf32, #ws>
    %y = arith.addf %x, %x : f32
    memref.store %y, %C[%k, %t] : memref<16x64xf32>
    gpu.barrier
  }} {{{plan}}}
  return
}}
"""
# What the prototype of a warp-specialised kernel does in its loop over K, before its
# roles are separated: a ring of mbarriers, tiles of A and B, wgmma in flight.
ROLES = """
#ws = #gpu.address_space<workgroup>
#m = affine_map<(m, n, k) -> (m, k)>
#n = affine_map<(m, n, k) -> (k, n)>
#o = affine_map<(m, n, k) -> (m, n)>
!a = memref<128x64xf16, #ws>
!b = memref<64x256xf16, #ws>
!ga = memref<128x64xf16, strided<[512, 1], offset: ?>>
!gb = memref<64x256xf16, strided<[256, 1], offset: ?>>
!sum = vector<128x256xf32>
!group = !nvgpu.mbarrier.group<memorySpace = #ws, num_barriers = 4>
func.func @roles(%A: memref<128x512xf16>, %B: memref<512x256xf16>, %n: index,
                 %full: !group, %empty: !group) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  %bytes = arith.constant 49152 : index
  %ticks = arith.constant 10000000 : index
  %phase = arith.constant 0 : i1
  %pad = arith.constant 0.0 : f16
  %zero = arith.constant dense<0.0> : !sum
  %a = memref.alloc() : !a
  %b = memref.alloc() : !b
  %end:2 = scf.for %k = %c0 to %n step %c64
      iter_args(%s = %zero, %slot = %c0) -> (!sum, index) {
    nvgpu.mbarrier.try_wait.parity %empty[%slot], %phase, %ticks : !group
    nvgpu.mbarrier.arrive.expect_tx %full[%slot], %bytes : !group
    %ga = memref.subview %A[0, %k] [128, 64] [1, 1] : memref<128x512xf16> to !ga
    memref.copy %ga, %a : !ga to !a
    %gb = memref.subview %B[%k, 0] [64, 256] [1, 1] : memref<512x256xf16> to !gb
    memref.copy %gb, %b : !gb to !b
    nvgpu.mbarrier.try_wait.parity %full[%slot], %phase, %ticks : !group
    %fa = vector.transfer_read %a[%c0, %c0], %pad : !a, vector<128x64xf16>
    %fb = vector.transfer_read %b[%c0, %c0], %pad : !b, vector<64x256xf16>
    %s2 = vector.contract {
        indexing_maps = [#m, #n, #o],
        iterator_types = ["parallel", "parallel", "reduction"]
      } %fa, %fb, %s : vector<128x64xf16>, vector<64x256xf16> into !sum
    %token = nvgpu.mbarrier.arrive %empty[%slot] : !group -> !nvgpu.mbarrier.token
    %n1 = arith.addi %slot, %c1 : index
    %w = arith.cmpi eq, %n1, %c4 : index
    %next = arith.select %w, %c0, %n1 : index
    scf.yield %s2, %next : !sum, index
  }
  return
}
"""
WAITS = "nvgpu.mbarrier.try_wait.parity"
# Stages 4, R = 2: one group of wgmma in flight, so that a slot is freed one late.
HOPPER = StreamPlan(
    streams=(
        Stream("producer", lead=2, warps=4),
        Stream("consumers", warps=8, in_flight=1),
    ),
    ops=(
        StreamOp(0, WAITS, "producer", "acquire", ring=0),
        StreamOp(1, "nvgpu.mbarrier.arrive.expect_tx", "producer", "commit", ring=0),
        StreamOp(2, "memref.copy", "producer", "fill", ring=0),
        StreamOp(3, "memref.copy", "producer", "fill", ring=0),
        StreamOp(4, WAITS, "consumers", "wait", ring=0),
        StreamOp(5, "vector.transfer_read", "consumers", "read", ring=0),
        StreamOp(6, "vector.transfer_read", "consumers", "read", ring=0),
        StreamOp(7, "nvgpu.mbarrier.arrive", "consumers", "release", ring=0),
    ),
    rings=(Ring(slots=4, sync="mbarrier"),),
)
COPIED = StreamPlan(
    streams=(Stream("copy", lead=2), Stream("compute")),
    ops=(StreamOp(0, "memref.store", "copy", "fill", ring=0),),
    rings=(Ring(slots=3),),
)

pytestmark = pytest.mark.usefixtures("context")


def loop_in(module: Any) -> Any:
    (func,) = module.body.operations
    ops = func.regions[0].blocks[0].operations
    return next(op.operation for op in ops if op.operation.name == "scf.for")


def rows(plan: str = "", fill: str = "", read: str = "") -> Any:
    return ir.Module.parse(ROWS.format(plan=plan, fill=fill, read=read))


def attribute(parameters: str) -> str:
    return f"alcop.pipeline = #alcop.pipeline<{{{parameters}}}>"


def lists(stage: list[int], order: list[int], rest: str = "") -> Any:
    return rows(attribute(f"stage = {stage}, order = {order}{rest}"))


def value(plan: StreamPlan, fill: int | None = 0, read: int | None = None) -> Any:
    """The loop with this plan; the numbers of its copy and of its read."""
    keys = [f"{{alcop.op = {n}}}" if n is not None else "" for n in (fill, read)]
    module = rows("", *keys)
    alcop.put(loop_in(module), alcop.PipelineAttr, to_parameters(plan))
    return ir.Module.parse(str(module))


def expanded(module: Any) -> str:
    passes = "alcop-multi-buffer,alcop-expand-pipelines,canonicalize,cse"
    run_pipeline(module, f"builtin.module({passes})")
    return str(module)


def checked(module: Any) -> None:
    bound = bound_plan(loop_in(module))
    assert bound is not None
    check(bound)


# -- the value -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "plan",
    [
        COPIED,
        HOPPER,
        replace(COPIED, tail="wrap"),
        replace(COPIED, noalias=True),
    ],
)
def test_printed_and_parsed_back(plan: StreamPlan) -> None:
    module = ir.Module.parse("module {}").operation
    alcop.put(module, alcop.PipelineAttr, to_parameters(plan))
    again = ir.Module.parse(str(module)).operation
    parameters = alcop.get(again, alcop.PipelineAttr)
    assert parameters is not None
    assert from_parameters(again, parameters) == plan


@pytest.mark.parametrize("stages", ["3,1", "3,2", "2,3"])
def test_a_plan_that_was_printed_is_expanded_alike(stages: str) -> None:
    module = rows()
    plan = f"alcop-plan-pipelines{{stages={stages} assume-noalias-args=true}}"
    run_pipeline(module, f"builtin.module({plan})")
    again = ir.Module.parse(str(module)).operation
    assert "alcop.op = 0" in str(again)
    assert expanded(again) == expanded(module)
    assert "alcop.op" not in str(again)


@pytest.mark.parametrize("noalias", [False, True])
def test_expansion_knows_of_arguments_what_planning_knew(noalias: bool) -> None:
    """The loop's barrier orders what it reads of C, and a store to D after it."""
    text = ROWS.format(plan="", fill="", read="")
    stored = "    memref.store %y, %C[%k, %t] : memref<16x64xf32>\n"
    loaded = "    %y2 = memref.load %C[%k, %t] : memref<16x64xf32>\n"
    used = '    "gpu.printf"(%y2) {format = "%f"} : (f32) -> ()\n'
    after = "  memref.store %f, %D[%t] : memref<64xf32>\n  return"
    text = text.replace(stored, loaded + used).replace("  return", after)
    text = text.replace("%t: index)", "%t: index, %D: memref<64xf32>, %f: f32)")
    module = ir.Module.parse(text)
    given = str(noalias).lower()
    plan = f"alcop-plan-pipelines{{stages=3,1 assume-noalias-args={given}}}"
    run_pipeline(module, f"builtin.module({plan})")
    assert ("noalias = true" in str(module)) == noalias
    assert ("gpu.barrier" in expanded(module)) != noalias


def test_what_is_pipelined_is_listed() -> None:
    module = rows()
    plan = "alcop-plan-pipelines{stages=3,2 assume-noalias-args=true}"
    run_pipeline(module, f"builtin.module({plan})")
    found = [(op.name, level, n) for op, level, n in pipelined_ops(module)]
    assert found == [("memref.store", "shared", 3), ("memref.load", "register", 2)]


def test_a_short_form_is_the_same_value() -> None:
    mark = "{alcop.pipeline = #alcop.pipeline<{shared = 3}>}"
    short = expanded(rows(attribute("shared = 3"), fill=mark))
    assert short == expanded(value(COPIED))


# -- TVM's lists ---------------------------------------------------------------------


def test_lists_of_stages_and_orders_are_executed() -> None:
    found = lists([0, 0, 2, 2, 2, 2, 2], [0, 1, 2, 3, 4, 5, 6])
    assert expanded(found) == expanded(value(COPIED))


def test_copies_come_last_where_lists_say_so() -> None:
    """The read of a tile, and only then the copies into the slot of the one before."""
    loop = expanded(lists([0, 0, 2, 2, 2, 2, 2], [5, 6, 0, 1, 2, 3, 4]))
    steady = loop[loop.index("scf.for") :]
    wait, read, copy = (
        steady.index(op)
        for op in ("alcop.consumer_wait", "memref.load", "nvgpu.device_async_copy")
    )
    assert wait < read < copy < steady.index("scf.yield")


def test_lists_with_a_register_level_are_executed() -> None:
    plan = StreamPlan(
        streams=(Stream("copy", 3), Stream("load", 1), Stream("compute")),
        ops=(
            StreamOp(0, "memref.store", "copy", "fill", 0),
            StreamOp(1, "memref.load", "load", "read", 0),
        ),
        rings=(Ring(3),),
        tail="wrap",
    )
    found = lists([0, 0, 0, 2, 3, 3, 3], [0, 1, 2, 3, 4, 5, 6], ', tail = "wrap"')
    assert expanded(found) == expanded(value(plan, 0, 1))


@pytest.mark.parametrize(
    ("stage", "order", "why"),
    [
        ([0, 0, 2], [0, 1, 2], "stage has 3 numbers, expected one for each of the 7"),
        ([0] * 7, [0, 0, 1, 2, 3, 4, 5], "expected each number once, from 0 on"),
        # The load is used before it is made.
        (
            [1, 0, 2, 2, 2, 2, 2],
            list(range(7)),
            "uses 'memref.load', but is planned to",
        ),
        ([0, 0, 2, 2, 2, 2, 2], [1, 0, 2, 3, 4, 5, 6], "in the order of its stage"),
        # The arithmetic runs early, and not the copy.
        ([0, 1, 1, 0, 0, 1, 1], list(range(7)), "would run in the other order"),
        # More iterations early than there can be slots.
        ([0, 0, 9, 9, 9, 9, 9], list(range(7)), "needs 10 slots, its ring has 8"),
    ],
)
def test_other_lists_are_refused(stage: list[int], order: list[int], why: str) -> None:
    with pytest.raises(PassFailure) as raised:
        expanded(lists(stage, order))
    assert why in str(raised.value)


# -- roles of warps ------------------------------------------------------------------


def roles(plan: StreamPlan = HOPPER, unnamed: str = "") -> Any:
    """The loop of roles with a plan that names its ops; `unnamed` ones it does not."""
    module = ir.Module.parse(ROLES)
    loop = loop_in(module)
    names = {planned.name for planned in HOPPER.ops} - {unnamed}
    ops = [op.operation for op in loop.regions[0].blocks[0].operations]
    numbered = [op for op in ops if op.name in names]
    for number, op in enumerate(numbered):
        alcop.put_key(op, number)
    alcop.put(loop, alcop.PipelineAttr, to_parameters(plan))
    return ir.Module.parse(str(module))


def test_roles_of_warps_are_a_legal_plan() -> None:
    checked(roles())


def test_roles_of_warps_are_not_expanded() -> None:
    module = roles()
    run_pipeline(module, "builtin.module(canonicalize)")
    role = HOPPER.streams[0].name
    expected = f"has the role '{role}' for 4 warps: warp roles need sm_90"
    with pytest.raises(PassFailure, match=expected):
        run_pipeline(module, "builtin.module(alcop-expand-pipelines)")


def with_ring(**changes: Any) -> StreamPlan:
    return replace(HOPPER, rings=(replace(HOPPER.rings[0], **changes),))


def moved(plan: StreamPlan, op: int, stream: str) -> StreamPlan:
    ops = [replace(o, stream=stream) if o.op == op else o for o in plan.ops]
    return replace(plan, ops=tuple(ops))


def ordered(plan: StreamPlan, *order: int) -> StreamPlan:
    return replace(plan, ops=tuple(plan.ops[number] for number in order))


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: roles(with_ring(slots=3)), "needs 4 slots, its ring has 3"),
        (
            lambda: roles(ordered(HOPPER, 0, 1, 2, 3, 5, 4, 6, 7)),
            "comes before the 'wait' of its ring",
        ),
        (
            lambda: roles(ordered(HOPPER, 0, 1, 2, 3, 4, 5, 7, 6)),
            "comes before the 'read' of its ring",
        ),
        (
            lambda: roles(
                replace(HOPPER, ops=HOPPER.ops[:-1]), "nvgpu.mbarrier.arrive"
            ),
            "'nvgpu.mbarrier.arrive' is in no stream",
        ),
    ],
)
def test_wrong_roles_are_found(make: Callable[[], Any], why: str) -> None:
    with pytest.raises(PassError, match=why):
        checked(make())


# -- wrong values --------------------------------------------------------------------

LOADED = StreamPlan(
    streams=(Stream("copy", 2), Stream("load", 1), Stream("compute")),
    ops=(
        StreamOp(0, "memref.store", "copy", "fill", 0),
        StreamOp(1, "memref.load", "load", "read", 0),
    ),
    rings=(Ring(2),),
)


def test_a_read_and_its_copy() -> None:
    checked(value(LOADED, 0, 1))


@pytest.mark.parametrize(
    ("plan", "why"),
    [
        (
            replace(LOADED, streams=(Stream("copy", 3), *LOADED.streams[1:])),
            "needs 3 slots, its ring has 2",
        ),
        (
            replace(LOADED, streams=(Stream("copy"), *LOADED.streams[1:])),
            "has a lead of 1 iterations, the copy that fills its buffer one of 0",
        ),
        (
            ordered(moved(LOADED, 1, "copy"), 1, 0),
            "needs 'memref.store', which comes later in the order",
        ),
        (
            replace(LOADED, ops=(LOADED.ops[0], replace(LOADED.ops[1], ring=-1))),
            "reads a buffer of ring 0, its plan says -1",
        ),
        (
            replace(LOADED, ops=(LOADED.ops[0], replace(LOADED.ops[1], op=7))),
            "names op 7, a 'memref.load', which the loop does not have",
        ),
        (
            replace(LOADED, ops=LOADED.ops[:1]),
            "has alcop.op = 1, which the plan of its loop does not name",
        ),
    ],
)
def test_wrong_values_are_found(plan: StreamPlan, why: str) -> None:
    with pytest.raises(PassError, match=why):
        checked(value(plan, 0, 1))


@pytest.mark.parametrize(
    ("plan", "why"),
    [
        (replace(COPIED, rings=(Ring(4),)), "expansion fills all 4 slots, a lead of 3"),
        (replace(COPIED, rings=(Ring(3, "mbarrier"),)), "mbarriers: these need sm_90"),
        (
            replace(
                COPIED, streams=(COPIED.streams[0], Stream("compute", in_flight=1))
            ),
            "needs 4 slots, its ring has 3",
        ),
        (replace(COPIED, rings=(Ring(3), Ring(3))), "has 2 rings, expected one"),
    ],
)
def test_legal_values_that_cannot_be_expanded(plan: StreamPlan, why: str) -> None:
    with pytest.raises(PassFailure, match=why):
        expanded(value(plan))
