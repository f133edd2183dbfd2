"""Results of arrays whose sizes are known at run time only: placed for all sizes."""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from placed_cases import restated, verdict

from alcop_mlir.certificate.certificate import sealed
from alcop_mlir.certificate.search.answers import answered
from alcop_mlir.checker.check import check
from alcop_mlir.checker.form.open_statement import read_open_statement
from alcop_mlir.checker.logic import terms
from alcop_mlir.checker.machine.held import Held
from alcop_mlir.checker.machine.state import State
from alcop_mlir.checker.placed.open_cover import Numbers
from alcop_mlir.checker.placed.open_placing import OpenPlacing
from alcop_mlir.checker.placed.open_sums import OpenSums
from alcop_mlir.checker.placed.tags import Result
from alcop_mlir.checker.walk import Walk
from alcop_mlir.compilation import certification
from alcop_mlir.compilation.certification import certified, launched_kernels
from alcop_mlir.errors import CertificateError, NotPlacedError

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
from certificate_kernels import CASES, Case, open_matmul

ROWS = """
func.func @f(%a: memref<?xKxf16>, %b: memref<KxNxf16>, %c: memref<?xNxf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%c : memref<?xNxf32>)
  linalg.matmul ins(%a, %b : memref<?xKxf16>, memref<KxNxf16>)
    outs(%c : memref<?xNxf32>)
  return
}
"""
SMALL = "block=32,32,32 warp=16,16 stages=2,1"
PLAIN = open_matmul("nn", SMALL)
SUMS = Case(
    "from 0",
    """
func.func @f(%a: tensor<?x?xf16>, %b: tensor<?x?xf16>, %c: tensor<?x?xf32>)
    -> tensor<?x?xf32> {
  %zero = arith.constant 0.0 : f32
  %i = linalg.fill ins(%zero : f32) outs(%c : tensor<?x?xf32>) -> tensor<?x?xf32>
  %o = linalg.matmul ins(%a, %b : tensor<?x?xf16>, tensor<?x?xf16>)
    outs(%i : tensor<?x?xf32>) -> tensor<?x?xf32>
  return %o : tensor<?x?xf32>
}
""",
    SMALL,
)
RING = open_matmul("nn", "block=32,32,32 warp=16,16 stages=3,2")
RASTER = open_matmul("nn", f"{SMALL} raster=4")
# As passes choose: of many rows in groups; of 96 columns in three tiles, by which the
# number of the block is divided by a multiplication; of few rows; K in known parts.
CHOSEN = [
    (1024, 1024, {"f_matmul_m64", "f_matmul_m1024", "f_matmul_m2048", "f_matmul"}),
    (96, 768, {"f_matmul_m1024", "f_matmul"}),
    (4096, 1024, {"f_matmul_m16", "f_matmul_m128", "f_matmul_m1024", "f_matmul"}),
    (64, 4096, {"f_matmul_m1024_split8", "f_map", "f_matmul"}),
]
BY_COPIES, BY_ELEMENTS = "f_matmul_rows16", "f_matmul"


@pytest.mark.parametrize("name", [BY_COPIES, BY_ELEMENTS])
@pytest.mark.parametrize(
    "case",
    [
        PLAIN,
        CASES[3],  # of known rows and columns
        SUMS,
        open_matmul("nt", SMALL),
        open_matmul("nn", SMALL, relu=True),
        RING,
        RASTER,
    ],
    ids=lambda one: f"{one.name} {one.schedule}",
)
def test_results_of_open_sizes_are_placed(case: Case, name: str) -> None:
    report = verdict(case, case.ptx, name)
    assert report.verdict == "proven", report.misplaced
    assert report.certificate is not None
    check(case.ptx, report.certificate)


