"""That loops end: a turn that comes back has a bound, of what stays in the loop."""

from __future__ import annotations

import re

from alcop_mlir.checker import terms
from alcop_mlir.checker.terms import Term

_IN_LOOP = re.compile(r"[nhu](\d+)(?:\..*)?")


def is_bounded(head: int, facts: list[Term], loop: set[int]) -> bool:
    """Whether a fact says that the turn is below what no turn of the loop changes.

    head: of the loop, by its instruction; loop: all of its instructions
    """
    turn = f"n{head}"
    for fact in facts:
        others = terms.inside({s: c for s, c in fact.items() if s != turn})
        made = (_IN_LOOP.fullmatch(name) for name in others)
        if fact.get(turn, 0) < 0 and not any(m and int(m[1]) in loop for m in made):
            return True
    return False
