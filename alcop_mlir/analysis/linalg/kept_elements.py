"""Element-wise ops that change some elements of a memref, and keep the others.

    linalg.generic ins(%row, %place) outs(%cache) {
      %here = arith.cmpi eq, (linalg.index 1), %place
      %new = arith.select %here, %row, %out      // out: what the element was
      linalg.yield %new }

`read` says under which condition an element changes, and which indices that asks for:
here index 1 is `%place`, which one iteration has, or none. Changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from alcop_mlir.analysis.ir.loops import made_by
from alcop_mlir.analysis.ir.slices import backward_slice, is_pure
from alcop_mlir.analysis.linalg.loop_nests import Nest
from alcop_mlir.bindings import arith, ir
from alcop_mlir.frozen import frozen


@frozen
class KeptElements:
    """Where an op changes elements.

    select:   the op that chooses between an element's new and old value
    is_new:   whether the new one is taken where its condition holds; else where not
    only_at:  by loop, a number in the body, the same in all iterations: elsewhere
              nothing changes
    """

    select: Any
    is_new: bool
    only_at: Mapping[int, Any]


def read(nest: Nest) -> KeptElements | None:
    """Where the op changes elements; None where it may change all."""
    if nest.block is None or nest.reductions or len(nest.outputs) != 1:
        return None
    (output,) = nest.outputs
    (result,) = nest.block.operations[-1].operation.operands
    select = made_by(result, "arith.select")
    if output.argument is None or select is None or select.block != nest.block:
        return None
    if sum(1 for _ in output.argument.uses) != 1:
        return None
    condition, new, old = select.operands
    if old == output.argument:
        return KeptElements(select, True, dict(_only_at(nest, condition)))
    return KeptElements(select, False, {}) if new == output.argument else None


def _only_at(nest: Nest, condition: ir.Value) -> Iterator[tuple[int, Any]]:
    """The indices that a condition asks for: it, or a part of a conjunction."""
    both = made_by(condition, "arith.andi")
    if both is not None:
        for operand in both.operands:
            yield from _only_at(nest, operand)
        return
    compared = made_by(condition, "arith.cmpi")
    equal = int(arith.CmpIPredicate.eq)
    if compared is None or compared.attributes["predicate"].value != equal:
        return
    for index, number in (compared.operands, reversed(tuple(compared.operands))):
        loop = _loop(index)
        if loop in nest.points and _is_same_in_all(nest, number):
            yield loop, number


def _loop(value: ir.Value) -> int | None:
    """The loop whose index a value is."""
    cast = made_by(value, "arith.index_cast")
    op = made_by(value if cast is None else cast.operands[0], "linalg.index")
    return None if op is None else op.attributes["dim"].value


def _is_same_in_all(nest: Nest, value: ir.Value) -> bool:
    """Whether a number in the body does not depend on the iteration."""
    ops, arguments = backward_slice([value], nest.block)
    fixed = {
        operand.argument
        for operand in nest.inputs
        if all(index.constant is not None for index in operand.indices)
    }
    return arguments <= fixed and all(
        is_pure(op) and op.name != "linalg.index" for op in ops
    )
