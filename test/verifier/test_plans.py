"""The check of plans: right ones pass, each mutated one is found before expansion.

Nothing else looks at a plan between alcop-plan-pipelines and alcop-expand-pipelines, so
that all of these pass there if the verifier does not see them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from test_check import SHAPES, kernel

from alcop_mlir.bindings import ir
from alcop_mlir.dialects import alcop
from alcop_mlir.pipelines.checked_steps import CheckPipelines
from alcop_mlir.pipelines.driver import run_pipeline
from alcop_mlir.pipelines.running import PassFailure
from alcop_mlir.transforms.pipelining import plan_pipelines
from alcop_mlir.verifier.plans import check_plans

pytestmark = pytest.mark.usefixtures("context")


def planned(
    stages: str = "3,2", tail: str = "predicated", buffered: bool = False
) -> Any:
    module = ir.Module.parse(kernel("run-time"))
    passes = f"alcop-plan-pipelines{{stages={stages} tail={tail}}}"
    passes += ",alcop-multi-buffer" if buffered else ""
    run_pipeline(module, f"builtin.module({passes})")
    assert "alcop.pipeline" in str(module)
    return module


def messages(module: Any) -> list[str]:
    return [wrong.message for wrong in check_plans(module.operation)]


@pytest.mark.parametrize("buffered", [False, True])
@pytest.mark.parametrize(("stages", "tail", "_"), SHAPES)
def test_right_plans(stages: str, tail: str, _: str, buffered: bool) -> None:
    assert messages(planned(stages, tail, buffered)) == []


def replaced(old: str, new: str, buffered: bool = False, stages: str = "3,2") -> Any:
    """The planned kernel with `old`, a pattern, replaced by `new` once in its text."""
    text, found = re.subn(old, new, str(planned(stages, buffered=buffered)), count=1)
    assert found
    return ir.Module.parse(text)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        # Copies that run earlier than there are slots for.
        ("slots = 3", "slots = 2", "leads and 2 slots do not fit"),
        ("lead = 3", "lead = 4", "leads and 3 slots do not fit"),
        # A read that runs before the copy of its tile.
        (r"lead = 3 : i64, ", "", "its slot holds"),
        (r"\{name = \"load\"", '{lead = 4 : i64, name = "load"', "its slot holds"),
        # Each op once, and the right one.
        ("alcop.op = 0", "alcop.op = 1", "is numbered 1, as another op"),
        ("alcop.op = 0", "alcop.op = 9", "is numbered 9, which no plan names"),
        (r"\{alcop.op = 0 : i64\}", "", "its plan names op 0, which is not there"),
        (
            'name = "memref.store"',
            'name = "memref.copy"',
            "is planned as 'memref.copy'",
        ),
        # Rings, streams and numbers that are not there.
        ("ring = 0", "ring = 1", "is of ring 1, there is none"),
        ('stream = "copy"', 'stream = "none"', "its plan cannot be read: KeyError"),
        ("slots = 3 : i64", 'slots = "x"', "its plan cannot be read"),
        (r"rings = \[\{slots = 3 : i64\}\]", "rings = [{}]", "cannot be read"),
    ],
)
def test_mutated_plans(old: str, new: str, expected: str) -> None:
    found = messages(replaced(old, new))
    assert any(expected in message for message in found), found


def test_slots_that_are_not_those_of_the_plan() -> None:
    found = messages(replaced("slots = 3", "slots = 4", buffered=True))
    assert any("its buffer has 3 slots, its plan says 4" in one for one in found)


def test_an_address_that_is_not_known_early() -> None:
    """The row that is copied is loaded in the same iteration."""
    text = str(planned("3,1"))
    text = text.replace(
        "%arg0: memref<64x32xf32>",
        "%idx: memref<64xindex>, %arg0: memref<64x32xf32>",
        1,
    )
    text, found = re.subn(
        r"( *)(%\w+ = memref.load %arg0)\[(%\w+), (%\w+)\]",
        r"\1%row = memref.load %idx[\3] : memref<64xindex>\n\1\2[%row, \4]",
        text,
        count=1,
    )
    assert found
    assert messages(ir.Module.parse(text)) == [
        "runs early, and uses what 'memref.load' makes later"
    ]


def test_an_address_that_threads_make_together() -> None:
    """Copies run where other threads of the warp may not."""
    text, found = re.subn(
        r"( *)(%\w+ = memref.load %arg0)\[(%\w+), (%\w+)\]",
        r"\1%lane = arith.constant 32 : i32"
        r"\n\1%own = arith.index_cast \3 : index to i32"
        r"\n\1%far, %valid = gpu.shuffle xor %own, %lane, %lane : i32"
        r"\n\1%row = arith.index_cast %far : i32 to index\n\1\2[%row, \4]",
        str(planned("3,1")),
        count=1,
    )
    assert found
    assert messages(ir.Module.parse(text)) == [
        "runs early, and uses what 'gpu.shuffle' makes later"
    ]


def test_an_address_that_a_condition_guards() -> None:
    """Where the condition is false the row may be beyond the end of %idx."""
    text, found = re.subn(
        r"( *)(%\w+) = memref.load %arg0\[(%\w+), (%\w+)\]( : memref<64x32xf32>)",
        r"""\1%zero = arith.constant 0.0 : f32
