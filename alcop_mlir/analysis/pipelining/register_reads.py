"""Which reads of shared memory into registers can be pipelined: the register level.

    %a = nvgpu.ldmatrix %buffer[...]    // some fragment steps ahead of what uses it

Nothing is changed here.
"""

from __future__ import annotations

from collections.abc import Iterator

from alcop_mlir.analysis.ir import memory
from alcop_mlir.analysis.ir.loops import ancestor_in, body, carries
from alcop_mlir.analysis.pipelining.copy_forms import Forms
from alcop_mlir.analysis.pipelining.early_addresses import address_not_early, no_index
from alcop_mlir.analysis.pipelining.loop_writes import LoopWrites
from alcop_mlir.analysis.pipelining.verdicts import (
    REGISTER,
    PipelinedCopy,
    Refusal,
    RejectedCopy,
)
from alcop_mlir.bindings import ir

READS = ("vector.transfer_read", "vector.load", "memref.load", "nvgpu.ldmatrix")


def register_reads(
    loop: ir.Operation, forms: Forms
) -> Iterator[PipelinedCopy | RejectedCopy]:
    """The reads of shared memory into registers in the block of `loop` and `forms`."""
    reads = [op.operation for op in body(loop).operations if is_shared_read(op)]
    writes = LoopWrites([loop] if reads else [])
    for read in reads:
        yield _judge_register(read, loop, forms, writes)


def is_shared_read(op: ir.Operation) -> bool:
    """Whether `op` reads shared memory into registers."""
    op = op.operation
    return op.name in READS and memory.is_workgroup(op.operands[0].type)


def _judge_register(
    op: ir.Operation, loop: ir.Operation, forms: Forms, writes: LoopWrites
) -> PipelinedCopy | RejectedCopy:
    broken = (
        no_index(loop)
        or _escapes_iteration(op, loop)
        or _buffer_filled_inside(op, loop, forms, writes)
        or address_not_early(loop, None, list(op.operands))
    )
    if broken is None:
        return PipelinedCopy(op, (op.results[0],))
    return RejectedCopy(op, REGISTER, *broken)


def _escapes_iteration(op: ir.Operation, loop: ir.Operation) -> Refusal | None:
    if not carries(loop, op):
        return None
    return Refusal(
        2,
        "its value is carried to the next iteration",
        "use it in the iteration that reads it",
    )


def _buffer_filled_inside(
    op: ir.Operation, loop: ir.Operation, forms: Forms, writes: LoopWrites
) -> Refusal | None:
    """Rule 6 for registers: the loop may fill the buffer only before the read."""
    buffer = memory.root(op.operands[0])
    for _, writer, _ in writes.to([buffer], noalias_arguments=False):
        # What copies fill is pipelined with this read, or rejected by the plan.
        if writer == loop.operation or ancestor_in(writer, body(loop)) in forms:
            continue
        return Refusal(
            6,
            f"its source may be written by '{writer.name}' in the loop",
            "fill the buffer outside of the loop that reads it",
        )
    return None
