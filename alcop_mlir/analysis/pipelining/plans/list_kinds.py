"""What the ops of a plan by lists are to it: copies, reads, stores that fill a ring.

Lists say how early an op runs, and no more. A copy that runs early is asynchronous
where the rules for pipelined copies and the rest of the plan allow it; any other op
runs early as it is:

    %a = memref.load %A[%k, %t]     // stage 0: an effect, one iteration early
    memref.store %a2, %b[%t]        // stage 0: a store, into one slot of two
    %x = memref.load %b[%u]         // stage 1: a read of the ring

Nothing is changed here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

from alcop_mlir.analysis.ir import memory
from alcop_mlir.analysis.pipelining.copies import shared_copies
from alcop_mlir.analysis.pipelining.copy_forms import CopyForm, copies_in
from alcop_mlir.analysis.pipelining.early_addresses import fetches_for
from alcop_mlir.analysis.pipelining.fetches import Loads, is_fetch
from alcop_mlir.analysis.pipelining.moves import ASYNC_OP
from alcop_mlir.analysis.pipelining.plans.plan_slots import no_slots
from alcop_mlir.analysis.pipelining.plans.shared_plan import (
    unsynchronisable,
    without_neighbours,
)
from alcop_mlir.analysis.pipelining.plans.steady_order import has_effect
from alcop_mlir.analysis.pipelining.plans.stream_plan import (
    EFFECT,
    FETCH,
    FILL,
    READ,
    STORE,
)
from alcop_mlir.analysis.pipelining.register_reads import is_shared_read
from alcop_mlir.analysis.pipelining.verdicts import PipelinedCopy
from alcop_mlir.bindings import ir
from alcop_mlir.errors import PassError
from alcop_mlir.frozen import frozen


@frozen
class Kinds:
    """What ops of a plan are.

    named: kind and ring of each op that the plan names
    slots: of its ring; 0 where it has none
    """

    named: dict[Any, tuple[str, int]]
    slots: int


def kinds_of(
    loop: ir.Operation,
    ops: Sequence[Any],
    leads: Mapping[Any, int],
    places: Mapping[Any, int],
) -> Kinds:
    """The kinds of the loop's ops; PassError at an asynchronous one that cannot be."""
    copies = _asynchronous(loop, leads)
    for chosen in (copies, {}):
        judged = _Judged(loop, ops, leads, places, chosen)
        if judged.fits:
            return judged.kinds()
    raise AssertionError(loop)


def _asynchronous(loop: ir.Operation, leads: Mapping[Any, int]) -> dict[Any, CopyForm]:
    """The early copies of `loop` that the rules for pipelined copies allow.

    One that stores what was loaded iterations before is an ordinary store.
    """
    forms = copies_in(loop)
    accepted = [
        one
        for one in shared_copies(loop, forms, True)
        if isinstance(one, PipelinedCopy)
        and leads[one.op]
        and leads[forms[one.op].producer or one.op] == leads[one.op]
    ]
    if not accepted or unsynchronisable(loop) is not None:
        return {}
    judged = without_neighbours(loop, accepted)
    return {one.op: forms[one.op] for one in judged if isinstance(one, PipelinedCopy)}


