"""Integers of a program that is run: which are needed, and their values.

Only integers that decide slots, branches, trip counts and commit groups are computed.
A number that they depend on and that cannot be computed (a size, a load) is *free* if a
loop's bounds depend on it: it takes small values in turn. Others stay unknown.
"""

from __future__ import annotations

import math
import operator
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from alcop_mlir.bindings import ir

COMMITS = ("alcop.producer_commit", "nvgpu.device_async_create_group")
Assignment = dict[Any, int]
Rule = Callable[..., int | None]
_LOWER, _UPPER, _STEP = range(3)
_THREAD_IDS = ("gpu.thread_id", "gpu.lane_id", "gpu.subgroup_id", "gpu.global_id")
_LAUNCH_THREAD_IDS = (3, 4, 5)  # arguments: block ids, then thread ids
MOST_TRIPS = 24
_LARGE = (33, 64, 100)  # for loops over a part of a size
_SHIFT = "arith.shr"
_MIXED_RUNS = 12  # in which sizes differ from each other


class Values:
    """The values that must be computed to run some loops and branches."""

    def __init__(self, wanted: Iterable[Any], loops: Iterable[Any]):
        """`loops` are run: their bounds are needed too."""
        self.needed: set[Any] = set()
        self.leaves: set[Any] = set()
        self._free: dict[Any, int] = {}
        self._scale: dict[Any, int] = {}
        self._collect(wanted, self.needed, self.leaves)
        for loop in loops:
            self._collect(_bounds(loop), self.needed, self.leaves)
        loops = {*loops, *(o for o in _owners(self.needed) if o.name == "scf.for")}
        for loop in loops:
            self._find_free(loop)
        self._uppers = {_bounds(loop)[_UPPER] for loop in loops}
        for loop in loops:
            self._name_roles(loop)

    def assignments(self, slots: int) -> Iterator[Assignment]:
        """The free numbers of each run; trip counts are up to two slot periods."""
        if not self._free:
            yield {}
            return
        most = min(2 * slots + 4, MOST_TRIPS)
        large = _LARGE if self._needs_more(most, slots) else ()
        for trips in (*range(most + 1), *large):
            yield self._assigned(lambda trips=trips: trips)
        if len(self._free) > 1:
            draw = random.Random(0)
            for _ in range(_MIXED_RUNS):
                yield self._assigned(lambda: draw.randint(0, most))

    def _needs_more(self, most: int, slots: int) -> bool:
        """Whether sizes beyond `most` may decide what others do not.

        Divisions by no more than the number of slots are those of a pipeline itself.
        """
        if any((constant(value) or 0) > most for value in self.needed):
            return True
        return any(_divisor(op) > slots for op in _owners(self.needed))

    def _assigned(self, trips: Callable[[], int]) -> Assignment:
        plain = {_LOWER: 0, _STEP: 1}
        return {
            value: plain[role] if role in plain else trips() * self._scale[value]
            for value, role in self._free.items()
        }

    def _find_free(self, loop: ir.Operation) -> None:
        bounds = _bounds(loop)
        step = constant(bounds[_STEP]) or 1
        leaves: set[Any] = set()
        self._collect(bounds, set(), leaves)
        for leaf in leaves - {one for one in leaves if is_of_thread(one)}:
            self._free[leaf] = _UPPER
            self._scale[leaf] = min(step, self._scale.get(leaf, step))

    def _name_roles(self, loop: ir.Operation) -> None:
        """Set the role of free bounds; that of an upper bound takes precedence."""
        for role in (_LOWER, _STEP):
            bound = _bounds(loop)[role]
            if bound in self._free and bound not in self._uppers:
                self._free[bound] = role

    def _collect(
        self, values: Iterable[Any], needed: set[Any], leaves: set[Any]
    ) -> None:
        pending = list(values)
        while pending:
            value = pending.pop()
            if value in needed:
                continue
            needed.add(value)
            made_of = origins(value)
            if made_of is None:
                leaves.add(value)
            else:
                pending.extend(made_of)


