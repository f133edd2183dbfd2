"""Branches on whether a tile is inside of C, which differ in checks of bounds alone.

    scf.if %is_inside { vector.transfer_write %c, %C {in_bounds = [true, true]} }
    else              { vector.transfer_write %c, %C }

Who drops what is outside of C without asking needs one of them.
"""

from __future__ import annotations

from typing import Any

from alcop_mlir.analysis.ir.slices import is_pure
from alcop_mlir.analysis.layout.fragments import WRITE
from alcop_mlir.bindings import ir

_IN_BOUNDS = "in_bounds"


def checked_branch(branch: ir.Operation) -> Any | None:
    """The block of an `scf.if` whose stores ask for bounds, where the other one does
    the same without; else None.
    """
    blocks = [one for region in branch.regions for one in region.blocks]
    if len(blocks) < 2 or list(branch.results):
        return None
    first, second = blocks
    if not _are_equal(first, second):
        return None
    return second if _checks(second) >= _checks(first) else first


def is_same(one: Any, other: Any) -> bool:
    """Whether two values are surely the same: made alike, of the same values."""
    return one == other or _is_made_alike(one, other, {})


def _is_made_alike(one: Any, other: Any, known: dict[Any, Any]) -> bool:
    owners = [value.owner for value in (one, other)]
    if any(isinstance(owner, ir.Block) for owner in owners):
        return False
    first, second = (owner.operation for owner in owners)
    return (
        is_pure(first)
        and len(first.results) == 1
        and _is_equal(first, second, known)
        and all(
            mine == its or _is_made_alike(mine, its, known)
            for mine, its in zip(first.operands, second.operands, strict=True)
        )
    )


def _are_equal(first: ir.Block, second: ir.Block) -> bool:
    """Whether two blocks of pure ops and stores of tiles do the same."""
    ops = [[one.operation for one in block.operations] for block in (first, second)]
    if len(ops[0]) != len(ops[1]):
        return False
    known: dict[Any, Any] = {}
    for one, other in zip(*ops, strict=True):
        is_simple = is_pure(one) or one.name in (WRITE, "scf.yield")
        operands = [known.get(value, value) for value in one.operands]
        if not is_simple or operands != list(other.operands):
            return False
        if not _is_equal(one, other, known):
            return False
        known.update(zip(one.results, other.results, strict=True))
    return True


def _is_equal(one: ir.Operation, other: ir.Operation, known: dict[Any, Any]) -> bool:
    """Whether ops are of one kind, but for their operands and checks of bounds."""
    kinds = [[result.type for result in op.results] for op in (one, other)]
    return (
        one.name == other.name
        and not list(one.regions)
        and len(one.operands) == len(other.operands)
        and kinds[0] == kinds[1]
        and _attributes(one) == _attributes(other)
    )


def _attributes(op: ir.Operation) -> dict[str, Any]:
    found = {name: op.attributes[name] for name in op.attributes}
    if op.name == WRITE:
        found.pop(_IN_BOUNDS, None)
    return found


def _checks(block: ir.Block) -> int:
    """How many dimensions stores of a block ask for."""
    writes = [one.operation for one in block.operations]
    return sum(
        not inside.value
        for op in writes
        if op.name == WRITE
        for inside in op.attributes[_IN_BOUNDS]
    )
