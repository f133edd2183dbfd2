"""Drop what the last turns of a pipeline wait for, where no copies come any more.

Before:  %g = nvgpu.device_async_create_group        // no copies in it
         ... ldmatrix ...                            // the last access of shared memory
         nvgpu.device_async_wait %g {numGroups = 0 : i32} ; gpu.barrier
         %h = nvgpu.device_async_create_group        // none
         ... stores ...
After:   ... ldmatrix ...
         ... stores ...

In a tail of known length, groups of the last turns are empty: they keep the counts of
waits the same in all turns. In the block of a kernel itself, not in loops or branches,
these go:

- a wait, where all groups that may be in flight are empty: that follows from the wait
  before it, and the groups since then
- a barrier right behind such a wait, where nothing after it touches shared memory, or
  other memory that is touched since the barrier before it, unless both read. A buffer
  without slots, which the loop fills beside those that are pipelined, is such memory
- an empty group whose token nothing uses, if no later wait counts it among those that
  may stay in flight

Runs after alcop-unroll-steady-state and canonicalize, so that copies under a predicate
that never holds are gone, and before alcop-outline-kernels. Reads and writes no
attributes.
"""

from __future__ import annotations

from typing import Any

from alcop_mlir.analysis.ir import memory
from alcop_mlir.analysis.ir.kernels import is_kernel, kernels_in
from alcop_mlir.analysis.ir.loops import body, is_loop, trip_count
from alcop_mlir.analysis.ir.memory import Touch
from alcop_mlir.analysis.ir.synchronisation import (
    BARRIERS,
    GROUP,
    SYNCHRONISATION,
    WAIT,
)
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.pipelining.barriers import is_full
from alcop_mlir.bindings import ir
from alcop_mlir.frozen import frozen
from alcop_mlir.passes.base import NOALIAS, Pass, option

_COPY = "nvgpu.device_async_copy"


@frozen
class DropLastWaits(Pass):
    name = "alcop-drop-last-waits"
    anchor = "any"

    assume_noalias_args: bool = option(False, NOALIAS)

    def run(self, op: ir.Operation) -> None:
        for kernel in filter(is_kernel, kernels_in(op)):
            if len(kernel.regions[0].blocks) == 1 and walk(kernel, WAIT):
                for one in _End(kernel, self.assume_noalias_args).superfluous():
                    one.erase()


class _End:
    """The ops of a kernel's own block. `noalias`: whether arguments never overlap."""

    def __init__(self, kernel: ir.Operation, noalias: bool):
        block = kernel.regions[0].blocks[0]
        self.ops: list[Any] = [op.operation for op in block.operations]
        self.noalias = noalias

    def superfluous(self) -> list[Any]:
        """What may go, in an order in which nothing uses what is gone."""
        gone = [op for place, op in enumerate(self.ops) if self._is_idle(place)]
        waits = set(gone)
        gone += [op for op in self._last_barriers() if self._before(op) in waits]
        for place in reversed(range(len(self.ops))):
            if self._may_go(place, gone):
                gone.append(self.ops[place])
        return gone

    def _before(self, op: Any) -> Any:
        return self.ops[self.ops.index(op) - 1]

    def _is_empty(self, place: int) -> bool:
        """Whether no copy is in the group that is committed by that op."""
        for op in reversed(self.ops[:place]):
            leaves = _leaves_copies(op)
            if leaves is not None:
                return not leaves
        return True

    def _is_idle(self, place: int) -> bool:
        """Whether it is a wait, and all groups that may be in flight are empty."""
        if self.ops[place].name != WAIT:
            return False
        left = None  # groups in flight at the wait before, as far as they are not seen
        for before in reversed(range(place)):
            op = self.ops[before]
            if op.name == WAIT:
                left = _count(op) if left is None else left
            elif op.name == GROUP:
                if not self._is_empty(before):
                    return False
                left = left if left is None else left - 1
            elif walk(op, GROUP, WAIT) or _is_unknown(op):
                return False
            if left == 0:
                return True
        return True

    def _last_barriers(self) -> list[Any]:
        """Barriers after the last access of shared memory that order nothing else."""
        found: list[Any] = []
        after: list[Touch] = []
        for place, op in reversed([*enumerate(self.ops)]):
            if op.name in (WAIT, GROUP):
                continue
            if op.name in BARRIERS:
                if not is_full(op) or self._meet(self._since_barrier(place), after):
                    break
                found.append(op)
                continue
            here = _touches(op)
            if any(map(_may_be_shared, here)) or walk(op, *SYNCHRONISATION, *BARRIERS):
                break
            after += here
        return found

    def _since_barrier(self, place: int) -> list[Touch]:
        """What is touched after the barrier before an op; that orders all else."""
        found: list[Touch] = []
        for op in reversed(self.ops[:place]):
            if op.name in BARRIERS and is_full(op):
                break
            found += _touches(op)
        return found

    def _meet(self, these: list[Touch], those: list[Touch]) -> bool:
        """Whether the same memory is touched, and one of both writes."""
        written = {(t.memref, t.writes) for t in those}
        for memref, writes in {(t.memref, t.writes) for t in these}:
            for other, other_writes in written:
                if not (writes or other_writes):
                    continue
                if memref is None or other is None:
                    return True
                if memory.may_alias(memref, other, self.noalias):
                    return True
        return False

    def _may_go(self, place: int, gone: list[Any]) -> bool:
        """Whether it is an empty group that no wait counts which is not gone."""
        group = self.ops[place]
        if group.name != GROUP or not self._is_empty(place):
            return False
        if any(use.owner.operation not in gone for use in group.result.uses):
            return False
        younger = 0
        for op in self.ops[place + 1 :]:
            if op in gone:
                continue
            if op.name == WAIT and _count(op) > younger:
                return False
            if (len(op.regions) and walk(op, WAIT)) or _is_unknown(op):
                return False
            younger += op.name == GROUP
        return True


def _leaves_copies(op: Any) -> bool | None:
    """Whether copies that no group holds may be behind an op; None where it neither
    copies nor surely commits.
    """
    if op.name == GROUP:
        return False
    if op.name == _COPY or _is_unknown(op):
        return True
    if not walk(op, GROUP, _COPY):
        return None
    if not is_loop(op):
        return True
    for inner in reversed([one.operation for one in body(op).operations]):
        leaves = _leaves_copies(inner)
        if leaves is not None:
            return leaves or (False if trip_count(op) else None)
    return True


def _is_unknown(op: Any) -> bool:
    """Whether it may do anything, as text of PTX may."""
    return any(touch.memref is None for touch in memory.touches_in(op))


def _touches(op: Any) -> list[Touch]:
    """Of memory that threads share."""
    every = memory.touches_in(op)
    return [t for t in every if t.memref is None or not memory.is_private(t.memref)]


def _may_be_shared(touch: Touch) -> bool:
    if touch.memref is None or not isinstance(touch.memref.type, ir.MemRefType):
        return True
    return memory.is_workgroup(touch.memref.type)


def _count(wait: Any) -> int:
    """How many groups it leaves in flight."""
    attributes = wait.attributes
    return attributes["numGroups"].value if "numGroups" in attributes else 0
