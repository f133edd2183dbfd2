"""Which copies can be pipelined, and which rule forbids the others.

The rules are those of docs/architecture.md, "Which copies are pipelined". Each function
checks one of them; for a broken one it returns a `RejectedCopy` with the reason and
what would help. Nothing is changed here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from alcop_mlir.analysis.ir import memory
from alcop_mlir.analysis.ir.loops import ancestor_in, body, terminator
from alcop_mlir.analysis.ir.rejected import Rejected
from alcop_mlir.analysis.ir.slices import backward_slice, captured, is_pure
from alcop_mlir.analysis.pipelining.copy_forms import (
    MOVE,
    TILE,
    CopyForm,
    branch_address_ops,
    copy_form,
    unsuited,
)
from alcop_mlir.analysis.pipelining.near_copies import near_copy
from alcop_mlir.bindings import ir

SHARED = "shared"
REGISTER = "register"
# What a loop may write, see memory.written_roots.
_Written = list[tuple[Any, Any | None]]
READS = ("vector.transfer_read", "vector.load", "memref.load", "nvgpu.ldmatrix")


@dataclass(frozen=True)
class PipelinedCopy:
    """A copy that can be pipelined in `loop` at `level`.

    buffer: the allocation that it fills; at the register level the value that it loads
    """

    op: Any
    loop: Any
    level: str
    buffer: Any


@dataclass(frozen=True)
class RejectedCopy(Rejected):
    """A copy that is not pipelined: the rule that it breaks, and what would help."""

    level: str
    rule: int
    remedy: str

    def __str__(self) -> str:
        return f"not pipelined (rule {self.rule}): {self.reason}; {self.remedy}"


def rejected(
    op: ir.Operation, level: str, rule: int, reason: str, remedy: str
) -> RejectedCopy:
    """The copy `op`, which breaks the rule."""
    return RejectedCopy(op, reason, level, rule, remedy)


def shared_copies(
    loop: ir.Operation, noalias_arguments: bool = False
) -> Iterator[PipelinedCopy | RejectedCopy]:
    """The copies from global to shared memory in `loop`'s own block: can, or cannot."""
    forms = [(op, copy_form(op)) for op in body(loop).operations]
    written = memory.written_roots(loop) if any(form for _, form in forms) else []
    for op, form in forms:
        if form is not None:
            yield _judge_shared(form, loop, written, noalias_arguments)
            continue
        near = near_copy(op, loop)
        if near is not None:
            yield rejected(near.op, SHARED, 1, near.reason, near.remedy)


def register_reads(loop: ir.Operation) -> Iterator[PipelinedCopy | RejectedCopy]:
    """The reads of shared memory into registers in `loop`'s own block."""
    reads = [
        op.operation
        for op in body(loop).operations
        if op.operation.name in READS
        and memory.is_workgroup(op.operation.operands[0].type)
    ]
    written = memory.written_roots(loop) if reads else []
    for read in reads:
        yield _judge_register(read, loop, written)


def is_shared_copy(op: ir.Operation) -> bool:
    """Whether `op` copies from global into shared memory."""
    return copy_form(op) is not None


def _judge_shared(
    form: CopyForm, loop: ir.Operation, written: _Written, noalias_arguments: bool
) -> PipelinedCopy | RejectedCopy:
    buffer = memory.root(form.target)
    broken = (
        _no_index(form.op, loop, SHARED)
        or _not_a_move(form)
        or _not_one_buffer(form, buffer)
        or _target_moves(form, loop)
        or _used_elsewhere(form, loop, buffer)
        or _source_written(form, loop, written, noalias_arguments)
        or _address_loaded_in_branch(form)
        or _address_not_early(form.op, loop, SHARED, *_address_values(form))
    )
    return broken or PipelinedCopy(form.op, loop, SHARED, buffer)


def _judge_register(
    op: ir.Operation, loop: ir.Operation, written: _Written
) -> PipelinedCopy | RejectedCopy:
    broken = (
        _no_index(op, loop, REGISTER)
        or _escapes_iteration(op, loop)
        or _buffer_filled_inside(op, loop, written)
        or _address_not_early(op, loop, REGISTER, *op.operands)
    )
    return broken or PipelinedCopy(op, loop, REGISTER, op.results[0])


