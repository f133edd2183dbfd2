"""Of which elements accesses are where windows are moved over an array, one by one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from test_every_thread import PACES
from test_global_bounds import kernel

from alcop_mlir.checker.bounds.accesses import by_numbers
from alcop_mlir.checker.bounds.every_thread import Access
from alcop_mlir.checker.form.certificate import Promises
from alcop_mlir.checker.form.statement import read_statement
from alcop_mlir.checker.logic.facts import Answers
from alcop_mlir.checker.placed.gathers import Gathers
from alcop_mlir.checker.ptx.flow import Flow
from alcop_mlir.checker.ptx.instructions import Instruction
from alcop_mlir.checker.ptx.text import read_kernel
from alcop_mlir.errors import NotPlacedError

PC, HEAD, ROWS, TAPS = 4, 2, 8, 3
# Windows of three pixels around each of eight, which have two channels.
STATED = {
    "extents": {"p": ROWS, "k": 2 * TAPS, "n": 4},
    "arrays": {"x": ["pk", [6, 1], 2], "w": ["kn", [4, 1], 2], "y": ["pn", [4, 1], 4]},
    "lhs": "x",
    "rhs": "w",
    "init": None,
    "order": "pn",
    "outputs": {"y": []},
    "grid": [1, 1, 1],
    "windows": {
        "x": [
            [ROWS, 2, -1, [["p", 1, ROWS, 1], ["k", 2, TAPS, 1]]],
            [2, 1, 0, [["k", 1, 2, 1]]],
        ]
    },
}
COLUMNS = [0, 2, 1, 1, 2, [0, 0, 0], {HEAD: 2}]


def copies(channels: int) -> Instruction:
    """Of so many channels of a pixel."""
    size = str(2 * channels)
    return Instruction("", False, "cp.async.ca.shared.global", ("[%s]", "[%x]", size))


def access(turn: int | None, channels: int = 2) -> Access:
    """Each thread's tap of that number: nothing outside of the array."""
    pixel = np.arange(ROWS) + (turn or 0) - 1
    size = np.where((pixel >= 0) & (pixel < ROWS), 2 * channels, 0)
    turns = {HEAD: turn}
    runs = np.ones((1, 1, 1, ROWS), bool)
    offset = (4 * pixel).reshape(runs.shape)
    return Access("x", runs.shape, turns, offset, size.reshape(runs.shape), runs)


def gathers(columns: list[Any] | None = None, **stated: Any) -> Gathers:
    answers = Answers([], [], [], {}, {PC: columns or COLUMNS})
    return Gathers(read_statement({**STATED, **stated}), answers)


def changed(turn: int, name: str, at: int, value: int) -> Access:
    """With another number of one thread."""
    one = access(turn)
    numbers = getattr(one, name).copy()
    numbers[..., at] = value
    return replace(one, **{name: numbers})


def test_elements_are_those_of_rows_and_columns() -> None:
    found = gathers()
    for turn in range(TAPS):
        found.see(PC, copies(2), access(turn))
    one = found.found(PC)
    assert one is not None
    assert one.threads.tolist() == [6 * row for row in range(ROWS)]
    assert one.turns == {HEAD: 2}


@pytest.mark.parametrize(
    "wrong",
    [
        changed(1, "size", 3, 0),  # nothing of what is there
        changed(1, "size", 3, 2),  # half of it
        changed(2, "size", 7, 4),  # what is not
        changed(1, "offset", 3, 16),  # the next pixel
        replace(access(0), turns={HEAD: None}),
        replace(access(0), turns={HEAD: 3}),  # the first tap again
        replace(access(1), shape=(1, 1, 2, ROWS)),  # another grid
        replace(access(1), array="w"),
        None,
    ],
)
def test_others_are_refused(wrong: Access | None) -> None:
    found = gathers()
    found.see(PC, copies(2), access(0))
    with pytest.raises(NotPlacedError):
        found.see(PC, copies(2), wrong)


def test_threads_of_no_column_read_nothing() -> None:
    """They have zeros; with `most` columns of which the second thread has none."""
    columns = [0, 2, 1, 2, 2, [0, 0, 0], {}]
    one = access(1)
    with pytest.raises(NotPlacedError, match="more columns of x than a tile has"):
        gathers(columns).see(PC, copies(2), one)
    reads = np.where(np.arange(ROWS) % 2, 0, one.size)
    at = np.arange(ROWS) // 2 * 4 - 4  # of rows of pairs of threads
    fine = replace(one, size=np.where(at < 0, 0, reads), offset=at + one.offset * 0)
    found = gathers(columns)
    found.see(PC, copies(2), fine)
    mine = found.found(PC)
    assert mine is not None
    assert mine.others.tolist() == [False, True] * 4


def test_elements_beside_each_other_may_be_of_two_taps() -> None:
    """Then each is looked at: of the first row the one is outside, the other is not."""
    columns = [0, 4, 1, 1, 4, [0, 0, 0], {}]
    whole = access(0, channels=4)
    with pytest.raises(NotPlacedError, match="other elements of x than a window's"):
        gathers(columns).see(PC, copies(4), whole)
    inside = np.arange(ROWS) > 0
    found = gathers(columns)
    found.see(PC, copies(4), replace(whole, runs=whole.runs & inside))


def test_rows_that_are_not_there_may_be_anything() -> None:
    """Beyond the last one: what is made of them cannot be stored."""
    one = access(1)
    found = gathers(None, extents={**STATED["extents"], "p": ROWS - 1})
    found.see(PC, copies(2), one)
    found.see(PC, copies(2), changed(2, "size", 7, 4))
    with pytest.raises(NotPlacedError):
        found.see(PC, copies(2), changed(2, "size", 6, 0))


def test_turns_are_those_of_threads_in_step() -> None:
    seen: list[Access | None] = []

    class Recorder:
        def see(self, pc: int, ins: Instruction, access: Access | None) -> None:
            seen.append(access)

    one = read_kernel(kernel(PACES, "a"), "f")
    axes = {axis: [([(1, ())], 1)] for axis in ("%ctaid.x", "%ctaid.y", "%ctaid.z")}
    given = Promises({"a": ([(4 * 128, ())], [])}, {}, {}, axes, [], True)
    by_numbers(one, Flow(one), 128, given, Recorder())
    turns = [[*one.turns.values()] for one in seen if one is not None]
    assert turns[0] == [0]
    assert {*map(tuple, turns[1:])} == {(None,)}
