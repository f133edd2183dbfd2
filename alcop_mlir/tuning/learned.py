"""A trained model as plain arrays, and predicting with it: NumPy alone.

The model is a forest of regression trees that predicts log(measured / predicted). The
spread of the trees is its uncertainty. It is stored as .npz without pickled objects and
checked completely when it is read, so a damaged or foreign file is never used.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from alcop_mlir import files
from alcop_mlir.tuning.candidates import FloatArray

Int32Array = npt.NDArray[np.int32]
_DIGEST_BYTES = 32  # sha256 of the key and of what follows
# The exceptions of reading anything but such a file.
_UNREADABLE = (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile)


@dataclass(frozen=True, eq=False)
class Forest:
    """Regression trees, their nodes one after the other.

    roots: node at which each tree starts
    feature: column that a node compares with `threshold`, -1 for a leaf
    left, right: nodes to go on with where the column is <= threshold, where not
    value: of a leaf
    columns: how many columns the features have
    """

    roots: Int32Array
    feature: Int32Array
    threshold: FloatArray
    left: Int32Array
    right: Int32Array
    value: FloatArray
    columns: Int32Array

    def trees(self, features: FloatArray) -> FloatArray:
        """The prediction of each tree (column) for each row of `features`."""
        # As scikit-learn compares: features as float32, thresholds as float64.
        rows = features.astype(np.float32).astype(np.float64)
        values = rows.ravel()
        found = np.empty(len(rows) * len(self.roots))
        walk = np.arange(len(found))  # one for each row and tree
        node = np.tile(self.roots, len(rows))
        start = np.repeat(np.arange(len(rows)) * rows.shape[1], len(self.roots))
        while len(walk):
            column = self.feature[node]
            inner = column >= 0
            ended = ~inner
            found[walk[ended]] = self.value[node[ended]]
            walk, node = walk[inner], node[inner]
            start, column = start[inner], column[inner]
            below = values[start + column] <= self.threshold[node]
            node = np.where(below, self.left[node], self.right[node])
        return np.reshape(found, (len(rows), len(self.roots)))

    def predict(self, features: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean over the trees and their standard deviation, by row."""
        trees = self.trees(features)
        return trees.mean(axis=1), trees.std(axis=1)


def store(forest: Forest, path: Path, key: str) -> None:
    """Write `forest` to `path`, whole or not at all; ConfigError where that fails.

    key: says what it was trained from
    """
    data = io.BytesIO()
    np.savez(data, **{name: getattr(forest, name) for name in Forest.__annotations__})
    files.write_whole(path, _digest(data.getvalue(), key) + data.getvalue())


def load(path: Path, key: str, columns: int) -> Forest | None:
    """The forest at `path`; None if that is no such file, damaged, or of another key.

    columns: of the features that it is for
    """
    try:
        content = path.read_bytes()
        data = content[_DIGEST_BYTES:]
        if content[:_DIGEST_BYTES] != _digest(data, key):
            return None
        with np.load(io.BytesIO(data), allow_pickle=False) as stored:
            forest = Forest(**{name: stored[name] for name in Forest.__annotations__})
    except _UNREADABLE:
        return None
    sound = _is_sound(forest) and int(forest.columns[0]) == columns
    return forest if sound else None


def _digest(data: bytes, key: str) -> bytes:
    return hashlib.sha256(key.encode() + data).digest()


def _is_sound(forest: Forest) -> bool:
    """Whether every walk from a root stays within the nodes and ends."""
    nodes = len(forest.feature)
    for name, kind in Forest.__annotations__.items():
        array = getattr(forest, name)
        wanted = np.float64 if kind == "FloatArray" else np.int32
        if array.ndim != 1 or array.dtype != wanted or not len(array):
            return False
        if name not in ("roots", "columns") and len(array) != nodes:
            return False
    inner = np.flatnonzero(forest.feature >= 0)
    children = np.stack([forest.left[inner], forest.right[inner]])
    return bool(
        (forest.roots >= 0).all()
        and (forest.roots < nodes).all()
        and (forest.feature < forest.columns[0]).all()
        and (children > inner).all()  # a child has a larger index than its parent
        and (children < nodes).all()
    )
