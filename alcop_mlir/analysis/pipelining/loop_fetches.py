"""Which loads of a loop are fetched for its arithmetic, and how early.

With R register stages a load of global memory that the arithmetic uses runs R - 1
iterations before it: `loop_fetches`. So does one whose value is computed with and then
stored to shared memory, where no asynchronous copy can do that.

    %x = memref.load %A[%row, %k]     // a fetch
    %y = arith.mulf %x, %x
    %next = arith.addf %sum, %y

What its address is loaded by runs one iteration earlier still. Nothing is changed here.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from alcop_mlir.analysis.ir import memory
from alcop_mlir.analysis.ir.loops import body, loops_in, trip_count
from alcop_mlir.analysis.ir.slices import backward_slice, captured
from alcop_mlir.analysis.ir.synchronisation import BARRIERS
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.pipelining.early_addresses import address_not_early, no_index
from alcop_mlir.analysis.pipelining.fetches import (
    Fetch,
    Loads,
    address_fetches,
    fetched_memrefs,
    is_fetch,
)
from alcop_mlir.analysis.pipelining.verdicts import REGISTER, Refusal, RejectedCopy
from alcop_mlir.bindings import ir
from alcop_mlir.frozen import frozen

# Bytes of a thread's registers that hold fetched values: 32 registers, a quarter of the
# 128 that a thread has where 512 share the 65,536 registers of an SM (all targets).
FETCH_BYTES = 128


@frozen
class LoopFetches:
    """The fetches of a loop.

    shortened: why they are not as early as asked for, or None
    refused:   the loads that cannot run early
    """

    fetches: tuple[Fetch, ...] = ()
    shortened: str | None = None
    refused: tuple[RejectedCopy, ...] = ()


def loop_fetches(
    loop: ir.Operation, stages: int, noalias_arguments: bool, copied: Container[Any]
) -> LoopFetches:
    """What is fetched for the arithmetic of `loop`.

    stages: register stages, one more than the iterations of the lead
    copied: loads that belong to pipelined copies
    """
    if trip_count(loop) == 1:
        return LoopFetches()
    candidates = _candidates(loop, copied)
    early = Loads(loop, noalias_arguments)
    judged = [(op, _refusal(op, loop, early)) for op in candidates]
    loads = [op for op, no in judged if no is None]
    if not loads:
        refused = [RejectedCopy(op, REGISTER, *no) for op, no in judged if no]
        return LoopFetches(refused=tuple(refused))
    lead, why = _lead(loop, stages - 1, loads)
    if not lead:
        return LoopFetches((), why and f"loads are not fetched early: {why}")
    levels = address_fetches(loop, [value for op in loads for value in captured(op)])
    # Also what is the same in every iteration, where it says how or whether to load.
    fetched = [op for op in candidates if op in loads or op in levels]
    return LoopFetches(
        tuple(Fetch(op, lead + levels.get(op, 0)) for op in fetched),
        why and f"loads have {lead + 1} register stages instead of {stages}: {why}",
    )


def keeps_loads(loop: ir.Operation) -> bool:
    """Whether loads stay in their iteration: there is what they may not cross.

    Other loops are unrolled, and the loads of many iterations issued together: of 32 in
    a sum of f32 along a column, by ptxas 13.5, with fetches of 8.
    """
    held = walk(loop, *BARRIERS) or len(loops_in(loop)) > 1
    return bool(held or memory.written_memrefs(loop))


def _candidates(loop: ir.Operation, copied: Container[Any]) -> list[Any]:
    """The loads of the loop's own block that threads hold, and are not `copied`."""
    ops = [op.operation for op in body(loop).operations]
    return [
        op
        for op in ops
        if op not in copied
        and is_fetch(op)
        and all(_is_small(result.type) for result in op.results)
        and not any(map(memory.is_private, map(memory.root, fetched_memrefs(op))))
    ]


def _refusal(load: ir.Operation, loop: ir.Operation, early: Loads) -> Refusal | None:
    """Why `load` cannot run early in `loop`; None where it can."""
    broken = no_index(loop) or _source_written(load, early)
    broken = broken or address_not_early(loop, early, captured(load))
    if broken is not None or backward_slice(load.results, body(loop))[1]:
        return broken
    return Refusal(
        2, "it loads the same in every iteration", "load it once, before the loop"
    )


def _source_written(load: ir.Operation, early: Loads) -> Refusal | None:
    """Rule 6: nothing may write what is loaded early."""
    writer = early.writer(load)
    if writer is None:
        return None
    where = "before the loop" if writer.is_before else "in the loop"
    remedy = early.remedy(load)
    assert remedy is not None, load
    return Refusal(
        6, f"its source may be written by '{writer.op.name}' {where}", remedy
    )


def _lead(
    loop: ir.Operation, asked: int, loads: list[ir.Operation]
) -> tuple[int, str | None]:
    """The lead of the loads, in iterations, and why it is not as asked."""
    size = sum(_bytes(result.type) for op in loads for result in op.results)
    trips = trip_count(loop)
    lead, why = asked, None
    if trips is not None and trips <= lead:
        lead = max(0, trips - 1)
        # Of a loop that runs once nothing is expected.
        why = f"the loop runs {trips} times" if lead else None
    if lead * size > FETCH_BYTES:
        lead = FETCH_BYTES // size
        why = (
            f"an iteration loads {size} bytes per thread, registers hold {FETCH_BYTES} "
            "bytes of fetched values at most"
        )
    return lead, why


def _is_small(kind: ir.Type) -> bool:
    """Whether a thread holds a value in registers: not a tile of a warp."""
    is_tile = isinstance(kind, ir.VectorType) and kind.rank != 1
    return not is_tile and memory.element_bits(_element(kind)) is not None


def _bytes(kind: ir.Type) -> int:
    """Bytes of a scalar or of a one-dimensional vector."""
    count = kind.shape[0] if isinstance(kind, ir.VectorType) else 1
    bits = memory.element_bits(_element(kind))
    assert bits is not None, kind
    return -(-count * bits // 8)


def _element(kind: ir.Type) -> Any:
    return kind.element_type if isinstance(kind, ir.VectorType) else kind
