"""Kernels: the thread block that runs an op, and how many threads it has."""

from __future__ import annotations

from itertools import takewhile
from typing import Any

from alcop_mlir.analysis.ir.loops import constant, defining_op
from alcop_mlir.analysis.ir.walk import around, walk
from alcop_mlir.bindings import ir
from alcop_mlir.frozen import frozen

KERNEL_OPS = ("gpu.launch", "gpu.func")
_RUN_ONCE = ("scf.if", "scf.execute_region", "scf.index_switch")
_SCOPES = ("func.func", "builtin.module")
# Operands of gpu.launch: async tokens, grid x, y, z, block x, y, z, shared bytes.
_GRID_SIZES = 3
_X = "#gpu<dim x>"
_THREAD_X = 3  # of the arguments of a gpu.launch: block ids come first


@frozen
class ThreadBlock:
    """The threads that run the body of `op`, a `gpu.launch` or a `gpu.func`.

    shape: threads along x, y, z; None where not constant
    """

    op: Any
    shape: tuple[int | None, int | None, int | None]

    @property
    def body(self) -> Any:
        """The block in which each thread begins."""
        return self.op.regions[0].blocks[0]

    @property
    def threads(self) -> int | None:
        """Threads, if they are in one line along x and their number is constant."""
        return self.shape[0] if self.shape[1:] == (1, 1) else None

    def __str__(self) -> str:
        return "x".join("?" if n is None else str(n) for n in self.shape)


def enclosing(op: ir.Operation) -> ThreadBlock | None:
    """Of the nearest kernel around `op`; None on the host."""
    kernel = next((one for one in around(op) if one.name in KERNEL_OPS), None)
    if kernel is None:
        return None
    x = y = z = None
    if kernel.name == "gpu.launch":
        sizes = [v for v in kernel.operands if isinstance(v.type, ir.IndexType)]
        x, y, z = map(constant, sizes[_GRID_SIZES : 2 * _GRID_SIZES])
    elif "known_block_size" in kernel.attributes:
        x, y, z = kernel.attributes["known_block_size"]
    return ThreadBlock(kernel, (x, y, z))


def is_thread_x(value: ir.Value) -> bool:
    """Whether a value is the number of the thread along x."""
    op = defining_op(value)
    if op is not None:
        return op.name == "gpu.thread_id" and str(op.attributes["dimension"]) == _X
    launch = value.owner.owner.operation
    return launch.name == "gpu.launch" and value.arg_number == _THREAD_X


def is_kernel(op: ir.Operation) -> bool:
    """Whether one thread block runs the body of `op`, with shared memory of its own.

    Also of an `scf.forall` each iteration of which is mapped to a block.
    """
    operation = op.operation
    if operation.name in KERNEL_OPS:
        return True
    if operation.name != "scf.forall" or "mapping" not in operation.attributes:
        return False
    mapping = list(operation.attributes["mapping"])
    return bool(mapping) and all(str(one).startswith("#gpu.block<") for one in mapping)


def nest_in_kernel(op: ir.Operation) -> list[Any]:
    """`op` and what is around it in its kernel, or function, the nearest first."""
    outer = takewhile(
        lambda one: not is_kernel(one) and one.name not in _SCOPES, around(op)
    )
    return [op.operation, *outer]


def may_repeat(op: ir.Operation) -> bool:
    """Whether a thread may run the regions of `op` several times."""
    is_mapped = op.name in ("scf.forall", "scf.parallel") and "mapping" in op.attributes
    return op.name not in _RUN_ONCE and not is_mapped


def kernels_in(op: ir.Operation) -> list[Any]:
    """The outermost kernels in `op`; its functions where there are none."""
    outside = walk(op, enter=lambda inner: not is_kernel(inner))
    found = [inner for inner in outside if is_kernel(inner)]
    return found or [inner for inner in outside if inner.name == "func.func"]
