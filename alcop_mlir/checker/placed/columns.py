"""Sets of columns of a row, as numbers that arrays can hold."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np

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
