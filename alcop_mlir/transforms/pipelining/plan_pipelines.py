"""Decide which copies are pipelined, in which loop, with how many stages.

Before:  scf.for %k ... { memref.copy %tile, %a ... }
After:   scf.for %k ... {
           memref.copy %tile, %a {alcop.op = 0} ...
         } {alcop.pipeline = #alcop.pipeline<{
             streams = [{name = "copy", lead = 2}, {name = "compute"}],
             rings = [{slots = 3}],
             ops = [{op = 0, name = "memref.copy", stream = "copy", kind = "fill",
                     ring = 0}]}>}

The only pass that decides; docs/architecture.md has the rules. A copy that breaks a
rule is left unchanged, correct and unpipelined, with a remark that says which rule,
why, and what would help.

The plan of a loop is one value, on the loop: its streams, how many iterations (`lead`)
and fragment steps (`steps`) each runs before the arithmetic, the rings of slots, and
the ops that matter, in the order of the steady state. It names ops by `alcop.op`. An
inner loop of the kind `loop` has a pipeline of fragments that is filled once and
carried across the iterations of the pipelined loop around it. A barrier, group or wait
of the kind `effect` orders more than the copies, and stays.

Loads from global memory that addresses of copies need, or, with two register stages or
more, the arithmetic, are *fetches*: ops of streams that run before these.

The option `stages` says how many stages, else `alcop.schedule` on the `gpu.launch`;
where there is neither, a loop gets as many shared stages as hide a copy's latency and
fit (analysis/pipelining/stage_model.py), and two register stages; one where reads of a
whole iteration, run early, would leave too few registers for a warp's vectors.

A loop that has a plan before, a user's, keeps it, and so do the loops in it.

Runs after alcop-tile-to-blocks, canonicalize and cse, as it compares addresses and trip
counts, and before alcop-multi-buffer. Reads `alcop.schedule`, and reads and erases
`alcop.noalias`. Writes `alcop.pipeline`
and `alcop.op`, which alcop-expand-pipelines erases, and on a `gpu.launch`
`alcop.pipelines`: the same as a list, which alcop-outline-kernels takes along.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from alcop_mlir import diagnostics
from alcop_mlir.analysis.ir.kernels import is_kernel, kernels_in
from alcop_mlir.analysis.ir.promises import NOALIAS
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.layout.live_registers import VECTOR_REGISTERS
from alcop_mlir.analysis.pipelining.buffer_labels import buffer_labels
from alcop_mlir.analysis.pipelining.fetches import is_fetch
from alcop_mlir.analysis.pipelining.plans.bound_plans import (
    given_plans,
    pipelined_ops,
    plans_of,
)
from alcop_mlir.analysis.pipelining.plans.kernel_plan import KernelPlan, Limits
from alcop_mlir.analysis.pipelining.plans.plan import plan_kernel
from alcop_mlir.analysis.pipelining.verdicts import REGISTER
from alcop_mlir.bindings import ir
from alcop_mlir.dialects import alcop
from alcop_mlir.dialects.values import to_attribute
from alcop_mlir.errors import ConfigError, PassError
from alcop_mlir.frozen import frozen
from alcop_mlir.passes.base import Pass, option
from alcop_mlir.resources import no_wgmma
from alcop_mlir.schedule import (
    MAX_REGISTER_STAGES,
    MAX_SHARED_STAGES,
    PINGPONG,
    WGMMA,
    Schedule,
)
from alcop_mlir.target import DEFAULT_TARGET, find_target
from alcop_mlir.transforms.pipelining.plan_attributes import write_plan

TAILS = ("predicated", "wrap")


@frozen
class PlanPipelines(Pass):
    name = "alcop-plan-pipelines"
    anchor = "any"

    target: str = option(DEFAULT_TARGET, "GPU whose shared memory the slots must fit")
    stages: tuple[int, ...] = option((), "shared, register stages; default: see above")
    assume_noalias_args: bool = option(False, "memref arguments never overlap")
    tail: str = option("predicated", "at a loop's end: predicated, or wrap around")
    report: str = option("", "write what became of each candidate to this JSON file")

    def __post_init__(self) -> None:
        find_target(self.target)
        if self.tail not in TAILS:
            raise ConfigError(
                f"pass '{self.name}': tail is '{self.tail}', expected one of "
                f"{', '.join(TAILS)}"
            )
        most = (MAX_SHARED_STAGES, MAX_REGISTER_STAGES)
        if self.stages and (
            len(self.stages) != len(most)
            or not all(1 <= n <= m for n, m in zip(self.stages, most, strict=True))
        ):
            given = ",".join(str(stage) for stage in self.stages)
            raise ConfigError(
                f"pass '{self.name}': stages is {given}, expected shared,register from "
                f"1,1 to {most[0]},{most[1]}"
            )

    def run(self, op: ir.Operation) -> None:
        entries: list[dict[str, Any]] = []
        for scope in kernels_in(op):
            limits = self._limits(scope)
            plan = plan_kernel(scope, limits, given_plans(scope))
            for bound in plans_of(plan, limits):
                write_plan(bound)
            if scope.operation.name == "gpu.launch":
                _list_pipelines(scope)
            _emit_remarks(plan)
            if self.report:
                entries += _entries(plan)
        for loop in walk(op, "scf.for"):
            if NOALIAS in loop.attributes:
                del loop.attributes[NOALIAS]
        if self.report:
            _save(entries, Path(self.report))

    def _limits(self, scope: ir.Operation) -> Limits:
        schedule = alcop.get(scope, alcop.ScheduleAttr)
        stages = self.stages or _stages(scope, schedule)
        return Limits(
            stages=(stages[0], stages[1]),
            fetch_stages=stages[1] if _fetches(scope) else 1,
            fetch_all=bool(self.stages),
            vector_registers=VECTOR_REGISTERS if stages[0] is None else None,
            shared_bytes=find_target(self.target).shared_bytes_per_block,
            noalias_arguments=self.assume_noalias_args,
            wrap_tails=self.tail == "wrap",
            roles=stages[1] - 1 if self._has_roles(scope, schedule) else None,
            turns=2 if (schedule or {}).get("mode") == PINGPONG else 1,
        )

    def _has_roles(self, scope: ir.Operation, schedule: dict[str, Any] | None) -> bool:
        """Whether the schedule asks for wgmma, and for roles with it."""
        asks, target = (schedule or {}).get("engine") == WGMMA, find_target(self.target)
        if asks and not target.has_wgmma:
            raise PassError(scope, no_wgmma("its schedule", target))
        return asks


def _fetches(scope: ir.Operation) -> bool:
    """Whether loads of a scope's loops are fetched: not of SIMT fallbacks."""
    return is_kernel(scope) and alcop.FALLBACK not in scope.operation.attributes


