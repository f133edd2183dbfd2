"""Whether all of a row is -inf, as programs ask before they divide by a total.

    all over n of X[m, n] == -inf          is R[m] == -inf
    any over n of not (X[m, n] == -inf)    is not (R[m] == -inf)

with R the maximum of X along the row, which is NaN if an element is: then neither is
equal to -inf. So a chain needs no reduction of its own for that.
"""

from __future__ import annotations

import math

from alcop_mlir.analysis.chains.elements import BOOLEAN, Element, Pool
from alcop_mlir.bindings import arith

_ALL, _ANY, _NOT = "arith.andi", "arith.ori", "arith.xori"
COMBINED = (_ALL, _ANY)
_MAXIMUM = "arith.maximumf"


def of_maximum(
    combine: str, term: Element, start: float, row: int, pool: Pool
) -> Element | None:
    """What these booleans of a row combined are; None if not one of the forms above."""
    if bool(start) != (combine == _ALL):
        return None
    compared = term if combine == _ALL else _negated(term)
    if compared is None or not _is_lowest(compared):
        return None
    elements, lowest = compared.operands
    maximum = pool.reduction(elements, _MAXIMUM, -math.inf, row)
    found = pool.op(compared.name, (maximum, lowest), BOOLEAN, dict(compared.detail))
    if combine == _ALL:
        return found
    return pool.op(_NOT, (found, pool.constant(True, BOOLEAN)), BOOLEAN)


def _negated(element: Element) -> Element | None:
    """What is negated."""
    if element.name != _NOT:
        return None
    one, other = element.operands
    return one if other.name == "constant" and other.detail else None


def _is_lowest(element: Element) -> bool:
    """Whether it says if an element is -inf."""
    if element.name != "arith.cmpf":
        return False
    predicate = dict(element.detail)["predicate"].value
    other = element.operands[1]
    is_equal = predicate == int(arith.CmpFPredicate.OEQ)
    return is_equal and other.name == "constant" and other.detail == -math.inf
