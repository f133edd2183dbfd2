"""Which copies could be pipelined, and which rule forbids the others.

The rules are those of docs/architecture.md, "Which copies are pipelined". Each function
looks at one; a broken one comes back as a `Rejected` with the reason and the remedy.
Nothing is changed here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from alcop_mlir.analysis import memory
from alcop_mlir.analysis.loops import (
    ancestor_in,
    body,
    is_inside,
    is_loop,
    terminator,
)
from alcop_mlir.analysis.slices import backward_slice, is_pure
from alcop_mlir.bindings import ir

SHARED = "shared"
REGISTER = "register"


@dataclass(frozen=True)
class Copy:
    """A copy that could be pipelined in `loop` at `level`.

    buffer: the allocation that it fills; for the register level the vector it makes
    """

    op: Any
    loop: Any
    level: str
    buffer: Any


@dataclass(frozen=True)
class Rejected:
    """A copy that is not pipelined: the rule it breaks, why, and what would help."""

    op: Any
    level: str
    rule: int
    reason: str
    remedy: str

    def __str__(self) -> str:
        return f"not pipelined (rule {self.rule}): {self.reason}; {self.remedy}"


def shared_copies(
    loop: Any, noalias_arguments: bool = False
) -> Iterator[Copy | Rejected]:
    """The copies from global to shared memory in `loop`'s own block, judged."""
    for op in body(loop).operations:
        if is_shared_copy(op):
            yield _judge_shared(op.operation, loop, noalias_arguments)


def register_reads(loop: Any) -> Iterator[Copy | Rejected]:
    """The reads of shared memory into vectors in `loop`'s own block, judged."""
    for op in body(loop).operations:
        if op.operation.name == "vector.transfer_read" and memory.is_workgroup(
            op.operation.operands[0].type
        ):
            yield _judge_register(op.operation, loop)


def is_shared_copy(op: Any) -> bool:
    """Whether `op` is a tile copy from global into shared memory."""
    if op.operation.name not in ("memref.copy", "linalg.copy"):
        return False
    source, target = list(op.operation.operands)[:2]
    return memory.is_workgroup(target.type) and not memory.is_workgroup(source.type)


def _judge_shared(op: Any, loop: Any, noalias_arguments: bool) -> Copy | Rejected:
    buffer = memory.root(op.operands[1])
    broken = (
        _not_one_allocation(op, buffer)
        or _used_elsewhere(op, loop, buffer)
        or _source_written(op, loop, noalias_arguments)
        or _address_not_early(op, loop, SHARED, op.operands[0])
    )
    return broken or Copy(op, loop, SHARED, buffer)


def _judge_register(op: Any, loop: Any) -> Copy | Rejected:
    broken = (
        _escapes_iteration(op, loop)
        or _buffer_filled_inside(op, loop)
        or _address_not_early(op, loop, REGISTER, *op.operands)
    )
    return broken or Copy(op, loop, REGISTER, op.results[0])


def _not_one_allocation(op: Any, buffer: Any) -> Rejected | None:
    owner = buffer.owner
    if isinstance(owner, ir.Block) or owner.operation.name != "memref.alloc":
        return Rejected(
            op,
            SHARED,
            4,
            "its buffer is not a memref.alloc, so other views of it cannot be seen",
            "allocate the buffer with memref.alloc",
        )
    if op.operands[1] != buffer:
        return Rejected(
            op,
            SHARED,
            2,
            "it fills a part of its buffer",
            "give the part a buffer of its own",
        )
    if not buffer.type.has_static_shape:
        return Rejected(
            op,
            SHARED,
            5,
            f"its buffer has the dynamic type {buffer.type}",
            "allocate it with static sizes",
        )
    return None


def _used_elsewhere(op: Any, loop: Any, buffer: Any) -> Rejected | None:
    """Rule 2 and 4: one copy fills it; all reads follow in the same iteration."""
    accesses = memory.accesses(buffer)
    if not isinstance(accesses, list):
        return Rejected(
            op,
            SHARED,
            4,
            f"its buffer is used by '{accesses.name}', whose effect is not known",
            "use it through copies, transfer_read, load or ldmatrix only",
        )
    for access in accesses:
        if access.op == op:
            continue
        if access.writes:
            return Rejected(
                op,
                SHARED,
                2,
                f"its buffer is also written by '{access.op.name}'",
                "fill the buffer by one copy per iteration",
            )
        place = ancestor_in(access.op, body(loop))
        if place is None:
            return Rejected(
                op,
                SHARED,
                4,
                f"its buffer is read by '{access.op.name}' outside of the loop",
                "read it in the iteration that fills it",
            )
        if not op.is_before_in_block(place):
            return Rejected(
                op,
                SHARED,
                4,
                f"its buffer is read by '{access.op.name}' before the copy",
                "copy before use in each iteration",
            )
    if _viewed(buffer):
        return Rejected(
            op,
            SHARED,
            4,
            "its buffer is used through views",
            "read the buffer itself with indices",
        )
    return None


