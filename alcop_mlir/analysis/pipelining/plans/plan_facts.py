"""What the rules for plans look up of one: `PlanFacts`. Nothing is changed here."""

from __future__ import annotations

from functools import cached_property

from alcop_mlir.analysis.ir.loops import body, is_loop
from alcop_mlir.analysis.pipelining.barriers import OtherAccesses
from alcop_mlir.analysis.pipelining.plans.bound_plan import BoundPlan
from alcop_mlir.analysis.pipelining.plans.steady_order import (
    is_rearranged,
    needs_new_order,
    rings_of,
)
from alcop_mlir.analysis.pipelining.plans.stream_plan import FILL, LOOP, Stream
from alcop_mlir.bindings import ir
from alcop_mlir.errors import PassError


class PlanFacts:
    """A plan with what its rules need, as long as nobody changes its loop.

    named:   how the plan names an op; places, its number in the order
    forms:   of the planned copies
    filled:  the buffers that these fill, and the ring of each
    rings:   all buffers that have slots, and how many
    blocks:  the loop's block, and those of the plan's inner loops
    others:  what barriers order besides the copies
    has_new_order: whether an iteration has another order than its streams give it
    """

    def __init__(self, bound: BoundPlan):
        inner = [op for _, op in bound.named(LOOP) if is_loop(op)]
        self.bound = bound
        self.named = dict(zip(bound.ops, bound.plan.ops, strict=True))
        self.places = {op: number for number, op in enumerate(bound.ops)}
        self.forms = forms = bound.copies()
        self.filled = {
            buffer: planned.ring
            for planned, op in bound.named(FILL)
            if op in forms
            for buffer in forms[op].buffers
        }
        self.rings = rings_of(bound, forms)
        self.blocks = tuple(map(body, (bound.loop, *inner)))
        self.is_rearranged = is_rearranged(bound)

    @cached_property
    def others(self) -> OtherAccesses:
        return OtherAccesses(self.bound.loop, self.forms.values())

    @cached_property
    def has_new_order(self) -> bool:
        return needs_new_order(self.bound)

    def stream(self, op: ir.Operation) -> Stream:
        """The stream that the op belongs to: the last, where none names it."""
        planned = self.named.get(op)
        plan = self.bound.plan
        return plan.streams[-1] if planned is None else plan.stream(planned)

    def check_place(self, op: ir.Operation, maker: ir.Operation) -> None:
        """PassError where `op` comes before `maker` in the order of the plan."""
        if self.places[op] < self.places[maker]:
            raise PassError(
                op, f"needs '{maker.name}', which comes later in the order of the plan"
            )
