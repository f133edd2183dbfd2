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
from alcop_mlir.analysis.ir.memory import Access, root
from alcop_mlir.analysis.ir.slices import is_pure
from alcop_mlir.analysis.pipelining.copy_forms import Move, copy_form
from alcop_mlir.analysis.pipelining.footprints import may_change
from alcop_mlir.bindings import ir

_FUNCTIONS = (*KERNEL_OPS, "func.func")


def own_fills(
    loop: ir.Operation, accesses: list[Access], known: Iterable[Any] = ()
) -> list[Move] | None:
    """What the copies of an iteration copy; None if it may read what it did not fill.

    accesses: those of a buffer in `loop`
    known:    parts of addresses that need not be the same in each iteration
    """
    fills: list[Any] = []
    moves: list[Move] = []
    for access in (one for one in accesses if one.writes):
        fill = ancestor_in(access.op, body(loop))
        form = None if fill is None else copy_form(fill)
        if form is None:
            return None
        fills.append(fill)
        moves += form.moves
    targets = [value for move in moves for value in _address(move)]
    if any(_is_made_deeper(value, loop) for value in targets):
        return None
    if may_change(targets, loop, {*known, *(root(move.target) for move in moves)}):
        return None
    reads: list[Any] = [ancestor_in(a.op, body(loop)) for a in accesses if a.reads]
    is_ordered = all(fill.is_before_in_block(read) for read in reads for fill in fills)
    return moves if is_ordered else None


def elements_filled(moves: list[Move]) -> frozenset[Hashable] | None:
    """What the threads of a block fill by `moves`, whenever these run.

    Equal for equal addresses. None where these depend on more than the thread.
    """
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
