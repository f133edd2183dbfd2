"""How much shared memory a kernel uses, and how much of it there is (rule 5)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from alcop_mlir.analysis.ir import memory
from alcop_mlir.analysis.ir.loops import defining_op
from alcop_mlir.bindings import ir
from alcop_mlir.resources import align
from alcop_mlir.target import STATIC_SHARED_LIMIT


def shared_bytes(buffers: Iterable[ir.Value], slots: Mapping[Any, int]) -> int:
    """Bytes of a kernel's shared buffers, with so many slots each, by default one.

    Buffers whose size is not known count as nothing.
    """
    sizes = {buffer: memory.size_in_bytes(buffer.type) for buffer in buffers}
    return sum(
        align(slots.get(buffer, 1) * size)
        for buffer, size in sizes.items()
        if size is not None
    )


def shared_limit(
    scope: ir.Operation, buffers: Iterable[ir.Value], of_block: int
) -> int:
    """The bytes that these may take, of those that a block may use on the target."""
    is_kernel = scope.operation.name == "gpu.func"
    if is_kernel or any(defining_op(buffer) is None for buffer in buffers):
        # The buffers of a gpu.func are static shared memory, of which there is less.
        return min(of_block, STATIC_SHARED_LIMIT)
    return of_block
