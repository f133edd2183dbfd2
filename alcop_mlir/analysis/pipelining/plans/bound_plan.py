"""The plan of a loop with the ops that it names: `BoundPlan`.

`bound_plans` reads it from the loop. Nothing is changed here.
"""

from __future__ import annotations

from typing import Any

from alcop_mlir.analysis.ir.loops import trip_count
from alcop_mlir.analysis.pipelining.copy_forms import CopyForm, copy_form
from alcop_mlir.analysis.pipelining.plans.stream_plan import (
    FILL,
    LOOP,
    READ,
    StreamOp,
    StreamPlan,
)
from alcop_mlir.frozen import frozen


@frozen
class BoundPlan:
    """The plan of `loop`.

    ops:   what the plan's ops are, one for each of `plan.ops`
    marks: other ops that have an `alcop.pipeline` for this plan
    is_value: whether the loop has the plan as a value, not in a user's short form
    last_stage: that of the arithmetic, where a user gave a stage to each op
    """

    loop: Any
    plan: StreamPlan
    ops: tuple[Any, ...]
    marks: tuple[Any, ...] = ()
    is_value: bool = True
    last_stage: int | None = None

    def time(self, lead: int) -> str:
        """A lead as the user gave it: a stage, or iterations."""
        if self.last_stage is None:
            return f"a lead of {lead}"
        return f"stage {self.last_stage - lead}"

    def named(self, *kinds: str) -> list[tuple[StreamOp, Any]]:
        """The ops of these kinds, as the plan names them and as they are."""
        pairs = zip(self.plan.ops, self.ops, strict=True)
        return [(planned, op) for planned, op in pairs if planned.kind in kinds]

    def copies(self) -> dict[Any, CopyForm]:
        """The forms of the ops that fill a ring, as far as these are copies."""
        forms = {op: copy_form(op) for _, op in self.named(FILL)}
        return {op: form for op, form in forms.items() if form is not None}

    def register_stages(self, steps: int) -> int:
        """Fragment steps from a read to its use, and one; 1 where no read is early.

        steps: fragment steps of an iteration
        """
        early = [self.plan.stream(planned) for planned, _ in self.named(READ)]
        return 1 + max((s.lead * steps + s.steps for s in early), default=0)

    def steps(self) -> int:
        """Fragment steps of an iteration."""
        inner = [trip_count(op) for _, op in self.named(LOOP)]
        return max(1, sum(trips or 1 for trips in inner))

    @property
    def meets_at_start(self) -> bool:
        """Whether the pipeline's own barrier is at the start of each iteration."""
        steps = self.steps()
        return (self.register_stages(steps) - 1) % steps == 0
