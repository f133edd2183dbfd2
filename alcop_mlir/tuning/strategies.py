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

from alcop_mlir.errors import ConfigError
from alcop_mlir.tuning.evolution import evolve
from alcop_mlir.tuning.features import RAW
from alcop_mlir.tuning.learned import Forest
from alcop_mlir.tuning.preference import order
from alcop_mlir.tuning.samples import Samples
from alcop_mlir.tuning.search import BATCH, History, Strategy, Task, untried
from alcop_mlir.tuning.space import FloatArray, IntArray

NAMES = ("exhaustive", "grid", "random", "analytical", "learned", "hybrid")
_NEW_TILES = (3, 6)  # positions in a batch
_CHANCE = 7
_LEAST = 4  # measurements before a model that starts from nothing is fitted
_VOTERS = 8  # trees whose mean proposes one schedule

# Fits own samples (None if there are none) and those of other problems. It is given as
# `training.train`, so that only that needs scikit-learn.
Train = Callable[[Samples | None, Sequence[Samples], int], Forest]


@dataclass(frozen=True)
class Fixed:
    """Proposes in an order that does not depend on measurements."""

    name: str
    order: Callable[[Task], IntArray]

    def propose(self, task: Task, history: History, count: int) -> Sequence[int]:
        """The next rows in that order."""
        rows = [row for row in self.order(task).tolist() if row not in history.seconds]
        return rows[:count]


@dataclass(frozen=True)
class Learned:
    """A model from raw parameters only, fitted to what the search itself measured."""

    train: Train
    seed: int
    name: str = "learned"

    def propose(self, task: Task, history: History, count: int) -> Sequence[int]:
        """The best by the model, and some drawn at random; at first all are drawn."""
        generator = np.random.default_rng([self.seed, len(history.seconds)])
        mask = untried(task, history)
        raw = task.features[:, :RAW]
        measured = history.measured()
        if len(measured) < _LEAST:
            return _drawn(mask, count, generator)
        rows = np.array([row for row, _ in measured])
        seconds = np.array([value for _, value in measured])
        own = Samples(raw[rows], np.ones(len(rows)), seconds)
        forest = self.train(own, (), self.seed)
        untried_rows = np.flatnonzero(mask)
        trees = forest.trees(raw[untried_rows])
        return _vote(task, history, trees, untried_rows, count, generator)


@dataclass(frozen=True)
class Hybrid:
    """The analytical model, corrected by one learned from other problems and this one.

    others: samples of other problems; pretrained: the forest they give, if known
    """

    train: Train
    others: Sequence[Samples]
    seed: int
    pretrained: Forest | None = None
    name: str = "hybrid"
    _fitted: dict[int, Forest | None] = field(
        default_factory=dict[int, "Forest | None"], compare=False
    )

    def propose(self, task: Task, history: History, count: int) -> Sequence[int]:
        """The model's favourites among evolved candidates, with a share explored."""
        generator = np.random.default_rng([self.seed, len(history.seconds)])
        forest = self._forest(task, history)
        prior = np.log(task.prediction.seconds)
        mask = untried(task, history)
        if forest is None:
            ranking = order(task.candidates, task.prediction.seconds)
            return _spread(task, ranking, mask, count)

        def score(rows: IntArray) -> FloatArray:
            return prior[rows] + forest.predict(task.features[rows])[0]

        seeds = [row for row, _ in sorted(history.measured(), key=lambda item: item[1])]
        pool = evolve(task.candidates, score, prior, seeds[:8], generator)
        in_pool = np.zeros_like(mask)
        in_pool[pool] = True
        asked = np.flatnonzero(mask & in_pool)
        trees = forest.trees(task.features[asked]) + prior[asked, None]
        return _vote(task, history, trees, asked, count, generator)

    def _forest(self, task: Task, history: History) -> Forest | None:
        measured = history.measured()
        if not measured and self.pretrained is not None:
            return self.pretrained
        if len(measured) not in self._fitted:
            own = None
            if measured:
                rows = np.array([row for row, _ in measured])
                seconds = np.array([value for _, value in measured])
                own = Samples(
                    task.features[rows], task.prediction.seconds[rows], seconds
                )
            self._fitted.clear()
            enough = own is not None or self.others
            forest = self.train(own, self.others, self.seed) if enough else None
            self._fitted[len(measured)] = forest
        return self._fitted[len(measured)]


def make(
    name: str,
    train: Train,
    others: Sequence[Samples] = (),
    seed: int = 0,
    pretrained: Forest | None = None,
) -> Strategy:
    """The strategy called `name`; ConfigError with the known names."""
    if name == "learned":
        return Learned(train, seed)
    if name == "hybrid":
        return Hybrid(train, others, seed, pretrained)
    orders: dict[str, Callable[[Task], IntArray]] = {
        "exhaustive": lambda task: np.arange(len(task.candidates)),
        "grid": _grid,
        "random": lambda task: np.random.default_rng(seed).permutation(
            len(task.candidates)
        ),
        "analytical": lambda task: order(task.candidates, task.prediction.seconds),
    }
    if name not in orders:
        raise ConfigError(
            f"unknown strategy '{name}', expected one of {', '.join(NAMES)}"
        )
    return Fixed(name, orders[name])


def _grid(task: Task) -> IntArray:
    """Rows evenly spread over the enumeration: halves, quarters, eighths, ..."""
    count = len(task.candidates)
    bits = max(1, (count - 1).bit_length())
    numbers = range(2**bits)
    reversed_bits = [int(f"{number:0{bits}b}"[::-1], 2) for number in numbers]
    return np.array([row for row in reversed_bits if row < count], np.int64)


def _drawn(
    mask: np.ndarray[tuple[int], np.dtype[np.bool_]],
    count: int,
    generator: np.random.Generator,
) -> list[int]:
    rows = np.flatnonzero(mask)
    return generator.choice(rows, min(count, len(rows)), replace=False).tolist()


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


def _spread(
    task: Task,
    ranking: IntArray,
    mask: np.ndarray[tuple[int], np.dtype[np.bool_]],
    count: int,
) -> list[int]:
    """The first of the ranking, one per tile at first: stages matter less."""
    first: list[int] = []
    later: list[int] = []
    seen: set[tuple[object, ...]] = set()
    rows: list[int] = ranking[mask[ranking]].tolist()
    for row in rows:
        schedule = task.candidates.schedules[row]
        tile = (schedule.block, schedule.warp, schedule.split_k)
        (later if tile in seen else first).append(row)
        seen.add(tile)
        if len(first) == count:
            break
    return [*first, *later][:count]
