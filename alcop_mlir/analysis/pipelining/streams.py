"""Separates the body of a pipelined loop into its streams.

The *copy* stream fills shared slots, the *load* stream reads fragments out of them, and
the *compute* stream is the other ops. Each needs some of the loop-carried values (its
slot, a running address); a stream with a lookahead needs its own copies of them.

A body has one or more *fragment steps*: the iterations of a fragment loop that was
flattened into it. The reads of a step are those that its arithmetic uses.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable
from typing import Any

from alcop_mlir.analysis.ir.loops import body
from alcop_mlir.analysis.ir.slices import captured, is_pure
from alcop_mlir.analysis.ir.synchronisation import SYNCHRONISATION
from alcop_mlir.analysis.pipelining.copy_forms import CopyForm, copy_form
from alcop_mlir.analysis.pipelining.flat_body import FlatBody, Node
from alcop_mlir.analysis.pipelining.moves import ASYNC, Move
from alcop_mlir.bindings import ir
from alcop_mlir.errors import PassError
from alcop_mlir.frozen import frozen


@frozen
class Streams:
    """The parts of a pipelined loop's body; nodes in the order of the body.

    copies:  the planned copies into shared memory
    reads:   per step, the planned reads into registers
    read_operands: per step, what the body makes and the reads use
    compute: per step, the other ops that have an effect, or that these depend on
    """

    body: FlatBody
    copies: tuple[CopyForm, ...]
    reads: tuple[tuple[Node, ...], ...]
    read_operands: tuple[tuple[Any, ...], ...]
    compute: tuple[tuple[Node, ...], ...]
    copy_arguments: tuple[int, ...]  # numbers of the carried values each stream needs
    load_arguments: tuple[int, ...]
    compute_arguments: tuple[int, ...]
    copies_load: bool  # what copies carry is loaded, where their iteration exists
    remaining_extents: tuple[Any, ...]
    exists: tuple[Any, ...]  # conditions that hold where no stream has reached the end
    fetched_extents: tuple[Any, ...]  # remaining extents of a fetch's iteration


def separate(
    flat: FlatBody,
    replaced: Collection[Any],
    remaining_extents: list[ir.Value],
    fetches: Container[Any] = (),
    guarded: Container[Any] = (),
    exists: Iterable[Any] = (),
    fetched_extents: Iterable[Any] = (),
) -> Streams:
    """The streams of a loop with the body `flat`.

    replaced: barriers, groups and waits that new ones are placed for
    remaining_extents: see `loops.remaining_extents`
    fetches: results of loads that each stream runs that needs them, and no other
    guarded: of those of them that check themselves whether their iteration exists
    exists:  the conditions that they check
    """
    loop, steps = flat.loop, flat.steps
    nodes = [node for step in steps for node in step.nodes]
    copies = [_form(node.op) for step in steps for node in step.copies]
    dropped = {node for step in steps for node in (*step.copies, *step.reads)}
    ordering = (node for node in nodes if node.name in SYNCHRONISATION)
    dropped |= {node for node in ordering if node.op in replaced}
    dropped |= _only_copied(copies, dropped, flat)
    known = {key for step in steps for node in step.reads for key in node.results}
    used = {n for n, result in enumerate(loop.results) if next(result.uses, None)}
    loads = {node for node in nodes if node.results and node.results[0] in fetches}
    left = (node for node in nodes if node not in dropped and node not in loads)
    effects = [node for node in left if not is_pure(node.op)]
    wanted = [key for node in effects for key in node.uses]
    needed, arguments = flat.closure(wanted, known, used)
    needed = needed.union(effects) - dropped
    read_operands = [
        tuple(key for node in step.reads for _, key in node.operands) for step in steps
    ]
    used_by_reads = [key for step in read_operands for key in step]
    used_by_copies = [value for form in copies for value in addresses(form)]
    copied_from, copy_arguments = flat.closure(used_by_copies)
    return Streams(
        body=flat,
        copies=tuple(copies),
        reads=tuple(tuple(step.reads) for step in steps),
        read_operands=tuple(read_operands),
        compute=tuple(
            tuple(node for node in step.nodes if node in needed) for step in steps
        ),
        copy_arguments=copy_arguments,
        load_arguments=flat.closure(used_by_reads)[1],
        compute_arguments=arguments,
        copies_load=any(
            node in loads and node.results[0] not in guarded for node in copied_from
        ),
        remaining_extents=tuple(remaining_extents),
        exists=tuple(exists),
        fetched_extents=tuple(fetched_extents),
    )


def _only_copied(
    copies: list[CopyForm], dropped: Collection[Node], flat: FlatBody
) -> set[Node]:
    """What makes what copies store, where nothing but `dropped` uses it."""
    producers = [form.producer for form in copies if form.producer is not None]
    if not producers:
        return set()
    gone = {node.op for node in dropped}
    return {
        flat.makers[op.results[0]]
        for op in producers
        if all(u.owner.operation in gone for r in op.results for u in r.uses)
    }


def addresses(form: CopyForm) -> list[Any]:
    """The values that a copy is computed from: memrefs, indices, guard, count."""
    if form.is_region:
        return captured(form.op)
    return [value for move in form.moves for value in _operands(move)]


def _operands(move: Move) -> list[Any]:
    if move.kind == ASYNC:
        return list(move.op.operands)
    return [
        move.source,
        *move.source_indices,
        move.target,
        *move.target_indices,
        *move.rows,
        *(v for v in (move.guard, move.fill, move.count) if isinstance(v, ir.Value)),
    ]


def _form(op: ir.Operation) -> CopyForm:
    form = copy_form(op)
    if form is None:
        raise PassError(op, f"'{op.name}' is planned, expected a copy")
    return form


def argument(loop: ir.Operation, number: int) -> Any:
    """The block argument of the carried value of that number."""
    return body(loop).arguments[number + 1]
