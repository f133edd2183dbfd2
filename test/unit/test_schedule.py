"""Schedules check themselves and go to text, dictionaries and back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from alcop_mlir.errors import ConfigError
from alcop_mlir.schedule import Partial, Schedule


def test_text_goes_round() -> None:
    text = "block=128,256,32 warp=64,64 stages=4,2"
    for more in (
        "",
        " raster=8",
        " split_k=4",
        " raster=3 split_k=2",
        " sweeps=4",
        " sweeps=2 rectangle=16",
    ):
        schedule = Schedule.parse(text + more)
        assert str(schedule) == text + more
        assert Schedule.from_dict(schedule.to_dict()) == schedule
        assert (schedule.warps, schedule.threads) == ((2, 4), 256)


def test_one_group_and_one_part_are_not_written() -> None:
    """So that records and bundles from before there were any compare equal."""
    schedule = Schedule.parse("raster=1 split_k=1 sweeps=1 rectangle=1")
    assert schedule == Schedule()
    assert list(schedule.to_dict()) == ["block", "warp", "stages"]


def test_what_is_left_out_takes_its_default() -> None:
    assert Schedule.parse("stages=2,1") == Schedule(stages=(2, 1))
    assert Schedule.parse("") == Schedule()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "block=128,128,64 warp=16,128 engine=wgmma mode=pingpong",
            "schedule: 8 by 1 warps, expected 4 by 1: with mode=pingpong a tile is "
            "computed by one warpgroup",
        ),
        (
            "mode=pingpong",
            "schedule: mode=pingpong is for engine=wgmma, whose copies are done by "
            "warps of their own",
        ),
        (
            "cluster=2",
            "schedule: cluster=2 is for engine=wgmma, whose copies reach several "
            "blocks",
        ),
        (
            "block=128,128",
            "schedule.block: expected a list of 3, each an integer from 1 to 65536, "
            "got [128, 128]",
        ),
        (
            "block=0,128,32",
            "schedule.block[0]: expected an integer from 1 to 65536, got 0",
        ),
        (
            "tile=1,2",
            'schedule: unknown "tile", expected one of block, warp, stages, raster, '
            "split_k, sweeps, rectangle",
        ),
        ("block", "cannot read 'block', expected NAME=INT"),
        ("stages=-1,2", "cannot read 'stages=-1,2'"),
        ("stages=2,1 stages=3,1", "'stages' is given twice"),
        ("block=100,128,32", "block=100,128 is not a whole number of warp=64,64"),
        ("block=128,128,24", "block K is 24, must be 16*n"),
        ("block=24,64,32 warp=24,32", "warp M is 24, must be 16*n"),
        ("block=64,24,32 warp=32,24", "warp N is 24, must be 16*n"),
        ("stages=9,2", "schedule.stages[0]: expected an integer from 1 to 8, got 9"),
        ("stages=3,5", "schedule.stages[1]: expected an integer from 1 to 4, got 5"),
        ("block=512,512,16 warp=64,64", "64 warps, at most 32"),
        ("rectangle=48", "block M is 128, not a whole number of rectangle=48"),
        ("raster=0", "schedule.raster: expected an integer from 1 to 64, got 0"),
        ("raster=65", "schedule.raster: expected an integer from 1 to 64, got 65"),
        pytest.param(
            "raster=" + "9" * 5000, "schedule: cannot read 'raster=99", id="5000 digits"
        ),
        (
            "split_k=2,2",
            "schedule.split_k: expected an integer from 1 to 64, got [2, 2]",
        ),
    ],
)
def test_absurd_schedules_are_refused(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Schedule.parse(text)
    assert message in str(caught.value)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("member", "value", "message"),
    [
        ("raster", True, "schedule.raster: expected an integer from 1 to 64, got true"),
        pytest.param("raster", 10**5000, "an integer of 16610 bits", id="5000 digits"),
        ("stages", "12", "schedule.stages: expected a list of 2, got "),
        ("warp", [64, None], "schedule.warp[1]: expected an integer from 1 to 65536"),
        ("warp", [24, 32], "schedule: warp M is 24, must be 16*n"),
    ],
)
def test_damaged_dictionaries_are_refused(member, value, message) -> None:
    with pytest.raises(ConfigError) as caught:
        Schedule.from_dict({**Schedule().to_dict(), member: value})
    assert str(caught.value).startswith("schedule")
    assert message in str(caught.value)


def test_what_is_left_out_is_that_of_the_chosen() -> None:
    chosen = Schedule((64, 64, 64), (32, 32), (4, 2), raster=8, split_k=2)
    partial = Partial.parse("stages=2,1 raster=1")
    assert (str(partial), partial.is_whole) == ("stages=2,1 raster=1", False)
    assert partial.over(chosen) == Schedule(
        (64, 64, 64), (32, 32), (2, 1), raster=1, split_k=2
    )


def test_tiles_and_stages_make_a_whole_schedule() -> None:
    """Its text leaves out a raster of 1, which is then not chosen either."""
    partial = Partial.parse("block=64,64,32 warp=32,32 stages=2,1")
    assert partial.is_whole
    assert partial.over(Schedule(raster=8, split_k=2)) == Schedule(
        (64, 64, 32), (32, 32), (2, 1)
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("stages=9,1", r"stages\[0\]: expected an integer from 1 to 8, got 9"),
        ("warp=24,64", "warp M is 24, must be 16"),
        ("block=64,64,32 warp=48,32 stages=1,1", "not a whole number"),
        ("tile=1", 'unknown "tile"'),
    ],
)
def test_what_fits_no_schedule_is_said_at_once(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Partial.parse(text)


def test_what_does_not_fit_the_chosen_is_said() -> None:
    with pytest.raises(ConfigError, match="block=64,64 is not a whole number of warp"):
        Partial.parse("warp=48,32").over(Schedule((64, 64, 32), (32, 32)))


def test_what_is_changed_is_checked_as_what_is_made() -> None:
    """The members that change, and what concerns them together with others."""
    schedule = Schedule((128, 128, 32), (64, 64), (3, 2))
    assert schedule.changed(raster=8) == replace(schedule, raster=8)
    assert schedule.raster == 1
    for members in ({"raster": 0}, {"stages": (3, "2")}, {"warp": (48, 64)}):
        with pytest.raises(ConfigError) as wanted:
            replace(schedule, **members)
        with pytest.raises(ConfigError) as got:
            schedule.changed(**members)
        assert str(got.value) == str(wanted.value)
