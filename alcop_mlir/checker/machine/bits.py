"""Which bits `a + b` may have: `a | b` is `a + b` where no bit is in both."""

from __future__ import annotations

from collections.abc import Callable

from alcop_mlir.checker.logic import terms
from alcop_mlir.checker.logic.terms import Term

_PAST = 1 << 64  # the bits of a register
_Span = Callable[[str], tuple[int, int]]


def _any_number(symbol: str) -> tuple[int, int]:
    return -_PAST, _PAST


def room(a: Term, b: Term, span: _Span = _any_number) -> int:
    """A power of two: below it `a` has no bit that `b` has; span: of symbols."""
    shared = _set_bits(a, span) & _set_bits(b, span)
    return shared & -shared or _PAST


def _set_bits(term: Term, span: _Span) -> int:
    """All bits that a sum may have: each symbol's, if no two have one; else what is
    carried may be in all above.
    """
    found = term.get("", 0) % _PAST
    for symbol, factor in terms.frozen({**term, "": 0}):
        low, high = span(symbol)
        lowest, end = factor & -factor, _PAST
        if factor > 0 and 0 <= low <= high < _PAST:
            end = 1 << (factor * high).bit_length()
        if found & (end - lowest):
            lowest, end = min(lowest, found & -found), _PAST
        found |= end - lowest
    return found % _PAST
