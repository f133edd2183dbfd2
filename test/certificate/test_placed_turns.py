"""Results of loops in which a turn does other things: the sum ends inside of a tile."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from placed_cases import assert_misplaced, assert_proven, verdict

from alcop_mlir.checker.form.statement import read_statement
from alcop_mlir.checker.machine.cells import Cells
from alcop_mlir.checker.machine.held import Held, Tags
from alcop_mlir.checker.machine.state import State
from alcop_mlir.checker.placed.kinds import Element, Kind, Result
from alcop_mlir.checker.placed.tags import Book
from alcop_mlir.checker.placed.told import numbered, restrict, turns_of
from alcop_mlir.checker.placed.turns import pin
from alcop_mlir.checker.ptx.flow import Flow, counters
from alcop_mlir.checker.ptx.text import read_kernel

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
from certificate_kernels import Case, matmul

# 22 tiles and a quarter of one, by vectors; 20 and 3 elements, one by one.
VECTORS = matmul("nn", 64, 64, 712, "block=32,32,32 warp=16,16 stages=1,1")
SINGLE = matmul("nn", 40, 65, 643, "block=32,32,32 warp=16,16 stages=3,1")


@pytest.mark.parametrize("case", [VECTORS, SINGLE], ids=lambda one: one.name)
def test_sums_that_end_inside_of_a_tile_are_placed(case: Case) -> None:
    assert_proven(case)


@pytest.mark.parametrize(
    ("case", "old", "new"),
    [
        # Where the sum ends, and by how much what is left falls.
        (VECTORS, "mov.b64 %rd80, 712;", "mov.b64 %rd80, 704;"),
        (VECTORS, "mov.b64 %rd80, 712;", "mov.b64 %rd80, 720;"),
        (VECTORS, "add.s64 %rd80, %rd80, -32;", "add.s64 %rd80, %rd80, -31;"),
        (VECTORS, "add.s64 %rd80, %rd80, -32;", "add.s64 %rd80, %rd80, -33;"),
        (SINGLE, "mov.b64 %rd137, 643;", "mov.b64 %rd137, 642;"),
        (SINGLE, "mov.b64 %rd137, 643;", "mov.b64 %rd137, 644;"),
        # Which threads load in all turns, or in the last one.
        (VECTORS, "min.u64 %rd14, %rd80, 32;", "min.u64 %rd14, %rd80, 31;"),
        (VECTORS, "le.u64 %p1, %rd80, %rd4;", "gt.u64 %p1, %rd4, 8;"),
        (SINGLE, "lt.s64 %p15, %rd38, 1;", "lt.s64 %p15, %rd38, 2;"),
        # A turn less.
        (VECTORS, "lt.u64 %p3, %rd82, 680;", "lt.u64 %p3, %rd82, 648;"),
        (SINGLE, "lt.u64 %p40, %rd135, 611;", "lt.u64 %p40, %rd135, 579;"),
    ],
)
def test_other_ends_are_not_placed(case: Case, old: str, new: str) -> None:
    assert_misplaced(case, old, new)


LOOP = """
.version 7.0
.target sm_80
.address_size 64
.visible .entry f(.param .u64 p)
{
  .reg .pred %p<2>;
  .reg .b64 %rd<5>;
  mov.b64 %rd1, 0;
  mov.b64 %rd2, 0;
  mov.b64 %rd3, 0;
  mov.b64 %rd4, 0;
$L:
  setp.lt.u64 %p1, %rd1, 9;
  @%p1 add.s64 %rd2, %rd2, 1;
  add.s64 %rd3, %rd3, 2;
  add.s64 %rd3, %rd3, -1;
  add.s64 %rd4, %rd3, 1;
  add.s64 %rd1, %rd1, 3;
  @%p1 bra $L;
  ret;
}
"""


def test_counters_are_added_to_once_in_each_turn() -> None:
    """Not under a guard, nor twice, nor what is added to another register."""
    flow = Flow(read_kernel(LOOP, "f"))
    (head,) = flow.loops
    assert counters(flow, head) == {"%rd1": 3}


def test_tags_of_no_turn_become_those_of_later_turns() -> None:
    """Of A's elements, of which a turn moves others on by 32; not those of C."""
    stated = json.loads(VECTORS.launched.stated)
    book = Book(read_statement(stated), 2)
    moved = Element("f_param_0", (("n7", 32),), 2)
    kinds: list[Kind] = [
        moved,
        Element("f_param_0", (), 2),
        Element("f_param_2", (), 4),
        Result((), 4, (("", 64),), frozenset()),
    ]
    number = np.array([[book.number(kind) for kind in kinds]], np.int32)
    given = Tags(number, np.array([[0, 2 * 64, 0, 0]]))
    (found,) = book.in_turn([given], "n7", 1)
    new = [book.kinds[n] for n in found.number[0].tolist()]
    assert new[:3] == [moved, moved, kinds[2]]
    assert found.place.tolist() == [[0, 2 * 32, 0, 0]]
    upto = (("", 32), ("n7", 32))
    assert new[3] == kinds[3]._replace(upto=upto)


def test_turns_of_equal_numbers_go_together() -> None:
    """By turns and threads; what is the same in those that are left has no turns."""
    lanes = np.array([[1, 0], [1, 1], [1, 0]], np.uint64).reshape(1, 1, 1, 3, 2)
    first, second = turns_of(lanes)
    assert (first.tolist(), second.tolist()) == (
        [True, False, True],
        [False, True, False],
    )
    told = {"n7": numbered([2, 3, 4]), "%p1": lanes, "%p2": lanes[:, :, :, :1]}
    state = State(0, {}, Cells(1), data=Held(told=told))
    restrict(state, first)
    assert state.data.told["n7"].ravel().tolist() == [2, 4]
    assert state.data.told["%p1"].shape == (1, 1, 1, 1, 2)
    assert state.facts == [{"n7": 1, "": -2}, {"n7": -1, "": 4}]


def test_of_one_loop_several_turns_are_told() -> None:
    """Inside of a loop whose turns are told those of another one are facts alone."""
    loops, bounds = {1: {1, 5}, 5: {5}}, [{"n5": -1, "": 3}]
    for outer, inner in (([2], [0, 1, 2, 3]), ([1, 2], None)):
        data = Held(told={"n1": numbered(outer)}, bounds=bounds)
        state = State(5, {}, Cells(1), data=data)
        pin(state, loops)
        told = state.data.told
        assert told["n1"].ravel().tolist() == outer
        assert (told["n5"].ravel().tolist() if inner else told.get("n5")) == inner
        assert {"n1": 1, "": -outer[0]} in state.facts
        assert {"n1": -1, "": outer[-1]} in state.facts
        assert bounds[0] in state.facts


def test_turns_of_which_tags_do_not_say_what_they_add() -> None:
    """With four slots and a loop of three groups of turns each goes its own way."""
    case = matmul("nn", 32, 32, 384, "block=32,32,32 warp=16,16 stages=4,1")
    report = verdict(case, case.ptx)
    assert report.verdict == "proven", report.misplaced
