"""Ranges of symbols that follow from facts, one fact after the other.

Each bound is rounded to an integer, as elimination does not always find where to.
"""

from __future__ import annotations

from collections.abc import Iterable

from alcop_mlir.certificate.linear import Linear

_MOST_PASSES = 4


def propagated(facts: Iterable[Linear]) -> list[Linear] | None:
    """Ranges of symbols as facts; None where they contradict each other."""
    facts = list(facts)
    lows: dict[str, int] = {}
    highs: dict[str, int] = {}
    for _ in range(_MOST_PASSES):
        is_open = False
        for fact in facts:
            is_open |= _narrow(fact, lows, highs)
        if any(lows[s] > highs[s] for s in lows.keys() & highs.keys()):
            return None
        if not is_open:
            break
    return [
        *(Linear({s: 1}, -low) for s, low in lows.items()),
        *(Linear({s: -1}, high) for s, high in highs.items()),
    ]


def _narrow(fact: Linear, lows: dict[str, int], highs: dict[str, int]) -> bool:
    """What one fact says of its symbols, by the most that the others may be."""
    total, unknown = fact.constant, []
    for symbol, factor in fact.terms.items():
        most = highs.get(symbol) if factor > 0 else lows.get(symbol)
        if most is None:
            unknown.append(symbol)
        else:
            total += factor * most
    if len(unknown) > 1:
        return False
    found = False
    for symbol in unknown or fact.terms:
        factor = fact.terms[symbol]
        known = highs if factor > 0 else lows
        others = total - (0 if unknown else factor * known[symbol])
        if factor > 0:  # the symbol, so often, + others >= 0
            bound = -(others // factor)
            if symbol not in lows or bound > lows[symbol]:
                lows[symbol], found = bound, True
        else:
            bound = others // -factor
            if symbol not in highs or bound < highs[symbol]:
                highs[symbol], found = bound, True
    return found
