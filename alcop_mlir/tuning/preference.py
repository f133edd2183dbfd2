"""Order the schedules whose predictions a model cannot tell apart.

The most frugal comes first: the one that needs the least memory bandwidth and capacity.
That is the one with the fewest parts of K, which need memory of their own, and the
fewest sweeps over taps, which need counters; with rows, not rectangles, which may go
over the edges of images; then the deepest pipeline, up to some stages; the largest
tile; the largest group of rows, up to some. Memory may be slower than a model assumes.
Of that tile more stages are taken still where GPUs were faster with these.
"""

from __future__ import annotations

import numpy as np

from alcop_mlir.schedule import MMA
from alcop_mlir.tuning.candidates import AXES, Candidates, FloatArray, IntArray

# The better of two predictions that are this close may be the worse: of near the best
# schedules the model is off by 7 to 14 % (standard deviation), see docs/tuning.md.
EQUAL = 1.04
# Parts of K are a kernel more, and move accumulators through memory, which whole
# programs share: what they gain has to be beyond the error of a model.
WORTH = 1.1
# mma.sync instead of wgmma: no model was measured beside the other one's. One tile of
# 64x64 by 2048 is predicted to take 1.4 times as long by wgmma, which does not split K.
OTHER_ENGINE = 1.5
_TIE = 1e-4  # of log(seconds)
# Shared stages of one tile that a model cannot tell apart: with K steps of 32 elements
# four are 0.8 % (tiles of 128x64 and larger, 706 pairs) and 2.5 % (smaller ones) faster
# than three on A100; with 64 elements five are 2.3 % faster for the smaller tiles, and
# 4.5 % slower for the larger ones (1,615 pairs). AutoHeuristic's half that calibrates.
# The tile is chosen before: as keys of `_frugality` these chose other tiles, and A100's
# choice without a trial was 0.962 of the best, not 0.972.
_SHORT_K, _SMALL_TILE = 64, 128 * 64
_OF_SHORT_K, _OF_SMALL_TILE = 4, 6  # the most stages
_DEEP = (3, 2)
_GROUP = 8


def order(candidates: Candidates, predicted: FloatArray) -> IntArray:
    """All rows, best first, the more frugal first where predictions are the same."""
    steps = np.round(np.log(predicted) / _TIE)
    return np.lexsort((*_frugality(candidates), steps))


def lead(candidates: Candidates, ranking: IntArray, predicted: FloatArray) -> IntArray:
    """`ranking`, led by the most frugal of the rows that are as good as its best.

    For wgmma, and of fewer parts of K, if these do nearly as well.
    """
    engines = candidates.axis("engine")[ranking]
    best = predicted[ranking[0]]
    newest = engines[predicted[ranking] <= OTHER_ENGINE * best].max()
    mine = ranking[engines == newest]
    times, parts = predicted[mine], candidates.axis("split_k")[mine]
    fewest = parts[times <= WORTH * times[0]].min()
    own = mine[parts == fewest]
    as_good = own[predicted[own] <= EQUAL * predicted[own[0]]]
    some = candidates.take(as_good)
    frugal = as_good[np.lexsort(_frugality(some))[0]]
    first = _deepest(candidates, int(frugal), predicted)
    return np.concatenate([[first], ranking[ranking != first]])


def _deepest(candidates: Candidates, row: int, predicted: FloatArray) -> int:
    """The row of the same tile as `row` with the most stages that do not cost time."""
    one, deepest = candidates.schedules[row], row
    m, n, k = one.block
    if one.engine != MMA or (k >= _SHORT_K and m * n >= _SMALL_TILE):
        return row
    most = _OF_SHORT_K if k < _SHORT_K else _OF_SMALL_TILE
    shared = AXES.index("shared_stages")
    table = candidates.table
    alike = (np.delete(table, shared, 1) == np.delete(table[row], shared)).all(axis=1)
    for other in np.flatnonzero(alike & (predicted <= EQUAL * predicted[row])).tolist():
        if table[deepest, shared] < table[other, shared] <= most:
            deepest = other
    return deepest


def _frugality(candidates: Candidates) -> tuple[FloatArray, ...]:
    """Keys that are small for frugal rows; the last counts most."""
    axis = candidates.axis
    shared, register = _DEEP
    depth = np.minimum(axis("shared_stages"), shared)
    depth = depth + np.minimum(axis("register_stages"), register)
    volume = axis("block_m") * axis("block_n") * axis("block_k")
    group = np.minimum(axis("raster"), _GROUP)
    parts = axis("rectangle"), axis("sweeps"), axis("split_k")
    return -group, -volume, -depth, *parts
