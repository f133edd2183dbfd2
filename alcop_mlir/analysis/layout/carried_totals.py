"""Which totals that a loop carries may be totals of each lane's own elements meanwhile.

    %t = scf.for ... iter_args(%c = %zero) -> vector<16xf32> {
      %d = arith.mulf %c, %s                                   // at most 1
      %n = vector.multi_reduction <add>, %w, %d [1]
      scf.yield %n

What a lane adds of a row is a total of its own until somebody reads the row's: adding
is linear, and %s is the same in all lanes that share the row. Then the lanes exchange
what they have once behind the loop, and not in each iteration. A multiplier of floats
must be at most 1 in magnitude, as that of an online softmax: else parts of a total
could overflow, or an infinite multiplier meet a part that is 0. That is known of powers
of what is at most 0; a multiplication that allows `reassoc` has been told so.

Nothing is changed here. `carried_total` finds the ops of a loop, `lane_totals` what is
held so once these are marked.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from alcop_mlir.analysis.ir import loops
from alcop_mlir.analysis.layout.reshapes import REDUCE, reduced_dims
from alcop_mlir.bindings import ir

FLOAT_PRODUCT = "arith.mulf"
PRODUCTS = (FLOAT_PRODUCT, "arith.muli")
SUMS = ("arith.addf", "arith.addi")
CHOICE = "arith.select"
_KIND_OF_SUM = "#vector.kind<add>"
_POWERS = ("math.exp2", "math.exp")
_SMALLER = ("arith.minnumf", "arith.minimumf")
_LARGER = ("arith.maxnumf", "arith.maximumf")
_KINDS_OF_MAXIMA = ("#vector.kind<maxnumf>", "#vector.kind<maximumf>")
_ALLOWS = ("reassoc", "fast>")  # flags of ops of arith


def carried_total(loop: ir.Operation, number: int) -> list[Any]:
    """The ops that add to the carried value of that number; none if it is no such sum.

    Nobody but them, and the loop, reads it or what they make of it.
    """
    argument = loops.body(loop).arguments[number + 1]
    if not isinstance(argument.type, ir.VectorType) or argument.type.rank != 1:
        return []
    found = _ops_from(argument, loops.yielded(loop, number), loops.body(loop))
    adds = found is not None and any(map(_is_reduction, found))
    return found or [] if adds and _is_used_once(argument) else []


def _ops_from(argument: Any, value: Any, block: Any) -> list[Any] | None:
    """The ops of a block by which `value` comes from `argument`; None for others."""
    if value == argument:
        return []
    op = loops.defining_op(value)
    if op is None or op.block != block or not _is_used_once(value):
        return None
    if _is_reduction(op):
        before = _ops_from(argument, op.operands[1], block)
        return None if before is None else [op, *before]
    if op.name not in (*PRODUCTS, *SUMS):
        return None
    for one, other in (op.operands, reversed(list(op.operands))):
        before = _ops_from(argument, one, block)
        if before is None:
            continue
        if op.name in PRODUCTS:
            is_allowed = op.name != FLOAT_PRODUCT or _may_multiply(op, other)
            return [op, *before] if is_allowed else None
        added = loops.made_by(other, REDUCE)
        if added is not None and _is_reduction(added) and _is_used_once(other):
            return [op, added, *before]
    return None


def _is_reduction(op: Any) -> bool:
    """Whether it totals up one dimension of a matrix."""
    if op.name != REDUCE or str(op.attributes["kind"]) != _KIND_OF_SUM:
        return False
    shape, gone = op.operands[0].type.shape, reduced_dims(op)
    return len(shape) == 2 and len(gone) == 1 and shape[gone[0]] > 1


def _is_used_once(value: Any) -> bool:
    return len(list(value.uses)) == 1


# -- multipliers -----------------------------------------------------------------------


def _may_multiply(op: Any, multiplier: Any) -> bool:
    """Whether each part of a total may be multiplied instead of it."""
    flags = str(op.attributes["fastmath"]) if "fastmath" in op.attributes else ""
    if any(one in flags for one in _ALLOWS):
        return True
    number = loops.splat(multiplier)
    if number is not None:
        return abs(number) <= 1
    power = loops.made_by(multiplier, *_POWERS)
    return power is not None and _is_at_most_zero(power.operands[0])


def _is_at_most_zero(value: Any) -> bool:
    """Whether no element is above 0; one may be NaN."""
    op = loops.defining_op(value)
    if op is None:
        return False
    if op.name in _SMALLER:
        numbers = map(loops.splat, op.operands)
        return any(one is not None and one <= 0 for one in numbers)
    if op.name == FLOAT_PRODUCT:
        return any(
            _is_positive(loops.splat(one)) and _is_at_most_zero(other)
            for one, other in (op.operands, reversed(list(op.operands)))
        )
    return op.name == "arith.subf" and _is_at_least(op.operands[1], op.operands[0])


def _is_at_least(larger: Any, smaller: Any) -> bool:
    """Whether an element of one is never below that of the other; one may be NaN."""
    if larger == smaller:
        return True
    op, other = loops.defining_op(larger), loops.defining_op(smaller)
    if op is None:
        return False
    if op.name in _LARGER:
        return any(_is_at_least(one, smaller) for one in op.operands)
    if op.name == REDUCE and str(op.attributes["kind"]) in _KINDS_OF_MAXIMA:
        return _is_at_least(op.operands[1], smaller)
    if other is None or (op.name, other.name) != (FLOAT_PRODUCT, FLOAT_PRODUCT):
        return False
    scales = [loops.splat(one.operands[1]) for one in (op, other)]
    is_scaled = scales[0] == scales[1] and _is_positive(scales[0])
    return is_scaled and _is_at_least(op.operands[0], other.operands[0])


def _is_positive(number: float | None) -> bool:
    return number is not None and number > 0


# -- what is held so -------------------------------------------------------------------


def lane_totals(reductions: Iterable[Any], mark: str) -> set[Any]:
    """Values that are lanes' own totals: of marked reductions, and what others with the
    mark, loops, branches and choices make of these.
    """
    found: set[Any] = set()
    pending = [one.results[0] for one in reductions]
    while pending:
        value = pending.pop()
        if value not in found:
            found.add(value)
            for use in value.uses:
                pending += _made_of(use, mark)
    return found


def _made_of(use: Any, mark: str) -> list[Any]:
    """What the user of a lane's own sum makes a lane's own sum of it."""
    op, number = use.owner.operation, use.operand_number
    if op.name == "scf.for":
        return _carried(op, number - len(loops.bounds(op)))
    if op.name == "scf.yield":
        parent = op.parent.operation
        if parent.name == "scf.for":
            return _carried(parent, number)
        return [parent.results[number]]
    is_linear = mark in op.attributes or (op.name == CHOICE and number > 0)
    return [op.results[0]] if is_linear else []


def _carried(loop: Any, number: int) -> list[Any]:
    return [loops.body(loop).arguments[number + 1], loop.results[number]]
