"""Whether all threads of a block run an op alike, as they must run a barrier.

And whether a value is the same for all threads: it is computed from the arguments of
the kernel, from indices of loops that all run alike, and from loads of global memory at
such addresses. All threads load the same from there in a program without races: what
writes it between the loads of two threads is in order with one of them at most.
"""

from __future__ import annotations

from itertools import takewhile
from typing import Any

from alcop_mlir.analysis.ir import symbols
from alcop_mlir.analysis.ir.kernels import is_kernel
from alcop_mlir.analysis.ir.loops import (
    bounds,
    defining_op,
    init_args,
    is_loop,
    yielded,
)
from alcop_mlir.analysis.ir.memory import is_private, is_workgroup, root
from alcop_mlir.analysis.ir.slices import captured, is_repeatable
from alcop_mlir.analysis.ir.walk import around, walk
from alcop_mlir.bindings import ir

_THREAD_IDS = frozenset(
    "gpu.thread_id gpu.lane_id gpu.subgroup_id gpu.global_id gpu.shuffle".split()
)
# A choice between what its regions yield.
_CHOICE = ("scf.if", "scf.yield")
# Block arguments of gpu.launch: block ids, then thread ids, then sizes.
_LAUNCH_THREAD_IDS = (3, 4, 5)


def may_diverge(op: ir.Operation) -> bool:
    """Whether some threads of a block may run `op` otherwise than others.

    They may if the bounds of a loop `op`, or conditions and bounds of ops around it,
    are computed from a thread's id, or from a value whose origin is not known.
    """
    values = list(bounds(op)) if is_loop(op) else []
    for outer in takewhile(lambda one: not _is_scope(one), around(op)):
        if is_loop(outer):
            values += bounds(outer)
        elif outer.name == "scf.if":
            values.append(outer.operands[0])
        else:
            return True
    return any(map(varies, values))


def varies(value: ir.Value) -> bool:
    """Whether `value` may differ between the threads of a block."""
    return _varies(value, set())


def _is_scope(op: ir.Operation) -> bool:
    return is_kernel(op) or op.operation.name == "func.func"


def _is_entry(scope: ir.Operation) -> bool:
    """Whether `scope` is a kernel, or a host function: no function of a thread's."""
    if scope.name == "gpu.func":
        return symbols.is_kernel(scope)
    return scope.parent is None or scope.parent.operation.name != "gpu.module"


def _varies(value: ir.Value, seen: set[Any]) -> bool:
    if value in seen:
        return False
    seen.add(value)
    op = defining_op(value)
    if op is None:
        return _argument_varies(value, seen)
    if not all(map(_is_alike, walk(op))):
        return True
    return any(_varies(operand, seen) for operand in captured(op))


def _is_alike(op: ir.Operation) -> bool:
    """Whether `op` gives the same to all threads that give it the same."""
    if op.name in _THREAD_IDS:
        return False
    if op.name == "memref.load":
        memref = op.operands[0]
        return not is_workgroup(memref.type) and not is_private(root(memref))
    return op.name in _CHOICE or is_repeatable(op)


def _argument_varies(argument: ir.Value, seen: set[Any]) -> bool:
    owner = argument.owner.owner
    name = owner.operation.name
    if name == "gpu.launch":
        return argument.arg_number in _LAUNCH_THREAD_IDS
    if _is_scope(owner):
        return not _is_entry(owner.operation)
    if name != "scf.for":
        return True
    if argument.arg_number == 0:
        return any(_varies(bound, seen) for bound in bounds(owner))
    number = argument.arg_number - 1
    ways = (init_args(owner)[number], yielded(owner, number))
    return any(_varies(way, seen) for way in ways) or not isinstance(
        argument.type, ir.IndexType | ir.IntegerType
    )
