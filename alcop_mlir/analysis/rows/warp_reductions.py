"""Which loop nests are warp reductions: each lane combines every 32nd term."""

from __future__ import annotations

from typing import Any

from alcop_mlir.analysis.ir.loops import made_by
from alcop_mlir.analysis.linalg.loop_nests import Nest
from alcop_mlir.analysis.linalg.view import Operand
from alcop_mlir.bindings import ir
from alcop_mlir.target import WARP_SIZE

_INFINITY = float("inf")
# Ops that combine two terms in any order, and their neutral element.
NEUTRAL = {
    "arith.addf": -0.0,
    "arith.maximumf": -_INFINITY,
    "arith.minimumf": _INFINITY,
    "arith.maxnumf": float("nan"),  # of a number and NaN the number
    "arith.minnumf": float("nan"),
    "arith.addi": 0,
    "arith.maxsi": -(2**31),
    "arith.minsi": 2**31 - 1,
    "arith.andi": -1,
    "arith.ori": 0,
}
_TYPES = ("f32", "i32")
# Of other types, ops that do not round.
_EXACT = ("arith.maximumf", "arith.minimumf", "arith.maxnumf", "arith.minnumf")
_HALVES = ("f16", "bf16")
_OF_BOOLEANS = ("arith.andi", "arith.ori")


def combining_op(nest: Nest) -> Any | None:
    """The op that combines a term with the accumulator, if a warp should reduce.

    None if one thread should: where there are few terms, or where not the terms of one
    element but the elements of the output are neighbours in memory. Lanes should read
    neighbouring bytes.
    """
    if not nest.reductions or not _runs_along_memory(nest):
        return None
    terms = nest.static_size(nest.reductions[-1])
    if terms is not None and terms < WARP_SIZE:
        return None
    return combining_of(nest)


def combining_of(nest: Nest) -> Any | None:
    """The op that combines a term with the accumulator, in any order, or None."""
    if len(nest.outputs) != 1 or nest.block is None:
        return None
    (yielded,) = list(nest.block.operations)[-1].operation.operands
    return combining_op_of(nest.outputs[0], yielded)


def combining_op_of(output: Operand, yielded: ir.Value) -> Any | None:
    """The op that combines a term with an output's accumulator, in any order, or None.

    yielded: what the body yields for the output
    """
    op = made_by(yielded, *NEUTRAL)
    if op is None or output.argument is None:
        return None
    users = [use.owner.operation for use in output.argument.uses]
    return op if users == [op] and _is_exchanged(op, str(yielded.type)) else None


def _is_exchanged(op: ir.Operation, kind: str) -> bool:
    """Whether lanes can combine elements of this type by an op."""
    if kind == "i1":
        return op.name in _OF_BOOLEANS
    return kind in _TYPES or (kind in _HALVES and op.name in _EXACT)


def _runs_along_memory(nest: Nest) -> bool:
    """Whether the innermost loop indexes last dimensions of inputs, and no output's."""
    rows = [operand.indices[-1].loops for operand in nest.inputs if operand.indices]
    along_points = any(set(loops) & set(nest.points) for loops in rows)
    return not along_points and any(nest.reductions[-1] in loops for loops in rows)
