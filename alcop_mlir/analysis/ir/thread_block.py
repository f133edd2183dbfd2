"""The thread block that runs an op, and how many threads it has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from alcop_mlir.analysis.ir.loops import constant
from alcop_mlir.bindings import ir

# Operands of gpu.launch: async tokens, grid x, y, z, block x, y, z, shared bytes.
_GRID_SIZES = 3


@dataclass(frozen=True)
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
    parent = op.operation.parent
    while parent is not None:
        operation = parent.operation
        if operation.name == "gpu.launch":
            return ThreadBlock(operation, _launch_shape(operation))
        if operation.name == "gpu.func":
            return ThreadBlock(operation, _function_shape(operation))
        parent = operation.parent
    return None


def _launch_shape(op: ir.Operation) -> tuple[int | None, int | None, int | None]:
    sizes = [v for v in op.operands if isinstance(v.type, ir.IndexType)]
    x, y, z = sizes[_GRID_SIZES : 2 * _GRID_SIZES]
    return constant(x), constant(y), constant(z)


def _function_shape(op: ir.Operation) -> tuple[int | None, int | None, int | None]:
    if "known_block_size" not in op.attributes:
        return None, None, None
    x, y, z = op.attributes["known_block_size"]
    return x, y, z
