"""Decides what is pipelined: which loops and copies, with how many stages.

`plan_kernel` looks at one kernel and returns a `KernelPlan`: first its copies into
shared memory, then its reads of that, then its loads of global memory.
alcop-plan-pipelines writes it into the IR. Nothing is changed here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from alcop_mlir.analysis.ir import promises
from alcop_mlir.analysis.ir.loops import loops_in
from alcop_mlir.analysis.ir.walk import around
from alcop_mlir.analysis.pipelining.copy_forms import copies_in
from alcop_mlir.analysis.pipelining.other_loops import unreached
from alcop_mlir.analysis.pipelining.plans.fetch_plan import plan_fetches
from alcop_mlir.analysis.pipelining.plans.kernel_plan import KernelPlan, Limits
from alcop_mlir.analysis.pipelining.plans.register_plan import plan_register
from alcop_mlir.analysis.pipelining.plans.role_plan import plan_roles
from alcop_mlir.analysis.pipelining.plans.shared_plan import plan_shared
from alcop_mlir.bindings import ir


def plan_kernel(
    scope: ir.Operation, limits: Limits, given: Mapping[Any, Mapping[Any, int]]
) -> KernelPlan:
    """The plan for the loops in `scope`, a kernel body: they share its memory.

    given: see `KernelPlan`; these loops, and those in them, are not planned
    """
    plan = KernelPlan(given)
    plan.rejected += unreached(scope, reads=limits.stages[1] > 1)
    forms = {loop: copies_in(loop) for loop in _free_loops(scope, plan)}
    plan_shared(scope, forms, limits, plan)
    plan_roles(limits, plan)
    forms = {loop: own for loop, own in forms.items() if not _has_role(loop, plan)}
    plan_register(forms, limits, plan)
    plan_fetches(forms, limits, plan)
    # The other version of such a loop is pipelined: its author need do nothing.
    plan.rejected = [no for no in plan.rejected if promises.noalias(no.op) is not False]
    plan.staged = [no for no in plan.staged if promises.noalias(no.op) is not False]
    return plan


def _free_loops(scope: ir.Operation, plan: KernelPlan) -> list[Any]:
    """The loops in `scope` for which nobody made a plan."""
    given = plan.given.keys()
    loops = loops_in(scope)
    if not given:
        return loops
    return [one for one in loops if given.isdisjoint([one, *around(one)])]


def _has_role(loop: ir.Operation, plan: KernelPlan) -> bool:
    """Whether a loop, or one around it, has roles: its reads are not pipelined."""
    return any(one in plan.roles for one in (loop, *around(loop)))
