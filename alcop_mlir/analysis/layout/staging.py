"""Whether the output of a kernel can pass through shared memory before it is stored.

Tiles of the inputs are not used any more when a kernel stores what it computed: other
data may use the same memory. A buffer for such data is allocated with the attribute
`alcop.overlaid`; alcop-outline-kernels lays it over the others.
"""

from __future__ import annotations

import math
from typing import Any

from alcop_mlir.analysis.ir.alignment import element_bytes
from alcop_mlir.analysis.ir.loops import defining_op, is_loop
from alcop_mlir.analysis.ir.memory import is_workgroup, root
from alcop_mlir.analysis.ir.uniformity import may_diverge
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.bindings import ir

OVERLAID = "alcop.overlaid"
_ALLOC = "memref.alloc"


def free_bytes(write: ir.Operation, body: ir.Block) -> int:
    """Bytes of shared memory that nothing uses from `write` on, in a launch of `body`.

    0 where it is not known that all threads of a block run the write together, once:
    it needs a barrier before it.
    """
    top = top_level(write, body)
    if top is None or body.owner.operation.name != "gpu.launch" or may_diverge(write):
        return 0
    operations = [op.operation for op in body.operations]
    later = operations[operations.index(top) :]
    if any(_uses_shared(op) for op in later) or _asks_for_memory(body.owner.operation):
        return 0
    buffers = [op.results[0].type for op in operations if _is_tile(op)]
    return sum(math.prod(kind.shape) * element_bytes(kind) for kind in buffers)


def top_level(op: ir.Operation, body: ir.Block) -> Any | None:
    """The op of `body` that is `op` or has it inside; None if `op` is in a loop."""
    operation = op.operation
    while operation.block != body:
        operation = operation.parent.operation
        if is_loop(operation):
            return None
    return operation


def _is_tile(op: ir.Operation) -> bool:
    """Whether `op` allocates a buffer that others may be laid over."""
    return (
        op.name == _ALLOC
        and is_workgroup(op.results[0].type)
        and OVERLAID not in op.attributes
    )


def _uses_shared(op: ir.Operation) -> bool:
    """Whether `op`, or an op inside, uses shared memory that is not overlaid."""
    return any(
        is_workgroup(value.type) and not _is_overlaid(value)
        for inner in walk(op)
        for value in inner.operands
    )


def _is_overlaid(value: ir.Value) -> bool:
    owner = defining_op(root(value))
    return owner is not None and OVERLAID in owner.operation.attributes


def _asks_for_memory(launch: ir.Operation) -> bool:
    """Whether the launch uses dynamic shared memory that it does not allocate."""
    return bool(walk(launch, "gpu.dynamic_shared_memory"))
