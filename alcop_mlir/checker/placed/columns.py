"""Sets of columns of a row, as numbers that arrays can hold.

Of a chain sets grow with the turns of a loop. Columns are counted from `start` on,
where that names a turn: it is some columns more in each. Below it there are those that
have been in turns before, the same of each: the lowest bits say which of these, and
the others which columns from `start` on. Without a turn all bits are columns.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping

import numpy as np

from alcop_mlir.checker.logic import terms
from alcop_mlir.checker.logic.terms import Term
from alcop_mlir.checker.machine.held import Frozen
from alcop_mlir.checker.placed.kinds import Fold, replaced

SET = 36  # bits of an index of a fold; those above are a set of columns
Rule = Callable[[int], int | None]  # what a set is with another start; None: unknown
ALL = 1  # the set of all columns; 0 is that of none
_MOST = 1 << 20


class Columns:
    """Of rows with so many elements along each loop."""

    def __init__(self, extents: Mapping[str, int]):
        self.extents = dict(extents)
        every = (1 << math.prod(self.extents.values())) - 1
        self._sets = [0, every]
        self._numbers = {0: 0, every: ALL}

    def alone(self, columns: np.ndarray) -> np.ndarray | None:
        """Of each column the set that it is alone in; None: there are too many."""
        each, which = np.unique(columns, return_inverse=True)
        return self._spread((1 << int(one) for one in each), which, columns.shape)

    def both(self, one: np.ndarray, other: np.ndarray) -> np.ndarray | None:
        """Two sets as one; None where they have a column in common."""
        pairs, which = np.unique(
            np.stack([one.ravel(), other.ravel()]), axis=1, return_inverse=True
        )
        sets = [(self._sets[a], self._sets[b]) for a, b in pairs.T.tolist()]
        if any(a & b for a, b in sets):
            return None
        return self._spread((a | b for a, b in sets), which, one.shape)

    def at(self, number: int) -> int:
        """The columns of a set."""
        return self._sets[number]

    def first(self, sets: np.ndarray) -> int | None:
        """The columns of a set, where all are the same."""
        one = int(sets.flat[0])
        return self._sets[one] if (sets == one).all() else None

    def has(self, sets: np.ndarray, bits: np.ndarray) -> np.ndarray:
        """Whether each bit is in its set."""
        pairs, which = np.unique(
            np.stack([sets.ravel(), bits.ravel()]), axis=1, return_inverse=True
        )
        found = [bool(self._sets[a] >> b & 1) for a, b in pairs.T.tolist()]
        return np.array(found)[np.ravel(which)].reshape(sets.shape)

    def mapped(self, sets: np.ndarray, rule: Callable[[int], int | None]) -> np.ndarray:
        """Other sets instead; -1 where there is none."""
        each, which = np.unique(sets, return_inverse=True)
        new = [rule(self._sets[one]) for one in each.tolist()]
        is_there = np.array([one is not None for one in new])[np.ravel(which)]
        found = self._spread((one or 0 for one in new), which, sets.shape)
        if found is None:
            return np.full(sets.shape, -1)
        return np.where(is_there.reshape(sets.shape), found, -1)

    def _spread(
        self, sets: Iterable[int], which: np.ndarray, shape: tuple[int, ...]
    ) -> np.ndarray | None:
        numbers = []
        for columns in sets:
            if columns not in self._numbers:
                self._numbers[columns] = len(self._sets)
                self._sets.append(columns)
            numbers.append(self._numbers[columns])
        if len(self._sets) > _MOST:
            return None
        return np.array(numbers, np.int64)[np.ravel(which)].reshape(shape)


def period(start: Frozen) -> int:
    """How many columns more the start is in each turn; 0: it does not change."""
    steps = [c for s, c in start if s[:1] == "n" and s[1:].isdigit()]
    return steps[0] if len(steps) == 1 and steps[0] > 0 else 0


def prefix(columns: int, start: Frozen) -> Frozen | None:
    """How many columns a set has, where these are the first ones of the row."""
    count = period(start)
    full = (1 << count) - 1
    later = columns >> count
    if columns & full != full or later & (later + 1):
        return None
    return terms.frozen(terms.plus(dict(start), terms.number(later.bit_length())))


def advanced(kind: Fold, change: Callable[[Frozen], Frozen]) -> tuple[Fold, Rule]:
    """A fold where turns are other ones: what a turn has added is like the others."""
    count = period(kind.start)
    found = replaced(kind, change)
    assert isinstance(found, Fold)
    if not count:
        return found, lambda columns: columns
    full, start = (1 << count) - 1, dict(found.start)
    if period(found.start) == count:
        less, rest = divmod(dict(kind.start).get("", 0) - start.get("", 0), count)
        if rest or less not in (0, 1):
            return found, lambda columns: None
        if not less:
            return found, lambda columns: columns
        start[""] = start.get("", 0) + count

        def later(columns: int) -> int | None:
            mine, last = columns & full, columns >> count & full
            return None if mine != last else mine | columns >> 2 * count << count

        return found._replace(start=terms.frozen(start)), later
    first = start.get("", 0)
    if not terms.is_constant(start) or first < 0 or first % count:
        return found, lambda columns: None

    def apart(columns: int) -> int:
        below = sum((columns & full) << n for n in range(0, first, count))
        return below | columns >> count << first

    return found._replace(start=()), apart


def begun(step: int, number: int) -> Rule:
    """For a fold of no turn as of one that is this number: each has added as much."""
    full = (1 << step) - 1

    def found(columns: int) -> int | None:
        each = {columns >> n * step & full for n in range(number)}
        if len(each) != 1:
            return None
        return each.pop() | columns >> number * step << step

    return found


def in_turn(frozen: Frozen, turn: str, step: int, number: int) -> Frozen:
    """What is reached along the sum, as in that turn, which is a number."""
    term: Term = dict(frozen)
    if turn in term:
        return frozen
    more = {turn: step, "": -step * number}
    return terms.frozen(terms.plus(term, more))