\1%in = arith.cmpi ult, \3, \4 : index
\1\2 = scf.if %in -> f32 {
\1  %row = memref.load %idx[\3] : memref<64xindex>
\1  %l = memref.load %arg0[%row, \4]\5
\1  scf.yield %l : f32
\1} else {
\1  scf.yield %zero : f32
\1}""",
        str(planned("3,1")).replace(
            "%arg0: memref<64x32xf32>",
            "%idx: memref<64xindex>, %arg0: memref<64x32xf32>",
            1,
        ),
        count=1,
    )
    assert found
    assert messages(ir.Module.parse(text)) == [
        "runs early, and uses what 'memref.load' makes later"
    ]
    by_index = text.replace("%arg0[%row,", "%arg0[%c0,")
    assert messages(ir.Module.parse(by_index)) == []


def test_a_fetch_of_a_row_that_a_table_names() -> None:
    """Loads in a branch that runs early run with it; none may be stored to before."""
    kind = "memref<64xindex>"
    text = f"""
gpu.module @kernels {{
  gpu.func @kernel(%A: memref<64xf32>, %I: {kind}, %J: {kind}, %C: memref<64xf32>)
      kernel attributes {{known_block_size = array<i32: 32, 1, 1>}} {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c60 = arith.constant 60 : index
    %zero = arith.constant 0.0 : f32
    %sum = scf.for %k = %c0 to %c60 step %c1 iter_args(%acc = %zero) -> (f32) {{
      %few = arith.cmpi ult, %k, %c60 : index
      %x = scf.if %few -> (f32) {{
        %i = memref.load %I[%k] : {kind}
        %j = memref.load %J[%i] : {kind}
        %a = memref.load %A[%j] : memref<64xf32>
        scf.yield %a : f32
      }} else {{
        scf.yield %zero : f32
      }} {{alcop.op = 0 : i64}}
      %next = arith.addf %acc, %x : f32
      scf.yield %next : f32
    }} {{alcop.pipeline = #alcop.pipeline<{{noalias = true, ops = [{{kind = "fetch",
        name = "scf.if", op = 0 : i64, stream = "fetch"}}], streams = [{{
        lead = 1 : i64, name = "fetch"}}, {{name = "compute"}}]}}>}}
    memref.store %sum, %C[%c0] : memref<64xf32>
    gpu.return
  }}
}}"""
    assert messages(ir.Module.parse(text)) == []
    stored = text.replace("%next =", f"memref.store %k, %J[%k] : {kind}\n%next =")
    assert messages(ir.Module.parse(stored)) == [
        "runs early, and reads what 'memref.store' writes in the loop"
    ]


# -- in the driver -------------------------------------------------------------------


def wrong_slots(parameters: dict[str, Any]) -> None:
    parameters["rings"][0]["slots"] -= 1


def wrong_lead(parameters: dict[str, Any]) -> None:
    parameters["streams"][0]["lead"] += 1


@pytest.mark.parametrize("mutate", [wrong_slots, wrong_lead])
def test_a_planner_with_a_bug(
    mutate: Callable[[dict[str, Any]], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found after planning, which without the instrument goes on."""
    write = plan_pipelines.write_plan

    def buggy(bound: Any) -> None:
        write(bound)
        parameters = alcop.get(bound.loop, alcop.PipelineAttr)
        assert parameters is not None
        mutate(parameters)
        alcop.put(bound.loop, alcop.PipelineAttr, parameters)

    monkeypatch.setattr(plan_pipelines, "write_plan", buggy)
    passes = "builtin.module(alcop-plan-pipelines{stages=3,1},alcop-multi-buffer)"
    run_pipeline(ir.Module.parse(kernel("static")), passes)
    with pytest.raises(PassFailure, match="alcop-plan-pipelines: reads tile"):
        run_pipeline(
            ir.Module.parse(kernel("static")), passes, instruments=[CheckPipelines()]
        )
