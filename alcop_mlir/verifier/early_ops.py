"""Early ops of a plan that use what is made later: `late_ops`.

What the address of an early op is computed from must be arithmetic, which may run early
too, or be made by ops that the plan lets run as early.

    %row = memref.load %rows[%k]              // must be as early as the copy
    %v = memref.load %A[%row, %t]
    memref.store %v, %buffer[%t]
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from alcop_mlir.bindings import ir
from alcop_mlir.verifier.accesses import VIEWS, inside
from alcop_mlir.verifier.read_plan import (
    FETCH,
    IN_PLACE,
    NUMBER,
    Entry,
    Lead,
    Plan,
    is_in,
)

# Ops that may run early whatever they are computed from: no memory, no effect.
_ARITHMETIC = ("arith.", "affine.", "index.", "math.")
_NO_ACCESS = VIEWS | {"memref.dim", "memref.view", "memref.alloc"}
_LOADS = frozenset(
    "memref.load vector.load vector.maskedload vector.transfer_read".split()
)
# Ops in which threads meet: one that runs early runs with others than before.
_MEETINGS = ("gpu.shuffle", "gpu.rotate", "gpu.subgroup_r", "gpu.subgroup_b", "gpu.b")
_MEETINGS += ("nvvm.shfl", "nvvm.redux", "nvvm.vote", "nvvm.match")


def late_ops(plan: Plan, named: dict[Any, Entry]) -> Iterator[tuple[Any, str]]:
    """Early ops that use what is made later, or is no arithmetic."""
    for op, entry in named.items():
        if entry.lead == Lead():
            continue
        for maker in _makers(plan.loop, op):
            if entry.kind in (*IN_PLACE, FETCH) and is_in(maker, op):
                continue  # it runs with the op: see `replay`, and `overwritten`
            own = named[maker].lead if maker in named else Lead()
            if (own.whole, own.part) < (entry.lead.whole, entry.lead.part):
                yield op, f"runs early, and uses what '{maker.name}' makes later"


def _makers(loop: ir.Operation, op: ir.Operation) -> list[Any]:
    """Ops in `loop` that are no arithmetic, of which `op` uses results, now or later.

    What a copy moves is loaded with it: that load is not one of them.
    """
    pending, copying = [*_used(op)], op
    if op.name in ("memref.store", "vector.store", "vector.transfer_write"):
        moved = op.operands[0].owner
        if not isinstance(moved, ir.Block):
            # An scf.if chooses between what it loads and zero.
            copying = moved.operation
            pending = [*list(op.operands)[1:], *_used(copying)]
    seen: set[Any] = set()
    makers: list[Any] = [one for one in inside(copying) if _is_address(one)]
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        owner = value.owner
        if isinstance(owner, ir.Block):
            pending += _carried(loop, value, owner)
            continue
        maker = owner.operation
        if not is_in(maker, loop):
            continue
        is_plain = maker.name.startswith(_ARITHMETIC) or maker.name in _NO_ACCESS
        has_effects = len(maker.regions) and not _is_plain_choice(maker)
        is_kept = has_effects or NUMBER in maker.attributes
        is_kept = is_kept or maker.name.startswith(_MEETINGS)
        if not is_plain and (maker.name in _LOADS or is_kept):
            makers.append(maker)
        else:
            pending += _used(maker)
    return makers


def _is_plain_choice(op: ir.Operation) -> bool:
    """Whether `op` is an scf.if that holds arithmetic only."""
    return op.name == "scf.if" and all(
        inner.name.startswith(_ARITHMETIC) or inner.name in ("scf.if", "scf.yield")
        for inner in inside(op)
    )


def _is_address(load: ir.Operation) -> bool:
    """Whether an op in a branch loads something else than what is copied."""
    return load.name in _LOADS and any(
        use.owner.operation.name != "scf.yield"
        and not (use.operand_number == 0 and use.owner.operation.name.endswith("store"))
        and not use.owner.operation.name.endswith("transfer_write")
        for use in load.results[0].uses
    )


def _used(op: ir.Operation) -> Iterator[Any]:
    """What an op uses; of one with regions, the memrefs and indices of its own."""
    yield from op.operands
    for inner in inside(op):
        for number, value in enumerate(inner.operands):
            is_moved = number == 0 and inner.name.endswith(("store", "transfer_write"))
            owner = value.owner
            is_inner = not isinstance(owner, ir.Block) and is_in(owner.operation, op)
            if not is_moved and not is_inner:
                yield value


def _carried(loop: ir.Operation, value: ir.Value, block: ir.Block) -> list[Any]:
    """What a loop-carried value started from and becomes."""
    holder = block.owner.operation
    number = value.arg_number - 1
    if number < 0 or holder.name != "scf.for":
        return []
    if holder != loop and not is_in(holder, loop):
        return []
    last = list(block.operations)[-1].operation
    start = [] if holder == loop else [holder.operands[3 + number]]
    return [last.operands[number], *start]
