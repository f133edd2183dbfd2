"""What to try next: six strategies with one interface, so that they compare.

exhaustive, grid, random    without any model
analytical                  down the analytical model's ranking
learned                     a learned model that starts from nothing, without the
                            analytical quantities
hybrid                      a learned model of measured / predicted, trained before on
                            other problems, refitted after each batch; what
                            `alcop-tune` uses
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from alcop_mlir.errors import check_known
from alcop_mlir.tuning import training
from alcop_mlir.tuning.evolution import evolve
from alcop_mlir.tuning.features import RAW, Samples
from alcop_mlir.tuning.learned import Forest
from alcop_mlir.tuning.preference import order
from alcop_mlir.tuning.search import BATCH, History, Strategy, Task
from alcop_mlir.tuning.space import FloatArray, IntArray

BoolArray = npt.NDArray[np.bool_]
_NEW_TILES = (3, 6)  # positions in a batch
_CHANCE = 7
_LEAST = 4  # measurements before a model that starts from nothing is fitted
_VOTERS = 8  # trees whose mean proposes one schedule


@dataclass(frozen=True)
class Fixed:
    """Proposes in an order that does not depend on measurements."""

    order: Callable[[Task], IntArray]

    def propose(self, task: Task, history: History, count: int) -> Sequence[int]:
        """The next rows in that order."""
        rows = [row for row in self.order(task).tolist() if row not in history.seconds]
        return rows[:count]


@dataclass(frozen=True)
class Learned:
    """A model from raw parameters only, fitted to what the search itself measured."""

    seed: int

    def propose(self, task: Task, history: History, count: int) -> Sequence[int]:
        """The best by the model, and some drawn at random; at first all are drawn."""
        generator = np.random.default_rng([self.seed, len(history.seconds)])
        untried = np.flatnonzero(_untried(task, history))
        rows, seconds = history.measured()
        if len(rows) < _LEAST:
            size = min(count, len(untried))
            return generator.choice(untried, size, replace=False).tolist()
        raw = task.features[:, :RAW]
        own = Samples(raw[rows], np.ones(len(rows)), seconds)
        trees = training.train(own, (), self.seed).trees(raw[untried])
        return _vote(task, history, trees, untried, count, generator)


@dataclass(frozen=True)
class Hybrid:
    """The analytical model, corrected by one learned from other problems and this one.

    others: samples of other problems; pretrained: the forest they give, if known
    """

    others: Sequence[Samples]
    seed: int
    pretrained: Forest | None = None
    _fitted: dict[int, Forest | None] = field(
        default_factory=dict[int, "Forest | None"], compare=False
    )

    def propose(self, task: Task, history: History, count: int) -> Sequence[int]:
        """The model's favourites among evolved candidates, with a share explored."""
        generator = np.random.default_rng([self.seed, len(history.seconds)])
        rows, seconds = history.measured()
        predicted = task.prediction.seconds
        own = Samples(task.features[rows], predicted[rows], seconds)
        forest = self._forest(own)
        prior = np.log(predicted)
        mask = _untried(task, history)
        if forest is None:
            return _spread(task, order(task.candidates, predicted), mask, count)

        def score(rows: IntArray) -> FloatArray:
            return prior[rows] + forest.predict(task.features[rows])[0]

        seeds = rows[np.argsort(seconds, kind="stable")[:8]].tolist()
        pool = evolve(task.candidates, score, prior, seeds, generator)
        in_pool = np.zeros_like(mask)
        in_pool[pool] = True
        asked = np.flatnonzero(mask & in_pool)
        trees = forest.trees(task.features[asked]) + prior[asked, None]
        return _vote(task, history, trees, asked, count, generator)

    def _forest(self, own: Samples) -> Forest | None:
        """A model of all samples, fitted once for each number of own ones."""
        count = len(own.seconds)
        if count == 0 and (self.pretrained is not None or not self.others):
            return self.pretrained
        if count not in self._fitted:
            self._fitted.clear()
            forest = training.train(own if count else None, self.others, self.seed)
            self._fitted[count] = forest
        return self._fitted[count]


def make(
    name: str,
    others: Sequence[Samples] = (),
    seed: int = 0,
    pretrained: Forest | None = None,
) -> Strategy:
    """The strategy called `name`; ConfigError with the known names."""
    check_known("strategy", name, NAMES)
    if name == "learned":
        return Learned(seed)
    if name == "hybrid":
        return Hybrid(others, seed, pretrained)
    return Fixed(lambda task: _ORDERS[name](task, seed))


def _grid(task: Task, _: int) -> IntArray:
    """Rows evenly spread over the enumeration: halves, quarters, eighths, ..."""
    count = len(task.candidates)
    bits = max(1, (count - 1).bit_length())
    numbers = range(2**bits)
    reversed_bits = [int(f"{number:0{bits}b}"[::-1], 2) for number in numbers]
    return np.array([row for row in reversed_bits if row < count], np.int64)


_ORDERS: dict[str, Callable[[Task, int], IntArray]] = {
    "exhaustive": lambda task, _: np.arange(len(task.candidates)),
    "grid": _grid,
    "random": lambda task, seed: np.random.default_rng(seed).permutation(
        len(task.candidates)
    ),
    "analytical": lambda task, _: order(task.candidates, task.prediction.seconds),
}
NAMES = (*_ORDERS, "learned", "hybrid")


def _untried(task: Task, history: History) -> BoolArray:
    """Whether each row is still to be tried."""
    mask = np.ones(len(task.candidates), np.bool_)
    mask[list(history.seconds)] = False
    return mask


def _vote(
    task: Task,
    history: History,
    trees: FloatArray,
    rows: IntArray,
    count: int,
    generator: np.random.Generator,
) -> list[int]:
    """Some of `rows`: the favourite of all trees, then those of a few trees at a time.

    Where the trees agree, these are the next best; where they do not, the favourites of
    some trees are tried: the less certain the model is, the more it explores. Some
    positions of a batch are for untried tiles; one, not in the first batch, is drawn at
    random.

    trees: log(seconds) of each of the rows, by tree
    """
    tiles = task.candidates.tiles
    known = np.isin(tiles[rows], tiles[list(history.seconds)])
    free = np.ones(len(rows), np.bool_)
    number = int(trees.shape[1])
    chosen: list[int] = []
    while len(chosen) < min(count, len(rows)):
        voters: IntArray = np.arange(number, dtype=np.int64)
        if chosen:
            voters = generator.choice(number, min(_VOTERS, number), replace=False)
        score = np.where(free, trees[:, voters].mean(axis=1), np.inf)
        position = len(chosen) % BATCH
        if position in _NEW_TILES and (free & ~known).any():
            score = np.where(known, np.inf, score)
        pick = int(score.argmin())
        if position == _CHANCE and history.seconds:
            half = np.flatnonzero(free & (score <= np.median(score[free])))
            pick = int(generator.choice(half))
        free[pick] = False
        known |= tiles[rows] == tiles[rows[pick]]
        chosen.append(int(rows[pick]))
    return chosen


def _spread(task: Task, ranking: IntArray, mask: BoolArray, count: int) -> list[int]:
    """The first of the ranking, one per tile at first: stages matter less."""
    rows = ranking[mask[ranking]]
    _, first = np.unique(task.candidates.tiles[rows], return_index=True)
    first.sort()
    return np.concatenate([rows[first], np.delete(rows, first)])[:count].tolist()
