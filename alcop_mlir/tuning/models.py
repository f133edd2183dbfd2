"""The learned model for a device and target: from the cache, or trained from records.

A model belongs to the records that it was trained from: their hash is stored with it,
and a model of other records, or a damaged one, is replaced by a new one. Records of one
device never train the model of another: simulated times say nothing about a GPU.

Some records may be wrong. A schedule that was measured more than once has the median of
its times: a GPU that was busy makes one record slow, a broken clock makes one fast, and
neither decides. Times are compared with the analytical model as well: its errors are
alike within a problem, so that a time far below what all others suggest is no time of
that kernel.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from alcop_mlir import knobs
from alcop_mlir.errors import ConfigError, MissingExtraError
from alcop_mlir.schedule import Schedule
from alcop_mlir.target import Target
from alcop_mlir.tuning import learned, records, training
from alcop_mlir.tuning import record_book as book
from alcop_mlir.tuning.analytical import predict
from alcop_mlir.tuning.candidates import Candidates, FloatArray
from alcop_mlir.tuning.counted import Counted
from alcop_mlir.tuning.features import NAMES, Samples, features
from alcop_mlir.tuning.learned import Forest
from alcop_mlir.tuning.problem import Problem
from alcop_mlir.tuning.record_book import Book
from alcop_mlir.tuning.records import Record

BoolArray = npt.NDArray[np.bool_]
LEAST_RECORDS = 64  # fewer do not make a model
# Of more a sample: a model is fitted in a second, and what it says hardly changes.
LEARNED_FROM = 2048
# Times faster than others suggest. log(measured / predicted) has a deviation of 0.2 to
# 0.3 within a problem on real GPUs (docs/tuning.md): this is five of them.
TOO_FAST = 4.0
_LEAST = 3  # schedules with a time, to tell which one is wrong
_SHIPPED = Path(__file__).parent / "data"


def shipped(device: str, target: Target) -> tuple[Record, ...]:
    """The records in the package for that device and target."""
    return tuple(shipped_book(device, target).records())


def shipped_book(device: str, target: Target) -> Book:
    """Of these records."""
    name = f"{device}-{target.name}.jsonl"
    packed, plain = _SHIPPED / f"{name}.gz", _SHIPPED / name
    if packed.exists():  # written by collecting on a GPU
        return book.of_data(gzip.decompress(packed.read_bytes()), name)
    return book.consult(plain)


def records_path() -> Path:
    """The default file of records."""
    return knobs.cache_dir() / "records.jsonl"


def samples(known: Counted, device: str, target: Target) -> dict[Problem, Samples]:
    """The samples to fit a model to, by problem."""
    return samples_of(known.sample(LEARNED_FROM), device, target)


def samples_of(
    known: Iterable[Record], device: str, target: Target
) -> dict[Problem, Samples]:
    """Of these records."""
    of_problem: dict[Problem, list[Record]] = {}
    for record in records.timed(known, device, target.name):
        if record.problem.chain is None:  # a model of its own, with other errors
            of_problem.setdefault(record.problem, []).append(record)
    found = {
        problem: _samples(problem, mine, target) for problem, mine in of_problem.items()
    }
    return {problem: some for problem, some in found.items() if some is not None}


def load_or_train(
    known: Counted, device: str, target: Target
) -> tuple[Forest | None, tuple[str, ...]]:
    """The model for those records, or None if they are too few; and notes."""
    if len(known) < LEAST_RECORDS:
        return None, ()
    path = knobs.cache_dir() / f"model-{device}-{target.name}.bin"
    key = repr((NAMES, known.key))
    forest = learned.load(path, key, len(NAMES))
    if forest is not None:
        return forest, ()
    try:
        mine = samples(known, device, target)
        if not mine:
            return None, ()
        forest = training.train(None, list(mine.values()))
    except MissingExtraError as error:
        return None, (f"what is recorded is not learned from: {error}",)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        learned.store(forest, path, key)
    except (OSError, ConfigError) as error:
        why = getattr(error, "strerror", None) or error
        note = f"the trained model is not kept, it will be trained again: {why}"
        return forest, (note,)
    return forest, ()


def train_elsewhere(
    known: Mapping[Target, Counted], device: str
) -> tuple[Forest | None, tuple[str, ...]]:
    """A model of the records of other GPUs, None where they are too few; and notes.

    Of each problem it learns which schedules are slower than predicted, compared with
    the others: how fast the GPU is as a whole says nothing about another one.
    """
    number = sum(len(one) for one in known.values())
    if number < LEAST_RECORDS:
        return None, ()
    most = LEARNED_FROM // len(known)
    mine = [
        compared(some)
        for target, one in known.items()
        for some in samples_of(one.sample(most), device, target).values()
    ]
    if not mine:
        return None, ()
    try:
        forest = training.train(None, mine)
    except MissingExtraError as error:
        return None, (f"records of other GPUs are not learned from: {error}",)
    return forest, (f"the search begins with what {number} records of other GPUs say",)


def compared(some: Samples) -> Samples:
    """With times as of a GPU on which the median is as predicted."""
    middle = np.exp(np.median(np.log(some.seconds / some.predicted)))
    return replace(some, seconds=some.seconds / middle)


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
    times = _seconds(candidates, seconds)
    wrong = _are_too_fast(times / predict(problem, candidates, target).seconds)
    found = zip(candidates.schedules, wrong.tolist(), strict=True)
    return frozenset(schedule for schedule, is_wrong in found if is_wrong)


def _are_too_fast(ratios: FloatArray) -> BoolArray:
    """By measured over predicted times of one problem; none where there are few."""
    if len(ratios) < _LEAST:
        return np.zeros(len(ratios), np.bool_)
    errors = np.log(ratios)
    return errors < np.median(errors) - np.log(TOO_FAST)


def _seconds(candidates: Candidates, times: Mapping[Schedule, float]) -> FloatArray:
    return np.array([times[schedule] for schedule in candidates.schedules])


def _samples(
    problem: Problem, mine: Iterable[Record], target: Target
) -> Samples | None:
    """Of credible times; None where no schedule is legal any more."""
    known = typical(mine)
    times = {one: record.seconds or 0.0 for one, record in known.items()}
    candidates = Candidates.legal(times, problem, target)
    if not len(candidates):
        return None
    prediction = predict(problem, candidates, target)
    seconds = _seconds(candidates, times)
    right = ~_are_too_fast(seconds / prediction.seconds)
    found = features(problem, candidates, prediction)
    return Samples(found[right], prediction.seconds[right], seconds[right])
