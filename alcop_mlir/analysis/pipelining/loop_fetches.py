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
from dataclasses import dataclass
from typing import Any

from alcop_mlir.analysis.ir import memory
from alcop_mlir.analysis.ir.loops import body, loops_in, trip_count
from alcop_mlir.analysis.ir.slices import backward_slice, captured
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.pipelining.copies import address_not_early, no_index
from alcop_mlir.analysis.pipelining.fetches import (
    BARRIERS,
    Fetch,
    Loads,
    address_fetches,
    fetched_memrefs,
    is_fetch,
)
from alcop_mlir.bindings import ir

# Bytes of a thread's registers that hold fetched values: 32 registers, a quarter of the
# 128 that a thread has where 512 share the 65,536 registers of an SM (all targets).
FETCH_BYTES = 128


@dataclass(frozen=True)
class LoopFetches:
    """The fetches of a loop; why they are not as early as asked for, or None."""

    fetches: tuple[Fetch, ...] = ()
    shortened: str | None = None


def loop_fetches(
    loop: ir.Operation, stages: int, noalias_arguments: bool, copied: Container[Any]
) -> LoopFetches:
    """What is fetched for the arithmetic of `loop`.

    stages: register stages, one more than the iterations of the lead
    copied: loads that belong to pipelined copies
    """
    loads = _loads(loop, noalias_arguments, copied)
    if not loads:
        return LoopFetches()
    lead, why = _lead(loop, stages - 1, loads)
    if not lead:
        return LoopFetches((), why and f"loads are not fetched early: {why}")
    levels = address_fetches(loop, [value for op in loads for value in captured(op)])
    return LoopFetches(
        tuple(Fetch(op, lead + levels.get(op, 0)) for op in loads),
        why and f"loads have {lead + 1} register stages instead of {stages}: {why}",
    )


def keeps_loads(loop: ir.Operation) -> bool:
    """Whether loads stay in their iteration: there is what they may not cross.

    Other loops are unrolled, and the loads of many iterations issued together: of 32 in
    a sum of f32 along a column, by ptxas 13.5, with fetches of 8.
    """
    held = walk(loop, *BARRIERS) or len(loops_in(loop)) > 1
    return bool(held or memory.written_memrefs(loop))


def _loads(
    loop: ir.Operation, noalias_arguments: bool, copied: Container[Any]
) -> list[Any]:
    """The loads of the loop's own block that can run early, and are not `copied`."""
    if no_index(loop) is not None:
        return []
    ops = [op.operation for op in body(loop).operations]
    early = Loads(loop, noalias_arguments)
    return [
        op
        for op in ops
        if op not in copied
        and is_fetch(op)
        and all(_is_small(result.type) for result in op.results)
        and not any(map(memory.is_private, map(memory.root, fetched_memrefs(op))))
        and op in early
        and backward_slice(op.results, body(loop))[1]
        and address_not_early(op, loop, early, *captured(op)) is None
    ]


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
