"""Separates the body of a pipelined loop into its streams.

The *copy* stream fills shared slots, the *load* stream reads fragments out of them, and
the *compute* stream is the other ops. Each needs some of the loop-carried values (its
slot, a running address); a stream with a lookahead needs its own copies of them.

A body has one or more *fragment steps*: the iterations of a fragment loop that was
flattened into it. The reads of a step are those that its arithmetic uses.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable
from dataclasses import dataclass, field
from typing import Any

from alcop_mlir.analysis.ir.loops import block_of, body, yielded
from alcop_mlir.analysis.ir.slices import captured, is_pure, sources
from alcop_mlir.analysis.pipelining.barriers import SYNCHRONISATION
from alcop_mlir.analysis.pipelining.copy_forms import CopyForm, copy_form
from alcop_mlir.analysis.pipelining.moves import ASYNC, Move
from alcop_mlir.bindings import ir
from alcop_mlir.errors import PassError


@dataclass
class FragmentStep:
    """The ops of one fragment step in the order of the body.

    copies, reads: those of them that are planned at the shared, at the register level
    """

    ops: list[Any] = field(default_factory=list)
    copies: list[Any] = field(default_factory=list)
    reads: list[Any] = field(default_factory=list)

    def append(self, other: FragmentStep) -> None:
        """Add the ops of `other` to this step."""
        self.ops += other.ops
        self.copies += other.copies
        self.reads += other.reads


@dataclass(frozen=True)
class Streams:
    """The parts of a pipelined loop's body; ops in the order of the body.

    copies:  the planned copies into shared memory
    reads:   per step, the planned reads into registers
    read_operands: per step, the values of the body that the reads use
    compute: per step, the other ops that have an effect, or that these depend on
    """

    loop: Any
    copies: tuple[CopyForm, ...]
    reads: tuple[tuple[Any, ...], ...]
    read_operands: tuple[tuple[Any, ...], ...]
    compute: tuple[tuple[Any, ...], ...]
    copy_arguments: tuple[int, ...]  # numbers of the carried values each stream needs
    load_arguments: tuple[int, ...]
    compute_arguments: tuple[int, ...]
    copies_load: bool  # what copies carry is loaded, where their iteration exists
    remaining_extents: tuple[Any, ...]
    exists: tuple[Any, ...]  # conditions that hold where no stream has reached the end


def separate(
    loop: ir.Operation,
    steps: list[FragmentStep],
    kept: Collection[Any],
    remaining_extents: list[ir.Value],
    fetches: Container[Any] = (),
    guarded: Container[Any] = (),
    exists: Iterable[Any] = (),
) -> Streams:
    """The streams of `loop`, whose body's ops are grouped into `steps`.

    kept: barriers, groups and waits that stay in the arithmetic
    remaining_extents: see `loops.remaining_extents`
    fetches: results of loads that each stream runs that needs them, and no other
    guarded: of those of them that check themselves whether their iteration exists
    exists:  the conditions that they check
    """
    ops = [op for step in steps for op in step.ops]
    copies = [_form(op) for step in steps for op in step.copies]
    reads = [op for step in steps for op in step.reads]
    # New barriers, groups and waits are placed where shared memory is pipelined.
    replaced = [op for op in ops if copies and op.name in SYNCHRONISATION]
    replaced = [op for op in replaced if op not in kept]
    dropped = {*reads, *replaced, *(form.op for form in copies)}
    dropped |= {f.producer for f in copies if _is_used_by(f.producer, dropped)}
    known = {result for op in reads for result in op.results}
    used = {n for n, result in enumerate(loop.results) if next(result.uses, None)}
    loads = {op for op in ops if len(op.results) and op.results[0] in fetches}
    effects = [op for op in ops if not (op in dropped or op in loads or is_pure(op))]
    wanted = [value for op in effects for value in captured(op)]
    needed, arguments = _closure(loop, wanted, known, used)
    needed.update(effects)
    read_operands = _read_operands(loop, steps)
    used_by_copies = [value for form in copies for value in addresses(form)]
    copied_from, copy_arguments = _closure(loop, used_by_copies)
    return Streams(
        loop=loop,
        copies=tuple(copies),
        reads=tuple(tuple(step.reads) for step in steps),
        read_operands=tuple(read_operands),
        compute=tuple(
            tuple(op for op in step.ops if op in needed and op not in dropped)
            for step in steps
        ),
        copy_arguments=copy_arguments,
        load_arguments=_closure(loop, [v for step in read_operands for v in step])[1],
        compute_arguments=arguments,
        copies_load=any(
            op in loads and op.results[0] not in guarded for op in copied_from
        ),
        remaining_extents=tuple(remaining_extents),
        exists=tuple(exists),
    )


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
        *(v for v in (move.guard, move.fill, move.count) if isinstance(v, ir.Value)),
    ]


def _is_used_by(op: ir.Operation | None, users: Container[Any]) -> bool:
    """Whether nothing but `users` uses the results of `op`."""
    if op is None:
        return False
    return all(u.owner.operation in users for r in op.results for u in r.uses)


def _form(op: ir.Operation) -> CopyForm:
    form = copy_form(op)
    if form is None:
        raise PassError(op, f"'{op.name}' is planned, expected a copy")
    return form


def argument(loop: ir.Operation, number: int) -> Any:
    """The block argument of the carried value of that number."""
    return body(loop).arguments[number + 1]


def _read_operands(
    loop: ir.Operation, steps: list[FragmentStep]
) -> list[tuple[Any, ...]]:
    """Per step, the operands of its reads that change from iteration to iteration."""
    block = body(loop)
    operands = [[v for read in step.reads for v in read.operands] for step in steps]
    changing = {
        v for v in {v for step in operands for v in step} if block_of(v) == block
    }
    return [tuple(v for v in step if v in changing) for step in operands]


def _closure(
    loop: ir.Operation,
    values: list[ir.Value],
    known: Iterable[Any] = (),
    also: Iterable[int] = (),
) -> tuple[set[Any], tuple[int, ...]]:
    """The ops and carried values that `values` need, now and in later iterations.

    also:  numbers of carried values that are needed anyway
    known: values that are not followed
    """
    block = body(loop)
    leaves = set(known)
    ops: set[Any] = set()
    needed: set[int] = set()
    fresh, wanted = set(also), list(values)
    while wanted or fresh:
        wanted += [yielded(loop, number) for number in fresh]
        needed |= fresh
        found, arguments = sources(wanted, block, leaves)
        ops |= found
        leaves.update(result for op in found for result in op.results)
        numbers = {one.arg_number - 1 for one in arguments}
        fresh, wanted = {n for n in numbers if n >= 0} - needed, []
    return ops, tuple(sorted(needed))