@pytest.mark.parametrize(("n", "k", "names"), CHOSEN)
def test_kernels_of_any_number_of_rows_are_proven(
    n: int, k: int, names: set[str]
) -> None:
    case = Case("any rows", ROWS.replace("N", str(n)).replace("K", str(k)))
    assert {one.name for one in launched_kernels(case.bundle)} == names
    for name in names:
        report = verdict(case, case.ptx, name)
        assert report.verdict == "proven", report.misplaced or report.loose


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # What a sum starts from: rows beyond the end, columns left out.
        ("setp.ge.s64 %p1, %rd22, %rd61;", "setp.gt.s64 %p1, %rd22, %rd61;"),
        ("or.b64 %rd24, %rd23, 1;", "or.b64 %rd24, %rd23, 15;"),
        # Rows that are copied; where the sum ends; half of what is copied.
        ("add.s64 %rd192, %rd31, -1;", "add.s64 %rd192, %rd31, -2;"),
        ("setp.gt.s64 %p10, %rd5, %rd14;", "setp.ge.s64 %p10, %rd5, %rd14;"),
        ("setp.gt.s64 %p11, %rd76, %rd12;", "setp.ge.s64 %p11, %rd76, %rd12;"),
        ("selp.b32 %r17, 16, 0, %p12;", "selp.b32 %r17, 8, 0, %p12;"),
        ("selp.b32 %r80, %r79, 0, %p21;", "selp.b32 %r80, %r79, 16, %p21;"),
        ("[%rd132+64], 16;", "[%rd132+64], 16, %r19;"),
        # The tile of another turn, or of other rows.
        ("[%rd132+64]", "[%rd132+128]"),
        ("shl.b64 %rd35, %rd4, 6;", "shl.b64 %rd35, %rd4, 5;"),
        ("add.s64 %rd46, %rd124, 6144;", "add.s64 %rd46, %rd124, 7168;"),
        ("add.s64 %rd78, %rd77, %rd15;", "add.s64 %rd78, %rd77, %rd16;"),
        # A turn too few or too many.
        ("setp.lt.s64 %p18, %rd199, %rd204;", "setp.le.s64 %p18, %rd199, %rd204;"),
        ("setp.lt.s64 %p24, %rd200, %rd5;", "setp.lt.s64 %p24, %rd200, %rd34;"),
        ("and.b64 %rd34, %rd102, -64;", "and.b64 %rd34, %rd102, -128;"),
        # Another element, another row; rows left out, and beyond the end.
        ("selp.b32 %r106, %r130, %r132, %p28;", "selp.b32 %r106, %r132, %r130, %p28;"),
        ("mul.lo.s64 %rd171, %rd58, %rd4;", "mul.lo.s64 %rd171, %rd22, %rd4;"),
        ("setp.ge.s64 %p29, %rd58, %rd61;", "setp.gt.s64 %p29, %rd58, %rd61;"),
        ("or.b64 %rd170, %rd59, 3;", "or.b64 %rd170, %rd59, 15;"),
        ("setp.ge.s64 %p30, %rd170, %rd4;", "setp.ge.s64 %p30, %rd170, %rd5;"),
        ("setp.lt.s64 %p27, %rd169, 32;", "setp.lt.s64 %p27, %rd169, 31;"),
        ("or.pred %p31, %p29, %p30;", "and.pred %p31, %p29, %p30;"),
        # Tiles of the blocks.
        ("mul.wide.u32 %rd15, %r12, 32;", "mul.wide.u32 %rd15, %r12, 16;"),
        ("mul.wide.u32 %rd15, %r12, 32;", "mul.wide.u32 %rd15, %r14, 32;"),
        ("add.s64 %rd67, %rd65, 31;", "add.s64 %rd67, %rd65, 63;"),
    ],
)
def test_kernels_that_compute_something_else_are_not_placed(old: str, new: str) -> None:
    if old[0] != "[":
        old, new = (one.replace(" %", " \t%", 1) for one in (old, new))
    text = PLAIN.ptx.replace(old, new, 1)
    assert text != PLAIN.ptx
    assert verdict(PLAIN, text, BY_COPIES).verdict != "proven"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # Rows of a group; blocks of a group; its first row.
        ("min.u64 %rd77, %rd76, 4;", "min.u64 %rd77, %rd76, 5;"),
        ("min.u64 %rd77, %rd76, 4;", "min.u64 %rd77, %rd76, 2;"),
        ("min.u64 %rd77, %rd76, 4;", "max.u64 %rd77, %rd76, 4;"),
        ("min.u64 %rd73, %rd72, 2147483647;", "min.u64 %rd73, %rd72, 4095;"),
        ("shr.u64 %rd71, %rd70, 3;", "shr.u64 %rd71, %rd70, 4;"),
        ("mul.wide.u32 %rd74, %r11, 4;", "mul.wide.u32 %rd74, %r11, 2;"),
        ("mul.wide.u32 %rd74, %r11, 4;", "mul.wide.u32 %rd74, %r11, 8;"),
        # Row and column of the tile.
        ("add.s64 %rd80, %rd74, %rd75;", "add.s64 %rd80, %rd75, %rd75;"),
        ("sub.s64 %rd81, %rd80, %rd79;", "sub.s64 %rd81, %rd80, %rd78;"),
        ("sub.s64 %rd81, %rd80, %rd79;", "sub.s64 %rd81, %rd74, %rd79;"),
        ("mul.wide.u32 %rd16, %r15, 32;", "mul.wide.u32 %rd16, %r11, 32;"),
    ],
)
def test_blocks_that_take_other_tiles_are_not_placed(old: str, new: str) -> None:
    old, new = (one.replace(" %", " \t%", 1) for one in (old, new))
    text = RASTER.ptx.replace(old, new, 1)
    assert text != RASTER.ptx
    report = verdict(RASTER, text, BY_COPIES)
    assert report.verdict != "proven"
    assert not report.is_placed


