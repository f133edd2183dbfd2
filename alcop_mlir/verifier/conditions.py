"""Whether what copies fill under a condition is read under it, for `plans.py`.

A slot that is not filled in an iteration keeps an older tile than the buffer would. So
where a condition may change from iteration to iteration, and nothing fills the buffer
where it does not hold, each read must be where it holds:

    scf.if %m { copy to %a } ... scf.if %m { use of %a }

By the same value, which is that of the same iteration; and all threads must have the
same one, as they read what others fill.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from alcop_mlir.bindings import ir
from alcop_mlir.verifier.accesses import accessed, is_workgroup, root
from alcop_mlir.verifier.values import is_of_thread, origins
from alcop_mlir.verifier.violations import Violation

_KERNELS = ("gpu.func", "gpu.launch", "func.func")
_GIVEN = ("gpu.block_id", "gpu.block_dim", "gpu.grid_dim", "memref.dim")
Condition = tuple[Any, int]  # the condition of an scf.if, and the number of its region
Accesses = list[tuple[Any, Any]]  # ops, and the buffers that they access


def unfilled(loop: ir.Operation, fills: Accesses, reads: Accesses) -> Iterator[Any]:
    """Violations of reads of what an iteration of `loop` may not have filled."""
    needed = dict.fromkeys(_needed(loop, fills))
    for op, buffer in reads:
        held = [(branch.operands[0], way) for branch, way in _branches(op)]
        for filled, fill, condition in needed:
            if filled != buffer:
                continue
            if condition not in held:
                yield Violation(
                    op,
                    f"may read an older tile: '{fill.name}' fills its buffer under a "
                    "condition that changes, and this is not under it",
                )
            elif not _is_alike(condition[0]):
                yield Violation(
                    op,
                    f"may read an older tile: threads may differ in the condition "
                    f"under which '{fill.name}' fills its buffer",
                )


def _needed(
    loop: ir.Operation, fills: Accesses
) -> Iterator[tuple[Any, Any, Condition]]:
    """Buffers, what fills them, and conditions that decide whether it does."""
    ways = {
        (buffer, branch, way) for op, buffer in fills for branch, way in _branches(op)
    }
    for op, buffer in fills:
        loops = [loop, *_loops_around(loop, buffer)]
        for branch, way in _branches(op):
            is_inside = branch in _within(op, loop)
            if not is_inside or (buffer, branch, 1 - way) in ways:
                continue
            if any(_changes(branch.operands[0], one) for one in loops):
                yield buffer, op, (branch.operands[0], way)


def _around(op: ir.Operation) -> Iterator[Any]:
    parent = op.parent
    while parent is not None and parent.operation.name not in _KERNELS:
        yield parent.operation
        parent = parent.operation.parent


def _within(op: ir.Operation, loop: ir.Operation) -> list[Any]:
    """The ops around `op` inside of `loop`."""
    holders = list(_around(op))
    return holders[: holders.index(loop)]


def _branches(op: ir.Operation) -> list[tuple[Any, int]]:
    """Each scf.if around `op`, and the number of the region that `op` is in."""
    found, inner = [], op
    for holder in _around(op):
        if holder.name == "scf.if":
            found.append((holder, int(inner.block != holder.regions[0].blocks[0])))
        inner = holder
    return found


def _loops_around(loop: ir.Operation, buffer: ir.Value) -> list[Any]:
    """What runs `loop` again with the same buffer."""
    owner = root(buffer).owner
    maker = None if isinstance(owner, ir.Block) else owner.operation
    outlived = [] if maker is None else list(_around(maker))
    return [
        one for one in _around(loop) if one not in outlived and one.name != "scf.if"
    ]


def _changes(value: ir.Value, loop: ir.Operation) -> bool:
    """Whether `value` may differ between iterations of `loop`."""
    for one in _closure(value, loop):
        owner = one.owner
        if isinstance(owner, ir.Block):
            return True
        if owner.operation.name != "scf.if" and not _is_plain(owner.operation):
            return True
    return False


def _is_plain(op: ir.Operation) -> bool:
    """Whether what `op` makes follows from its operands, not from memory."""
    return not len(op.regions) and accessed(op) == []


def _closure(value: ir.Value, loop: ir.Operation) -> Iterator[Any]:
    """`value` and what it is computed from, as far as that is made in `loop`."""
    pending, seen = [value], set[Any]()
    while pending:
        one = pending.pop()
        owner = one.owner
        maker = (owner.owner if isinstance(owner, ir.Block) else owner).operation
        if one in seen or (maker != loop and loop not in _around(maker)):
            continue
        if maker == loop and not isinstance(owner, ir.Block):
            continue  # a result of it
        seen.add(one)
        yield one
        if not isinstance(owner, ir.Block):
            pending += origins(one) or maker.operands


def _is_alike(value: ir.Value) -> bool:
    """Whether all threads of a block have the same `value`."""
    pending, seen = [value], set[Any]()
    while pending:
        one = pending.pop()
        if one in seen:
            continue
        seen.add(one)
        made_of = None if is_of_thread(one) else _made_of(one)
        if made_of is None:
            return False
        pending += made_of
    return True


def _made_of(value: ir.Value) -> Iterable[Any] | None:
    """What decides `value`; None where threads may differ in more."""
    found, owner = origins(value), value.owner
    if found is not None:
        return found
    if isinstance(owner, ir.Block):
        return [] if owner.owner.operation.name in _KERNELS else None
    op = owner.operation
    if op.name in _GIVEN:
        return []
    if op.name != "memref.load":
        return None
    memref = root(op.operands[0])
    maker = None if isinstance(memref.owner, ir.Block) else memref.owner.operation
    is_own = maker is not None and maker.name == "memref.alloca"
    return None if is_own or is_workgroup(memref.type) else list(op.operands)[1:]
