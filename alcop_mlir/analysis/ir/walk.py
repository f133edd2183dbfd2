"""Finds ops inside an op, or around it, at any depth."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from alcop_mlir.bindings import ir

# Looked up once: it would take as long as all else that is done at an op.
_ADVANCE, _SKIP = ir.WalkResult.ADVANCE, ir.WalkResult.SKIP


def walk(
    root: ir.Operation | ir.Module,
    *names: str,
    enter: Callable[[Any], bool] | None = None,
) -> list[Any]:
    """The ops of these names in `root`, itself included, outer ops first.

    names: all ops if none is given
    enter: whether to look inside an op; inside all of them by default
    """
    found: list[Any] = []

    def visit(op: ir.Operation) -> Any:
        if not names or op.name in names:
            found.append(op)
        return _ADVANCE if enter is None or enter(op) else _SKIP

    root.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def host_blocks(function: ir.Operation) -> list[Any]:
    """The blocks of a host function: its own, and those of branches in them."""
    ops = walk(function, enter=lambda op: op.name in ("func.func", "scf.if"))
    holders = [op for op in ops if op == function.operation or op.name == "scf.if"]
    return [block for op in holders for part in op.regions for block in part.blocks]


def around(op: ir.Operation) -> Iterator[Any]:
    """The ops that have `op` in a region, at any depth, the nearest first."""
    parent = op.operation.parent
    while parent is not None:
        yield parent.operation
        parent = parent.operation.parent