def test_a_search_for_answers_ends_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The prover is done then; the check has asked, and there is no time to answer."""

    def late(ptx: str, found: Any, known: Any, until: float) -> Any:
        assert until < float("inf")
        return answered(ptx, found, known, 0)

    monkeypatch.setattr(certification, "answered", late)
    report = verdict(PLAIN, PLAIN.ptx, BY_COPIES)
    assert (report.status, report.why) == (
        "not proven",
        "no proof and no alarm in the time that was given",
    )


def test_as_many_blocks_as_tiles_are_needed() -> None:
    """Half of the blocks have tiles inside too, each its own, and leave others out."""
    (one,) = (k for k in launched_kernels(PLAIN.bundle) if k.name == BY_COPIES)
    columns, (rows, by), *rest = one.promised.grid["%ctaid.x"]
    grid = {**one.promised.grid, "%ctaid.x": (columns, (rows, 2 * by), *rest)}
    given = (one.name, one.threads, one.shared_bytes, dict(one.requirements), 60)
    report = certified(PLAIN.ptx, *given, replace(one.promised, grid=grid), one.stated)
    assert report.is_bounded
    assert "as many blocks as" in report.misplaced


def test_tiles_of_blocks_are_inside_of_the_output(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where a block has one beyond the end, one inside has no block."""
    asked: list[tuple[bool, bool]] = []
    tell = Numbers.tell_block

    def look(self: Numbers) -> bool:
        rows, columns = self.thread.counts("%ctaid.x")[::-1]
        for term, many in zip(self.terms, (rows, columns), strict=True):
            last = terms.plus(many, terms.number(-1))
            less = terms.plus(last, terms.number(-1))
            asked.append((self.is_within(term, last), self.is_within(term, less)))
        return tell(self)

    monkeypatch.setattr(Numbers, "tell_block", look)
    verdict(PLAIN, PLAIN.ptx, BY_COPIES)
    assert set(asked) == {(True, False)}


@pytest.fixture(scope="module")
def proven() -> dict[str, Any]:
    found = verdict(SUMS, SUMS.ptx, BY_COPIES).certificate
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("extents", "k"), [[1, ["N"]]]),
        (("extents", "m"), [[1, ["M"]], [1, []]]),
        (("extents", "k"), [[8, ["K"]]]),
        (("lhs",), "f_matmul_rows16_param_1"),
        (("arrays", "f_matmul_rows16_param_2", 0), "nm"),
        (("arrays", "f_matmul_rows16_param_1", 0), "nk"),
    ],
)
def test_another_statement_is_refused(
    proven: dict[str, Any], path: tuple[Any, ...], value: Any
) -> None:
    check(SUMS.ptx, proven)
    with pytest.raises(CertificateError):
        check(SUMS.ptx, restated(proven, path, value))


