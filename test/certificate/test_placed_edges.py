"""Results of extents that tiles do not divide: what is outside is 0, or not stored."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from placed_cases import assert_misplaced, assert_proven, verdict

from alcop_mlir.checker.form.certificate import read_certificate
from alcop_mlir.checker.machine.arithmetic import Mixed, Same, Value
from alcop_mlir.checker.machine.cells import Cells
from alcop_mlir.checker.machine.held import Held
from alcop_mlir.checker.machine.machine import Machine
from alcop_mlir.checker.machine.state import State
from alcop_mlir.checker.placed.blocks import Classes
from alcop_mlir.checker.placed.cover import Boxes, are_apart
from alcop_mlir.checker.placed.origins import Origins
from alcop_mlir.checker.placed.placing import Placing
from alcop_mlir.checker.ptx.flow import Flow
from alcop_mlir.checker.ptx.instructions import Instruction
from alcop_mlir.checker.ptx.text import read_kernel

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
from certificate_kernels import Case, matmul

ROWS = matmul("nn", 20, 64, 96, "block=32,64,32 warp=16,32 stages=2,1")
EDGES = matmul("nn", 65, 72, 40, "block=32,64,32 warp=16,32 stages=2,1")
TILES = matmul("nn", 64, 64, 64, "block=32,32,32 warp=16,16 stages=2,1")
# Rows of which elements are loaded one by one.
SINGLE = matmul("nn", 33, 71, 40, "block=32,64,32 warp=16,32 stages=2,1")
# So in a loop: registers hold elements of some rows, and 0 before the first turn.
LOOP = matmul("nn", 40, 65, 643, "block=32,32,32 warp=16,16 stages=4,2")
# Rows that some threads read from shared memory, with barriers of warps.
WARPS = matmul("nn", 45, 66, 702, "block=128,64,32 warp=32,64 stages=2,1")


@pytest.mark.parametrize(
    "case",
    [
        ROWS,
        matmul("nn", 1, 64, 96, "block=16,64,32 warp=16,32 stages=2,1"),
        EDGES,
        SINGLE,
        LOOP,
        WARPS,
        TILES,
        matmul("nt", 50, 40, 100, "block=32,32,32 warp=16,16 stages=3,2"),
        matmul("nn", 33, 71, 41, "block=32,64,32 warp=16,32 stages=2,1"),
    ],
    ids=lambda one: one.name,
)
def test_extents_that_tiles_do_not_divide_are_placed(case: Case) -> None:
    assert_proven(case)


@pytest.mark.parametrize(
    ("case", "old", "new"),
    [
        # A row is 0; other rows are; rows are not stored, or too many are.
        (ROWS, "lt.u32 %p3, %r27, 80;", "lt.u32 %p3, %r27, 76;"),
        (ROWS, "lt.u32 %p3, %r27, 80;", "ge.u32 %p3, %r27, 80;"),
        (ROWS, "gt.u64 %p5, %rd24, 19;", "gt.u64 %p5, %rd24, 18;"),
        (ROWS, "gt.u64 %p5, %rd24, 19;", "gt.u64 %p5, %rd24, 20;"),
        # In some blocks: a start, rows of A, columns of B; rows and columns stored.
        (EDGES, "gt.u64 %p1, %rd22, 64;", "gt.u64 %p1, %rd22, 63;"),
        (EDGES, "gt.u64 %p2, %rd23, 70;", "gt.u64 %p2, %rd23, 68;"),
        (EDGES, "min.u64 %rd39, %rd38, 32;", "min.u64 %rd39, %rd38, 31;"),
        (EDGES, "setp.gt.u64 %p16, %rd40, %rd11;", "setp.gt.u64 %p16, 56, %rd11;"),
        (EDGES, "gt.u64 %p23, %rd28, 64;", "gt.u64 %p23, %rd28, 63;"),
        (EDGES, "gt.u64 %p24, %rd29, 68;", "gt.u64 %p24, %rd29, 66;"),
        (EDGES, "gt.u64 %p26, %rd29, 60;", "gt.u64 %p26, %rd29, 64;"),
        # The last element of a row, and whether it is stored.
        (SINGLE, "lt.s64 %p29, %rd37, 1;", "lt.s64 %p29, %rd37, 2;"),
        (SINGLE, "gt.u64 %p27, %rd128, %rd9;", "ge.u64 %p27, %rd9, %rd128;"),
        (SINGLE, "gt.s64 %p33, %rd82, 70;", "gt.s64 %p33, %rd82, 69;"),
        (SINGLE, "gt.s64 %p33, %rd82, 70;", "gt.s64 %p33, %rd82, 71;"),
        (WARPS, "gt.u64 %p53, %rd97, 44;", "gt.u64 %p53, %rd97, 0;"),
        (WARPS, "gt.u64 %p51, %rd39, 64;", "gt.u64 %p51, %rd39, 62;"),
        (WARPS, "{%r53, %r54}, [%rd104+576];", "{%r53, %r54}, [%rd104+288];"),
        # Rows of A and a column of B in all turns, and where the sum ends.
        (LOOP, "lt.u64 %p17, %rd34, 25;", "lt.u64 %p17, %rd34, 26;"),
        (LOOP, "lt.s64 %p18, %rd37, 1;", "lt.s64 %p18, %rd37, 2;"),
        (LOOP, "lt.s64 %p19, %rd37, 2;", "lt.s64 %p19, %rd37, 3;"),
        (LOOP, "lt.u64 %p20, %rd152, 576;", "lt.u64 %p20, %rd152, 544;"),
        (LOOP, "gt.u64 %p21, %rd12, 2;", "gt.u64 %p21, %rd12, 1;"),
    ],
)
def test_other_edges_are_not_placed(case: Case, old: str, new: str) -> None:
    """Rows and columns that are read or stored, and such that are not."""
    assert_misplaced(case, old, new)


def counted(value: Value, opcode: str = "sub.s32") -> tuple[Value, dict[str, Any]]:
    """`%r3 = %ctaid.x - 2` in four blocks, of which a check knows this value: what it
    knows then, and is told.
    """
    block = Same({"%ctaid.x": 1, "": 0}, 0, 3)
    values = {"%r1": block, "%r2": np.full(4, 2, np.uint64), "%r3": None}
    machine: Any = SimpleNamespace(
        state=SimpleNamespace(data=Held(), lanes=None),
        fresh="u5",
        threads=4,
        kernel=SimpleNamespace(width=lambda _: 32),
        value={**values, "%tid.x": np.arange(4, dtype=np.uint64)}.get,
        symbol=lambda *_: None,
        interned=lambda found: found,
    )
    ins = Instruction("", False, opcode, ("%r3", "%r1", "%r2"))
    if opcode != "sub.s32":
        ins = Instruction("", False, opcode, ("%r3", "%r1", "%tid.x"))
    classes = Classes(machine, Origins((4, 1, 1)))
    found = classes.counted(ins, value, np.ones(4, bool))
    return found, machine.state.data.told


def test_a_symbol_is_told_where_it_is_all_that_a_register_holds() -> None:
    """As a number with a sign, divided by what multiplies it; not where it is only a
    part, or where it cannot be divided.
    """
    for factor in (1, -1):
        _, told = counted(Same({"u5": factor, "": 0}, -9, 9))
        each = [-2 * factor, -factor, 0, factor]
        assert told["u5"].view(np.int64).ravel().tolist() == each
    lanes = np.arange(4)
    part = Mixed({"u5": lanes * 0 + 1}, lanes, -9, 9, 32)
    for value in (Same({"u5": 4, "": 0}, -9, 9), Same({"u5": 1, "": 1}, -9, 9), part):
        _, told = counted(value)
        assert "u5" not in told
        assert "%r3" in told


def test_a_number_of_each_block_is_a_symbol() -> None:
    """Plus one of each thread; others are told in each thread of each block."""
    found, told = counted(None)
    assert isinstance(found, Same)
    assert (found.low, found.high, told) == (-2, 1, {})
    found, told = counted(None, "add.s32")
    assert isinstance(found, Mixed)
    assert found.constant.tolist() == [0, 1, 2, 3]
    assert (found.low, found.high, told) == (0, 6, {})
    found, told = counted(None, "mul.lo.s32")
    assert found is None
    assert told["%r3"][3, 0, 0, 0].tolist() == [0, 3, 6, 9]


def test_what_is_skipped_is_not_told_any_more() -> None:
    """A register that an instruction may have written, or may not."""
    found = verdict(EDGES, EDGES.ptx).certificate
    given = read_certificate(found)
    kernel = read_kernel(EDGES.ptx, given.entry)
    flow = Flow(kernel)
    assert given.placed is not None
    machine = Machine(kernel, given.threads, given.shared_bytes, {}, {})
    placing = Placing(machine, flow, given.placed)
    state = State(0, {}, Cells(1), data=placing.start())
    (first, *_) = (ins for ins in flow.code if ins.results)
    state.data.told |= {first.results[0]: np.zeros((1, 1, 1, 1, 1))}
    state.data.told |= {"%other": np.ones(1)}
    placing.unknown(state, first)
    assert [*state.data.told] == ["%other"]


@pytest.mark.parametrize(
    ("boxes", "apart"),
    [
        ([([[0, 2], [0, 0]], [2, 4])], True),
        ([([[0], [0]], [2, 4]), ([[2], [0]], [1, 4])], True),
        ([([[0], [0]], [2, 4]), ([[1], [0]], [2, 4])], False),
        ([([[0], [0]], [2, 4]), ([[0], [3]], [2, 4])], False),
        ([([[0, 0], [0, 0]], [2, 4])], False),
        ([([[0], [0]], [2, 4]), ([[0], [0]], [1, 4])], False),
    ],
)
def test_boxes_that_meet(boxes: list[tuple[list, list]], apart: bool) -> None:
    """By loop, the starts of each block's box, and its lengths."""
    found = [Boxes(np.array(starts), np.array(lengths)) for starts, lengths in boxes]
    assert are_apart(found) == apart


