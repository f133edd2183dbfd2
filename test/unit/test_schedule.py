"""Schedules check themselves and go to text, dictionaries and back."""

from __future__ import annotations

import pytest

from alcop_mlir.errors import ConfigError
from alcop_mlir.schedule import Schedule


def test_text_goes_round() -> None:
    text = "block=128,256,32 warp=64,64 stages=4,2"
    for more in ("", " raster=8", " split_k=4", " raster=3 split_k=2"):
        schedule = Schedule.parse(text + more)
        assert str(schedule) == text + more
        assert Schedule.from_dict(schedule.to_dict()) == schedule
        assert (schedule.warps, schedule.threads) == ((2, 4), 256)


def test_one_group_and_one_part_are_not_written() -> None:
    """So that records and bundles from before there were any compare equal."""
    schedule = Schedule.parse("raster=1 split_k=1")
    assert schedule == Schedule()
    assert list(schedule.to_dict()) == ["block", "warp", "stages"]


def test_what_is_left_out_takes_its_default() -> None:
    assert Schedule.parse("stages=2,1") == Schedule(stages=(2, 1))
    assert Schedule.parse("") == Schedule()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("block=128,128", "block=128,128, expected 3 positive integers"),
        ("block=0,128,32", "block=0,128,32, expected 3 positive integers"),
        (
            "tile=1,2",
            "unknown parameter 'tile', expected one of block, raster, split_k, "
            "stages, warp",
        ),
        ("block", "cannot read 'block', expected NAME=INT"),
        ("stages=-1,2", "cannot read 'stages=-1,2'"),
        ("stages=2,1 stages=3,1", "'stages' is given twice"),
        ("block=100,128,32", "block=100,128 is not a whole number of warp=64,64"),
        ("block=128,128,24", "block K is 24, must be 16*n"),
        ("block=24,64,32 warp=24,32", "warp M is 24, must be 16*n"),
        ("block=64,24,32 warp=32,24", "warp N is 24, must be 16*n"),
        ("stages=9,2", "stages=9,2, at most 8,4"),
        ("stages=3,5", "stages=3,5, at most 8,4"),
        ("block=512,512,16 warp=64,64", "64 warps, at most 32"),
        ("raster=0", "raster=0, expected an integer from 1 to 64"),
        ("raster=65", "raster=65, expected an integer from 1 to 64"),
        ("split_k=2,2", "split_k=2,2, expected an integer from 1 to 64"),
    ],
)
def test_absurd_schedules_are_refused(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Schedule.parse(text)
    assert message in str(caught.value)
