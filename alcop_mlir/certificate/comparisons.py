"""Comparisons of unknowns that all threads share, as conditions on terms."""

from __future__ import annotations

import numpy as np

from alcop_mlir.certificate import linear
from alcop_mlir.certificate.linear import Linear

UNSIGNED = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
COMPARISONS = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


def condition(comparison: str, a: Linear, b: Linear) -> linear.Condition:
    """Where a comparison of numbers with a sign holds."""
    if comparison in ("eq", "ne"):
        found = linear.is_zero(a - b)
        return found if comparison == "eq" else linear.negated(found)
    if comparison in ("lt", "ge"):
        found = linear.at_least(a - b)
        return found if comparison == "ge" else linear.negated(found)
    found = linear.at_least(b - a)
    return found if comparison == "le" else linear.negated(found)


def compared_by_range(comparison: str, low: int, high: int) -> bool | None:
    """What low <= difference <= high says of a comparison with zero, if anything."""
    is_sure = {
        "lt": (high < 0, low >= 0),
        "le": (high <= 0, low > 0),
        "gt": (low > 0, high <= 0),
        "ge": (low >= 0, high < 0),
        "eq": (low == high == 0, low > 0 or high < 0),
        "ne": (low > 0 or high < 0, low == high == 0),
    }
    yes, no = is_sure[comparison]
    return True if yes else False if no else None


def unsigned_condition(comparison: str, a: Linear, b: Linear) -> linear.Condition:
    """The order where a negative number stands for one above all others."""
    if comparison in ("ge", "lt"):
        found = _below(a, b)
        return found if comparison == "lt" else linear.negated(found)
    found = _below(b, a)
    return found if comparison == "gt" else linear.negated(found)


def _below(a: Linear, b: Linear) -> linear.Condition:
    """a < b, both without a sign."""
    less, a_is_negative, b_is_negative = b - a - 1, -a - 1, -b - 1
    true = ((less, a, b), (less, a_is_negative, b_is_negative), (a, b_is_negative))
    false = (
        (a - b, a, b),
        (a - b, a_is_negative, b_is_negative),
        (a_is_negative, b),
    )
    return linear.Condition(true, false)
