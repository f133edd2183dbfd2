"""Which memory a loop, or an op in general, reads and writes, at any depth."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from alcop_mlir.analysis.ir import memory
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.bindings import ir


def shared_roots_in(loop: ir.Operation) -> set[Any]:
    """The workgroup buffers that `loop` uses, at any depth."""
    used = {value for op in walk(loop) for value in op.operands}
    return {memory.root(value) for value in used if memory.is_workgroup(value.type)}


def exchanges_globally(
    loop: ir.Operation, copied: Collection[ir.Operation], noalias: bool
) -> bool:
    """Whether `loop` reads global memory that it also writes, except by `copied` loads.

    Its barriers may order these accesses, and then cannot be dropped.
    """
    written = [root for _, root in memory.written_roots(loop) if root is not None]
    return any(
        memory.may_alias(root, target, noalias)
        for value, root in memory.global_reads(loop)
        if value not in copied
        for target in written
        if not memory.is_workgroup(target.type)
    )


def writes_globally(op: ir.Operation) -> bool:
    """Whether `op` or its regions write memory that other thread blocks can see."""
    return any(
        root is None or not memory.is_workgroup(root.type)
        for _, root in memory.written_roots(op)
    )
