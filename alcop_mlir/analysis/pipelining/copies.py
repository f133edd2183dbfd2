"""Which copies can be pipelined, and which rule forbids the others.

The rules are those of docs/architecture.md, "Which copies are pipelined". Each function
checks one of them and returns a `Refusal` where it is broken. Nothing is changed here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from alcop_mlir.analysis.ir import memory, uniformity
from alcop_mlir.analysis.ir.loops import ancestor_in, body, carries, yielded
from alcop_mlir.analysis.ir.memref_layouts import is_contiguous
from alcop_mlir.analysis.ir.slices import (
    backward_slice,
    captured,
    is_pure,
    is_repeatable,
)
from alcop_mlir.analysis.pipelining.copy_forms import CopyForm
from alcop_mlir.analysis.pipelining.fetches import (
    PROMISE,
    Loads,
    Written,
    address_fetches,
)
from alcop_mlir.analysis.pipelining.footprints import (
    footprint,
    from_outside,
    may_change,
)
from alcop_mlir.analysis.pipelining.moves import (
    TILE,
    Move,
    branch_address_ops,
    unsuited,
)
from alcop_mlir.analysis.pipelining.near_copies import near_copy
from alcop_mlir.analysis.pipelining.writes import meetings
from alcop_mlir.bindings import ir

SHARED = "shared"
REGISTER = "register"
READS = ("vector.transfer_read", "vector.load", "memref.load", "nvgpu.ldmatrix")


class Refusal(NamedTuple):
    """The rule that a copy breaks, how, and what would help."""

    rule: int
    reason: str
    remedy: str


@dataclass(frozen=True)
class PipelinedCopy:
    """A copy that can be pipelined.

    buffers: the allocations that it fills; at the register level what it loads
    form:    None at the register level
    """

    op: Any
    buffers: tuple[Any, ...]
    form: CopyForm | None = None


@dataclass(frozen=True)
class RejectedCopy:
    """A copy that is not pipelined: see `Refusal`."""

    op: Any
    level: str
    rule: int
    reason: str
    remedy: str

    def __str__(self) -> str:
        return f"not pipelined (rule {self.rule}): {self.reason}; {self.remedy}"


# The copies of a loop's own block, by their ops: see `copy_forms.copies_in`.
Forms = Mapping[Any, CopyForm]


def shared_copies(
    loop: ir.Operation, forms: Forms, noalias_arguments: bool = False
) -> Iterator[PipelinedCopy | RejectedCopy]:
    """The copies `forms` of `loop`, and what nearly is one: can, or cannot."""
    written = memory.written_memrefs(loop) if forms else []
    met = meetings(forms.values())
    for op in (one.operation for one in body(loop).operations):
        if op in forms:
            no = _meets(*met[op]) if op in met else None
            yield _judge_shared(op, loop, forms, written, noalias_arguments, no)
            continue
        near = near_copy(op, loop)
        if near is not None:
            yield RejectedCopy(op, SHARED, 1, *near)


def register_reads(
    loop: ir.Operation, forms: Forms
) -> Iterator[PipelinedCopy | RejectedCopy]:
    """The reads of shared memory into registers in the block of `loop` and `forms`."""
    reads = [op.operation for op in body(loop).operations if is_shared_read(op)]
    written = memory.written_memrefs(loop) if reads else []
    for read in reads:
        yield _judge_register(read, loop, forms, written)


def is_shared_read(op: ir.Operation) -> bool:
    """Whether `op` reads shared memory into registers."""
    op = op.operation
    return op.name in READS and memory.is_workgroup(op.operands[0].type)


def _judge_shared(
    op: ir.Operation,
    loop: ir.Operation,
    forms: Forms,
    written: Written,
    noalias_arguments: bool,
    meets: Refusal | None,
) -> PipelinedCopy | RejectedCopy:
    form = forms[op]
    loads = Loads(loop, noalias_arguments)
    broken = (
        no_index(loop)
        or _first(_not_a_move, form.moves)
        or _tile_by_some(form)
        or _first(_not_one_buffer, form.buffers)
        or _target_moves(loop, form)
        or meets
        or _first(partial(_used_elsewhere, loop, forms), form.buffers)
        or _source_written(form, loop, written, noalias_arguments)
        or _loads_addresses(form)
        or _first(_address_loaded_in_branch, form.moves)
        or _fill_not_early(form, loop, loads)
        or address_not_early(loop, loads, _address_values(form), form.moved)
    )
    if broken is None:
        return PipelinedCopy(op, tuple(form.buffers), form)
    return RejectedCopy(op, SHARED, *broken)


def _first(
    rule: Callable[[Any], Refusal | None], parts: Iterable[Any]
) -> Refusal | None:
    """The first refusal of any part; None where the rule holds for all."""
    return next((no for part in parts if (no := rule(part)) is not None), None)


def _judge_register(
    op: ir.Operation, loop: ir.Operation, forms: Forms, written: Written
) -> PipelinedCopy | RejectedCopy:
    broken = (
        no_index(loop)
        or _escapes_iteration(op, loop)
        or _buffer_filled_inside(op, loop, forms, written)
        or address_not_early(loop, None, list(op.operands))
    )
    if broken is None:
        return PipelinedCopy(op, (op.results[0],))
    return RejectedCopy(op, REGISTER, *broken)


def no_index(loop: ir.Operation) -> Refusal | None:
    """Rule 2: the loop has to count in `index`."""
    kind = body(loop).arguments[0].type
    if isinstance(kind, ir.IndexType):
        return None
    return Refusal(
        2,
        f"the loop counts in {kind}",
        "let it count in index, as alcop-normalize-loops does",
    )


def _not_a_move(move: Move) -> Refusal | None:
    why = unsuited(move)
    if why is None:
        return None
    remedy = "copy 4, 8 or 16 aligned bytes per thread"
    if move.kind == TILE:
        remedy = (
            "make rows a multiple of 16 bytes, and promise so with "
            "alcop.row_alignment = 16 where they are known at run time only"
        )
    return Refusal(1, why, remedy)


def _not_one_buffer(buffer: ir.Value) -> Refusal | None:
    if not memory.is_own_allocation(buffer):
        return Refusal(
            4,
            "its buffer is not an allocation of its own, so other views of it cannot "
            "be seen",
            "allocate it with memref.alloc or as a workgroup attribution",
        )
    if not buffer.type.has_static_shape or not is_contiguous(buffer.type):
        return Refusal(
            5,
            f"its buffer has the type {buffer.type}",
            "allocate it with static sizes and without gaps",
        )
    return None


def _tile_by_some(form: CopyForm) -> Refusal | None:
    """Rule 1: all threads of a block copy a tile together."""
    tiles = [move.op for move in form.moves if move.kind == TILE and form.is_region]
    apart = next((op for op in tiles if uniformity.may_diverge(op)), None)
    if apart is None:
        return None
    return Refusal(
        1,
        f"threads of a block may run '{apart.name}' differently, which they do "
        "together",
        "make conditions and bounds around it the same for all threads, or let each "
        "thread load and store",
    )


def _target_moves(loop: ir.Operation, form: CopyForm) -> Refusal | None:
    """Rule 2: each iteration must fill the same part of the buffer.

    Otherwise an iteration may read what an earlier one left, which multi-buffering
    would put into another slot.
    """
    fills = footprint(form)
    if may_change(fills.bounds, loop, form.buffers):
        return Refusal(
            2,
            "how often its loops run changes from iteration to iteration, and with it "
            "what it fills",
            "fill the same part of the buffer in every iteration",
        )
    if may_change(fills.targets, loop, form.buffers):
        return Refusal(
            2,
            "where it writes in its buffer changes from iteration to iteration",
            "fill the same part of the buffer in every iteration",
        )
    if may_change(fills.conditions, loop, form.buffers):
        return Refusal(
            2,
            "its condition changes from iteration to iteration: where it does not "
            "copy, its buffer keeps elements of an older tile",
            "store another value to the same elements otherwise",
        )
    return None


def _meets(one: ir.Operation, other: ir.Operation) -> Refusal:
    """Rule 2: a thread's copies of one iteration must fill different elements.

    Asynchronous copies may land in any order (PTX ISA, cp.async: no ordering guarantee
    between cp.async operations of a thread), so that the last would not win.
    """
    if one == other:
        return Refusal(
            2,
            f"'{one.name}' may fill the same elements of its buffer several times in "
            "an iteration",
            "let the address be a sum of the indices of all loops around it, each "
            "times a constant",
        )
    return Refusal(
        2,
        "another copy of the iteration may fill the same elements of its buffer",
        "let the copies fill parts at constant distances from each other",
    )


def _loads_addresses(form: CopyForm) -> Refusal | None:
    """Rule 6, for what a region loads besides what it copies."""
    return _depends_on(form.loads[0]) if form.loads else None


def _used_elsewhere(
    loop: ir.Operation, forms: Forms, buffer: ir.Value
) -> Refusal | None:
    """Rules 2 and 4: copies alone fill it; all reads follow in the same iteration."""
    accesses = memory.accesses(buffer)
    if not isinstance(accesses, list) and accesses.name in memory.VIEW_OPS:
        return Refusal(
            4,
            f"its buffer is used through '{accesses.name}', which cannot view one slot "
            "of several",
            "allocate the buffer with the type that it is used with, as "
            "alcop-separate-views does with views at constant offsets",
        )
    if not isinstance(accesses, list):
        return Refusal(
            4,
            f"its buffer is used by '{accesses.name}', whose effect is not known",
            "use it through copies, loads, transfer_read or ldmatrix only",
        )
    placed = [(a, ancestor_in(a.op, body(loop))) for a in accesses]
    writing = {ancestor for access, ancestor in placed if access.writes}
    fills = {op for op in writing if op in forms}
    return (
        _read_before(placed, fills)
        or _written_otherwise(placed, fills)
        or _read_outside(placed)
    )


# Accesses of a buffer, each with the op of the loop's block that it is in, or None.
_Placed = list[tuple[memory.Access, Any | None]]


def _written_otherwise(accesses: _Placed, fills: set[Any]) -> Refusal | None:
    for access, ancestor in accesses:
        if access.writes and ancestor not in fills:
            where = "" if ancestor is not None else " outside of the loop"
            return Refusal(
                2,
                f"its buffer is also written by '{access.op.name}'{where}",
                "fill the buffer by copies in the loop only",
            )
    return None


def _read_outside(accesses: _Placed) -> Refusal | None:
    for access, ancestor in accesses:
        if access.reads and ancestor is None:
            return Refusal(
                4,
                f"its buffer is read by '{access.op.name}' outside of the loop",
                "read it in the iteration that fills it",
            )
    return None


def _read_before(accesses: _Placed, fills: set[Any]) -> Refusal | None:
    for access, ancestor in accesses:
        if access.writes or ancestor is None:
            continue
        if not all(fill.is_before_in_block(ancestor) for fill in fills):
            return Refusal(
                4,
                f"its buffer is read by '{access.op.name}' before the copy",
                "copy before use in each iteration",
            )
    return None


def _source_written(
    form: CopyForm, loop: ir.Operation, written: Written, noalias_arguments: bool
) -> Refusal | None:
    """Rule 6: nothing in the loop may write what is copied early."""
    for writer, target in written:
        if writer in (form.op, loop.operation):
            continue
        if target is None:
            return Refusal(
                6,
                f"the loop holds '{writer.name}', which may write its source",
                "move it out of the loop",
            )
        sources = form.sources
        if any(memory.may_alias(one, target, noalias_arguments) for one in sources):
            remedy = PROMISE
            if any(memory.may_alias(one, target, True) for one in sources):
                remedy = "copy from memory that the loop does not write"
            return Refusal(
                6, f"its source may be written by '{writer.name}' in the loop", remedy
            )
    return None


def _address_values(form: CopyForm) -> list[Any]:
    """The values that a copy uses; also those that its load uses, where it is apart."""
    apart = () if form.producer is None else captured(form.producer)
    return [*captured(form.op), *apart]


def _address_loaded_in_branch(move: Move) -> Refusal | None:
    """Rule 6, for what a guarded copy computes inside its scf.if."""
    impure = next((op for op in branch_address_ops(move) if not is_pure(op)), None)
    return None if impure is None else _depends_on(impure)


def _depends_on(
    op: ir.Operation, loads: Loads | None = None, iteration: str = "the same iteration"
) -> Refusal:
    remedy = None if loads is None else loads.remedy(op)
    return Refusal(
        6,
        f"its address depends on '{op.name}' of {iteration}",
        remedy or "compute the address from the loop's index",
    )


def address_not_early(
    loop: ir.Operation,
    loads: Loads | None,
    values: Sequence[Any],
    known: Iterable[Any] = (),
) -> Refusal | None:
    """Rule 6: the address must be computable some iterations early.

    It is computed only where that iteration exists, so that it may divide. The next
    value of a loop-carried one is computed early too, perhaps once too often.

    loads:  those that can run early as well; None where none can
    values: what the address is computed from; `known` ones are no part of it
    """

    def late(
        ops: Iterable[ir.Operation], is_plain: Callable[[Any], bool]
    ) -> ir.Operation | None:
        late = (one for one in ops if not is_plain(one))
        return next((one for one in late if loads is None or one not in loads), None)

    block = body(loop)
    buffers = {memory.root(v) for v in values if memory.is_workgroup(v.type)}
    ops, arguments = backward_slice(values, block, {*known, *buffers})
    impure = late(ops, is_repeatable)
    if impure is not None:
        return _depends_on(impure, loads)
    seen: set[Any] = set()
    while not arguments <= seen:
        seen |= arguments
        numbers = [one.arg_number - 1 for one in arguments if one.arg_number]
        ops, arguments = backward_slice([yielded(loop, n) for n in numbers], block)
        impure = late(ops, is_pure)
        if impure is not None:
            return _depends_on(impure, loads, "an earlier iteration")
    return None


def _fill_not_early(form: CopyForm, loop: ir.Operation, loads: Loads) -> Refusal | None:
    """Rule 6, for what is stored where nothing is copied."""
    stored = [move.fill for move in form.moves if move.fill is not None]
    stored += [fill.operands[0] for fill in form.fills]
    values = list(from_outside(stored, form.op))
    no = address_not_early(loop, loads, values, form.moved)
    if no is None:
        return None
    return Refusal(
        6,
        no.reason.replace("its address", "what it stores otherwise"),
        "store what can be computed from the loop's index",
    )


def _escapes_iteration(op: ir.Operation, loop: ir.Operation) -> Refusal | None:
    if not carries(loop, op):
        return None
    return Refusal(
        2,
        "its value is carried to the next iteration",
        "use it in the iteration that reads it",
    )


def _buffer_filled_inside(
    op: ir.Operation, loop: ir.Operation, forms: Forms, written: Written
) -> Refusal | None:
    """Rule 6 for registers: the loop may fill the buffer only before the read."""
    buffer = memory.root(op.operands[0])
    for writer, target in written:
        if writer == loop.operation:
            continue
        if target is None or memory.may_alias(buffer, target, False):
            ancestor = ancestor_in(writer, body(loop))
            if ancestor in forms:
                continue  # pipelined together with this read, or rejected by the plan
            return Refusal(
                6,
                f"its source may be written by '{writer.name}' in the loop",
                "fill the buffer outside of the loop that reads it",
            )
    return None


def fetches_for(loop: ir.Operation, forms: Iterable[CopyForm]) -> dict[Any, int]:
    """The loads that addresses of these copies need, see `address_fetches`."""
    forms = list(forms)
    values = [value for form in forms for value in _address_values(form)]
    known = {value for form in forms for value in (*form.moved, *form.buffers)}
    return address_fetches(loop, values, known)


def follow_the_index(loop: ir.Operation, forms: Collection[CopyForm]) -> bool:
    """Whether the addresses of the copies depend on the loop's index alone."""
    if fetches_for(loop, forms):
        return False
    return not any(
        argument.arg_number
        for form in forms
        for argument in backward_slice(_address_values(form), body(loop), form.moved)[1]
    )
