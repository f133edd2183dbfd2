"""What a kernel is: an op whose body the threads of one block run together."""

from __future__ import annotations

from typing import Any

from alcop_mlir.bindings import ir

KERNEL_OPS = ("gpu.launch", "gpu.func")


def is_kernel(op: Any) -> bool:
    """Whether a block of threads runs the body of `op`: once, and shares its memory."""
    return op.operation.name in KERNEL_OPS or is_block_forall(op)


def is_block_forall(op: Any) -> bool:
    """Whether `op` is an `scf.forall` each iteration of which is mapped to a block."""
    operation = op.operation
    if operation.name != "scf.forall" or "mapping" not in operation.attributes:
        return False
    mapping = list(operation.attributes["mapping"])
    return bool(mapping) and all(str(one).startswith("#gpu.block<") for one in mapping)


def kernels_in(op: Any) -> list[Any]:
    """The outermost kernels in `op`; a function that holds none is one itself."""
    found: list[Any] = []
    functions: list[Any] = []

    def visit(inner: Any) -> Any:
        if is_kernel(inner):
            found.append(inner.operation)
            return ir.WalkResult.SKIP
        if inner.operation.name == "func.func":
            functions.append(inner.operation)
        return ir.WalkResult.ADVANCE

    op.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found or functions
