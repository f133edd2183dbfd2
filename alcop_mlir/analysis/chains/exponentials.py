"""Rows of exponentials that can be corrected when the maximum of a row grows.

A weight is W = exp(c * (X - R)), with R the maximum of X along the row and c positive,
times what is the same for all of a row. It splits into f(X) * h(R), f(x) = exp(c * x)
and h(r) = exp(-c * r), which has an inverse: what was summed with a smaller R is
multiplied by h(new R) / h(old R) = W(old R, new R). That is at most 1, as W is, which
so never overflows the type that is multiplied. What multiplies or divides a whole row
commutes past the reductions along it, and so does what makes a whole row 0, as where a
mask hides all of it.

exp(c * (x - r)) = exp2(c' * (x - r)) with c' = c * log2(e). Where X multiplies by a
positive constant, c' takes that, as the maximum of x is r divided by it: tile code
multiplies by c' and subtracts at once. Constants of a mask, as -inf, are divided by it,
where that does not overflow.
"""

from __future__ import annotations

import math

from alcop_mlir.analysis.chains.elements import FLOAT, Element, Pool
from alcop_mlir.analysis.chains.following import MAXIMA, SUM
from alcop_mlir.element_types import ELEMENT_TYPES
from alcop_mlir.frozen import frozen

_BASES = {"math.exp": math.log2(math.e), "math.exp2": 1.0}
_MULTIPLY, _DIVIDE, _SUBTRACT = "arith.mulf", "arith.divf", "arith.subf"
_SELECT, _MAXNUM = "arith.select", "arith.maxnumf"
_LARGEST = ELEMENT_TYPES[FLOAT].largest


class NoChainError(Exception):
    """Why there is no chain."""


@frozen
class Exponential:
    """W = exp2(scale * (elements - maximum))."""

    weight: Element
    elements: Element
    maximum: Element
    scale: float


@frozen
class Rows:
    """What is computed along rows: weights = exp2(scale * (elements - maximum)).

    maximum, scale: None where weights are the elements, and nothing is reduced
    totals: the sum of the weights of a row, if the result needs that
    result: what is made of it
    """

    elements: Element
    maximum: Element | None
    weights: Element
    scale: float | None
    totals: tuple[Element, ...]
    result: Element


def found_exponential(weight: Element, row: int) -> Exponential:
    """The exponential that a weight is, but for what its whole row shares."""
    while weight.name not in _BASES:
        varying = _varying(weight, row)
        if varying is None:
            raise NoChainError(
                "weights depend on reductions, but are no exponentials of what the "
                "maximum of a row is subtracted from, times what its columns share: a "
                "maximum that grows cannot be corrected afterwards"
            )
        weight = varying
    exponent, scale = _scaled_by(weight.operands[0])
    elements, maximum = _difference(exponent)
    if (
        elements is None
        or maximum is None
        or maximum.name != "reduction"
        or maximum.detail[0] not in MAXIMA
        or maximum.operands[0] is not elements
        or elements.needs
        or not elements.has_scores
    ):
        raise NoChainError(
            "exponentials are not of what the maximum of the same row is subtracted "
            "from: they may overflow, or cannot be corrected when the maximum grows"
        )
    return Exponential(weight, elements, maximum, scale * _BASES[weight.name])


def commuted(
    weight: Element,
    exponential: Exponential,
    contracted: Element,
    row: int,
    pool: Pool,
) -> Element:
    """What is done to the exponential is done to the sum over n instead."""
    if weight is exponential.weight:
        return contracted
    varying = _varying(weight, row)
    assert varying is not None  # `found_exponential` went this way
    inner = commuted(varying, exponential, contracted, row, pool)
    operands = tuple(inner if one is varying else one for one in weight.operands)
    return pool.op(weight.name, operands, weight.type, dict(weight.detail))