def is_computable(op: ir.Operation) -> bool:
    """Whether `rule_of` knows the op."""
    return op.name in _ARITHMETIC or op.name in _SPECIAL


def rule_of(op: ir.Operation) -> Rule:
    """What computes the result of an op that `is_computable` of its operands' numbers.

    A number that is not known is None.
    """
    if op.name in _SPECIAL:
        return _SPECIAL[op.name](op)
    return _known_only(_ARITHMETIC[op.name])


def constant(value: ir.Value) -> int | None:
    """The integer that `value` is if it is an `arith.constant`, or None."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.operation.name != "arith.constant":
        return None
    return _constant(owner.operation)


def origins(value: ir.Value) -> list[Any] | None:
    """The values that `value` is computed from; None where that is not known."""
    owner = value.owner
    if isinstance(owner, ir.Block):
        return _origins_of_argument(value, owner.owner.operation)
    op = owner.operation
    if is_computable(op):
        return list(op.operands)
    if op.name in COMMITS:
        return []
    number = list(op.results).index(value)
    if op.name == "scf.for":
        return [*_bounds(op), *_carried(op, number)]
    if op.name == "scf.if":
        ways = [_last(op, region).operands[number] for region in (0, 1)]
        return [op.operands[0], *ways]
    return None


def is_of_thread(value: ir.Value) -> bool:
    """Whether a value says which thread runs: others have others, all at a time."""
    owner = value.owner
    if isinstance(owner, ir.Block):
        is_launch = owner.owner.operation.name == "gpu.launch"
        return is_launch and value.arg_number in _LAUNCH_THREAD_IDS
    return owner.operation.name in _THREAD_IDS


def _origins_of_argument(value: ir.Value, op: ir.Operation) -> list[Any] | None:
    if op.name != "scf.for":
        return None
    return _carried(op, value.arg_number - 1) if value.arg_number else _bounds(op)


def _carried(loop: Any, number: int) -> list[Any]:
    """What a loop-carried value starts from, and becomes."""
    return [loop.operands[3 + number], _last(loop, 0).operands[number]]


def _owners(values: Iterable[Any]) -> Iterator[Any]:
    """The ops that make the values, or whose blocks they are arguments of."""
    for value in values:
        owner = value.owner
        yield (owner.owner if isinstance(owner, ir.Block) else owner).operation


def _divisor(op: ir.Operation) -> float:
    """What an op divides by, as far as that is known; 1 if it is no division."""
    if op.name.startswith("affine."):
        return math.inf
    if not op.name.startswith(("arith.div", "arith.floordiv", "arith.ceildiv", _SHIFT)):
        return 1
    by = constant(op.operands[1])
    if by is None:
        return math.inf
    return 2**by if op.name.startswith(_SHIFT) else by


def _bounds(loop: ir.Operation) -> list[Any]:
    return list(loop.operands)[:3]


def _last(op: ir.Operation, region: int) -> Any:
    return list(op.regions[region].blocks[0].operations)[-1].operation


# -- arithmetic ------------------------------------------------------------------------


def _known_only(compute: Callable[..., int]) -> Rule:
    def rule(*operands: int | None) -> int | None:
        if None in operands:
            return None
        try:
            return compute(*operands)
        except ZeroDivisionError:
            return 0  # undefined: of a size of 0, for which no kernel is launched

    return rule


def _constant(op: ir.Operation) -> int | None:
    attribute = op.attributes["value"]
    if isinstance(attribute, ir.BoolAttr):
        return int(attribute.value)
    return attribute.value if isinstance(attribute, ir.IntegerAttr) else None


def _constant_rule(op: ir.Operation) -> Rule:
    value = _constant(op)
    return lambda: value


def _comparison_rule(op: ir.Operation) -> Rule:
    return _known_only(_PREDICATES[int(op.attributes["predicate"]) % 10])


def _conjunction_rule(_: ir.Operation) -> Rule:
    """Zero where one is, whatever the other is: as one branch in the other."""

    def rule(one: int | None, other: int | None) -> int | None:
        if one == 0 or other == 0:
            return 0
        return None if one is None or other is None else one & other

    return rule


def _disjunction_rule(op: ir.Operation) -> Rule:
    """Of conditions true where one is, whatever the other is."""
    is_condition = str(op.results[0].type) == "i1"

    def rule(one: int | None, other: int | None) -> int | None:
        if is_condition and (one or other):
            return 1
        return None if one is None or other is None else one | other

    return rule


def _selection_rule(_: ir.Operation) -> Rule:
    def rule(condition: int | None, one: int | None, other: int | None) -> int | None:
        if condition is None:
            return one if one == other else None
        return one if condition else other

    return rule


def _affine_rule(op: ir.Operation) -> Rule:
    """Of affine.apply, affine.min and affine.max."""
    affine_map = op.attributes["map"].value
    dims, results = affine_map.n_dims, list(affine_map.results)
    choose = max if op.name == "affine.max" else min

    def rule(*operands: int | None) -> int | None:
        if None in operands:
            return None
        return choose(_evaluated(e, operands[:dims], operands[dims:]) for e in results)

    return rule


def _evaluated(expr: Any, dims: Sequence[Any], symbols: Sequence[Any]) -> int:
    if isinstance(expr, ir.AffineConstantExpr):
        return expr.value
    if isinstance(expr, ir.AffineDimExpr):
        return dims[expr.position]
    if isinstance(expr, ir.AffineSymbolExpr):
        return symbols[expr.position]
    left = _evaluated(expr.lhs, dims, symbols)
    right = _evaluated(expr.rhs, dims, symbols)
    return next(rule for kind, rule in _AFFINE if isinstance(expr, kind))(left, right)


def _ceil_divided(left: int, right: int) -> int:
    return -(-left // right)


def _divided(left: int, right: int) -> int:
    """Toward zero, as the hardware does."""
    return abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)


_AFFINE: tuple[tuple[type, Callable[[int, int], int]], ...] = (
    (ir.AffineAddExpr, operator.add),
    (ir.AffineMulExpr, operator.mul),
    (ir.AffineModExpr, operator.mod),
    (ir.AffineFloorDivExpr, operator.floordiv),
    (ir.AffineCeilDivExpr, _ceil_divided),
)
# By the number of arith's predicate: eq, ne, then signed and unsigned alike, as the
# numbers here stay far from where these differ.
_PREDICATES = (
    operator.eq,
    operator.ne,
    *2 * (operator.lt, operator.le, operator.gt, operator.ge),
)
_ARITHMETIC: dict[str, Callable[..., int]] = {
    "arith.addi": operator.add,
    "arith.subi": operator.sub,
    "arith.muli": operator.mul,
    "arith.xori": operator.xor,
    "arith.shli": operator.lshift,
    "arith.shrsi": operator.rshift,
    "arith.shrui": operator.rshift,
    "arith.minsi": min,
    "arith.minui": min,
    "arith.maxsi": max,
    "arith.maxui": max,
    "arith.divsi": _divided,
    "arith.divui": operator.floordiv,
    "arith.floordivsi": operator.floordiv,
    "arith.ceildivsi": _ceil_divided,
    "arith.ceildivui": _ceil_divided,
    "arith.remsi": lambda left, right: left - right * _divided(left, right),
    "arith.remui": operator.mod,
    "arith.index_cast": int,
    "arith.index_castui": int,
    "arith.extsi": int,
    "arith.extui": int,
    "arith.trunci": int,
}
_SPECIAL: dict[str, Callable[[Any], Rule]] = {
    "arith.constant": _constant_rule,
    "arith.cmpi": _comparison_rule,
    "arith.select": _selection_rule,
    "arith.andi": _conjunction_rule,
    "arith.ori": _disjunction_rule,
    "affine.apply": _affine_rule,
    "affine.min": _affine_rule,
    "affine.max": _affine_rule,
}