def test_what_was_known_on_ways_of_the_turn_before_is_forgotten(
    proven: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Facts there name the turn, which is another one now."""
    before: list[set[int]] = []
    turned = OpenPlacing.turned

    def look(self: OpenPlacing, state: State, is_back: bool) -> None:
        body = self.flow.loops.get(state.pc, set()) - {state.pc}
        if is_back:
            before.append(body & state.data.via.keys())
        turned(self, state, is_back)
        assert not is_back or not body & state.data.via.keys()

    monkeypatch.setattr(OpenPlacing, "turned", look)
    check(SUMS.ptx, proven)
    assert any(before)


def test_what_a_check_drops_is_gone_at_once(proven: dict[str, Any]) -> None:
    """It runs without garbage collection: all that holds results and cells is free."""
    gc.collect()
    gc.disable()
    check(SUMS.ptx, proven)
    found = gc.collect()
    gc.enable()
    assert found < 1000


def test_states_behind_later_turns_stand_for_those_behind_the_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Behind the loop of whole tiles the check goes on once for all numbers of turns,
    and once from where there was none.
    """
    found = verdict(RING, RING.ptx, BY_ELEMENTS).certificate
    assert found is not None
    starts: list[int] = []
    covered: list[int] = []
    run, covers = Walk.run, OpenPlacing.covers

    def looked_at(self: OpenPlacing, key: tuple[int, bytes], state: State) -> bool:
        """What is held after other turns than there were is something else."""
        is_so = covers(self, key, state)
        for name, turn in state.data.turns.items() if is_so else ():
            covered.append(turn[""])
            turns = {**state.data.turns, name: terms.number(turn[""] + 1)}
            other = state.fork()
            other.data = replace(state.data, turns=turns)
            assert not covers(self, key, other)
        return is_so

    def recorded(walk: Walk, state: State, arrive: Callable[[State], None]) -> None:
        if walk.machine.placing is not None and state.turns.get(state.pc) == 0:
            starts.append(state.pc)
        run(walk, state, arrive)

    monkeypatch.setattr(Walk, "run", recorded)
    monkeypatch.setattr(OpenPlacing, "covers", looked_at)
    check(RING.ptx, found)
    assert starts.count(max(starts)) == 2
    assert covered == [0, 1]


def test_sums_that_end_at_tiles_from_before_a_loop_end_where_its_turn_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    changed: list[bool] = []
    named = OpenSums.named

    def look(self: OpenSums, data: Held, name: str) -> Held | None:
        found = named(self, data, name)
        if found is None:
            return None
        for register, tags in found.registers.items():
            before = self.book.kinds[int(data.registers[register].number[0, 0])]
            after = self.book.kinds[int(tags.number[0, 0])]
            if isinstance(before, Result) and isinstance(after, Result):
                turn = {name: data.turns[name]}
                ends = [terms.replaced(dict(k.upto), turn) for k in (before, after)]
                assert terms.frozen(ends[0]) == terms.frozen(ends[1])
                changed.append(before != after)
        assert name not in found.turns
        return found

    monkeypatch.setattr(OpenSums, "named", look)
    assert verdict(RING, RING.ptx, BY_COPIES).verdict == "proven"
    assert any(changed)


def test_results_are_not_placed_where_accesses_are_not_bounded(
    proven: dict[str, Any],
) -> None:
    unbounded = sealed({**proven, "bounds": None})
    with pytest.raises(NotPlacedError, match="accesses are not bounded"):
        check(SUMS.ptx, unbounded)


def test_elements_of_an_array_lie_one_behind_the_other() -> None:
    (stated,) = {
        one.stated for one in launched_kernels(SUMS.bundle) if one.name == BY_COPIES
    }
    value = json.loads(stated)
    assert read_open_statement(value).reduced == "k"
    array = value["arrays"][value["lhs"]]
    array[1][0] = [[1, ["K"]], [8, []]]
    with pytest.raises(CertificateError, match="elements with gaps"):
        read_open_statement(value)
    array[:2] = ["mm", [[[1, ["M"]]], [[1, []]]]]
    with pytest.raises(CertificateError, match="a loop that indexes twice"):
        read_open_statement(value)
