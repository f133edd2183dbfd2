"""Splits copies that share one condition, and joins them again where that did not help.

Before:  scf.if %g { store (load), %a ; store (load), %b }
         else { store %zero, %a ; store %zero, %b }
After:   %v = scf.if %g { yield (load) } else { yield %zero }
         store %v, %a
         %w = scf.if %g { yield (load) } else { yield %zero }
         store %w, %b

So each copy is an op of its own, which a plan can name. canonicalize makes the form
before of neighbours, but does not join the one after.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from alcop_mlir.analysis.ir.slices import backward_slice
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.pipelining.copy_forms import merged_moves
from alcop_mlir.bindings import ir
from alcop_mlir.passes import build


@dataclass(frozen=True)
class SplitGuard:
    """What became of one scf.if.

    pieces: for each of its copies the scf.if that loads, and the store
    """

    pieces: tuple[tuple[Any, Any], ...]

    @property
    def stores(self) -> list[Any]:
        """The copies."""
        return [store for _, store in self.pieces]


def split_guards(scope: ir.Operation) -> list[SplitGuard]:
    """Split each scf.if in the block of a loop in `scope` that is several copies."""
    found = [op for op in walk(scope, "scf.if") if op.parent.name == "scf.for"]
    return [_split(op, moves) for op in found if (moves := merged_moves(op))]


def join_guard(split: SplitGuard) -> None:
    """Make one scf.if of the pieces again."""
    (first, _), *_ = split.pieces

    def copies(region: int) -> None:
        for branch, store in split.pieces:
            mapping: dict[Any, Any] = {}
            *ops, end = branch.regions[region].blocks[0].operations
            for op in ops:
                build.clone(op, mapping)
            value = end.operands[0]
            mapping[branch.results[0]] = mapping.get(value, value)
            build.clone(store, mapping)

    with ir.InsertionPoint(first), first.location:
        build.branch(first.operands[0], lambda: copies(0), lambda: copies(1))
    for branch, store in split.pieces:
        store.erase()
        branch.erase()


def _split(op: ir.Operation, moves: list[tuple[Any, Any]]) -> SplitGuard:
    with ir.InsertionPoint(op), op.location:
        pieces = tuple(_piece(op, move, zero) for move, zero in moves)
    op.erase()
    return SplitGuard(pieces)


def _piece(op: ir.Operation, move: ir.Operation, zero: ir.Operation) -> tuple[Any, Any]:
    """One copy under the condition of `op`."""
    kind = move.operands[0].type
    (value,) = build.branch(
        op.operands[0], lambda: _chosen(move), lambda: _chosen(zero), [kind]
    )
    store = build.clone(move, {move.operands[0]: value})
    return value.owner.operation, store


def _chosen(store: ir.Operation) -> list[Any]:
    """What `store`, an op of a branch, stores, computed here."""
    mapping: dict[Any, Any] = {}
    value = store.operands[0]
    for op in backward_slice([value], store.block)[0]:
        build.clone(op, mapping)
    return [mapping.get(value, value)]
