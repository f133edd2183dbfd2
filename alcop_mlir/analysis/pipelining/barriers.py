"""Which barriers of a loop order more than the buffers that are pipelined.

A pipelined buffer needs none of the loop's own barriers: new ones are placed for it,
one in each iteration, by default at its start. A barrier is needed for other memory, of
the block or global, if it alone orders two accesses of which one writes: in the loop
as a cycle, whose iterations that new barrier separates.

    copies of K ; gpu.barrier ; s = Q * K ; P = f(s) ; gpu.barrier ; P * V ; gpu.barrier
    [pipeline's]  (needless)                           (orders P)           (needless)

Barriers in regions of other ops stay where they are. Accesses before and after the loop
are ordered by barriers of the loop as well: `orders_copies` and
`orders_what_follows` say whether that is lost. Nothing is changed here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from alcop_mlir.analysis.ir import memory
from alcop_mlir.analysis.ir.code_motion import ops_after, ops_before
from alcop_mlir.analysis.ir.kernels import may_repeat, nest_in_kernel
from alcop_mlir.analysis.ir.loops import ancestor_in, body
from alcop_mlir.analysis.ir.memory import Touch
from alcop_mlir.analysis.ir.synchronisation import BARRIER
from alcop_mlir.analysis.ir.uniformity import may_diverge
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.pipelining.copy_forms import CopyForm
from alcop_mlir.analysis.pipelining.foreign_groups import needed_groups
from alcop_mlir.bindings import ir


def needed_synchronisation(
    loop: ir.Operation, copies: Sequence[CopyForm], at_start: bool, noalias: bool
) -> list[Any]:
    """Barriers, groups and waits of the loop's own block that must be kept.

    copies:   those that are pipelined
    at_start: whether the pipeline's barrier is at the start of each iteration
    noalias:  whether arguments of the kernel never overlap
    """
    if not copies:
        return []  # all stay: only buffers with slots are synchronised anew
    barriers = OtherAccesses(loop, copies).needed(at_start, noalias)
    return [*barriers, *needed_groups(loop, [form.op for form in copies])]


def needs_barrier(loop: ir.Operation, accesses: list[Any]) -> bool:
    """Whether no barrier of the loop is between these accesses of two iterations."""
    at_top: list[Any] = [ancestor_in(op, body(loop)) for op in accesses]
    return not any(
        all(barrier.is_before_in_block(op) for op in at_top)
        or all(op.is_before_in_block(barrier) for op in at_top)
        for barrier in filter(is_full, _own_ops(loop))
    )


def is_run_by_all(loop: ir.Operation) -> bool:
    """Whether all threads of a block surely run `loop`, and equally often."""
    return any(map(meets, _own_ops(loop))) or not may_diverge(loop)


def _own_ops(loop: ir.Operation) -> list[Any]:
    return [op.operation for op in body(loop).operations]


class Missing(NamedTuple):
    """A barrier that is needed, and two ops that nothing else orders."""

    barrier: Any
    first: Any
    second: Any


class OtherAccesses:
    """What barriers order in a loop, less what is pipelined.

    Of a loop that nobody changes as long as it is asked. `noalias`: whether arguments
    of the kernel never overlap.

    copies: those that are pipelined
    """

    def __init__(self, loop: ir.Operation, copies: Iterable[CopyForm]):
        self._loop = loop.operation
        self._copies = tuple(copies)
        self._rings = {buffer for form in self._copies for buffer in form.buffers}

    def needed(self, at_start: bool, noalias: bool) -> list[Any]:
        """Barriers of the loop's own block that must be kept, in its order.

        at_start: whether the pipeline's own barrier is at the start of an iteration
        """
        return [one.barrier for one in self.missing((), at_start, noalias)]

    def missing(
        self, kept: Collection[Any], at_start: bool, noalias: bool
    ) -> Iterator[Missing]:
        """The barriers that must be kept besides `kept`."""
        if not at_start:
            yield from self._missing_anywhere(kept, noalias)
            return
        first, *others = self._segments
        before = first
        for barrier, after in zip(self._barriers, others, strict=True):
            pair = self._conflict(before, after, noalias)
            is_missing = pair is not None and barrier not in kept
            if pair is not None and is_missing:
                yield Missing(barrier, *pair)
            if (is_missing or barrier in kept) and is_full(barrier):
                before = after
            else:
                before = [*before, *after]

    def _missing_anywhere(
        self, kept: Collection[Any], noalias: bool
    ) -> Iterator[Missing]:
        """All barriers, if there is anything that one may order."""
        touches = [touch for segment in self._segments for touch in segment]
        pair = self._conflict(touches, touches, noalias)
        if pair is not None:
            for barrier in self._barriers:
                if barrier not in kept:
                    yield Missing(barrier, *pair)

    def orders_what_follows(self, kept: Collection[Any], noalias: bool) -> bool:
        """Whether accesses of the last iteration and later ones lose their order.

        They do where no barrier between them is left, if others than `kept` go.
        """
        touches, ordered = list[Touch](), list[Touch]()
        for segment, barrier in zip(self._segments, self._barriers, strict=False):
            touches += segment
            if barrier not in kept:
                ordered = [*touches]
            elif is_full(barrier):
                touches, ordered = [], []
        if not ordered:
            return False
        return self._conflict(ordered, self._later(), noalias) is not None

    def orders_copies(self, noalias: bool) -> bool:
        """Whether copies lose their order with writes of their source before the loop.

        The first of a pipeline run before all barriers of the loop.
        """
        if not walk(self._loop, BARRIER):
            return False
        sources = [source for form in self._copies for source in form.sources]
        read = [Touch(self._loop, source, False) for source in sources]
        return self._conflict(read, self._earlier(), noalias) is not None

    # -- accesses --------------------------------------------------------------------

    @cached_property
    def _barriers(self) -> list[Any]:
        ops = [op.operation for op in body(self._loop).operations]
        return [op for op in ops if op.name == BARRIER]

    @cached_property
    def _segments(self) -> list[list[Touch]]:
        """The accesses between barriers: before the first, ..., after the last."""
        planned = {form.op for form in self._copies}
        planned |= {form.producer for form in self._copies if _is_only_copied(form)}
        segments = [list[Touch]()]
        for op in body(self._loop).operations:
            if op.operation.name == BARRIER:
                segments.append([])
            elif op.operation not in planned:
                segments[-1] += self._others(op)
        return segments

    def _others(self, op: ir.Operation) -> list[Touch]:
        """What `op` touches of other memory than the pipeline's and a thread's own."""
        touches = memory.touches_in(op, enter=lambda one: one != self._loop)
        return [touch for touch in touches if self._is_seen(touch)]

    def _is_seen(self, touch: Touch) -> bool:
        if touch.memref is None:
            return True
        root = memory.root(touch.memref)
        return root not in self._rings and not memory.is_private(root)

    def _later(self) -> list[Touch]:
        """What may be touched after the loop, before the next barrier."""
        ops = _until_barrier(self._loop, ops_after)
        return [touch for op in ops for touch in self._others(op)]

    def _earlier(self) -> list[Touch]:
        return [touch for op in ops_earlier(self._loop) for touch in self._others(op)]

    def _conflict(
        self, these: Iterable[Touch], those: Iterable[Touch], noalias: bool
    ) -> tuple[Any, Any] | None:
        """Two ops that touch the same memory, of which one writes."""
        those = _distinct(those)
        for one in _distinct(these):
            for other in those:
                if (one.writes or other.writes) and _may_meet(one, other, noalias):
                    return one.op, other.op
        return None


def _may_meet(one: Touch, other: Touch, noalias: bool) -> bool:
    if one.memref is None or other.memref is None:
        return True
    return memory.may_alias(one.memref, other.memref, noalias)


def _distinct(touches: Iterable[Touch]) -> list[Touch]:
    """One for each memory that is read, and for each that is written."""
    return list({(one.memref, one.writes): one for one in touches}.values())


def ops_earlier(loop: ir.Operation) -> Iterator[Any]:
    """Ops that may run before `loop`, and after the last barrier that all threads meet.

    Of a loop around it that is the loop itself, with all that is in it.
    """
    return _until_barrier(loop, ops_before)


def _until_barrier(
    loop: ir.Operation, beside: Callable[[Any], Iterable[Any]]
) -> Iterator[Any]:
    """Ops beside `loop` in its block and those around it, the nearest first."""
    for op in nest_in_kernel(loop):
        if op != loop and may_repeat(op):
            yield op
        for other in beside(op):
            if is_full(other):
                return
            yield other


def _is_only_copied(form: CopyForm) -> bool:
    """Whether what a copy stores is used by nothing else."""
    maker = form.producer
    return maker is not None and all(
        use.owner.operation == form.op for made in maker.results for use in made.uses
    )


def meets(op: ir.Operation) -> bool:
    """Whether all threads of the block wait for each other in `op`."""
    if op.operation.name != BARRIER:
        return False
    scope = op.attributes["scope"] if "scope" in op.attributes else None
    return scope is None or "subgroup" not in str(scope)


def is_full(barrier: ir.Operation) -> bool:
    """Whether `barrier` orders all memory, for all threads of the block."""
    return meets(barrier) and "address_spaces" not in barrier.attributes
