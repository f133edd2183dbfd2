"""Whether a plan is legal for its loop: `check`, for whoever executes it.

- each op is what its plan takes it for: a copy, a read of shared memory, a fetch
- copies alone fill the buffers of a ring, and all reads follow in the same iteration
- what an op needs is made no later than it runs, and before it in the order
- a read runs no earlier than the copy that fills its buffer, and there are slots enough
  for the iterations in between
- warps of one role need no values of another's

Every op of the body is in one stream: in that which names it, else, if it has an
effect, in the last; an op without effects is computed by each stream that needs it.
The verifier has rules of its own, see `alcop_mlir.verifier.plans`.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from typing import Any

from alcop_mlir.analysis.ir import memory
from alcop_mlir.analysis.ir.loops import (
    ancestor_in,
    body,
    init_args,
    is_loop,
    yielded,
)
from alcop_mlir.analysis.ir.slices import captured, is_pure, is_repeatable
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.pipelining.barriers import OtherAccesses
from alcop_mlir.analysis.pipelining.copies import shared_copies
from alcop_mlir.analysis.pipelining.copy_forms import CopyForm, copies_in
from alcop_mlir.analysis.pipelining.fetches import is_fetch
from alcop_mlir.analysis.pipelining.foreign_groups import needed_groups
from alcop_mlir.analysis.pipelining.in_place import (
    Read,
    loaded,
    may_spoil,
    reads_of,
)
from alcop_mlir.analysis.pipelining.plans.bound_plans import BoundPlan
from alcop_mlir.analysis.pipelining.plans.shared_plan import (
    unsynchronisable,
    without_neighbours,
)
from alcop_mlir.analysis.pipelining.plans.stream_plan import (
    ACQUIRE,
    COMMIT,
    EFFECT,
    FETCH,
    FILL,
    LOOP,
    READ,
    RELEASE,
    WAIT,
    Stream,
)
from alcop_mlir.analysis.pipelining.register_reads import is_shared_read, register_reads
from alcop_mlir.analysis.pipelining.verdicts import SHARED, PipelinedCopy, RejectedCopy
from alcop_mlir.bindings import ir
from alcop_mlir.errors import PassError

_SYNCHRONISATION = (ACQUIRE, COMMIT, WAIT, RELEASE)
# Of one ring and iteration: the first kind comes before the second.
_IN_ORDER = (
    (ACQUIRE, FILL),
    (ACQUIRE, COMMIT),
    (WAIT, READ),
    (READ, RELEASE),
    (WAIT, RELEASE),
)


def check(bound: BoundPlan) -> None:
    """PassError at the op or loop at which the plan is wrong."""
    legality = _Legality(bound)
    _check_kinds(bound, legality.forms)
    if bound.plan.has_roles:
        _check_all_named(bound, legality.forms)
    for buffer, ring in legality.buffers.items():
        legality.check_buffer(buffer, ring)
    legality.check_sources()
    legality.check_needs()
    legality.check_dropped()
    _check_synchronisation(bound)


def check_as_planned(bound: BoundPlan) -> None:
    """PassError where a rule for pipelined copies forbids the plan, for a user's plan.

    It promises that arguments do not alias. To be asked before buffers get slots.
    """
    _check_kinds(bound, bound.copies())
    loops = [bound.loop, *(op for _, op in bound.named(LOOP))]
    judged = {
        one.op: one
        for loop in loops
        for forms in [copies_in(loop)]
        for one in (*shared_copies(loop, forms, True), *register_reads(loop, forms))
    }
    accepted = []
    for planned, op in bound.named(FILL, READ):
        if not bound.plan.stream(planned).is_early:
            continue
        verdict = _not_rejected(judged.get(op))
        if planned.kind == FILL and verdict is not None:
            accepted.append(verdict)
    for verdict in without_neighbours(bound.loop, accepted):
        _not_rejected(verdict)
    refusal = unsynchronisable(bound.loop) if accepted else None
    if refusal is not None:
        no = RejectedCopy(bound.loop, SHARED, *refusal)
        raise PassError(bound.loop, f"is planned, but {no}")


def _not_rejected(verdict: PipelinedCopy | RejectedCopy | None) -> Any:
    if isinstance(verdict, RejectedCopy):
        raise PassError(verdict.op, f"is planned, but {verdict}")
    return verdict


def _check_kinds(bound: BoundPlan, forms: dict[Any, CopyForm]) -> None:
    for planned, op in bound.named(FILL, FETCH, LOOP, READ):
        if planned.kind == FETCH and not (
            is_fetch(op) and op.block == body(bound.loop)
        ):
            raise PassError(
                op,
                f"'{op.name}' is planned, expected a load of global memory in the "
                "loop's own block",
            )
        if planned.kind == FILL and op not in forms:
            raise PassError(op, f"'{op.name}' is planned, expected a copy")
        if planned.kind == FILL and op.block != body(bound.loop):
            raise PassError(op, "is planned, expected a copy in the loop's own block")
        if planned.kind == LOOP and not is_loop(op):
            raise PassError(op, f"'{op.name}' is planned, expected an inner loop")
        if planned.kind == READ and not is_shared_read(op):
            raise PassError(
                op,
                f"'{op.name}' is planned at the register level, expected a read of "
                "shared memory",
            )


class _Legality:
    """A plan with what its rules need.

    named:   how the plan names an op; places, its number in the order
    forms:   of the planned copies
    buffers: of rings, and the ring of each
    blocks:  the loop's block, and those of the plan's inner loops
    """

    def __init__(self, bound: BoundPlan):
        inner = [op for _, op in bound.named(LOOP) if is_loop(op)]
        fills = bound.named(FILL)
        self.bound = bound
        self.named = dict(zip(bound.ops, bound.plan.ops, strict=True))
        self.places = {op: number for number, op in enumerate(bound.ops)}
        self.forms = forms = bound.copies()
        self.buffers = {
            buffer: planned.ring
            for planned, op in fills
            if op in forms
            for buffer in forms[op].buffers
        }
        self.blocks = tuple(map(body, (bound.loop, *inner)))

    def stream(self, op: ir.Operation) -> Stream:
        """The stream that the op belongs to: the last, where none names it."""
        planned = self.named.get(op)
        plan = self.bound.plan
        return plan.streams[-1] if planned is None else plan.stream(planned)

    # -- rings -----------------------------------------------------------------------

    def check_buffer(self, buffer: ir.Value, ring: int) -> None:
        """Who fills and who reads a buffer, and whether its slots suffice."""
        fills = self._fills(buffer, ring)
        accesses = memory.accesses(buffer)
        if not isinstance(accesses, list):
            raise PassError(
                fills[0], f"its buffer is used by '{accesses.name}', in no known way"
            )
        for access in accesses:
            ancestor = ancestor_in(access.op, self.blocks[0])
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
        for planned, op in self.bound.named(FILL):
            if buffer not in self.forms[op].buffers:
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
        planned = self.named.get(op)
        if planned is not None and planned.kind == READ and planned.ring != ring:
            raise PassError(
                op, f"reads a buffer of ring {ring}, its plan says {planned.ring}"
            )
        reader = self.stream(op if planned is not None else ancestor)
        for fill in fills:
            copied = self.stream(fill)
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
            if reader.tiles == copied.tiles and op in self.places:
                self._check_place(op, fill)
            self._check_slots(fill, copied, reader, ring)

    def _check_slots(
        self, fill: ir.Operation, copied: Stream, reader: Stream, ring: int
    ) -> None:
        slots = self.bound.plan.rings[ring].slots
        needed = copied.tiles - reader.tiles + 1 + reader.in_flight
        if slots < needed:
            raise PassError(
                fill,
                f"has a lead of {copied.tiles} iterations, which needs {needed} slots, "
                f"its ring has {slots}",
            )

    def _check_place(self, op: ir.Operation, maker: ir.Operation) -> None:
        if self.places[op] < self.places[maker]:
            raise PassError(
                op, f"needs '{maker.name}', which comes later in the order of the plan"
            )

    # -- dependences -----------------------------------------------------------------

    def check_sources(self) -> None:
        """Nothing in the loop writes what is copied or read early."""
        early = [op for op in self.bound.ops if self.stream(op).is_early]
        # Of what reads the buffers of the rings: see check_buffer.
        reads = [
            (op, read)
            for op in early
            for read in self._reads(op)
            if memory.root(read.memref) not in self.buffers
        ]
        if not reads:
            return
        loop = self.bound.loop
        ordering = {op for _, op in self.bound.named(*_SYNCHRONISATION)}
        written = memory.written_memrefs(loop)
        for op, read in reads:
            for writer, target in written:
                if writer in (op, loop) or writer in ordering:
                    continue
                if may_spoil(writer, target, [read], loop, True):
                    raise PassError(
                        op,
                        "is planned, but its source may be written by "
                        f"'{writer.name}' in the loop",
                    )
            if is_shared_read(op) and walk(loop, "gpu.barrier"):
                raise PassError(
                    op, "is planned to run early, but the loop has barriers to cross"
                )

    def _reads(self, op: ir.Operation) -> list[Read]:
        """What a planned copy or read reads."""
        if self.named[op].kind == READ:
            return [Read(op, op.operands[0])]
        if self.named[op].kind == FETCH:
            return loaded(op)
        return reads_of(self.forms[op]) if op in self.forms else []

    def check_needs(self) -> None:
        """What an op needs is made no later than it runs."""
        has_roles = self.bound.plan.has_roles
        for stream in self.bound.plan.streams:
            ops = [op for op in self.bound.ops if self.stream(op) == stream]
            ops = [op for op in ops if self.named[op].kind != LOOP]
            if not ops or not (stream.is_early or has_roles):
                continue
            makers = self._makers(ops)
            if any(m in self.places or self._is_late(m, stream) for m in makers):
                for op in ops:
                    for maker in self._makers([op]):
                        self._check_made(op, maker, stream)

    def _is_late(self, maker: ir.Operation, stream: Stream) -> bool:
        """Whether `maker` runs too late for `stream`, or in another role's warps."""
        own = self.stream(maker)
        if bool(own.warps) and own != stream:
            return True
        return (own.lead, own.steps) < (stream.lead, stream.steps)

    def _check_made(
        self, op: ir.Operation, maker: ir.Operation, stream: Stream
    ) -> None:
        own = self.stream(maker)
        if self._is_late(maker, stream):
            raise PassError(
                op,
                f"runs in the stream '{stream.name}', but needs '{maker.name}' of "
                f"the stream '{own.name}', which has a lead of {own.tiles} "
                f"iterations, not {stream.tiles}, or is a role of other warps",
            )
        same = (own.lead, own.steps) == (stream.lead, stream.steps)
        # What a fetch loads may be carried: it comes before what needs it then.
        if maker in self.places and same and self.named[maker].kind != FETCH:
            self._check_place(op, maker)

    # -- what is dropped -------------------------------------------------------------

    def check_dropped(self) -> None:
        """Barriers, groups and waits that no stream has are for the rings only."""
        loop, copies = self.bound.loop, list(self.forms.values())
        if not copies:
            return
        kept = {op for _, op in self.bound.named(EFFECT)}
        others = OtherAccesses(loop, copies, noalias=True)
        for missing in others.missing(kept, self.bound.meets_at_start):
            raise PassError(
                missing.barrier,
                f"is not in the plan of its loop, but orders '{missing.first.name}' "
                f"and '{missing.second.name}', which no other barrier does",
            )
        for op in needed_groups(loop, [form.op for form in copies]):
            if op not in kept:
                raise PassError(
                    op,
                    "is not in the plan of its loop, but is needed for asynchronous "
                    "copies that are not either",
                )

    def _makers(self, ops: Iterable[ir.Operation]) -> list[Any]:
        """Ops with effects in the loop that make what `ops` need, now or later."""
        pending, seen = list[Any](), set[Any]()
        for op in ops:
            pending += captured(op)
            form = self.forms.get(op)
            if form is not None and form.producer is not None:
                pending += captured(form.producer)
                seen.update(form.moved)
        makers, carried = dict[Any, None](), list[Any]()
        # The next value of a carried one is computed where no iteration may follow.
        for values, is_plain in ((pending, is_repeatable), (carried, is_pure)):
            followed = set(seen)
            while values:
                value = values.pop()
                if value in followed or value in self.buffers:
                    continue
                followed.add(value)
                owner = value.owner
                if isinstance(owner, ir.Block):
                    carried += self._carried(value, owner)
                    continue
                maker = owner.operation
                if maker.block not in self.blocks:
                    continue
                if is_plain(maker) or maker.name.startswith("memref.alloc"):
                    values += captured(maker)
                else:
                    makers[maker] = None
        return list(makers)

    def _carried(self, value: ir.Value, block: ir.Block) -> list[Any]:
        """What a loop-carried value of one of the loops becomes, and started from."""
        if block not in self.blocks or value.arg_number == 0:
            return []
        number, loop = value.arg_number - 1, block.owner
        return [yielded(loop, number), init_args(loop)[number]]


def _check_synchronisation(bound: BoundPlan) -> None:
    for (place, one), (_, other) in combinations(enumerate(bound.plan.ops), 2):
        same = (one.ring, one.stream) == (other.ring, other.stream)
        if same and (other.kind, one.kind) in _IN_ORDER:
            raise PassError(
                bound.ops[place],
                f"comes before the '{other.kind}' of its ring in the order of the plan",
            )


def _check_all_named(bound: BoundPlan, forms: dict[Any, CopyForm]) -> None:
    loads = {load for form in forms.values() for load in form.moved}
    for op in list(body(bound.loop).operations)[:-1]:
        op = op.operation
        if is_pure(op) or op in bound.ops or any(r in loads for r in op.results):
            continue
        raise PassError(
            op,
            f"'{op.name}' is in no stream: where streams are roles of warps, the plan "
            "names every op that has an effect",
        )
