"""Loads from global memory into registers that can run iterations early: *fetches*.

A copy into shared memory whose address is loaded needs them: the load of the address
runs an iteration before the copy, and what that needs one more.

    %row = memref.load %rows[%k]              // a fetch, one iteration before the copy
    %v = memref.load %A[%row, %t]
    memref.store %v, %buffer[%t]

A load can run early if nothing in the loop may write what it reads; whether its address
can be computed early is asked by those who need it. Nothing is changed here.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from functools import cached_property
from typing import Any, NamedTuple

from alcop_mlir.analysis.ir import memory
from alcop_mlir.analysis.ir.loops import body, defining_op, yielded
from alcop_mlir.analysis.ir.slices import backward_slice, captured, is_pure
from alcop_mlir.analysis.ir.synchronisation import BARRIER, BARRIERS
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.pipelining.barriers import ops_earlier
from alcop_mlir.analysis.pipelining.in_place import loaded, may_spoil
from alcop_mlir.analysis.pipelining.loop_writes import LoopWrites
from alcop_mlir.analysis.pipelining.moves import LOADS, is_computed
from alcop_mlir.bindings import ir
from alcop_mlir.frozen import frozen

PROMISE = "promise that arguments do not alias with assume-noalias-args=true, if so"


class Writer(NamedTuple):
    """An op that may write what a load reads: in the loop, or before it."""

    op: Any
    is_before: bool


@frozen
class Fetch:
    """A load that runs `lead` iterations before what needs it."""

    op: Any
    lead: int


def is_fetch(op: ir.Operation) -> bool:
    """Whether `op` does nothing but load from global memory, perhaps in branches.

    These yield what they load, or what needs no load: not what is computed from it.
    """
    op = op.operation
    if op.name in LOADS:
        return not memory.is_workgroup(op.operands[0].type)
    if op.name != "scf.if" or not len(op.results):
        return False
    branches = [list(region.blocks[0].operations) for region in op.regions]
    inner = [one.operation for *ops, _ in branches for one in ops]
    loads = [one for one in inner if not is_pure(one)]
    if not loads or not all(map(is_fetch, loads)):
        return False
    ends = (value for *_, end in branches for value in end.operands)
    return all(defining_op(end) in loads or is_computed(end, op) for end in ends)


def fetched_memrefs(op: ir.Operation) -> list[Any]:
    """The memrefs that a fetch reads."""
    return [load.operands[0] for load in walk(op, *LOADS)]


class Loads:
    """The loads of `loop` that can run early: nothing in it may write what they read.

    Where the loop has barriers, nothing since the last barrier before it may either:
    the first loads run before the loop.
    """

    def __init__(self, loop: ir.Operation, noalias_arguments: bool):
        self.loop = loop
        self.noalias_arguments = noalias_arguments

    def __contains__(self, op: ir.Operation) -> bool:
        return is_fetch(op) and self.writer(op) is None

    def writer(self, op: ir.Operation) -> Writer | None:
        """What may write what the load `op` reads; None for nothing."""
        return self._writer(op, self.noalias_arguments)

    def remedy(self, op: ir.Operation) -> str | None:
        """What would let the load `op` run early; None where it is no load."""
        if not is_fetch(op):
            return None
        writer = self._writer(op, True)
        if writer is None:
            return PROMISE
        written = (*self.writes.all, *self._written_before.all)
        if any(one.op == writer.op and one.target is None for one in written):
            return f"move '{writer.op.name}' out of the loop"
        if writer.is_before:
            return "put a gpu.barrier between that and the loop"
        return "load it from memory that the loop does not write"

    def _writer(self, op: ir.Operation, noalias_arguments: bool) -> Writer | None:
        reads = loaded(op)
        memrefs = [read.memref for read in reads]
        for _, writer, target in self.writes.to(memrefs, noalias_arguments):
            if may_spoil(writer, target, reads, self.loop, noalias_arguments):
                return Writer(writer, False)
        before = self._written_before.to(memrefs, noalias_arguments)
        return Writer(before[0].op, True) if before else None

    @cached_property
    def writes(self) -> LoopWrites:
        """What the loop may write."""
        return LoopWrites([self.loop])

    @cached_property
    def _written_before(self) -> LoopWrites:
        has_barriers = bool(walk(self.loop, *BARRIERS))
        return LoopWrites(ops_earlier(self.loop) if has_barriers else ())


def address_fetches(
    loop: ir.Operation, values: Iterable[ir.Value], known: Container[Any] = ()
) -> dict[Any, int]:
    """The fetches that addresses need, and how many iterations before these they run.

    One for a load that an address needs in its own iteration, one more for a load that
    this one needs. What only the next value of a carried one needs is early enough: 0.

    values: what the addresses are computed from; `known` ones are not followed
    """
    block = body(loop)
    leads: dict[Any, int] = {}
    needed = dict.fromkeys(values, 1)
    ops, arguments = backward_slice(needed, block, known)
    for op in reversed(ops):
        lead = max(needed.get(result, 0) for result in op.results)
        if is_fetch(op):
            leads[op] = lead
            lead += 1
        for value in captured(op):
            needed[value] = max(needed.get(value, 0), lead)
    seen: set[Any] = set()
    while not arguments <= seen:
        seen |= arguments
        numbers = [one.arg_number - 1 for one in arguments if one.arg_number]
        ops, arguments = backward_slice([yielded(loop, n) for n in numbers], block)
        for op in filter(is_fetch, ops):
            leads.setdefault(op, 0)
    return leads


def use_ends(loop: ir.Operation, values: Iterable[ir.Value]) -> Any | None:
    """The first barrier of `loop` where all that needs `values` is before it, or None.

    Loads for a later iteration can then be issued there: registers that held the
    values are free, and the arithmetic after the barrier hides the loads.
    """
    needing = set(values)
    barrier = None
    for op in (one.operation for one in body(loop).operations):
        if barrier is None and op.name == BARRIER:
            barrier = op
        if needing.isdisjoint(captured(op)):
            continue
        if barrier is not None:
            return None
        needing.update(op.results)
    return barrier
