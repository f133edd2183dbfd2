"""Branches that a whole run of a kernel takes one way, which is not known before it.

Such is the choice between two versions of a loop by where memrefs are in memory, or a
condition on an argument. All threads take the same way, so that waits, barriers and
commit groups in it count.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

from alcop_mlir.bindings import ir
from alcop_mlir.verifier.accesses import inside
from alcop_mlir.verifier.program import SYNCHRONISATION
from alcop_mlir.verifier.values import is_computable

MOST = 3  # conditions of a kernel; of others nothing is assumed
# What a launch is given, and what is the same for all threads of a block.
_GIVEN = frozenset(
    """
    memref.extract_aligned_pointer_as_index memref.extract_strided_metadata memref.dim
    gpu.block_id gpu.block_dim gpu.grid_dim
    """.split()
)
_FUNCTIONS = ("func.func", "gpu.func")
_FIRST_THREAD_ID = 3  # of the arguments of gpu.launch: block ids, thread ids, sizes
_FIRST_SIZE = 6


def choices(kernel: ir.Operation) -> list[dict[Any, bool]]:
    """For each run the ways of such branches, as `{scf.if: condition}`."""
    branches = [op for op in inside(kernel) if op.name == "scf.if" and _meets(op)]
    conditions = dict.fromkeys(op.operands[0] for op in branches)
    found = [value for value in conditions if _is_of_the_run(value)][:MOST]
    ways = [
        dict(zip(found, taken, strict=True))
        for taken in product((True, False), repeat=len(found))
    ]
    return [
        {op: way[op.operands[0]] for op in branches if op.operands[0] in way}
        for way in ways
    ]


def _meets(branch: ir.Operation) -> bool:
    """Whether a branch holds waits, barriers or commit groups."""
    return any(op.name in SYNCHRONISATION for op in inside(branch))


def _is_of_the_run(condition: ir.Value) -> bool:
    """Whether a condition is computed before loops, alike in all threads."""
    for value in _closure(condition):
        owner = value.owner
        if isinstance(owner, ir.Block):
            if not _is_given(value, owner.owner.operation):
                return False
        elif _is_in_a_loop(owner.operation):
            return False
        elif not (is_computable(owner.operation) or owner.operation.name in _GIVEN):
            return False
    return True


def _closure(value: ir.Value) -> Iterator[Any]:
    """All values that `value` is computed from, itself included."""
    seen: set[Any] = set()
    pending = [value]
    while pending:
        one = pending.pop()
        if one in seen:
            continue
        seen.add(one)
        yield one
        if not isinstance(one.owner, ir.Block):
            pending.extend(one.owner.operation.operands)


def _is_given(argument: ir.Value, op: ir.Operation) -> bool:
    """Whether an argument of `op` is the same for all threads, throughout a run."""
    if op.name == "gpu.launch":
        return not _FIRST_THREAD_ID <= argument.arg_number < _FIRST_SIZE
    return op.name in _FUNCTIONS


def _is_in_a_loop(op: ir.Operation) -> bool:
    while op.parent is not None:
        op = op.parent.operation
        if op.name in ("scf.for", "scf.while"):
            return True
    return False