def _no_index(op: ir.Operation, loop: ir.Operation, level: str) -> RejectedCopy | None:
    kind = body(loop).arguments[0].type
    if isinstance(kind, ir.IndexType):
        return None
    return rejected(
        op,
        level,
        2,
        f"the loop counts in {kind}",
        "let it count in index, and cast where the number is used",
    )


def _not_a_move(form: CopyForm) -> RejectedCopy | None:
    why = unsuited(form)
    if why is None:
        return None
    remedy = "copy 4, 8 or 16 aligned bytes per thread"
    if form.kind == TILE:
        remedy = (
            "make rows a multiple of 16 bytes, and promise so with "
            "alcop.row_alignment = 16 where they are known at run time only"
        )
    return rejected(form.op, SHARED, 1, why, remedy)


def _not_one_buffer(form: CopyForm, buffer: ir.Value) -> RejectedCopy | None:
    if not memory.is_own_allocation(buffer):
        return rejected(
            form.op,
            SHARED,
            4,
            "its buffer is not an allocation of its own, so other views of it cannot "
            "be seen",
            "allocate it with memref.alloc or as a workgroup attribution",
        )
    if not buffer.type.has_static_shape or not memory.is_contiguous(buffer.type):
        return rejected(
            form.op,
            SHARED,
            5,
            f"its buffer has the type {buffer.type}",
            "allocate it with static sizes and without gaps",
        )
    return None


def _target_moves(form: CopyForm, loop: ir.Operation) -> RejectedCopy | None:
    """Rule 2: each iteration must fill the same part of the buffer.

    Otherwise an iteration may read what an earlier one left, which multi-buffering
    would put into another slot.
    """
    values = [form.target, *form.target_indices]
    # A buffer that each iteration allocates is one buffer all the same.
    ops, arguments = backward_slice(values, body(loop), {memory.root(form.target)})
    if not arguments and all(is_pure(op) for op in ops):
        return None
    return rejected(
        form.op,
        SHARED,
        2,
        "where it writes in its buffer changes from iteration to iteration",
        "fill the same part of the buffer in every iteration",
    )


def _used_elsewhere(
    form: CopyForm, loop: ir.Operation, buffer: ir.Value
) -> RejectedCopy | None:
    """Rules 2 and 4: copies alone fill it; all reads follow in the same iteration."""
    accesses = memory.accesses(buffer)
    if not isinstance(accesses, list) and accesses.name in memory.VIEW_OPS:
        return rejected(
            form.op,
            SHARED,
            4,
            f"its buffer is used through '{accesses.name}', which cannot view one slot "
            "of several",
            "allocate the buffer with the type that it is used with, as "
            "alcop-separate-views does with views at constant offsets",
        )
    if not isinstance(accesses, list):
        return rejected(
            form.op,
            SHARED,
            4,
            f"its buffer is used by '{accesses.name}', whose effect is not known",
            "use it through copies, loads, transfer_read or ldmatrix only",
        )
    ancestors = [(a, ancestor_in(a.op, body(loop))) for a in accesses]
    fills = [ancestor for access, ancestor in ancestors if access.writes]
    for access, ancestor in ancestors:
        broken = (
            _wrong_write(access, ancestor)
            if access.writes
            else _wrong_read(access, ancestor, fills)
        )
        if broken is not None:
            return rejected(form.op, SHARED, *broken)
    return None


def _wrong_write(
    access: memory.Access, ancestor: ir.Operation | None
) -> tuple[int, str, str] | None:
    if ancestor is not None and copy_form(ancestor) is not None:
        return None
    where = "" if ancestor is not None else " outside of the loop"
    return (
        2,
        f"its buffer is also written by '{access.op.name}'{where}",
        "fill the buffer by copies in the loop only",
    )


def _wrong_read(
    access: memory.Access,
    ancestor: ir.Operation | None,
    fills: list[ir.Operation | None],
) -> tuple[int, str, str] | None:
    if ancestor is None:
        return (
            4,
            f"its buffer is read by '{access.op.name}' outside of the loop",
            "read it in the iteration that fills it",
        )
    if all(fill is not None and fill.is_before_in_block(ancestor) for fill in fills):
        return None
    return (
        4,
        f"its buffer is read by '{access.op.name}' before the copy",
        "copy before use in each iteration",
    )


