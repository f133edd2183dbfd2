"""Loops whose iterations read of a buffer only what they have filled themselves.

All copies of an iteration come before its reads, and each iteration fills the same
elements: what it does not fill no iteration has filled. `own_fills` finds these copies,
`elements_filled` what they fill, to compare it with what another loop fills.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

from alcop_mlir.analysis.ir.kernels import KERNEL_OPS
from alcop_mlir.analysis.ir.loops import (
    ancestor_in,
    block_of,
    body,
    defining_op,
    is_inside,
)
from alcop_mlir.analysis.ir.memory import Access
from alcop_mlir.analysis.ir.slices import is_pure
from alcop_mlir.analysis.pipelining.copy_forms import CopyForm, Move, copy_form
from alcop_mlir.analysis.pipelining.footprints import (
    footprint,
    leaves_older,
    may_change,
)
from alcop_mlir.bindings import ir

_FUNCTIONS = (*KERNEL_OPS, "func.func")


def own_fills(
    loop: ir.Operation, accesses: list[Access], known: Iterable[Any] = ()
) -> list[CopyForm] | None:
    """The copies of an iteration; None if it may read what it did not fill.

    accesses: those of a buffer in `loop`
    known:    parts of addresses that need not be the same in each iteration
    """
    forms: dict[Any, CopyForm] = {}
    for access in (one for one in accesses if one.writes):
        fill = ancestor_in(access.op, body(loop))
        form = None if fill is None else copy_form(fill)
        if form is None:
            return None
        forms[fill] = form
    if any(_may_fill_others(form, loop, known) for form in forms.values()):
        return None
    reads: list[Any] = [ancestor_in(a.op, body(loop)) for a in accesses if a.reads]
    is_ordered = all(fill.is_before_in_block(read) for read in reads for fill in forms)
    return [*forms.values()] if is_ordered else None


def _may_fill_others(form: CopyForm, loop: ir.Operation, known: Iterable[Any]) -> bool:
    """Whether a copy may fill other elements in another iteration, which are read."""
    targets = [value for move in form.moves for value in _address(move)]
    if any(_is_made_deeper(value, loop) for value in targets):
        return True
    decided = [*targets, *footprint(form).bounds]
    return may_change(decided, loop, {*known, *form.buffers}) or leaves_older(
        form, loop
    )


def elements_filled(forms: list[CopyForm]) -> frozenset[Hashable] | None:
    """What the threads of a block fill by copies, whenever these run.

    Equal for equal addresses. None where these depend on more than the thread, or
    copies run under conditions or in loops.
    """
    if any(one.branches or one.bounds for one in map(footprint, forms)):
        return None
    moves = [move for form in forms for move in form.moves]
    keys = [
        (*(_key(value) for value in _address(move)), move.elements) for move in moves
    ]
    return None if any(None in key for key in keys) else frozenset(keys)


def _address(move: Move) -> tuple[Any, ...]:
    return (move.target, *move.target_indices)


def _key(value: ir.Value) -> Hashable | None:
    """The same for values that are computed alike; None where it may change."""
    op = defining_op(value)
    if op is None:
        holder = value.owner.owner.operation
        return (value,) if holder.name in _FUNCTIONS else None
    if op.name == "memref.alloc":
        return (value,)
    if not is_pure(op) or len(op.regions):
        return None
    operands = tuple(map(_key, op.operands))
    attributes = tuple((name, str(op.attributes[name])) for name in op.attributes)
    made = (op.name, attributes, operands, value.result_number)
    return None if None in operands else made


def _is_made_deeper(value: ir.Value, loop: ir.Operation) -> bool:
    """Whether `value` is made in a region inside of the loop's block."""
    block = block_of(value)
    return block != body(loop) and is_inside(block.owner, loop)
