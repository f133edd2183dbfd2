"""Whether all threads of a block run an op alike, as they must run a barrier."""

from __future__ import annotations

from itertools import takewhile
from typing import Any

from alcop_mlir.analysis.ir.kernels import is_kernel
from alcop_mlir.analysis.ir.loops import (
    bounds,
    defining_op,
    init_args,
    is_loop,
    yielded,
)
from alcop_mlir.analysis.ir.memory import is_workgroup
from alcop_mlir.analysis.ir.slices import captured, is_repeatable
from alcop_mlir.analysis.ir.walk import around
from alcop_mlir.bindings import ir

_THREAD_IDS = frozenset(
    "gpu.thread_id gpu.lane_id gpu.subgroup_id gpu.global_id gpu.shuffle".split()
)
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


def _varies(value: ir.Value, seen: set[Any]) -> bool:
    if value in seen:
        return False
    seen.add(value)
    op = defining_op(value)
    if op is None:
        return _argument_varies(value, seen)
    if op.name in _THREAD_IDS or not (is_repeatable(op) or _is_uniform_read(op)):
        return True
    return any(_varies(operand, seen) for operand in captured(op))


def _is_uniform_read(op: ir.Operation) -> bool:
    """A load from global memory: the same address gives the same to all threads."""
    return op.name == "memref.load" and not is_workgroup(op.operands[0].type)


def _argument_varies(argument: ir.Value, seen: set[Any]) -> bool:
    owner = argument.owner.owner
    name = owner.operation.name
    if name == "gpu.launch":
        return argument.arg_number in _LAUNCH_THREAD_IDS
    if _is_scope(owner):
        return False
    if name != "scf.for":
        return True
    if argument.arg_number == 0:
        return any(_varies(bound, seen) for bound in bounds(owner))
    number = argument.arg_number - 1
    ways = (init_args(owner)[number], yielded(owner, number))
    return any(_varies(way, seen) for way in ways) or not isinstance(
        argument.type, ir.IndexType | ir.IntegerType
    )
