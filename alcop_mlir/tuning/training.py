"""Training a forest on measurements: the only file that needs scikit-learn.

A sample is a candidate's features and log(measured / predicted). Fast candidates weigh
more than slow ones, since a model is judged by what it ranks first; measurements of the
problem at hand weigh more than those of others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from alcop_mlir.errors import optional
from alcop_mlir.tuning.candidates import FloatArray
from alcop_mlir.tuning.features import Samples
from alcop_mlir.tuning.learned import Forest

TREES = 32  # 64 choose as well, in twice the time: docs/tuning.md
OWN_WEIGHT = 8.0
_SLOW_WEIGHT = 0.05  # of candidates far behind the best
_NEAR = 0.3  # a candidate that takes that much longer weighs 1 / e


def train(own: Samples | None, others: Sequence[Samples], seed: int = 0) -> Forest:
    """A forest fitted to the samples, of which there must be some; same seed, same."""
    groups = [(samples, 1.0) for samples in others]
    if own is not None:
        groups.append((own, OWN_WEIGHT))
    return to_arrays(
        regressor(
            np.concatenate([samples.features for samples, _ in groups]),
            np.concatenate([np.log(s.seconds / s.predicted) for s, _ in groups]),
            np.concatenate([weight * _weights(s.seconds) for s, weight in groups]),
            seed,
        )
    )


def regressor(
    features: FloatArray,
    values: FloatArray,
    weight: FloatArray,
    seed: int,
    trees: int = TREES,
) -> Any:
    """scikit-learn's own model that predicts `values` from `features`, fitted."""
    ensemble = optional("sklearn.ensemble", "learning needs scikit-learn", "tuning")
    forest: Any = ensemble.ExtraTreesRegressor(
        n_estimators=trees,
        min_samples_leaf=1 if len(values) < 32 else 2,
        max_features=0.5,
        random_state=seed,
    )
    return forest.fit(features, values, sample_weight=weight)


def to_arrays(forest: Any) -> Forest:
    """A fitted forest of scikit-learn's as arrays."""
    trees = [estimator.tree_ for estimator in forest.estimators_]
    counts = [tree.node_count for tree in trees]
    roots = np.cumsum([0, *counts[:-1]])
    root = np.repeat(roots, counts)  # of the tree of each node

    def nodes(name: str) -> Any:
        return np.concatenate([getattr(tree, name) for tree in trees])

    leaf = nodes("children_left") < 0
    return Forest(
        roots=roots.astype(np.int32),
        feature=np.where(leaf, -1, nodes("feature")).astype(np.int32),
        threshold=nodes("threshold"),
        left=(root + nodes("children_left")).astype(np.int32),
        right=(root + nodes("children_right")).astype(np.int32),
        value=nodes("value")[:, 0, 0],
        columns=np.array([forest.n_features_in_], np.int32),
    )


def _weights(seconds: FloatArray) -> FloatArray:
    """How much each of one problem's samples counts."""
    behind = seconds / seconds.min() - 1
    return np.exp(-behind / _NEAR) + _SLOW_WEIGHT