def _source_written(
    form: CopyForm, loop: ir.Operation, written: _Written, noalias_arguments: bool
) -> RejectedCopy | None:
    """Rule 6: nothing in the loop may write what is copied early."""
    source = memory.root(form.source)
    for writer, target in written:
        if writer in (form.op, loop.operation):
            continue
        if target is None:
            return rejected(
                form.op,
                SHARED,
                6,
                f"the loop holds '{writer.name}', which may write its source",
                "move it out of the loop",
            )
        if memory.may_alias(source, target, noalias_arguments):
            return rejected(
                form.op,
                SHARED,
                6,
                f"its source may be written by '{writer.name}' in the loop",
                "promise that arguments do not alias with "
                "assume-noalias-args=true, if so",
            )
    return None


def _address_values(form: CopyForm) -> list[Any]:
    """The values that a copy uses; for a move also those that its load uses."""
    load = form.load.operands if form.kind == MOVE else ()
    return [*captured(form.op), *load]


def _address_loaded_in_branch(form: CopyForm) -> RejectedCopy | None:
    """Rule 6, for what a guarded copy computes inside its scf.if."""
    impure = next((op for op in branch_address_ops(form) if not is_pure(op)), None)
    return None if impure is None else _address_depends(form.op, SHARED, impure)


def _address_depends(op: ir.Operation, level: str, on: ir.Operation) -> RejectedCopy:
    return rejected(
        op,
        level,
        6,
        f"its address depends on '{on.name}' of the same iteration",
        "compute the address from the loop's index",
    )


def _address_not_early(
    op: ir.Operation, loop: ir.Operation, level: str, *values: Any
) -> RejectedCopy | None:
    """Rule 6: the address must be computable some iterations early."""
    block = body(loop)
    buffers = {memory.root(v) for v in values if memory.is_workgroup(v.type)}
    ops, arguments = backward_slice(values, block, {*loads_of(op), *buffers})
    seen: set[Any] = set()
    while True:
        impure = next((inner for inner in ops if not is_pure(inner)), None)
        if impure is not None:
            return _address_depends(op, level, impure)
        seen |= arguments
        # The next value of a loop-carried one is computed early too.
        carried = [_yielded(loop, argument) for argument in arguments]
        ops, arguments = backward_slice([v for v in carried if v is not None], block)
        if arguments <= seen and all(is_pure(inner) for inner in ops):
            return None


def loads_of(op: ir.Operation) -> tuple[Any, ...]:
    """The value that a move loads: what is copied, not part of an address."""
    form = copy_form(op)
    if form is None or form.load is None:
        return ()
    return tuple(form.load.results)


def _yielded(loop: ir.Operation, argument: ir.Value) -> Any | None:
    """What the loop yields for its block argument; None for the induction value."""
    arguments = list(body(loop).arguments)
    number = arguments.index(argument)
    return None if number == 0 else terminator(loop).operation.operands[number - 1]


def _escapes_iteration(op: ir.Operation, loop: ir.Operation) -> RejectedCopy | None:
    last = terminator(loop)
    if any(use.owner.operation == last.operation for use in op.results[0].uses):
        return rejected(
            op,
            REGISTER,
            2,
            "its value is carried to the next iteration",
            "use it in the iteration that reads it",
        )
    return None


def _buffer_filled_inside(
    op: ir.Operation, loop: ir.Operation, written: _Written
) -> RejectedCopy | None:
    """Rule 6 for registers: the loop may fill the buffer only before the read."""
    buffer = memory.root(op.operands[0])
    for writer, target in written:
        if writer == loop.operation:
            continue
        if target is None or memory.may_alias(buffer, target, False):
            ancestor = ancestor_in(writer, body(loop))
            if ancestor is not None and is_shared_copy(ancestor):
                continue  # pipelined together with this read, or rejected by the plan
            return rejected(
                op,
                REGISTER,
                6,
                f"its source may be written by '{writer.name}' in the loop",
                "fill the buffer outside of the loop that reads it",
            )
    return None


def follow_the_index(loop: ir.Operation, planned: list[PipelinedCopy]) -> bool:
    """Whether the addresses of the copies depend on the loop's index alone."""
    for copy in planned:
        form = copy_form(copy.op)
        assert form is not None, "the plan holds copies only"
        values = _address_values(form)
        _, arguments = backward_slice(values, body(loop), loads_of(copy.op))
        if any(argument.arg_number for argument in arguments):
            return False
    return True
