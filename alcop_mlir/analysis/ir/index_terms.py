"""Index values in linear form, and how far apart two of them are.

`%row = addi %base, %c8` is 8 from `%base`, whatever that is. Additions, subtractions
and multiples by constants are followed, in `arith` and in `affine.apply`; of a division
by a constant what surely is a multiple of it. All else is a term of its own. So are
casts: 32 bits may wrap around where 64 do not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from alcop_mlir.analysis.ir.alignment import given, kept_dimensions, without_casts
from alcop_mlir.analysis.ir.loops import bounds, constant, defining_op, made_by
from alcop_mlir.bindings import ir
from alcop_mlir.frozen import frozen


@frozen
class Terms:
    """`constant`, and so many times each part.

    multiples: pairs of a part and a number, which is not 0; a part is a value, or
               ("div" or "rem", the terms that are divided, divisor)
    """

    constant: int
    multiples: frozenset[tuple[Any, int]] = frozenset()

    def plus(self, other: Terms, times: int = 1) -> Terms:
        """This, and so many times `other`."""
        multiples = dict(self.multiples)
        for part, number in other.multiples:
            multiples[part] = multiples.get(part, 0) + times * number
        return _collected(self.constant + times * other.constant, multiples.items())

    def times(self, number: int) -> Terms:
        """So many times this."""
        return Terms(0).plus(self, number)

    @property
    def known(self) -> int | None:
        """The number that this is; None where it depends on values."""
        return None if self.multiples else self.constant


def _collected(constant: int, multiples: Iterable[tuple[Any, int]]) -> Terms:
    return Terms(constant, frozenset((part, n) for part, n in multiples if n))


# The forms of some values that are known already, as the indices of loops.
Known = Mapping[Any, Terms]


def terms(index: Any, known: Known | None = None) -> Terms:
    """An index, or a number, in linear form."""
    known = known or {}
    if isinstance(index, int):
        return Terms(index)
    if index in known:
        return known[index]
    number = constant(index)
    if number is not None:
        return Terms(number)
    op = defining_op(index)
    rule = None if op is None else _RULES.get(op.name)
    found = None if rule is None else rule(op, known)
    return single(index) if found is None else found


def single(part: Any) -> Terms:
    """Once a part: a value, or a division."""
    return Terms(0, frozenset([(part, 1)]))


def values_of(part: Any) -> set[Any]:
    """The values in a part."""
    if not isinstance(part, tuple):
        return {part}
    return {value for inner, _ in part[1].multiples for value in values_of(inner)}


def distance(one: Terms, other: Terms) -> int | None:
    """`one` less `other`, where that is a number; else None."""
    return one.plus(other, -1).known


def element(
    memref: ir.Value, indices: Sequence[Any], known: Known | None = None
) -> tuple[Any, list[Terms]]:
    """What `memref` is a view of, and the indices of one of its elements in that.

    Subviews with steps of 1 are followed.
    """
    found = [terms(index, known) for index in indices]
    while (view := made_by(memref, "memref.subview")) is not None:
        if any(step != 1 for step in given(view, "strides")):
            break
        inner = dict(zip(kept_dimensions(view), found, strict=True))
        offsets = [terms(offset, known) for offset in given(view, "offsets")]
        found = [at.plus(inner.get(n, Terms(0))) for n, at in enumerate(offsets)]
        memref = without_casts(view.operands[0])
    return memref, found


# -- arithmetic ----------------------------------------------------------------------


def _sum(op: ir.Operation, known: Known) -> Terms:
    left, right = _operands(op, known)
    return left.plus(right, 1 if op.name == "arith.addi" else -1)


def _operands(op: ir.Operation, known: Known) -> list[Terms]:
    return [terms(value, known) for value in op.operands]


def _multiplied(op: ir.Operation, known: Known) -> Terms | None:
    return _product(*_operands(op, known))


def _product(left: Terms, right: Terms) -> Terms | None:
    if left.known is not None:
        return right.times(left.known)
    return None if right.known is None else left.times(right.known)


def _divided(op: ir.Operation, known: Known) -> Terms | None:
    left, right = _operands(op, known)
    # Other divisions do not round down what is negative.
    if op.name != "arith.floordivsi" and not _is_natural(left):
        return None
    return _division(_DIVISIONS[op.name], left, right)


def _division(name: str, left: Terms, right: Terms) -> Terms | None:
    """The quotient or remainder of a division that rounds down."""
    divisor = right.known
    if divisor is None or divisor <= 0:
        return None
    whole, more = divmod(left.constant, divisor)
    multiples = [(part, n // divisor) for part, n in left.multiples if not n % divisor]
    others = [(part, n) for part, n in left.multiples if n % divisor]
    rest = _collected(more, others)
    if name == "rem":
        return rest if rest.known is not None else single((name, rest, divisor))
    found = _collected(whole, multiples)
    return (
        found if rest.known is not None else found.plus(single((name, rest, divisor)))
    )


def _is_natural(number: Terms) -> bool:
    """Whether a number is surely not negative."""
    return number.constant >= 0 and all(
        times > 0 and _is_natural_part(part) for part, times in number.multiples
    )


def _is_natural_part(part: Any) -> bool:
    if isinstance(part, tuple):
        return True
    op = defining_op(part)
    if op is not None:
        return op.name in _NATURAL
    holder = part.owner.owner.operation
    if holder.name == "scf.for":
        return part.arg_number == 0 and _is_natural(terms(bounds(holder)[0]))
    return holder.name == "gpu.launch"


def _applied(op: ir.Operation, known: Known) -> Terms | None:
    (result,) = op.attributes["map"].value.results
    return _of_expression(
        result, _operands(op, known), op.attributes["map"].value.n_dims
    )


def _of_expression(expression: Any, operands: list[Terms], dims: int) -> Terms | None:
    """An affine expression of these operands; None where it is not linear."""
    if isinstance(expression, ir.AffineConstantExpr):
        return Terms(expression.value)
    if isinstance(expression, ir.AffineDimExpr):
        return operands[expression.position]
    if isinstance(expression, ir.AffineSymbolExpr):
        return operands[dims + expression.position]
    rules = [rule for kind, rule in _EXPRESSIONS if isinstance(expression, kind)]
    if not rules:
        return None
    left = _of_expression(expression.lhs, operands, dims)
    right = _of_expression(expression.rhs, operands, dims)
    return None if left is None or right is None else rules[0](left, right)


_EXPRESSIONS: tuple[tuple[type, Callable[[Terms, Terms], Terms | None]], ...] = (
    (ir.AffineAddExpr, Terms.plus),
    (ir.AffineMulExpr, _product),
    (ir.AffineFloorDivExpr, partial(_division, "div")),
    (ir.AffineModExpr, partial(_division, "rem")),
)
_DIVISIONS = {
    "arith.divui": "div",
    "arith.divsi": "div",
    "arith.floordivsi": "div",
    "arith.remui": "rem",
    "arith.remsi": "rem",
}
_RULES: dict[str, Callable[[Any, Known], Terms | None]] = {
    "arith.addi": _sum,
    "arith.subi": _sum,
    "arith.muli": _multiplied,
    "affine.apply": _applied,
    **dict.fromkeys(_DIVISIONS, _divided),
}
# Ops that make numbers from 0 on; so do the arguments of gpu.launch.
_NATURAL = frozenset(
    "gpu.thread_id gpu.block_id gpu.block_dim gpu.grid_dim gpu.lane_id "
    "memref.dim".split()
)
