"""Whether who fills and reads the buffers of a plan's rings fits their slots.

- copies, or stores, of the plan alone fill them, and all reads follow in the iteration
- a read runs no earlier than the copy that fills its buffer, and there are slots enough
  for the iterations in between

What stores and others need of slots, `plan_dependences` knows.
"""

from __future__ import annotations

from typing import Any

from alcop_mlir.analysis.ir import memory
from alcop_mlir.analysis.ir.loops import ancestor_in
from alcop_mlir.analysis.pipelining.plans.plan_facts import PlanFacts
from alcop_mlir.analysis.pipelining.plans.plan_slots import stored_buffers
from alcop_mlir.analysis.pipelining.plans.stream_plan import (
    FILL,
    READ,
    STORE,
    Stream,
)
from alcop_mlir.bindings import ir
from alcop_mlir.errors import PassError


def check_rings(facts: PlanFacts) -> None:
    """PassError at a copy, store or read that does not fit the slots."""
    _RingCheck(facts).check()


class _RingCheck:
    def __init__(self, facts: PlanFacts):
        self.facts = facts

    def check(self) -> None:
        for buffer, ring in self.facts.filled.items():
            self._check_filled(buffer, ring)
        for buffer in self.facts.rings:
            if buffer not in self.facts.filled:
                self._check_stored(buffer)

    def _check_filled(self, buffer: ir.Value, ring: int) -> None:
        """Who fills and who reads a buffer, and whether its slots suffice."""
        fills = self._fills(buffer, ring)
        accesses = memory.accesses(buffer)
        if not isinstance(accesses, list):
            raise PassError(
                fills[0], f"its buffer is used by '{accesses.name}', in no known way"
            )
        for access in accesses:
            ancestor = ancestor_in(access.op, self.facts.blocks[0])
            if access.writes and ancestor not in fills:
                raise PassError(
                    fills[0],
                    f"its buffer is also written by '{access.op.name}', expected only "
                    "copies of the plan",
                )
            if access.reads and access.op not in fills:
                self._check_read(access.op, ancestor, fills, ring)

    def _fills(self, buffer: ir.Value, ring: int) -> list[Any]:
        fills = []
        for planned, op in self.facts.bound.named(FILL):
            if buffer not in self.facts.forms[op].buffers:
                continue
            if planned.ring != ring:
                raise PassError(
                    op, f"fills a buffer of ring {ring}, its plan says {planned.ring}"
                )
            fills.append(op)
        return fills

    def _check_read(
        self,
        op: ir.Operation,
        ancestor: ir.Operation | None,
        fills: list[ir.Operation],
        ring: int,
    ) -> None:
        if ancestor is None:
            raise PassError(
                fills[0], f"its buffer is read by '{op.name}' outside of the loop"
            )
        planned = self.facts.named.get(op)
        if planned is not None and planned.kind == READ and planned.ring != ring:
            raise PassError(
                op, f"reads a buffer of ring {ring}, its plan says {planned.ring}"
            )
        reader = self.facts.stream(op if planned is not None else ancestor)
        for fill in fills:
            copied = self.facts.stream(fill)
            if not fill.is_before_in_block(ancestor):
                raise PassError(
                    fill, f"its buffer is read by '{op.name}' before the copy"
                )
            if reader.tiles > copied.tiles:
                raise PassError(
                    op,
                    f"has a lead of {reader.tiles} iterations, the copy that fills its "
                    f"buffer one of {copied.tiles}",
                )
            if reader.tiles == copied.tiles and op in self.facts.places:
                self.facts.check_place(op, fill)
            self._check_slots(fill, copied, reader, ring)

    def _check_slots(
        self, fill: ir.Operation, copied: Stream, reader: Stream, ring: int
    ) -> None:
        slots = self.facts.bound.plan.rings[ring].slots
        needed = copied.tiles - reader.tiles + 1 + reader.in_flight
        if slots < needed:
            raise PassError(
                fill,
                f"has a lead of {copied.tiles} iterations, which needs {needed} slots, "
                f"its ring has {slots}",
            )

    def _check_stored(self, buffer: ir.Value) -> None:
        """Stores of the plan alone fill it, before all reads of their iteration."""
        stores = [
            (planned, op)
            for planned, op in self.facts.bound.named(STORE)
            if buffer in stored_buffers(op)
        ]
        planned, first = stores[0]
        if any(other.ring != planned.ring for other, _ in stores):
            raise PassError(first, "fills a buffer that another ring's store fills too")
        accesses = memory.accesses(buffer)
        if not isinstance(accesses, list):
            raise PassError(
                first, f"its buffer is used by '{accesses.name}', in no known way"
            )
        writers = {op for _, op in stores}
        for access in accesses:
            ancestor = ancestor_in(access.op, self.facts.blocks[0])
            if ancestor is None:
                where = "is used outside of the loop"
            elif access.writes and ancestor not in writers:
                where = "is filled by others than stores of the plan"
            elif access.reads and not all(
                one.is_before_in_block(ancestor) for one in writers
            ):
                where = "is read before all of it is stored in the iteration"
            else:
                continue
            raise PassError(
                first,
                f"its buffer {where}, by '{access.op.name}': it can have no slots",
            )
