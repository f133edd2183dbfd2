"""Recognises the forms in which programs copy from global into shared memory.

  a single op    what `moves` recognises: a tile's copy, a thread's load and store, an
                 asynchronous copy
  a guard        scf.if with copies, and stores of zero to the same elements otherwise:
                 cp.async does so without a branch
  a region       scf.if, scf.for, scf.forall or scf.parallel, nested to any depth, in
                 which each op with an effect is one of these copies, or a store of what
                 needs no memory: copies row by row, or of some threads only

`copy_form` returns the form of an op, or None; whether a copy can be pipelined is
decided in `copies`. Nothing is changed here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import pairwise, takewhile
from typing import Any

from alcop_mlir.analysis.ir import memory
from alcop_mlir.analysis.ir.kernels import is_kernel
from alcop_mlir.analysis.ir.loops import body, is_loop
from alcop_mlir.analysis.ir.slices import captured, is_repeatable
from alcop_mlir.analysis.ir.walk import around
from alcop_mlir.analysis.pipelining.moves import (
    ASYNC_OP,
    LOADS,
    STORES,
    TILE_OPS,
    Move,
    guarded_moves,
    is_computed,
    is_row,
    mask_of,
    move_of,
)
from alcop_mlir.bindings import ir
from alcop_mlir.frozen import frozen

REGIONS = ("scf.if", "scf.for", "scf.forall", "scf.parallel")
_ENDS = ("scf.yield", "scf.forall.in_parallel", "scf.reduce")


@frozen
class CopyForm:
    """An op in a loop's block that copies from global into shared memory.

    moves:     all that it copies, in the order of the program
    fills:     its stores of what needs no memory, but those of zero of a guard
    loads:     what it loads besides what it copies: parts of addresses
    is_region: whether it is issued as a whole, with all that is in it
    """

    op: Any
    moves: tuple[Move, ...]
    fills: tuple[Any, ...] = ()
    loads: tuple[Any, ...] = ()
    is_region: bool = False

    @property
    def targets(self) -> list[Any]:
        """The memrefs that it writes."""
        moved = [move.target for move in self.moves]
        return [*moved, *(fill.operands[1] for fill in self.fills)]

    @cached_property
    def buffers(self) -> list[Any]:
        """The allocations that it fills, each once."""
        return list(dict.fromkeys(map(memory.root, self.targets)))

    @property
    def sources(self) -> list[Any]:
        """The memrefs that it reads, each once."""
        return list(dict.fromkeys(move.source for move in self.moves))

    @property
    def producer(self) -> Any:
        """The op next to `op` that makes what it stores; None where there is none."""
        maker = self.moves[0].producer
        return maker if maker is not None and maker.block == self.op.block else None

    @property
    def used(self) -> list[Any]:
        """The values that it uses; also those that its load uses, where it is apart."""
        apart = () if self.producer is None else captured(self.producer)
        return [*captured(self.op), *apart]

    @property
    def moved(self) -> tuple[Any, ...]:
        """What is stored: not a part of an address."""
        return tuple(value for move in self.moves for value in move.moved)


# The copies of a loop's own block, by their ops: see `copies_in`.
Forms = Mapping[Any, CopyForm]


def copy_form(op: ir.Operation) -> CopyForm | None:
    """The form of `op` as a copy into shared memory; None where it is none."""
    op = op.operation
    if op.name not in REGIONS:
        move = move_of(op)
        return None if move is None else CopyForm(op, (move,))
    moves = guarded_moves(op)
    return CopyForm(op, moves) if moves else _region(op)


def copies_in(loop: ir.Operation) -> dict[Any, CopyForm]:
    """The forms of the copies in `loop`'s own block, by their ops, in its order."""
    ops = [op.operation for op in body(loop).operations]
    return {op: form for op in ops if (form := copy_form(op)) is not None}


def is_part_of_copy(op: ir.Operation) -> bool:
    """Whether `op` is or is in a copy that an op of an outer loop's block makes."""
    holders = takewhile(lambda one: not is_kernel(one), (op.operation, *around(op)))
    return any(
        inner.name in REGIONS and is_loop(outer) and copy_form(inner) is not None
        for inner, outer in pairwise(holders)
    )


def _region(op: ir.Operation) -> CopyForm | None:
    """The form of an op with regions that does nothing but copy."""
    if any(True for result in op.results for _ in result.uses):
        return None
    parts: list[Any] = []
    for part in _parts(op, op):
        if part is None:
            return None
        parts.append(part)
    moves = tuple(part for part in parts if isinstance(part, Move))
    if not moves:
        return None
    copied = {move.load for move in moves}
    others = [part for part in parts if not isinstance(part, Move)]
    return CopyForm(
        op,
        moves,
        fills=tuple(part for part in others if part.name in STORES),
        loads=tuple(
            part for part in others if part.name in LOADS and part not in copied
        ),
        is_region=True,
    )


def _parts(op: ir.Operation, root: ir.Operation) -> Iterator[Any]:
    """The moves, stores and loads in `op`; None, and no more, at anything else."""
    for block in (block for region in op.regions for block in region.blocks):
        for inner in (one.operation for one in block.operations):
            if is_no_part(inner):
                yield None
                return
            if inner.name in REGIONS:
                guarded = guarded_moves(inner)
                yield from guarded or _parts(inner, root)
            elif inner.name in LOADS:
                yield inner
            elif inner.name in (*STORES, *TILE_OPS, ASYNC_OP):
                yield move_of(inner) or _fill(inner, root)


def is_no_part(op: ir.Operation) -> bool:
    """Whether what `op` does does not belong in a region that does nothing but copy."""
    if op.name in LOADS:
        return memory.is_workgroup(op.operands[0].type)
    if op.name in STORES:
        return not memory.is_workgroup(op.operands[1].type)
    known = op.name in (*REGIONS, *_ENDS, *TILE_OPS, ASYNC_OP)
    return not known and not is_repeatable(op)


def _fill(op: ir.Operation, root: ir.Operation) -> Any | None:
    """`op`, where it stores a computed value into shared memory."""
    if op.name not in STORES or not memory.is_workgroup(op.operands[1].type):
        return None
    is_whole = is_row(op) and mask_of(op) is None
    return op if is_whole and is_computed(op.operands[0], root) else None
