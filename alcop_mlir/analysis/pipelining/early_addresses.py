"""Rule 6: which addresses can be computed some iterations before they are used.

They are computed from the loop's index, from carried values of which the next can be
computed early too, and from loads that can run early: the *fetches* of their copies.

    %row = memref.load %rows[%k]        // a fetch, if the loop does not write %rows
    alcop.copy %A[%row, 0] to %buffer   // its address can be computed early

Nothing is changed here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from alcop_mlir.analysis.ir import memory
from alcop_mlir.analysis.ir.loops import body, yielded
from alcop_mlir.analysis.ir.slices import (
    backward_slice,
    is_pure,
    is_repeatable,
)
from alcop_mlir.analysis.pipelining.copy_forms import CopyForm
from alcop_mlir.analysis.pipelining.fetches import Loads, address_fetches
from alcop_mlir.analysis.pipelining.footprints import from_outside
from alcop_mlir.analysis.pipelining.moves import Move, branch_address_ops
from alcop_mlir.analysis.pipelining.verdicts import Refusal, first_refusal
from alcop_mlir.bindings import ir


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


def copy_not_early(form: CopyForm, loop: ir.Operation, loads: Loads) -> Refusal | None:
    """Rule 6: all that a copy needs must be computable some iterations early.

    loads: those that can run early as well
    """
    return (
        _loads_addresses(form)
        or first_refusal(_address_loaded_in_branch, form.moves)
        or _fill_not_early(form, loop, loads)
        or address_not_early(loop, loads, form.used, form.moved)
    )


def _loads_addresses(form: CopyForm) -> Refusal | None:
    """Rule 6, for what a region loads besides what it copies."""
    return _depends_on(form.loads[0]) if form.loads else None


def _address_loaded_in_branch(move: Move) -> Refusal | None:
    """Rule 6, for what a guarded copy computes inside its scf.if."""
    impure = next((op for op in branch_address_ops(move) if not is_pure(op)), None)
    return None if impure is None else _depends_on(impure)


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


def _depends_on(
    op: ir.Operation, loads: Loads | None = None, iteration: str = "the same iteration"
) -> Refusal:
    remedy = None if loads is None else loads.remedy(op)
    return Refusal(
        6,
        f"its address depends on '{op.name}' of {iteration}",
        remedy or "compute the address from the loop's index",
    )


def fetches_for(loop: ir.Operation, forms: Iterable[CopyForm]) -> dict[Any, int]:
    """The loads that addresses of these copies need, see `address_fetches`."""
    forms = list(forms)
    values = [value for form in forms for value in form.used]
    known = {value for form in forms for value in (*form.moved, *form.buffers)}
    return address_fetches(loop, values, known)


def follow_the_index(loop: ir.Operation, forms: Collection[CopyForm]) -> bool:
    """Whether the addresses of the copies depend on the loop's index alone."""
    if fetches_for(loop, forms):
        return False
    return not any(
        argument.arg_number
        for form in forms
        for argument in backward_slice(form.used, body(loop), form.moved)[1]
    )
