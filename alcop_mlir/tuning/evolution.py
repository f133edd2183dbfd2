"""Evolutionary proposals: good candidates, and those one or two steps away from them.

The space may be large; the model is asked only about the candidates that a few
generations reach from the analytical favourites and from the best that were measured.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from alcop_mlir.tuning.space import AXES, Candidates, FloatArray, IntArray

FAVOURITES = 192  # of the analytical model, in the first generation
DRAWN = 64  # others in it
GENERATIONS = 3
PARENTS = 32
CHILDREN = 4  # of each parent


def evolve(
    candidates: Candidates,
    score: Callable[[IntArray], FloatArray],
    prior: FloatArray,
    seeds: Sequence[int],
    generator: np.random.Generator,
) -> IntArray:
    """Rows worth a prediction; `score` and `prior` are low for good ones."""
    favourites = np.argsort(prior, kind="stable")[:FAVOURITES]
    drawn = generator.choice(len(prior), min(DRAWN, len(prior)), replace=False)
    steps = Steps(candidates)
    near = [child for row in seeds for child in steps.neighbours(row)]
    pool = np.unique(np.concatenate([favourites, drawn, [*seeds, *near]]).astype(int))
    for _ in range(GENERATIONS):
        parents = pool[np.argsort(score(pool), kind="stable")[:PARENTS]]
        children = [
            steps.mutate(int(parent), generator)
            for parent in parents
            for _ in range(CHILDREN)
        ]
        pool = np.unique(np.concatenate([pool, children]).astype(int))
    return pool


class Steps:
    """Ways from one candidate to others: one axis to its next value, or two."""

    def __init__(self, candidates: Candidates):
        self._table = candidates.table
        self._row = {
            tuple(values): row for row, values in enumerate(self._table.tolist())
        }
        self._values = [
            sorted(set(self._table[:, axis].tolist())) for axis in range(len(AXES))
        ]

    def neighbours(self, row: int) -> list[int]:
        """Rows that differ in one axis, by one step."""
        moved = (
            self._move(self._table[row].tolist(), axis, step)
            for axis in range(len(AXES))
            for step in (-1, 1)
        )
        return [self._row[key] for key in map(tuple, moved) if key in self._row]

    def mutate(self, row: int, generator: np.random.Generator) -> int:
        """A row one or two steps away, or `row` where these are not legal."""
        key = self._table[row].tolist()
        for _ in range(int(generator.integers(1, 3))):
            axis = int(generator.integers(len(AXES)))
            key = self._move(key, axis, int(generator.choice((-1, 1))))
        return self._row.get(tuple(key), row)

    def _move(self, key: list[int], axis: int, step: int) -> list[int]:
        values = self._values[axis]
        index = values.index(key[axis]) + step
        return [
            values[min(max(index, 0), len(values) - 1)] if number == axis else value
            for number, value in enumerate(key)
        ]
