"""What the records of one problem say, as some of them may be wrong.

A schedule that was measured more than once has the median of its times: a GPU that was
busy makes one record slow, a broken clock makes one fast, and neither decides. Times
are compared with the model as well: its errors are alike within a problem, so that a
time far below what all others suggest is no time of that kernel.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from alcop_mlir.schedule import Schedule
from alcop_mlir.target import Target
from alcop_mlir.tuning.analytical import predict
from alcop_mlir.tuning.problem import Problem
from alcop_mlir.tuning.records import Record
from alcop_mlir.tuning.space import Candidates

# Times faster than others suggest. log(measured / predicted) has a deviation of 0.2 to
# 0.3 within a problem on real GPUs (docs/tuning.md): this is five of them.
TOO_FAST = 4.0
_LEAST = 3  # schedules with a time, to tell which one is wrong


def typical(records: Iterable[Record]) -> dict[Schedule, Record]:
    """For each schedule the record whose time is the median, the slower of two."""
    found: dict[Schedule, list[Record]] = {}
    for record in records:
        if record.seconds is not None:
            found.setdefault(record.schedule, []).append(record)
    return {schedule: _median(some) for schedule, some in found.items()}


def _median(records: Sequence[Record]) -> Record:
    ordered = sorted(records, key=lambda record: record.seconds or 0.0)
    return ordered[len(ordered) // 2]


def outliers(
    problem: Problem, target: Target, seconds: Mapping[Schedule, float]
) -> frozenset[Schedule]:
    """The schedules that are faster than the times of the others allow."""
    candidates = Candidates.legal(seconds, problem, target)
    if len(candidates) < _LEAST:
        return frozenset()
    times = np.array([seconds[schedule] for schedule in candidates.schedules])
    errors = np.log(times / predict(problem, candidates, target).seconds)
    wrong: list[bool] = (errors < np.median(errors) - np.log(TOO_FAST)).tolist()
    found = zip(candidates.schedules, wrong, strict=True)
    return frozenset(schedule for schedule, is_wrong in found if is_wrong)
