"""Which copies into shared memory can be pipelined, and which rule forbids the others.

The rules are those of docs/architecture.md, "Which copies are pipelined". Each function
checks one of them and returns a `Refusal` where it is broken. Nothing is changed here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

from alcop_mlir.analysis.ir import uniformity
from alcop_mlir.analysis.ir.loops import body
from alcop_mlir.analysis.pipelining.buffer_uses import not_one_buffer, used_elsewhere
from alcop_mlir.analysis.pipelining.copy_forms import CopyForm, Forms
from alcop_mlir.analysis.pipelining.early_addresses import copy_not_early, no_index
from alcop_mlir.analysis.pipelining.fetches import PROMISE, Loads
from alcop_mlir.analysis.pipelining.footprints import (
    footprint,
    leaves_older,
    may_change,
)
from alcop_mlir.analysis.pipelining.in_place import may_spoil, reads_of
from alcop_mlir.analysis.pipelining.moves import TILE, Move, unsuited
from alcop_mlir.analysis.pipelining.near_copies import near_copy, odd_rows, rows_remedy
from alcop_mlir.analysis.pipelining.verdicts import (
    SHARED,
    PipelinedCopy,
    Refusal,
    RejectedCopy,
    first_refusal,
)
from alcop_mlir.analysis.pipelining.writes import meetings
from alcop_mlir.bindings import ir


def shared_copies(
    loop: ir.Operation, forms: Forms, noalias_arguments: bool = False
) -> Iterator[PipelinedCopy | RejectedCopy]:
    """The copies `forms` of `loop`, and what nearly is one: can, or cannot."""
    loads = Loads(loop, noalias_arguments)
    uses = cache(partial(used_elsewhere, loop, forms))
    met = meetings(forms.values())
    for op in (one.operation for one in body(loop).operations):
        if op in forms:
            no = _meets(*met[op]) if op in met else None
            yield _judge_shared(forms[op], loop, loads, uses, no)
            continue
        near = near_copy(op, loop)
        if near is not None:
            yield RejectedCopy(op, SHARED, 1, *near)


def _judge_shared(
    form: CopyForm,
    loop: ir.Operation,
    loads: Loads,
    uses: Callable[[Any], Refusal | None],
    meets: Refusal | None,
) -> PipelinedCopy | RejectedCopy:
    """uses: the rule for the uses of a buffer; meets: what `meetings` says"""
    broken = (
        no_index(loop)
        or first_refusal(_not_a_move, form.moves)
        or _tile_by_some(form)
        or first_refusal(not_one_buffer, form.buffers)
        or target_moves(loop, form)
        or meets
        or first_refusal(uses, form.buffers)
        or _source_written(form, loop, loads)
        or copy_not_early(form, loop, loads)
    )
    if broken is None:
        return PipelinedCopy(form.op, tuple(form.buffers), form)
    return RejectedCopy(form.op, SHARED, *broken)


def _not_a_move(move: Move) -> Refusal | None:
    why = unsuited(move)
    if why is None:
        return None
    remedy = "copy 4, 8 or 16 aligned bytes per thread"
    if move.rows and (odd := odd_rows(move.source)) is not None:
        remedy = odd
    elif move.rows:
        remedy = (
            "gather rows at multiples of 16 bytes, computed by arith of vector.step, "
            "numbers and tables"
        )
    elif move.kind == TILE:
        remedy = rows_remedy(move.op, move.source)
    return Refusal(1, why, remedy)


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


def target_moves(loop: ir.Operation, form: CopyForm) -> Refusal | None:
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
    if leaves_older(form, loop):
        return Refusal(
            2,
            "its condition changes from iteration to iteration: where it does not "
            "copy, its buffer keeps elements of an older tile",
            "store another value to the same elements otherwise, or read them under "
            "the same condition, if that is the same for all threads",
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


def _source_written(form: CopyForm, loop: ir.Operation, loads: Loads) -> Refusal | None:
    """Rule 6: nothing in the loop may write what a later iteration copies."""
    reads, noalias = reads_of(form), loads.noalias_arguments
    for _, writer, target in loads.writes.to(form.sources, noalias):
        if writer in (form.op, loop.operation):
            continue
        if target is None:
            return Refusal(
                6,
                f"the loop holds '{writer.name}', which may write its source",
                "move it out of the loop",
            )
        if may_spoil(writer, target, reads, loop, noalias):
            remedy = PROMISE
            if may_spoil(writer, target, reads, loop, True):
                remedy = "copy from memory that the loop does not write"
            return Refusal(
                6, f"its source may be written by '{writer.name}' in the loop", remedy
            )
    return None