def _stages(
    scope: ir.Operation, schedule: dict[str, Any] | None
) -> tuple[int | None, int]:
    if schedule is None:
        return None, Schedule().stages[1]
    try:
        return Schedule.from_dict(schedule).stages
    except ConfigError as error:
        raise PassError(scope, str(error)) from error


def _list_pipelines(launch: ir.Operation) -> None:
    """Write on the launch what is pipelined in it, in the order of the program.

    Equal loads of single elements count once.
    """
    pipelined = list(pipelined_ops(launch))
    labels = buffer_labels(launch, [copy for copy, _, _ in pipelined])
    listed: list[dict[str, Any]] = []
    for label, (op, level, stages) in zip(labels, pipelined, strict=True):
        entry = {"buffer": label, "level": level, "stages": stages}
        if entry not in listed or not is_fetch(op):
            listed.append(entry)
    launch.operation.attributes[alcop.PIPELINES] = to_attribute(listed)


def _emit_remarks(plan: KernelPlan) -> None:
    for rejected in plan.rejected:
        diagnostics.remark(rejected.op, str(rejected))
    for staged in plan.staged:
        text = f"pipelined through registers only: {staged.reason}; {staged.remedy}"
        diagnostics.remark(staged.op, text)
    for loop, message in plan.clamped:
        diagnostics.remark(loop, message)


def _entries(plan: KernelPlan) -> list[dict[str, Any]]:
    """One entry per candidate: what it is, and what became of it."""
    done = [
        {**_location(copy.op), "level": p.level, "stages": p.stages, "pipelined": True}
        | {"buffer": str(buffer.type), "carried": p.carried}
        for p in plan.pipelines
        for copy in p.copies
        for buffer in copy.buffers
    ]
    done += [
        {**_location(fetch.op), "level": REGISTER, "stages": fetch.lead + 1}
        | {"pipelined": True, "buffer": str(result.type), "carried": False}
        for _, fetches in plan.fetched
        for fetch in fetches
        for result in fetch.op.results
    ]
    rejected = [
        {**_location(no.op), "level": no.level, "stages": 1, "pipelined": False}
        | {"rule": no.rule, "reason": no.reason, "remedy": no.remedy}
        for no in plan.rejected
    ]
    return done + rejected


def _location(op: ir.Operation) -> dict[str, Any]:
    where = diagnostics.at(op.location, "remark", "")
    return {
        "function": _function_name(op),
        "op": op.name,
        "location": f"{where.file}:{where.line}:{where.column}" if where.line else "",
    }


def _function_name(op: ir.Operation) -> str:
    parent = op.parent
    while parent is not None:
        if "sym_name" in parent.operation.attributes:
            return parent.operation.attributes["sym_name"].value
        parent = parent.operation.parent
    return ""


def _save(entries: list[dict[str, Any]], path: Path) -> None:
    try:
        path.write_text(json.dumps(entries, indent=2) + "\n")
    except OSError as error:
        raise ConfigError(f"cannot write the report '{path}': {error}") from error
