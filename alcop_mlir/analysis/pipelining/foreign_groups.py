"""Which commit groups and waits of a loop are not the pipeline's own.

`cp.async.commit_group` ends the group of all copies that the thread has issued since
the last, and `cp.async.wait_group N` waits for all groups but the N youngest (PTX ISA,
both instructions); what tokens an op names makes no difference. So a wait is right as
long as no fewer groups follow those that it is for: with more it only waits longer.
Where a loop has asynchronous copies that are not pipelined, all its groups and waits
stay, if need be empty, and those of the pipeline come in addition.

Groups before the loop are older than the pipeline's first one: the pipeline waits for
them too, whenever it waits.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from alcop_mlir.analysis.ir.loops import ancestor_in, body
from alcop_mlir.analysis.ir.synchronisation import GROUP, WAIT
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.analysis.pipelining.moves import ASYNC_OP
from alcop_mlir.bindings import ir


def needed_groups(loop: ir.Operation, copies: Collection[ir.Operation]) -> list[Any]:
    """The groups and waits of the loop's own block that stay; `copies` are planned."""
    own = [op.operation for op in body(loop).operations]
    own = [op for op in own if op.name in (GROUP, WAIT)]
    copying = [ancestor_in(op, body(loop)) for op in walk(loop, ASYNC_OP)]
    if any(op not in copies for op in copying):
        return own
    waits = [op for op in own if op.name == WAIT]
    return [op for op in own if op.name == GROUP and not _is_used_by(op, waits)]


def _is_used_by(group: ir.Operation, waits: list[Any]) -> bool:
    """Whether nothing but `waits` uses the token of a group."""
    return all(use.owner.operation in waits for use in group.results[0].uses)
