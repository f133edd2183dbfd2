"""Elements of tensors followed through views, by indices that are linear in loops.

    %e = tensor.expand_shape %y : tensor<64x96xf16> into tensor<64x3x32xf16>
    %r = tensor.extract_slice %e[0, 0, 16] [64, 3, 16] [1, 1, 1]

Element (m, h, c) of %r is element (m, 32 * h + c + 16) of %y. Sizes are known. Loops of
one iteration are left out. Transposes are views, too. Changes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from alcop_mlir.analysis.ir.extents import groups_of
from alcop_mlir.analysis.ir.loops import defining_op
from alcop_mlir.analysis.linalg.view import LinalgView, Operand
from alcop_mlir.bindings import ir
from alcop_mlir.frozen import frozen

VIEWS = (
    "tensor.expand_shape",
    "tensor.collapse_shape",
    "tensor.extract_slice",
    "linalg.transpose",
)


@frozen
class Linear:
    """The index `offset`, plus each loop times its coefficient."""

    offset: int = 0
    terms: tuple[tuple[int, int], ...] = ()  # loops and coefficients, by loop

    def plus(self, other: Linear) -> Linear:
        """The sum of two."""
        found = dict(self.terms)
        for loop, coefficient in other.terms:
            found[loop] = found.get(loop, 0) + coefficient
        return _linear(self.offset + other.offset, found)

    def times(self, factor: int) -> Linear:
        """This one, so many times."""
        return _linear(
            self.offset * factor, {loop: n * factor for loop, n in self.terms}
        )

    def most(self, extents: Mapping[int, int]) -> int:
        """The largest index, of coefficients that are positive."""
        return self.offset + sum(n * (extents[loop] - 1) for loop, n in self.terms)


def extents_of(view: LinalgView) -> dict[int, int] | None:
    """The sizes of all loops; None where one is known at run time only, or is 0."""
    found = {loop: view.static_size(loop) or 0 for loop in range(view.rank)}
    return found if all(found.values()) else None


def operand_indices(
    operand: Operand, extents: Mapping[int, int]
) -> tuple[Linear, ...] | None:
    """Those of an operand; None where one is not linear, or has a negative part."""
    found = []
    for index in operand.indices:
        coefficients = index.coefficients
        if coefficients is None or index.offset < 0 or any(n < 0 for n in coefficients):
            return None
        pairs = zip(index.loops, coefficients, strict=True)
        terms = {loop: n for loop, n in pairs if extents[loop] > 1}
        found.append(_linear(index.offset, terms))
    return tuple(found)


def indices_in(
    value: ir.Value,
    indices: tuple[Linear, ...],
    source: ir.Value,
    extents: Mapping[int, int],
) -> tuple[Linear, ...] | None:
    """Where an element of `value` is in `source`, which it is a view of; else None."""
    while value != source:
        op = defining_op(value)
        if op is None or op.name not in VIEWS:
            return None
        before = indices_before(op, indices, extents)
        if before is None:
            return None
        value, indices = op.operands[0], before
    return indices


def indices_before(
    op: Any, indices: tuple[Linear, ...], extents: Mapping[int, int]
) -> tuple[Linear, ...] | None:
    """The indices in what a view is of."""
    if op.name == "linalg.transpose":
        order = list(op.attributes["permutation"])
        return tuple(indices[order.index(number)] for number in range(len(order)))
    if op.name == "tensor.extract_slice":
        return _in_slice(op, indices)
    if op.name == "tensor.expand_shape":
        shape = op.results[0].type.shape
        return tuple(_merged(indices, group, shape) for group in groups_of(op))
    shape = op.operands[0].type.shape
    # Those of size 1, where a scalar is what is left.
    found = {number: Linear() for number in range(len(shape))}
    for index, group in zip(indices, groups_of(op), strict=True):
        digits = _digits(index, [shape[number] for number in group], extents)
        if digits is None:
            return None
        found.update(zip(group, digits, strict=True))
    return tuple(found[number] for number in range(len(shape)))


def _in_slice(op: Any, indices: tuple[Linear, ...]) -> tuple[Linear, ...] | None:
    names = ("static_offsets", "static_sizes", "static_strides")
    parts = [list(op.attributes[name]) for name in names]
    open_size = ir.ShapedType.get_dynamic_size()
    is_open = any(number in (open_size, _OPEN) for part in parts for number in part)
    if is_open or len(indices) != len(parts[0]):
        return None
    return tuple(
        index.times(step).plus(Linear(offset))
        for index, offset, step in zip(indices, parts[0], parts[2], strict=True)
    )


_OPEN = -(2**63)  # of what a slice has as an operand


def _merged(
    indices: Sequence[Linear], group: Sequence[int], shape: Sequence[int]
) -> Linear:
    found = Linear()
    for number in group:
        found = found.times(shape[number]).plus(indices[number])
    return found


def _digits(
    index: Linear, shape: Sequence[int], extents: Mapping[int, int]
) -> list[Linear] | None:
    """An index as one for each dimension of these sizes; None where none has it."""
    found: list[Linear] = []
    for number, size in enumerate(shape):
        step = math.prod(shape[number + 1 :])
        outer = {loop: n // step for loop, n in index.terms if n >= step}
        if any(n % step for _, n in index.terms if n >= step):
            return None
        one = _linear(index.offset // step, outer)
        index = _linear(
            index.offset % step, {loop: n for loop, n in index.terms if n < step}
        )
        if one.most(extents) >= size or index.most(extents) >= step:
            return None
        found.append(one)
    return found


def _linear(offset: int, terms: Mapping[int, int]) -> Linear:
    return Linear(offset, tuple(sorted((k, n) for k, n in terms.items() if n)))
