"""Records of which some are wrong: repeated measurements, and times that cannot be."""

from __future__ import annotations

import numpy as np
import pytest
from tuning_cases import CUDA, PROBLEM, TARGET, record, write_records

from alcop_mlir.tuning import models, records
from alcop_mlir.tuning.records import Record
from alcop_mlir.tuning.selection import Chooser


@pytest.fixture
def made() -> list[Record]:
    return write_records(models.records_path(), 80, CUDA)


def seconds_of(made: list[Record]) -> list[float]:
    return sorted(one.seconds or 0.0 for one in made)


@pytest.mark.parametrize("factor", [0.5, 3.0])
def test_of_repeated_measurements_the_median_counts(
    made: list[Record], factor: float
) -> None:
    """One of three is wrong, too fast or too slow, and decides nothing."""
    ordered = sorted(made, key=lambda one: one.seconds or 0.0)
    best, other = ordered[0], ordered[5]
    wrong = other if factor < 1 else best
    seconds = wrong.seconds or 0.0
    again = [record(wrong.schedule, seconds * f, CUDA) for f in (1.01, factor)]
    records.append(models.records_path(), again)
    found, notes = Chooser(TARGET).best_record(PROBLEM)
    assert found is not None
    assert (found.schedule, notes) == (best.schedule, ())


def test_a_time_that_the_others_contradict_does_not_win(made: list[Record]) -> None:
    """A GPU could reach it by its peak, but not with that schedule."""
    slow = max(made, key=lambda one: one.seconds or 0.0)
    impossible = 0.5 * seconds_of(made)[0]
    rest = [one for one in made if one is not slow]
    models.records_path().unlink()
    wrong = record(slow.schedule, impossible, CUDA)
    records.append(models.records_path(), [*rest, wrong])
    chooser = Chooser(TARGET)
    found, notes = chooser.best_record(PROBLEM)
    best = min(rest, key=lambda one: one.seconds or 0.0)
    assert found is not None
    assert found.schedule == best.schedule
    assert len(notes) == 1
    assert "4 times faster than others suggest" in notes[0]
    (samples,) = chooser.samples().values()
    assert len(samples.seconds) == 79
    assert impossible not in samples.seconds


def test_a_nanosecond_is_no_time(made: list[Record]) -> None:
    records.append(models.records_path(), [record(made[3].schedule, 1e-9, CUDA)])
    chooser = Chooser(TARGET)
    found, _ = chooser.best_record(PROBLEM)
    assert found is not None
    assert found.seconds == seconds_of(made)[0]
    assert "impossible" in chooser.counted.notes[0]


def test_one_fast_schedule_among_slow_ones_is_believed(made: list[Record]) -> None:
    """Slow ones were measured by chance: the model says that they are slow."""
    times = {one.schedule: one.seconds or 0.0 for one in made}
    ordered = sorted(times, key=lambda one: times[one])
    some = {one: times[one] for one in [ordered[0], *ordered[-4:]]}
    assert times[ordered[-4]] > 3 * times[ordered[0]]
    assert models.outliers(PROBLEM, TARGET, some) == frozenset()


def test_two_times_contradict_nobody(made: list[Record]) -> None:
    some = {made[0].schedule: 1.0, made[1].schedule: 1e-6}
    assert models.outliers(PROBLEM, TARGET, some) == frozenset()


def test_a_gpu_that_is_faster_throughout_has_no_outliers(made: list[Record]) -> None:
    generator = np.random.default_rng(0)
    some = {
        one.schedule: (one.seconds or 0.0) * 0.1 * float(factor)
        for one, factor in zip(
            made, np.exp(0.3 * generator.normal(size=len(made))), strict=True
        )
    }
    assert models.outliers(PROBLEM, TARGET, some) == frozenset()