def _viewed(buffer: Any) -> bool:
    return any(use.owner.operation.name in memory.VIEW_OPS for use in buffer.uses)


def _source_written(op: Any, loop: Any, noalias_arguments: bool) -> Rejected | None:
    """Rule 6: nothing in the loop may write what is copied early."""
    source = memory.root(op.operands[0])
    for writer, target in memory.written_roots(loop):
        if writer == op or writer == loop.operation:
            continue
        if target is None:
            return Rejected(
                op,
                SHARED,
                6,
                f"the loop holds '{writer.name}', which may write its source",
                "move it out of the loop",
            )
        if memory.may_alias(source, target, noalias_arguments):
            return Rejected(
                op,
                SHARED,
                6,
                f"its source may be written by '{writer.name}' in the loop",
                "promise that arguments do not alias with "
                "assume-noalias-args=true, if so",
            )
    return None


def _address_not_early(op: Any, loop: Any, level: str, *values: Any) -> Rejected | None:
    """Rule 6: the address must be computable iterations ahead."""
    block = body(loop)
    ops, arguments = backward_slice(values, block)
    seen: set[Any] = set()
    while True:
        impure = next((inner for inner in ops if not is_pure(inner)), None)
        if impure is not None:
            return Rejected(
                op,
                level,
                6,
                f"its address depends on '{impure.name}' of the same iteration",
                "compute the address from the loop's index",
            )
        seen |= arguments
        # What a carried value becomes is computed ahead too.
        carried = [_yielded(loop, argument) for argument in arguments]
        ops, arguments = backward_slice([v for v in carried if v is not None], block)
        if arguments <= seen and all(is_pure(inner) for inner in ops):
            return None


def _yielded(loop: Any, argument: Any) -> Any | None:
    """What the loop yields for its block argument; None for the induction value."""
    arguments = list(body(loop).arguments)
    number = arguments.index(argument)
    return None if number == 0 else terminator(loop).operation.operands[number - 1]


def _escapes_iteration(op: Any, loop: Any) -> Rejected | None:
    last = terminator(loop)
    if any(use.owner.operation == last.operation for use in op.results[0].uses):
        return Rejected(
            op,
            REGISTER,
            2,
            "its value is carried to the next iteration",
            "use it in the iteration that reads it",
        )
    return None


def _buffer_filled_inside(op: Any, loop: Any) -> Rejected | None:
    """Rule 6 for registers: the loop may fill the buffer only before the read."""
    buffer = memory.root(op.operands[0])
    for writer, target in memory.written_roots(loop):
        if writer == loop.operation:
            continue
        if target is None or memory.may_alias(buffer, target, False):
            if is_shared_copy(writer) and writer.block == op.block:
                continue  # pipelined together with this read, or refused by the plan
            return Rejected(
                op,
                REGISTER,
                6,
                f"its source may be written by '{writer.name}' in the loop",
                "fill the buffer outside of the loop that reads it",
            )
    return None


def barriers_in(loop: Any) -> list[Any]:
    """The barriers inside `loop`, at any depth."""
    found: list[Any] = []

    def visit(inner: Any) -> Any:
        if inner.operation.name == "gpu.barrier":
            found.append(inner.operation)
        return ir.WalkResult.ADVANCE

    loop.operation.walk(visit)
    return found


def shared_roots_in(loop: Any) -> set[Any]:
    """The shared buffers that `loop` touches, at any depth."""
    found: set[Any] = set()

    def visit(inner: Any) -> Any:
        for operand in inner.operation.operands:
            if memory.is_workgroup(operand.type):
                found.add(memory.root(operand))
        return ir.WalkResult.ADVANCE

    loop.operation.walk(visit)
    return found


def nested_loops(loop: Any) -> list[Any]:
    """The loops that stand directly in `loop`'s block."""
    return [op.operation for op in body(loop).operations if is_loop(op)]


def holds(loop: Any, op: Any) -> bool:
    """Whether `op` stands inside `loop`."""
    return is_inside(op, loop)
