"""Of schedules that a model cannot tell apart, the most frugal comes first."""

from __future__ import annotations

import numpy as np
import pytest
from tuning_cases import TARGET

from alcop_mlir.schedule import Schedule
from alcop_mlir.tuning import selection, training
from alcop_mlir.tuning.candidates import Candidates
from alcop_mlir.tuning.features import Samples
from alcop_mlir.tuning.preference import EQUAL, WORTH, lead, order
from alcop_mlir.tuning.problem import Problem
from alcop_mlir.tuning.search import Task
from alcop_mlir.tuning.space import check

PROBLEM = Problem(2048, 2048, 2048)
# From the most frugal to the least.
SCHEDULES = [
    "block=128,128,32 warp=64,64 stages=4,2 raster=8",
    "block=128,128,32 warp=64,64 stages=4,2",
    "block=64,64,32 warp=32,32 stages=6,2",
    "block=128,128,32 warp=64,64 stages=2,2",
    "block=128,128,32 warp=64,64 stages=4,2 split_k=2",
]


@pytest.fixture
def candidates() -> Candidates:
    """In the order from the least frugal to the most."""
    schedules = [Schedule.parse(text) for text in SCHEDULES[::-1]]
    return Candidates(schedules, [check(PROBLEM, s, TARGET) for s in schedules])


def test_ties_are_ordered_by_frugality(candidates: Candidates) -> None:
    same = np.full(len(candidates), 1e-5)
    assert order(candidates, same).tolist() == [4, 3, 2, 1, 0]
    same[1] *= 0.99  # what is told apart is not reordered
    assert order(candidates, same).tolist() == [1, 4, 3, 2, 0]


def test_the_most_frugal_of_what_is_as_good_leads(candidates: Candidates) -> None:
    near, far = 1 + (EQUAL - 1) / 2, 1 + 2 * (EQUAL - 1)
    predicted = np.array([1.0, near, near, near, far])
    ranking = order(candidates, predicted)
    assert ranking.tolist() == [0, 3, 2, 1, 4]
    assert lead(candidates, ranking, predicted).tolist() == [3, 0, 2, 1, 4]


def test_parts_of_k_have_to_be_worth_it(candidates: Candidates) -> None:
    """Only the first candidate, which is the fastest, has them."""
    for far, leading in ((WORTH - 0.001, 4), (WORTH + 0.001, 0)):
        predicted = np.array([1.0, far, far, far, far])
        ranking = order(candidates, predicted)
        assert lead(candidates, ranking, predicted)[0] == leading


def test_of_the_equally_frugal_the_better_leads() -> None:
    """Stages beyond the fourth are not worth a slower prediction."""
    texts = [
        "block=64,64,32 warp=32,32 stages=6,2",
        "block=64,64,32 warp=32,32 stages=4,2",
    ]
    schedules = [Schedule.parse(text) for text in texts]
    both = Candidates(schedules, [check(PROBLEM, s, TARGET) for s in schedules])
    for predicted in (np.array([1.0, 1.01]), np.array([1.01, 1.0])):
        ranking = order(both, predicted)
        assert lead(both, ranking, predicted)[0] == np.argmin(predicted)


@pytest.mark.parametrize(
    ("tile", "stages", "taken"),
    [
        ("block=128,128,32 warp=64,64", (2, 3, 4, 6), 4),
        ("block=64,64,32 warp=32,32", (2, 3, 4, 6), 4),
        ("block=64,64,64 warp=32,32", (2, 3, 4, 6), 6),
        ("block=128,64,64 warp=64,32", (2, 3, 4), 3),
    ],
)
def test_stages_that_gpus_were_faster_with(
    tile: str, stages: tuple[int, ...], taken: int
) -> None:
    """Where the model sees no difference, and not where it sees one."""
    schedules = [Schedule.parse(f"{tile} stages={one},2") for one in stages]
    some = Candidates(schedules, [check(PROBLEM, s, TARGET) for s in schedules])
    same = np.full(len(some), 1e-5)
    assert schedules[lead(some, order(some, same), same)[0]].stages[0] == taken
    slow = np.where([one > 3 for one in stages], 2 * EQUAL, 1.0) * 1e-5
    assert schedules[lead(some, order(some, slow), slow)[0]].stages[0] == 3


def test_a_forest_is_unsure_of_what_it_was_not_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The leading schedule may be one that the forest did not predict."""
    texts = [f"block=64,64,32 warp=32,32 stages={one},2" for one in (3, 4)]
    schedules = [Schedule.parse(text) for text in texts]
    both = Candidates(schedules, [check(PROBLEM, s, TARGET) for s in schedules])
    task = Task(PROBLEM, TARGET, both)
    values = np.array([-0.1, 0.1])
    samples = Samples(
        task.features, task.prediction.seconds, task.prediction.seconds * np.exp(values)
    )
    forest = training.train(None, [samples])
    first = order(both, task.prediction.seconds)[0]
    assert schedules[first].stages[0] == 3
    monkeypatch.setattr(selection, "_ASKED", 1)
    ranking, _, sure = selection.ranked(task, forest)
    assert ranking.tolist() == [1, 0]
    assert sure == forest.predict(task.features[[first]])[1][0]