class _Judged:
    """The ops of a plan, if `copies` are asynchronous."""

    def __init__(
        self,
        loop: ir.Operation,
        ops: Sequence[Any],
        leads: Mapping[Any, int],
        places: Mapping[Any, int],
        copies: Mapping[Any, CopyForm],
    ):
        self.loop, self.leads, self.places, self.copies = loop, leads, places, copies
        self.effects = [op for op in ops if has_effect(op)]
        loads = {form.producer: op for op, form in copies.items()}
        self.parts = {op for op in loads if op and leads[op] == leads[loads[op]]}
        self.filled = {b for form in copies.values() for b in form.buffers}

    @cached_property
    def early(self) -> list[Any]:
        """What runs early besides the copies."""
        known = {*self.copies, *self.parts}
        return [op for op in self.effects if self.leads[op] and op not in known]

    @cached_property
    def reads(self) -> list[Any]:
        """The early reads of what the copies fill."""
        return [op for op in self.early if is_shared_read(op) and self._is_filled(op)]

    @cached_property
    def fetches(self) -> list[Any]:
        """The early loads of what the loop does not write."""
        loads = Loads(self.loop, True)
        return [op for op in self.early if is_fetch(op) and op in loads]

    @cached_property
    def stored(self) -> dict[Any, int]:
        """The buffers that need slots for what ordinary stores fill, and how many."""
        if self.runs_loads_only:
            return {}
        needed = {b: n for b, n in self._crossed().items() if b not in self.filled}
        return {b: n for b, n in needed.items() if no_slots(self.loop, b) is None}

    @property
    def runs_loads_only(self) -> bool:
        """Whether what is early besides copies only loads, as fetches and reads do."""
        return len(self.early) == len(self.reads) + len(self.fetches)

    @property
    def fits(self) -> bool:
        """Whether the copies can be asynchronous, next to all else."""
        if not self.copies:
            return True
        if len({self.leads[op] for op in self.copies}) > 1:
            return False
        if self.runs_loads_only:
            return not self.reads or self._reads_come_between()
        slots = self._crossed_by(self.filled)
        return (
            not any(map(self._is_filled, self.early))
            and not fetches_for(self.loop, self.copies.values())
            and max(self.stored.values(), default=0) <= slots
        )

    def kinds(self) -> Kinds:
        """What each op is."""
        named = {op: kind for op in self.effects if (kind := self._kind(op))}
        slots = max(self._crossed_by(self.filled), *self.stored.values(), 0)
        return Kinds(named, slots if self.copies or self.stored else 0)

    def _kind(self, op: ir.Operation) -> tuple[str, int] | None:
        if op in self.parts:
            return None
        if op in self.copies:
            return FILL, 0
        if self.leads[op] and op.name == ASYNC_OP:
            raise PassError(
                op,
                "is asynchronous: it can run early only as a copy that the rules for "
                "pipelined copies allow, at one stage with all others",
            )
        if self.leads[op] and not self.runs_loads_only:
            is_store = any(root in self.stored for root in _touched(op, True))
            return (STORE, 0) if is_store else (EFFECT, -1)
        if self.leads[op] and op not in self.reads:
            return FETCH, -1
        if is_shared_read(op):
            root = memory.root(op.operands[0])
            return READ, 0 if root in self.filled or root in self.stored else -1
        return EFFECT, -1

    # -- slots -----------------------------------------------------------------------

    def _crossed(self) -> dict[Any, int]:
        """The shared buffers that one stage writes for another, and slots for that."""
        slots: dict[Any, int] = {}
        for buffer in memory.shared_roots_in(self.loop):
            needed = self._crossed_by([buffer])
            if needed > 1:
                slots[buffer] = needed
        return slots

    def _crossed_by(self, buffers: Collection[Any]) -> int:
        """Iterations, and one, from writes of some buffers to what uses them last."""
        uses = [op for op in self.effects if _touched(op).intersection(buffers)]
        writes = [op for op in uses if _touched(op, True).intersection(buffers)]
        first = max((self.leads[op] for op in writes), default=0)
        return first - min((self.leads[op] for op in uses), default=first) + 1

    def _is_filled(self, op: ir.Operation) -> bool:
        return bool(_touched(op) & self.filled)

    # -- order -----------------------------------------------------------------------

    def _reads_come_between(self) -> bool:
        """Whether copies come first, then reads at one lead, then all as it was."""
        rest = [op for op in self.effects if not self.leads[op]]
        ranks = [(0, op) for op in self.copies] + [(1, op) for op in self.reads]
        ranks += [(2, op) for op in rest]
        ranks.sort(key=lambda pair: self.places[pair[1]])
        return (
            len({self.leads[op] for op in self.reads}) == 1
            and all(op.block == self.loop.regions[0].blocks[0] for op in self.reads)
            and all(one <= other for (one, _), (other, _) in pairwise(ranks))
            and all(self.places[a] < self.places[b] for a, b in pairwise(rest))
        )


def _touched(op: ir.Operation, written: bool = False) -> set[Any]:
    """The memory that `op` touches, or writes."""
    touches = memory.touches_in(op)
    touches = [one for one in touches if one.writes or not written]
    return {memory.root(one.memref) for one in touches if one.memref is not None}
