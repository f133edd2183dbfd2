"""Builders of the four primitives of a pipeline, at the current insertion point.

Ops are created by name: constructors of ops that are defined in Python bind their
arguments by inspection, which takes ten times as long.
"""

from __future__ import annotations

from typing import Any

from alcop_mlir.bindings import ir
from alcop_mlir.dialects import alcop


def acquire() -> None:
    """The next slot may be filled."""
    ir.Operation.create(alcop.ProducerAcquireOp.OPERATION_NAME)


def commit() -> Any:
    """End the commit group of the copies issued so far; its token."""
    results = [alcop.group_type()]
    name = alcop.ProducerCommitOp.OPERATION_NAME
    return ir.Operation.create(name, results=results).results[0]


def wait(group: Any) -> None:
    """Wait until the copies of `group` have landed, for all threads."""
    ir.Operation.create(alcop.ConsumerWaitOp.OPERATION_NAME, operands=[group])


def release() -> None:
    """All reads of the current slot are above."""
    ir.Operation.create(alcop.ConsumerReleaseOp.OPERATION_NAME)