def found_rows(exponential: Exponential, result: Element, row: int, pool: Pool) -> Rows:
    """The rows in powers of two, and the result of these."""
    old, scale = exponential.maximum, exponential.scale
    combine, start = old.detail
    if combine == _MAXNUM and math.isnan(start):
        start = -math.inf  # the same, but for a row of NaN, whose weights are NaN
        old = pool.reduction(old.operands[0], combine, start, row)
    by = _multiplier(exponential.elements)
    elements = _divided(exponential.elements, by, pool) if by else None
    made: dict[Element, Element] = {exponential.maximum: old}
    if by is None or elements is None or not _is_divided(start, by):
        elements, maximum = exponential.elements, old
    else:
        maximum = pool.reduction(elements, combine, start / by, row)
        number = pool.constant(by, FLOAT)
        made[exponential.maximum] = pool.op(_MULTIPLY, (maximum, number), FLOAT)
        scale *= by
    exponent = pool.op(_SUBTRACT, (elements, maximum), FLOAT)
    if scale != 1:
        number = pool.constant(scale, FLOAT)
        exponent = pool.op(_MULTIPLY, (exponent, number), FLOAT)
    weights = pool.op("math.exp2", (exponent,), FLOAT)
    totals = []
    for one in result.needs - {exponential.maximum}:
        if one.detail[0] != SUM or one.operands[0] is not exponential.weight:
            raise NoChainError(
                "a reduction that depends on another one is no sum of the "
                "exponentials: it cannot be corrected when the maximum grows"
            )
        if one.detail[1] != 0:
            raise NoChainError(f"a sum starts from {one.detail[1]}, expected 0")
        made[one] = pool.reduction(weights, SUM, one.detail[1], row)
        totals.append(made[one])
    result = _replaced(result, dict(made), pool)
    return Rows(elements, maximum, weights, scale, tuple(totals), result)


def _varying(weight: Element, row: int) -> Element | None:
    """What differs along a row, of what all else is the same for the whole row.

    That is what a number multiplies or divides, or what is not 0 if a condition holds.
    """
    varying = [one for one in weight.operands if row in one.loops]
    if len(varying) != 1 or not _is_linear_in(weight, varying[0]):
        return None
    return varying[0]


def _is_linear_in(weight: Element, varying: Element) -> bool:
    """Whether what it makes of a sum is the sum of what it makes of the terms."""
    if weight.name == _DIVIDE:
        return weight.operands[0] is varying
    if weight.name == _SELECT and varying in weight.operands[1:]:
        (other,) = (one for one in weight.operands[1:] if one is not varying)
        return other.name == "constant" and other.detail == 0
    return weight.name == _MULTIPLY


def _scaled_by(element: Element) -> tuple[Element, float]:
    """What positive constants multiply, and all of these multiplied."""
    scale = 1.0
    while (number := _constant_of(element)) is not None:
        varying, constant = number
        if not 0 < constant.detail < math.inf:
            break
        element, scale = varying, scale * constant.detail
    return element, scale


def _constant_of(element: Element) -> tuple[Element, Element] | None:
    """What is multiplied by a constant, and the constant."""
    if element.name != _MULTIPLY:
        return None
    one, other = element.operands
    if other.name == "constant":
        return one, other
    return (other, one) if one.name == "constant" else None


def _multiplier(element: Element) -> float | None:
    """The positive constant, 1 at most, that some element of a selection has."""
    if element.name == _SELECT:
        _, one, other = element.operands
        return _multiplier(one) or _multiplier(other)
    known = _constant_of(element)
    if known is None:
        return None
    # At most 1: what is multiplied did not overflow before, and does not now.
    return known[1].detail if 0 < known[1].detail <= 1 else None


def _divided(element: Element, by: float, pool: Pool) -> Element | None:
    """An element divided by what it multiplies; None where it does not multiply."""
    if element.name == "constant":
        is_divided = _is_divided(element.detail, by)
        return pool.constant(element.detail / by, FLOAT) if is_divided else None
    known = _constant_of(element)
    if known is not None:
        return known[0] if known[1].detail == by else None
    if element.name != _SELECT:
        return None
    condition, one, other = element.operands
    chosen = [_divided(part, by, pool) for part in (one, other)]
    if None in chosen:
        return None
    values = tuple(part for part in chosen if part is not None)
    return pool.op(_SELECT, (condition, *values), FLOAT)


def _is_divided(number: float, by: float) -> bool:
    """Whether a number that is a float is one when divided."""
    return math.isinf(number) or abs(number / by) <= _LARGEST


def _difference(exponent: Element) -> tuple[Element | None, Element | None]:
    if exponent.name == _SUBTRACT:
        one, other = exponent.operands
        return one, other
    if exponent.name == "arith.addf":
        for one, other in (exponent.operands, exponent.operands[::-1]):
            if other.name == "arith.negf":
                return one, other.operands[0]
    return None, None


def _replaced(element: Element, by: dict[Element, Element], pool: Pool) -> Element:
    """The element again, of others instead of some; adds what it finds to `by`."""
    if element not in by:
        operands = tuple(_replaced(one, by, pool) for one in element.operands)
        by[element] = element
        if operands != element.operands:
            detail = dict(element.detail)
            by[element] = pool.op(element.name, operands, element.type, detail)
    return by[element]
