"""Which ops are kernels: a thread block runs their body."""

from __future__ import annotations

from typing import Any

from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.bindings import ir

KERNEL_OPS = ("gpu.launch", "gpu.func")


def is_kernel(op: ir.Operation) -> bool:
    """Whether one thread block runs the body of `op`, with shared memory of its own."""
    return op.operation.name in KERNEL_OPS or is_block_forall(op)


def is_block_forall(op: ir.Operation) -> bool:
    """Whether `op` is an `scf.forall` each iteration of which is mapped to a block."""
    operation = op.operation
    if operation.name != "scf.forall" or "mapping" not in operation.attributes:
        return False
    mapping = list(operation.attributes["mapping"])
    return bool(mapping) and all(str(one).startswith("#gpu.block<") for one in mapping)


def kernels_in(op: ir.Operation) -> list[Any]:
    """The outermost kernels in `op`; its functions where there are none."""
    outside = walk(op, enter=lambda inner: not is_kernel(inner))
    found = [inner for inner in outside if is_kernel(inner)]
    return found or [inner for inner in outside if inner.name == "func.func"]
