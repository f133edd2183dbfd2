"""What to try next: six strategies with one interface, so that they compare.

exhaustive, grid, random    without any model
analytical                  down the analytical model's ranking
learned                     a learned model that starts from nothing, without the
                            analytical quantities
hybrid                      predictions, corrected by a learned model of other problems
                            and by what the search measured (`residuals.py`); what
                            `alcop-tune` uses
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from alcop_mlir.errors import check_known
from alcop_mlir.tuning import residuals, training
from alcop_mlir.tuning.candidates import FloatArray, IntArray
from alcop_mlir.tuning.features import RAW, Samples
from alcop_mlir.tuning.learned import Forest
from alcop_mlir.tuning.preference import lead, order
from alcop_mlir.tuning.search import BATCH, History, Strategy, Task

BoolArray = npt.NDArray[np.bool_]
_NEW_TILES = (3, 6)  # positions in a batch
_CHANCE = 7
_LEAST = 4  # measurements before a model that starts from nothing is fitted
_VOTERS = 8  # trees whose mean proposes one schedule
_OF_LEARNED = 0.5  # of the errors of the model are left where others were measured


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


@dataclass(frozen=True, eq=False)
class _Prior:
    """Seconds of a task's candidates before any measurement, and how these err."""

    expected: FloatArray
    kernel: residuals.Kernel


@dataclass(frozen=True)
class Hybrid:
    """Predictions, corrected by a model of other problems and by own measurements.

    others: samples of other problems; pretrained: the forest they give, if known
    elsewhere: of records of other GPUs. Half of the first batch goes by it; then
        measurements say whether to believe it
    """

    others: Sequence[Samples]
    seed: int
    pretrained: Forest | None = None
    elsewhere: Forest | None = None
    _known: dict[Task, list[_Prior]] = field(
        default_factory=dict[Task, "list[_Prior]"], compare=False
    )

    def propose(self, task: Task, history: History, count: int) -> Sequence[int]:
        """Those that together are expected to bring the fastest schedule."""
        if count < 1:
            return ()
        generator = np.random.default_rng([self.seed, len(history.seconds)])
        rows, seconds = history.measured()
        scale = 1.0 if self._forest is None else _OF_LEARNED
        priors = self._priors(task)
        beliefs = [
            residuals.believe(one.kernel, one.expected, rows, seconds, scale)
            for one in priors
        ]
        mask = _untried(task, history)
        if history.seconds:
            pairs = zip(beliefs, priors, strict=True)
            belief, prior = max(pairs, key=lambda pair: pair[0].likelihood)
            return _chosen(task, prior, belief, mask, count, generator)
        # What the compiler takes without a search is the first.
        plain = priors[-1].expected
        first = int(lead(task.candidates, order(task.candidates, plain), plain)[0])
        chosen = list[int]()
        for place, (prior, belief) in enumerate(zip(priors, beliefs, strict=True)):
            left = math.ceil((count - len(chosen)) / (len(priors) - place))
            more = _chosen(task, prior, belief, mask, left, generator, first)
            chosen += more
            mask[chosen], first = False, None
        return chosen

    def _priors(self, task: Task) -> list[_Prior]:
        """The last is without what other GPUs say."""
        if task not in self._known:
            predicted, forest = task.prediction.seconds, self._forest
            if forest is not None:
                predicted = predicted * np.exp(forest.predict(task.features)[0])
            priors = [_Prior(predicted, residuals.Kernel(task))]
            if self.elsewhere is not None:
                errors, _ = self.elsewhere.predict(task.features)
                told = predicted * np.exp(residuals.ELSEWHERE[0] * errors)
                priors.insert(0, _Prior(told, residuals.Kernel(task, errors)))
            self._known.clear()
            self._known[task] = priors
        return self._known[task]

    @cached_property
    def _forest(self) -> Forest | None:
        """The model of other problems; None where there are none."""
        if self.pretrained is not None or not self.others:
            return self.pretrained
        return training.train(None, self.others, self.seed)


def _chosen(
    task: Task,
    prior: _Prior,
    belief: residuals.Belief,
    mask: BoolArray,
    count: int,
    generator: np.random.Generator,
    first: int | None = None,
) -> list[int]:
    """Rows of `mask` to measure together, of those that are expected to be fast."""
    ranking = order(task.candidates, prior.expected)
    near = np.zeros(len(mask), np.bool_)
    near[ranking[: residuals.SHORTLIST]] = True
    free = np.flatnonzero(mask & near)
    if not len(free):
        return ranking[mask[ranking]][:count].tolist()
    return [*residuals.choose(belief, free, count, generator, first)]


def make(
    name: str,
    others: Sequence[Samples] = (),
    seed: int = 0,
    pretrained: Forest | None = None,
    elsewhere: Forest | None = None,
) -> Strategy:
    """The strategy called `name`; ConfigError with the known names. See `Hybrid`."""
    check_known("strategy", name, NAMES)
    if name == "learned":
        return Learned(seed)
    if name == "hybrid":
        return Hybrid(others, seed, pretrained, elsewhere)
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
