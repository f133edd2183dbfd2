"""Commit groups and waits that a plan drops, though copies need them, for `plans.py`.

A pipeline makes groups and waits for its own copies. Where a loop has asynchronous
copies that are not the plan's, all of its own must be named, and so stay: what they
wait for is counted in groups.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from alcop_mlir.bindings import ir
from alcop_mlir.verifier.accesses import ASYNC_COPIES, inside
from alcop_mlir.verifier.violations import Violation

_GROUPS = ("nvgpu.device_async_create_group", "nvgpu.device_async_wait")


def dropped_groups(
    loop: ir.Operation, planned: Collection[Any], kept: Collection[Any]
) -> Iterator[Violation]:
    """Those of the loop's own block; `planned` ops copy in the pipeline."""
    copies = (op for op in inside(loop) if op.name in ASYNC_COPIES)
    other = next((op for op in copies if not _is_in(op, planned)), None)
    if other is None:
        return
    for op in loop.regions[0].blocks[0].operations:
        if op.operation.name in _GROUPS and op.operation not in kept:
            why = f"is not in the plan, and neither is a '{other.name}' that needs it"
            yield Violation(op.operation, why)


def _is_in(op: Any, planned: Collection[Any]) -> bool:
    """Whether `op` is one of `planned`, or in the regions of one."""
    while op is not None:
        if op.operation in planned:
            return True
        op = op.parent
    return False
