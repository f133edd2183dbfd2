"""What an order of a loop's ops must respect: memory that two of them touch.

An op with a lead of L runs its iteration k while the arithmetic runs k - L:

    iteration  store(k + 1) ; load(k)      // a store with a lead of 1

Of two ops that touch the same memory, of which one writes, the later in the loop stays
the later; where a barrier of the loop came between them one still does, unless the
memory is a thread's own. A buffer with S slots is the same memory in every S-th
iteration only. What is new about an order is in each of its iterations, so that the
nearest two iterations of a pair decide. Nothing is changed here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from alcop_mlir.analysis.ir import memory
from alcop_mlir.analysis.ir.loops import body
from alcop_mlir.analysis.ir.memory import Touch
from alcop_mlir.analysis.ir.synchronisation import BARRIER, WARP_BARRIER
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.pipelining.barriers import is_full
from alcop_mlir.bindings import ir
from alcop_mlir.frozen import frozen

_MBARRIER = "nvgpu.mbarrier."
# Ops that touch no memory, and stay in order with all that does.
_FENCES = ("gpu.printf", "cf.assert", "memref.prefetch", WARP_BARRIER)


@frozen
class Placed:
    """An op of the loop's block, at its position in the order of an iteration.

    lead:  iterations before the arithmetic
    parts: ops that run with it: what loads what a copy stores
    """

    op: Any
    lead: int
    parts: tuple[Any, ...] = ()


@frozen
class Broken:
    """Two ops whose order is lost: `second` is of the iteration `distance` later.

    is_late:  whether `first` runs after `second`; else no barrier is between them
    memref:   what they both touch; None where that is not known
    """

    first: Placed
    second: Placed
    distance: int
    is_late: bool
    memref: Any | None


class Dependences:
    """The dependences through memory of a loop whose iteration is `order`.

    order: the ops with effects, and the barriers that are kept
    rings: the slots of the buffers that have some
    noalias: whether arguments of the kernel never overlap
    """

    def __init__(
        self,
        loop: ir.Operation,
        order: Sequence[Placed],
        rings: Mapping[Any, int],
        noalias: bool,
    ):
        self._order = tuple(order)
        self._noalias = noalias
        self._rings = rings
        ops = [op.operation for op in body(loop).operations]
        self._numbers = {op: number for number, op in enumerate(ops)}
        self._barriers = [n for n, op in enumerate(ops) if walk(op, BARRIER)]

    @property
    def meets(self) -> bool:
        """Whether an iteration begins with a barrier: where the loop has any."""
        return bool(self._barriers)

    def broken(self) -> Iterator[Broken]:
        """The pairs whose order is lost, by the position of the second op."""
        for later, second in enumerate(self._order):
            for earlier, first in enumerate(self._order):
                yield from self._of_pair(earlier, first, later, second)

    def _of_pair(
        self, earlier: int, first: Placed, later: int, second: Placed
    ) -> Iterator[Broken]:
        """Those of `second`, and of `first` in its own iteration or one before."""
        is_before = self._numbers[first.op] < self._numbers[second.op]
        for distance, memref in self._meetings(earlier, later, is_before):
            time = distance + first.lead - second.lead
            if time < 0 or (time == 0 and earlier >= later):
                yield Broken(first, second, distance, True, memref)
            elif time == 0 and self._is_unordered(earlier, later, distance, memref):
                yield Broken(first, second, distance, False, memref)

    def _meetings(
        self, earlier: int, later: int, is_before: bool
    ) -> Iterator[tuple[int, Any | None]]:
        """What both ops touch, and the distance of the first iterations that do."""
        nearest = 0 if is_before else 1
        for one in self._touches[earlier]:
            for other in self._touches[later]:
                if not (one.writes or other.writes) or not self._may_meet(one, other):
                    continue
                roots = _root(one), _root(other)
                is_ring = all(one is not None for one in roots) and roots[0] == roots[1]
                slots = self._rings.get(roots[0], 1) if is_ring else 1
                yield nearest * slots, one.memref

    def _may_meet(self, one: Touch, other: Touch) -> bool:
        if one.memref is None or other.memref is None:
            return True
        return memory.may_alias(one.memref, other.memref, self._noalias)

    @cached_property
    def _touches(self) -> list[list[Touch]]:
        return [_touches(placed) for placed in self._order]

    def _is_unordered(
        self, earlier: int, later: int, distance: int, memref: Any | None
    ) -> bool:
        """Whether a barrier was between two ops of one iteration, and none is left."""
        if memref is not None and memory.is_private(memory.root(memref)):
            return False
        first, second = self._order[earlier], self._order[later]
        if not self._was_between(first.op, second.op, distance):
            return False
        leads = range(min(first.lead, second.lead), max(first.lead, second.lead) + 1)
        # One with such a lead is run in each iteration in which both ops are.
        return not any(
            is_full(placed.op) and placed.lead in leads
            for placed in self._order[earlier + 1 : later]
        )

    def _was_between(self, first: Any, second: Any, distance: int) -> bool:
        """Whether there is a barrier from one op to the other in the loop itself."""
        start, end = self._numbers[first], self._numbers[second]
        if distance > 1:
            return bool(self._barriers)
        if distance:
            return any(place >= start or place <= end for place in self._barriers)
        return any(start <= place <= end for place in self._barriers)


def _touches(placed: Placed) -> list[Touch]:
    """What an op touches; all memory, where it orders what threads do, or prints."""
    if placed.op.name == BARRIER:
        return []
    ops = (placed.op, *placed.parts)
    if any(map(_is_fence, (inner for op in ops for inner in walk(op)))):
        return [Touch(placed.op, None, True)]
    touches = [touch for op in ops for touch in memory.touches_in(op)]
    return list({(one.memref, one.writes): one for one in touches}.values())


def _is_fence(op: ir.Operation) -> bool:
    return op.name in _FENCES or op.name.startswith(_MBARRIER)


def _root(touch: Touch) -> Any | None:
    return None if touch.memref is None else memory.root(touch.memref)
