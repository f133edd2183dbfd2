"""Whether what early ops of a plan need is there when they run.

- nothing in the loop writes what copies, reads and fetches read iterations early
- what an op needs is made no later than it runs, and before it in the order
- warps of one role need no values of another's
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from alcop_mlir.analysis.ir import memory
from alcop_mlir.analysis.ir.loops import init_args, yielded
from alcop_mlir.analysis.ir.slices import captured, is_pure, is_repeatable
from alcop_mlir.analysis.ir.synchronisation import BARRIER
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.pipelining.in_place import (
    Read,
    loaded,
    may_spoil,
    reads_of,
)
from alcop_mlir.analysis.pipelining.loop_writes import LoopWrites
from alcop_mlir.analysis.pipelining.plans.plan_facts import PlanFacts
from alcop_mlir.analysis.pipelining.plans.stream_plan import (
    ACQUIRE,
    COMMIT,
    FETCH,
    LOOP,
    READ,
    RELEASE,
    WAIT,
    Stream,
)
from alcop_mlir.analysis.pipelining.register_reads import is_shared_read
from alcop_mlir.bindings import ir
from alcop_mlir.errors import PassError

_SYNCHRONISATION = (ACQUIRE, COMMIT, WAIT, RELEASE)


def check_needs(facts: PlanFacts) -> None:
    """PassError at an op that would run before what it needs."""
    needs = _NeedsCheck(facts)
    needs.check_sources()
    needs.check_needs()


class _NeedsCheck:
    def __init__(self, facts: PlanFacts):
        self.facts = facts

    def check_sources(self) -> None:
        """Nothing in the loop writes what is copied or read early."""
        early = [op for op in self.facts.bound.ops if self.facts.stream(op).is_early]
        # Of what reads the buffers of the rings: see `ring_check`.
        reads = [
            (op, read)
            for op in early
            for read in self._reads(op)
            if memory.root(read.memref) not in self.facts.rings
        ]
        if not reads:
            return
        loop = self.facts.bound.loop
        ordering = {op for _, op in self.facts.bound.named(*_SYNCHRONISATION)}
        writes = LoopWrites([loop])
        for op, read in reads:
            for _, writer, target in writes.to([read.memref], noalias_arguments=True):
                if writer in (op, loop) or writer in ordering:
                    continue
                if may_spoil(writer, target, [read], loop, True):
                    raise PassError(
                        op,
                        "is planned, but its source may be written by "
                        f"'{writer.name}' in the loop",
                    )
            if is_shared_read(op) and walk(loop, BARRIER):
                raise PassError(
                    op, "is planned to run early, but the loop has barriers to cross"
                )

    def _reads(self, op: ir.Operation) -> list[Read]:
        """What a planned copy or read reads."""
        if self.facts.named[op].kind == READ:
            return [Read(op, op.operands[0])]
        if self.facts.named[op].kind == FETCH:
            return loaded(op)
        return reads_of(self.facts.forms[op]) if op in self.facts.forms else []

    def check_needs(self) -> None:
        """What an op needs is made no later than it runs."""
        is_checked = self.facts.bound.plan.has_roles or self.facts.is_rearranged
        for stream in self.facts.bound.plan.streams:
            ops = [op for op in self.facts.bound.ops if self.facts.stream(op) == stream]
            ops = [op for op in ops if self.facts.named[op].kind != LOOP]
            if not ops or not (stream.is_early or is_checked):
                continue
            makers = self._makers(ops)
            if any(m in self.facts.places or self._is_late(m, stream) for m in makers):
                for op in ops:
                    for maker in self._makers([op]):
                        self._check_made(op, maker, stream)

    def _is_late(self, maker: ir.Operation, stream: Stream) -> bool:
        """Whether `maker` runs too late for `stream`, or in another role's warps."""
        own = self.facts.stream(maker)
        if bool(own.warps) and own != stream:
            return True
        return (own.lead, own.steps) < (stream.lead, stream.steps)

    def _check_made(
        self, op: ir.Operation, maker: ir.Operation, stream: Stream
    ) -> None:
        own = self.facts.stream(maker)
        if self._is_late(maker, stream):
            raise PassError(
                op,
                f"runs in the stream '{stream.name}', but needs '{maker.name}' of "
                f"the stream '{own.name}', which has a lead of {own.tiles} "
                f"iterations, not {stream.tiles}, or is a role of other warps",
            )
        same = (own.lead, own.steps) == (stream.lead, stream.steps)
        # What a fetch loads may be carried: it comes before what needs it then.
        is_fetched = (
            maker in self.facts.places and self.facts.named[maker].kind == FETCH
        )
        if maker in self.facts.places and same and not is_fetched:
            self.facts.check_place(op, maker)

    def _makers(self, ops: Iterable[ir.Operation]) -> list[Any]:
        """Ops with effects in the loop that make what `ops` need, now or later."""
        pending, seen = list[Any](), set[Any]()
        for op in ops:
            pending += captured(op)
            form = self.facts.forms.get(op)
            if form is not None and form.producer is not None:
                pending += captured(form.producer)
                seen.update(form.moved)
        makers, carried = dict[Any, None](), list[Any]()
        # The next value of a carried one is computed where no iteration may follow.
        for values, is_plain in ((pending, is_repeatable), (carried, is_pure)):
            followed = set(seen)
            while values:
                value = values.pop()
                if value in followed or value in self.facts.rings:
                    continue
                followed.add(value)
                owner = value.owner
                if isinstance(owner, ir.Block):
                    carried += self._carried(value, owner)
                    continue
                maker = owner.operation
                if maker.block not in self.facts.blocks:
                    continue
                if is_plain(maker) or maker.name.startswith("memref.alloc"):
                    values += captured(maker)
                else:
                    makers[maker] = None
        return list(makers)

    def _carried(self, value: ir.Value, block: ir.Block) -> list[Any]:
        """What a loop-carried value of one of the loops becomes, and started from."""
        if block not in self.facts.blocks or value.arg_number == 0:
            return []
        number, loop = value.arg_number - 1, block.owner
        return [yielded(loop, number), init_args(loop)[number]]
