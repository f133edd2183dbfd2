"""Which ops may move past each other in a block: what memory an op reads and writes.

Memrefs are told apart by the roots of their views. The answers are conservative: an op
that is not known touches all memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cmp_to_key
from itertools import takewhile
from typing import Any

from alcop_mlir.analysis.ir.loops import block_of, made_by
from alcop_mlir.analysis.ir.memory import is_own_allocation, may_alias, root
from alcop_mlir.analysis.ir.slices import is_pure
from alcop_mlir.analysis.ir.walk import walk
from alcop_mlir.bindings import ir

# Ops with effects that touch no memory but that of their operands or results.
_OPERANDS_ONLY = frozenset(
    "cf.assert memref.alloc memref.alloca memref.copy memref.dealloc memref.load "
    "memref.store".split()
)
# Operand numbers that such an op only reads.
_READS = {"memref.copy": (0,), "memref.load": (0,)}
# Ops that use a memref, but not what it holds.
NO_ACCESS = ("memref.dealloc", "memref.dim")


def ops_before(op: ir.Operation) -> Iterator[Any]:
    """Ops above `op` in its block, the nearest first."""
    ops = (other.operation for other in op.block.operations)
    return reversed(list(takewhile(lambda one: one != op.operation, ops)))


def ops_after(op: ir.Operation) -> Iterator[Any]:
    """Ops below `op` in its block, in order."""
    while (below := ir.InsertionPoint.after(op).ref_operation) is not None:
        op = below.operation
        yield op


def ops_between(first: ir.Operation, last: ir.Operation) -> Iterator[Any]:
    """Ops below `first` and above `last` in their block, in order."""
    return takewhile(lambda op: op != last.operation, ops_after(first))


def users_above(op: ir.Operation, memref: ir.Value) -> Iterable[Any]:
    """Ops above `op` in its block, the nearest first: all that may touch `memref`."""
    users = known_users(memref)
    if users is None or op.block != block_of(root(memref)):
        return ops_before(op)
    above = (user for user in users if user.is_before_in_block(op))
    return sorted(above, key=cmp_to_key(_nearest_first))


def _nearest_first(one: ir.Operation, other: ir.Operation) -> int:
    return 1 if one.is_before_in_block(other) else -1


def reaches_only_operands(op: ir.Operation) -> bool:
    """Whether `op` is known to touch no memory but that of its operands."""
    if op.name.startswith("linalg."):
        return all(one.name.startswith("linalg.") or is_pure(one) for one in walk(op))
    return op.name in _OPERANDS_ONLY or is_pure(op)


def touches(
    op: ir.Operation, memref: ir.Value, noalias_arguments: bool = False
) -> bool:
    """Whether `op` may read or write `memref`; a view does neither."""
    return not is_pure(op) and _reaches(op.operands, memref, noalias_arguments)


def writes(op: ir.Operation, memref: ir.Value, noalias_arguments: bool = False) -> bool:
    """Whether `op` may write, or free, `memref`."""
    if is_pure(op):
        return False
    read = _READS.get(op.name, ())
    written = [value for n, value in enumerate(op.operands) if n not in read]
    if op.name.startswith("linalg."):
        written = written[_inputs(op) :]
    return _reaches(written, memref, noalias_arguments)


def may_write(
    op: ir.Operation, memref: ir.Value, noalias_arguments: bool = False
) -> bool:
    """As `writes`, of an op that may reach any memory too."""
    return not reaches_only_operands(op) or writes(op, memref, noalias_arguments)


def known_users(memref: ir.Value) -> set[Any] | None:
    """The ops that use the allocation of `memref`, or views of it: no other touches it.

    None where it is no allocation, or where a user is in a region, or not known to
    reach its operands only.
    """
    allocated = root(memref)
    if not is_own_allocation(allocated):
        return None
    block, pending = block_of(allocated), [allocated]
    users: set[Any] = set()
    while pending:
        for use in pending.pop().uses:
            op = use.owner.operation
            if op.block != block or not reaches_only_operands(op):
                return None
            users.add(op)
            views = (one for one in op.results if isinstance(one.type, ir.MemRefType))
            pending.extend(views)
    return users


def may_need(user: ir.Operation, op: ir.Operation) -> bool:
    """Whether `user` of a memref may access it after `op`; a view may anywhere."""
    if user.name in NO_ACCESS:
        return False
    is_view = len(user.results) > 0
    return is_view or user.block != op.block or not user.is_before_in_block(op)


def _inputs(op: ir.Operation) -> int:
    """Inputs of a linalg op; ops without operandSegmentSizes have one output."""
    if "operandSegmentSizes" in op.attributes:
        return op.attributes["operandSegmentSizes"][0]
    return len(op.operands) - 1


def _reaches(
    values: Iterable[ir.Value], memref: ir.Value, noalias_arguments: bool
) -> bool:
    reached = root(memref)
    return any(
        may_alias(root(value), reached, noalias_arguments)
        for value in with_indices(values)
        if isinstance(value.type, ir.MemRefType)
    )


def with_indices(values: Iterable[ir.Value]) -> Iterator[Any]:
    """The values, and the indices by which some of them are rows of a table."""
    for value in values:
        yield value
        take = made_by(value, "alcop.take")
        if take is not None:
            yield take.operands[1]
