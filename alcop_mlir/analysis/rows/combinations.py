"""How threads can share a reduction: what combines the totals of two of them.

`combination` reads the body of a reduction. Either each output has an op of its own
that combines two terms in any order, as sum and maximum do. Or the first or last of the
largest or smallest terms is looked for, and outputs are its value and numbers that are
computed of where it is:

    %max = arith.maximumf %x, %m                 // or a select as below
    %is = arith.cmpf ogt, %x, %m
    %arg = arith.select %is, %i, %n              // %i is computed of linalg.index

Of terms that are no NaN, the value and the number of the column, smaller where values
are equal, are ordered totally, so that pairs combine in any order. What the op makes of
a NaN depends on the order of all terms: a row that has one is folded term by term.
Changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from alcop_mlir.analysis.ir.loops import defining_op, made_by
from alcop_mlir.analysis.ir.rejected import Rejected
from alcop_mlir.analysis.ir.slices import backward_slice, is_pure
from alcop_mlir.analysis.linalg.loop_nests import Nest
from alcop_mlir.analysis.rows.warp_reductions import combining_op_of
from alcop_mlir.bindings import arith, ir
from alcop_mlir.frozen import frozen

# What compares a term with the best one so far: is the larger one looked for, and does
# a term win that equals it? Unordered and ordered ones differ for NaN only.
_FLOATS = arith.CmpFPredicate
_INTEGERS = arith.CmpIPredicate
_LOOKED_FOR = {
    int(_FLOATS.OGT): (True, False),
    int(_FLOATS.UGT): (True, False),
    int(_FLOATS.OGE): (True, True),
    int(_FLOATS.UGE): (True, True),
    int(_FLOATS.OLT): (False, False),
    int(_FLOATS.ULT): (False, False),
    int(_FLOATS.OLE): (False, True),
    int(_FLOATS.ULE): (False, True),
}
_LOOKED_FOR_INTEGER = {
    int(_INTEGERS.sgt): (True, False),
    int(_INTEGERS.sge): (True, True),
    int(_INTEGERS.slt): (False, False),
    int(_INTEGERS.sle): (False, True),
}
_EXTREMES = {
    True: ("arith.maximumf", "arith.maxnumf", "arith.maxsi"),
    False: ("arith.minimumf", "arith.minnumf", "arith.minsi"),
}
_NUMBER = "linalg.index"
_TYPES = ("f32", "f16", "bf16", "i32")  # of values, which lanes exchange


@frozen
class Terms:
    """Each output has an op that combines two terms in any order.

    ops: of each output, the op of the body
    """

    ops: tuple[Any, ...]


@frozen
class Extreme:
    """The first or last of the largest or smallest terms, and where it is.

    value:    the number of the output that is the extreme so far
    term:     what is compared with it
    largest:  whether the largest is looked for, else the smallest
    last:     whether the last one of equal ones, else the first one
    op:       what makes the value of two of them; None where that is the chosen one
    """

    value: int
    term: Any
    largest: bool
    last: bool
    op: Any = None


Combination = Terms | Extreme


def combination(nest: Nest) -> Combination | Rejected:
    """How threads can share the reduction, or why they cannot."""
    if nest.block is None:
        return Rejected(nest.op, "its body is none")
    yielded = nest.block.operations[-1].operation.operands
    found = [
        combining_op_of(output, value)
        for output, value in zip(nest.outputs, yielded, strict=True)
    ]
    ops = tuple(op for op in found if op is not None)
    if len(ops) == len(found):
        return Terms(ops)
    return _extreme(nest) or Rejected(nest.op, _why_in_order(nest))


def _why_in_order(nest: Nest) -> str:
    """Why its terms must be combined one after the other."""
    yielded = nest.block.operations[-1].operation.operands
    kinds = sorted({str(value.type) for value in yielded})
    names = sorted({_name(value) for value in yielded})
    return (
        f"threads cannot share it: it combines {', '.join(kinds)} by "
        f"{', '.join(names)}, expected additions of f32 or i32, extremes of "
        f"{', '.join(_TYPES)}, or where one of these is"
    )


def _name(value: ir.Value) -> str:
    op = defining_op(value)
    return "no op" if op is None else op.name


def _extreme(nest: Nest) -> Extreme | None:
    found = list(_compared(nest))
    if not found or len(found) != len(nest.outputs) - 1:
        return None
    return found[0] if all(one == found[0] for one in found) else None


def _compared(nest: Nest) -> Iterator[Extreme]:
    """Of each output that is where the extreme is, what it is the extreme of."""
    yielded = list(nest.block.operations[-1].operation.operands)
    for number, result in enumerate(yielded):
        select = made_by(result, "arith.select")
        output = nest.outputs[number].argument
        if select is None or output is None or output not in _choices(select):
            continue
        condition, one, other = select.operands
        is_new = other == output
        new = one if is_new else other
        looked_for = _looked_for(nest, condition, is_new)
        if looked_for is None or looked_for.value == number:
            continue
        extreme = _with_value(nest, looked_for)
        if extreme is not None and _is_of_place(nest, new):
            yield extreme


def _looked_for(nest: Nest, condition: ir.Value, is_new: bool) -> Extreme | None:
    """What a comparison of a term with an output looks for."""
    compared = made_by(condition, "arith.cmpf", "arith.cmpi")
    if compared is None:
        return None
    left, right = compared.operands
    arguments = [one.argument for one in nest.outputs if one.argument is not None]
    is_swapped = left in arguments
    term, best = (right, left) if is_swapped else (left, right)
    if len(arguments) < len(nest.outputs) or best not in arguments:
        return None
    if str(term.type) not in _TYPES:
        return None
    known = _LOOKED_FOR if compared.name == "arith.cmpf" else _LOOKED_FOR_INTEGER
    found = known.get(compared.attributes["predicate"].value)
    if found is None or _depends_on(nest, term, arguments):
        return None
    largest, last = found
    # The best one wins where the term does not, and compared the other way round.
    if is_swapped:
        largest = not largest
    if not is_new:
        largest, last = not largest, not last
    return Extreme(arguments.index(best), term, largest, last)


def _with_value(nest: Nest, found: Extreme) -> Extreme | None:
    """With how the value is made; None where the output is not just the extreme."""
    result = nest.block.operations[-1].operation.operands[found.value]
    best = nest.outputs[found.value].argument
    op = made_by(result, *_EXTREMES[found.largest])
    if op is not None:
        is_extreme = set(op.operands) == {found.term, best}
        return replace(found, op=op) if is_extreme else None
    select = made_by(result, "arith.select")
    if select is None or set(_choices(select)) != {found.term, best}:
        return None
    condition, _, other = select.operands
    return found if _looked_for(nest, condition, other == best) == found else None


def _choices(select: ir.Operation) -> list[Any]:
    return list(select.operands)[1:]


def _is_of_place(nest: Nest, value: ir.Value) -> bool:
    """Whether a value is computed of the numbers of iterations, and of constants."""
    ops, arguments = backward_slice([value], nest.block)
    return not arguments and all(is_pure(op) or op.name == _NUMBER for op in ops)


def _depends_on(nest: Nest, value: ir.Value, arguments: list[Any]) -> bool:
    _, used = backward_slice([value], nest.block)
    return bool(used & set(arguments))
