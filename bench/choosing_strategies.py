"""Searches of others to compare with, with the interface of `alcop_mlir.tuning`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from alcop_mlir.errors import optional
from alcop_mlir.tuning.candidates import AXES, FloatArray
from alcop_mlir.tuning.search import History, Task

_CHANCE = 0.05  # of a proposal to be drawn at random; AutoTVM's epsilon
_ROUNDS = 100
# AutoTVM's, in xgboost_cost_model.py; arXiv 1805.08166 has the rank loss.
_OPTIONS = {
    "max_depth": 3,
    "gamma": 1e-4,
    "min_child_weight": 1,
    "subsample": 1.0,
    "eta": 0.3,
    "lambda": 1.0,
    "objective": "rank:pairwise",
    "verbosity": 0,
    "nthread": 1,
}


@dataclass(frozen=True)
class RankLoss:
    """AutoTVM's way: XGBoost with a rank loss, from the parameters of schedules.

    The first batch is drawn at random. The model knows this search's measurements only.
    """

    seed: int

    def propose(self, task: Task, history: History, count: int) -> Sequence[int]:
        """The best by the model, of all that was not tried; a few at random."""
        generator = np.random.default_rng([self.seed, len(history.seconds)])
        free = np.ones(len(task.candidates), np.bool_)
        free[list(history.seconds)] = False
        untried = np.flatnonzero(free)
        rows, seconds = history.measured()
        if len(rows) < 2:
            return generator.permutation(untried)[:count].tolist()
        parameters = np.log2(task.candidates.table[:, : len(AXES)])
        score = ranks(parameters[rows], seconds.min() / seconds, parameters[untried])
        best = untried[np.argsort(-score, kind="stable")].tolist()
        chosen: list[int] = []
        for _ in range(min(count, len(best))):
            at = generator.integers(len(best)) if generator.random() < _CHANCE else 0
            chosen.append(best.pop(int(at)))
        return chosen


def ranks(known: FloatArray, values: FloatArray, asked: FloatArray) -> FloatArray:
    """A score of each row of `asked`: higher is better."""
    xgboost: Any = optional("xgboost", "AutoTVM's way needs XGBoost", "choosing")
    data = xgboost.DMatrix(known, label=values)
    data.set_group([len(known)])
    model = xgboost.train(_OPTIONS, data, num_boost_round=_ROUNDS)
    return np.asarray(model.predict(xgboost.DMatrix(asked)), np.float64)
