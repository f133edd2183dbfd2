"""Stores into shared memory that are nearly copies, but not in a supported form.

Such a store stores a value that is computed from a load of global memory, or is
conditional or masked. The author of the loop may expect it to be pipelined: `near_copy`
returns the reason why it is not, or None for a store that is no copy at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from alcop_mlir.analysis.ir import memory
from alcop_mlir.analysis.ir.loops import body, defining_op, terminator
from alcop_mlir.analysis.ir.slices import backward_slice
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.pipelining.copy_forms import LOADS, STORES, is_row, mask_of
from alcop_mlir.bindings import ir

MASKED_STORE = "vector.maskedstore"


@dataclass(frozen=True)
class NearCopy:
    """A store that is nearly a copy: why it is not, and what would make it one."""

    op: Any
    reason: str
    remedy: str


def near_copy(op: ir.Operation, loop: ir.Operation) -> NearCopy | None:
    """Why `op`, in `loop`'s own block, is not a copy; None if it is not nearly one."""
    op = op.operation
    if op.name == "scf.if":
        return _conditional(op)
    if op.name.startswith("linalg."):
        return _computing(op)
    if op.name == MASKED_STORE:
        into_shared = memory.is_workgroup(op.operands[0].type)
        value = op.operands[len(op.operands) - 1]
        if into_shared and _comes_from_load(value, loop):
            return _masked_store(op)
        return None
    if op.name not in STORES or not memory.is_workgroup(op.operands[1].type):
        return None
    value = op.operands[0]
    if _comes_from_load(value, loop):
        maker = defining_op(value)
        straight = maker is not None and maker.name in LOADS
        if straight and len(list(value.uses)) > 1:
            return NearCopy(
                op,
                f"'{op.name}' stores a loaded value that is used elsewhere too",
                "load it again for the other use",
            )
        if maker is not None and straight:
            return _not_plain(op, maker)
        return NearCopy(
            op,
            f"'{op.name}' stores a value that is computed from what was loaded",
            "copy the loaded value, and compute where it is read",
        )
    if _is_loaded_before(value, loop):
        return NearCopy(
            op,
            f"'{op.name}' stores a value that an earlier iteration loaded",
            "load and store in the same iteration: the pipeline prefetches the load",
        )
    return None


def _not_plain(store: ir.Operation, load: ir.Operation) -> NearCopy:
    """Why a load whose value is stored unchanged is not a move."""
    if mask_of(store) is not None:
        return _masked_store(store)
    for op in (load, store):
        if not is_row(op):
            return NearCopy(
                store,
                f"'{op.name}' moves more than one row of elements, or may leave the "
                "bounds of its memref",
                "move one row that is in bounds, by a mask where it may be shorter",
            )
    return NearCopy(
        store,
        f"the mask of '{load.name}' is not of vector.create_mask, or does not fill "
        "with zero",
        "count the elements with vector.create_mask, and fill with zero",
    )


def _masked_store(store: ir.Operation) -> NearCopy:
    return NearCopy(
        store,
        f"'{store.name}' has a mask, and where that is false the buffer keeps elements "
        "of an older tile",
        "mask the load, and store all of it",
    )


def _computing(op: ir.Operation) -> NearCopy | None:
    """A linalg op from global into shared memory that is more than a copy."""
    kinds = [v.type for v in op.operands if isinstance(v.type, ir.MemRefType)]
    into_shared = bool(kinds) and memory.is_workgroup(kinds[-1])
    if not into_shared or all(memory.is_workgroup(kind) for kind in kinds):
        return None
    return NearCopy(
        op,
        f"'{op.name}' computes what it stores",
        "copy the input, and compute where it is read",
    )


def _conditional(op: ir.Operation) -> NearCopy | None:
    """An scf.if that fills shared memory in other ways than a guarded copy does."""
    loads = [
        store
        for store in walk(op, *STORES)
        if memory.is_workgroup(store.operands[1].type)
        and _comes_from_load(store.operands[0], None)
    ]
    if not loads:
        return None
    return NearCopy(
        op,
        f"'{loads[0].name}' copies under a condition, and nothing is stored to the "
        "same elements otherwise",
        "store zero there in the else branch",
    )


def _comes_from_load(value: ir.Value, loop: ir.Operation | None) -> bool:
    """Whether `value` comes from a load of global memory in its own block."""
    owner = value.owner
    if isinstance(owner, ir.Block):
        return False
    block = body(loop) if loop is not None else owner.operation.block
    ops, _ = backward_slice([value], block)
    return any(
        op.name in LOADS and not memory.is_workgroup(op.operands[0].type) for op in ops
    )


def _is_loaded_before(value: ir.Value, loop: ir.Operation) -> bool:
    arguments = list(body(loop).arguments)
    if value not in arguments or arguments.index(value) == 0:
        return False
    number = arguments.index(value) - 1
    return _comes_from_load(terminator(loop).operation.operands[number], loop)