@pytest.mark.parametrize(
    "new",
    [
        r"mov.u32 \1, 0;",  # some tiles twice, and others never
        r"mov.u32 \1, %ctaid.x; add.u32 \1, \1, 1;",  # one beyond the end
    ],
)
def test_blocks_of_other_tiles_are_not_placed(new: str) -> None:
    """As many elements as there are, but other ones."""
    text = re.sub(r"mov\.u32\s+(%r\d+), %ctaid\.x;", new, TILES.ptx)
    assert text != TILES.ptx
    assert TILES.behaviour(text) == "fault"
    assert not verdict(TILES, text).is_placed


def test_zeros_instead_of_elements_are_not_placed() -> None:
    """A copy of a whole tile that reads nothing of its source."""
    (first, *_) = re.findall(r"cp\.async\.cg[^;]*, 16;", TILES.ptx)
    size = "selp.b32 %r999, 16, 0, %p999;"
    test = "setp.ne.b64 %p999, 0, 0;"
    text = TILES.ptx.replace(first, f"{test} {size} {first[:-1]}, %r999;", 1)
    text = re.sub(r"\.reg \.(pred|b32) +\t*%(p|r)<\d+>", r".reg .\1 %\2<1000>", text)
    assert TILES.behaviour(text) == "wrong"
    assert not verdict(TILES, text).is_placed


def test_products_of_one_array_are_not_placed() -> None:
    """A times itself, turned."""
    case = matmul("nt", 64, 64, 64, "block=32,32,32 warp=16,16 stages=2,1")
    text = case.ptx.replace("[f_param_1]", "[f_param_0]")
    assert verdict(case, case.ptx).is_placed
    assert case.behaviour(text) == "wrong"
    assert not verdict(case, text).is_placed
