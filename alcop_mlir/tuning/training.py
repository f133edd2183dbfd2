"""Training a forest on measurements: the only file that needs scikit-learn.

A sample is a candidate's features and log(measured / predicted). Fast candidates weigh
more than slow ones, since a model is judged by what it ranks first; measurements of the
problem at hand weigh more than those of others.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from alcop_mlir.errors import MissingExtraError
from alcop_mlir.tuning.learned import Forest, join
from alcop_mlir.tuning.samples import Samples
from alcop_mlir.tuning.space import FloatArray

TREES = 64
OWN_WEIGHT = 8.0
_SLOW_WEIGHT = 0.05  # of candidates far behind the best
_NEAR = 0.3  # a candidate that takes that much longer weighs 1 / e


def train(
    own: Samples | None, others: Sequence[Samples], seed: int = 0, trees: int = TREES
) -> Forest:
    """A forest fitted to the samples, of which there must be some; same seed, same."""
    groups = [(samples, 1.0) for samples in others]
    if own is not None:
        groups.append((own, OWN_WEIGHT))
    return fit(
        np.concatenate([samples.features for samples, _ in groups]),
        np.concatenate([np.log(s.seconds / s.predicted) for s, _ in groups]),
        np.concatenate([weight * weights(s.seconds) for s, weight in groups]),
        seed,
        trees,
    )


def fit(
    features: FloatArray, values: FloatArray, weight: FloatArray, seed: int, trees: int
) -> Forest:
    """A forest that predicts `values` from `features`."""
    return to_arrays(regressor(features, values, weight, seed, trees))


def regressor(
    features: FloatArray, values: FloatArray, weight: FloatArray, seed: int, trees: int
) -> Any:
    """scikit-learn's own model, fitted."""
    try:
        ensemble: Any = importlib.import_module("sklearn.ensemble")
    except ImportError:
        raise MissingExtraError("learning needs scikit-learn", "tuning") from None
    forest: Any = ensemble.ExtraTreesRegressor(
        n_estimators=trees,
        min_samples_leaf=1 if len(values) < 32 else 2,
        max_features=0.5,
        random_state=seed,
    )
    return forest.fit(features, values, sample_weight=weight)


def to_arrays(forest: Any) -> Forest:
    """A fitted forest of scikit-learn's as arrays."""
    return join([_tree(estimator.tree_) for estimator in forest.estimators_])


def weights(seconds: FloatArray) -> FloatArray:
    """How much each of one problem's samples counts."""
    behind = seconds / seconds.min() - 1
    return np.exp(-behind / _NEAR) + _SLOW_WEIGHT


def _tree(tree: Any) -> Forest:
    leaf = tree.children_left < 0
    return Forest(
        roots=np.zeros(1, np.int32),
        feature=np.where(leaf, -1, tree.feature).astype(np.int32),
        threshold=np.asarray(tree.threshold, np.float64),
        left=np.where(leaf, 0, tree.children_left).astype(np.int32),
        right=np.where(leaf, 0, tree.children_right).astype(np.int32),
        value=np.asarray(tree.value[:, 0, 0], np.float64),
        columns=np.array([tree.n_features], np.int32),
    )
