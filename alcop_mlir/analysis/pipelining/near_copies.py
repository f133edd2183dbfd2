"""Copies into shared memory that look as if they could be pipelined, and are no moves.

A store into shared memory of something that comes from a load of global memory, but not
straight and alone. Whoever wrote the loop may expect it to be pipelined, so that it
gets a reason: `near_copy` answers with one, or None for a store that is no copy at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from alcop_mlir.analysis.ir import memory
from alcop_mlir.analysis.ir.loops import body, terminator
from alcop_mlir.analysis.ir.slices import backward_slice
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.pipelining.copy_forms import LOADS, STORES, is_row, mask_of
from alcop_mlir.bindings import ir

MASKED_STORE = "vector.maskedstore"


@dataclass(frozen=True)
class NearCopy:
    """A store that is nearly a copy: why it is none, and what would make it one."""

    op: Any
    reason: str
    remedy: str


def near_copy(op: Any, loop: Any) -> NearCopy | None:
    """What keeps `op`, in `loop`'s own block, from being a copy."""
    op = op.operation
    if op.name == "scf.if":
        return _conditional(op)
    if op.name.startswith("linalg."):
        return _computing(op)
    if op.name == MASKED_STORE:
        into_shared = memory.is_workgroup(op.operands[0].type)
        value = op.operands[len(op.operands) - 1]
        if into_shared and _loads_behind(value, loop):
            return _masked_store(op)
        return None
    if op.name not in STORES or not memory.is_workgroup(op.operands[1].type):
        return None
    value = op.operands[0]
    if _loads_behind(value, loop):
        owner = value.owner
        straight = not isinstance(owner, ir.Block) and owner.operation.name in LOADS
        if straight and len(list(value.uses)) > 1:
            return NearCopy(
                op,
                f"'{op.name}' stores a loaded value that is used elsewhere too",
                "load it again for the other use",
            )
        if straight:
            return _not_plain(op, owner.operation)
        return NearCopy(
            op,
            f"'{op.name}' stores a value that is computed from what was loaded",
            "copy the loaded value, and compute where it is read",
        )
    if _is_loaded_before(value, loop):
        return NearCopy(
            op,
            f"'{op.name}' stores a value that an earlier iteration loaded",
            "load and store in the same iteration: it is run ahead by the pipeline",
        )
    return None


def _not_plain(store: Any, load: Any) -> NearCopy:
    """Of a load that is stored as it is: which of the two is no plain move."""
    if mask_of(store) is not None:
        return _masked_store(store)
    for op in (load, store):
        if not is_row(op):
            return NearCopy(
                store,
                f"'{op.name}' moves more than a row of elements, or perhaps such as "
                "lie behind the array's end",
                "move one row that is in bounds, by a mask where it may be shorter",
            )
    return NearCopy(
        store,
        f"the mask of '{load.name}' is not of vector.create_mask, or does not fill "
        "with zero",
        "count the elements with vector.create_mask, and fill with zero",
    )


def _masked_store(store: Any) -> NearCopy:
    return NearCopy(
        store,
        f"'{store.name}' has a mask, and keeps what an older tile left where it is "
        "false",
        "mask the load, and store all of it",
    )


def _computing(op: Any) -> NearCopy | None:
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


def _conditional(op: Any) -> NearCopy | None:
    """An scf.if that fills shared memory on one side, or in ways of its own."""
    loads = [
        store
        for store in walk(op, *STORES)
        if memory.is_workgroup(store.operands[1].type)
        and _loads_behind(store.operands[0], None)
    ]
    if not loads:
        return None
    return NearCopy(
        op,
        f"'{loads[0].name}' copies under a condition that does not fill its place "
        "otherwise",
        "store zero there in the else branch",
    )


def _loads_behind(value: Any, loop: Any) -> bool:
    """Whether `value` comes from a load of global memory in its own block."""
    owner = value.owner
    if isinstance(owner, ir.Block):
        return False
    block = body(loop) if loop is not None else owner.operation.block
    ops, _ = backward_slice([value], block)
    return any(
        op.name in LOADS and not memory.is_workgroup(op.operands[0].type) for op in ops
    )


def _is_loaded_before(value: Any, loop: Any) -> bool:
    arguments = list(body(loop).arguments)
    if value not in arguments or arguments.index(value) == 0:
        return False
    number = arguments.index(value) - 1
    return _loads_behind(terminator(loop).operation.operands[number], loop)
