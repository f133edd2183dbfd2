"""Chains of two contractions, as attention: all columns of a row, of one scale."""

from __future__ import annotations

import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from placed_cases import assert_proven, restated, verdict

from alcop_mlir.checker.check import check
from alcop_mlir.checker.placed.columns import advanced, begun, period, prefix
from alcop_mlir.checker.placed.kinds import Fold
from alcop_mlir.errors import CertificateError

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "compilation"))
from attention_tiles import Attention
from certificate_kernels import Case
from chain_forms import Form
from plain_attention import plain_attention

ATTENTION = Case("attention", plain_attention(Attention(1, 512, 32)))
LOOP = Case("attention in a loop", plain_attention(Attention(16, 2048, 64)))
WIDE = Case("heads of 128", plain_attention(Attention(2, 512, 128, kind="bf16")))


@pytest.mark.parametrize("case", [ATTENTION, LOOP, WIDE], ids=lambda case: case.name)
def test_attention_is_placed(case: Case) -> None:
    assert ("bra" in case.ptx) == (case is LOOP)
    assert_proven(case)


def of_form(**given: Any) -> Case:
    """A chain of a form, as a case."""
    return Case("chain", Form(**given).text())


CAUSAL = of_form(mask="causal", heads=12, m=256, n=256, k=64, d=64)


@pytest.mark.parametrize(
    "case",
    [
        of_form(mask="additive", batch=2, tokens=True, n=128),
        of_form(mask="boolean"),
        of_form(mask="lengths", n=128),
        of_form(mask="columns", m=72, n=200),
        of_form(heads=4, groups=2, tokens=True, dtype="bf16"),
        of_form(keys_first=True, n=72),
        of_form(k=16, d=128, heads=1),
        of_form(m=1, n=100, batch=2),
        of_form(m=1, n=181, heads=8, groups=4),
    ],
    ids=[
        "additive",
        "boolean",
        "lengths",
        "edges",
        "groups",
        "across",
        "two lengths",
        "one row",
        "one row of groups",
    ],
)
def test_chains_are_placed(case: Case) -> None:
    assert_proven(case)


# Two loops of columns, how many of which have turns depends on the block.
OF_CAUSAL = {
    "two loops": CAUSAL,
    "parts": of_form(mask="causal", heads=1, m=512, n=512, k=64, d=64),
    "edges": of_form(mask="causal", m=150, n=200),
}


@pytest.mark.parametrize("name", OF_CAUSAL)
def test_causal_attention_is_proven_in_part(name: str) -> None:
    case = OF_CAUSAL[name]
    report = verdict(case, case.ptx, "chain_chain" if name == "parts" else None)
    assert report.status == "proven", report.verdict
    assert report.is_ending
    assert report.is_bounded


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        # A tile is copied where columns are left, of those of the part.
        ("parts", "setp.le.u64", "setp.gt.u64"),
        # The second tile is copied where the loop is long enough for it.
        ("edges", ", 65;", ", 129;"),
    ],
)
def test_tiles_that_are_not_copied_are_found(name: str, old: str, new: str) -> None:
    case = OF_CAUSAL[name]
    text = case.ptx.replace(old, new)
    assert case.behaviour(text) == "hazards"
    report = verdict(case, text, "chain_chain" if name == "parts" else None)
    assert "reads what is never written" in report.verdict


# Rows of which there are as many as there are: each block has some of one head.
WINDOW = Form(m=72, mask="window", open="m").text()
ALL = Form(mask="causal", open="bmn").text()
OPEN = {
    "causal": Case("chain", Form(open="m", mask="causal").text(), sizes=((130,),)),
    "window": Case("chain", WINDOW, sizes=((130,),)),
    "all sizes": Case("chain", ALL, sizes=((1, 200, 200),)),
}


@pytest.mark.parametrize("name", OPEN)
def test_turns_that_depend_on_rows_of_a_head(name: str) -> None:
    """The number of the block is divided by what is not known."""
    report = verdict(OPEN[name], OPEN[name].ptx)
    assert report.status == "proven", report.verdict
    assert report.is_ending


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("causal", r"(setp.eq.b64 .*), 1;", r"\1, 2;"),
        ("all sizes", r"(setp.lt.u64 .*), 65;", r"\1, 129;"),
        ("window", r"(setp.ge.u64 +(%p\d+),[^@]*)@\2 bra", r"\1bra.uni"),
    ],
)
def test_tiles_of_open_rows_that_are_not_copied(name: str, old: str, new: str) -> None:
    case = OPEN[name]
    text, count = re.subn(old, new, case.ptx.replace("\t", " "))
    assert count == 1
    assert case.behaviour(text) == "hazards"
    assert "reads what is never written" in verdict(case, text).verdict


# Of 72 rows and 80 columns, with a mask of each.
EDGES = of_form(mask="additive", m=72, n=80, heads=1)
OF_EDGES = {
    "a column less": ("setp", ", 80;", ", 79;"),
    "a column more": ("setp", ", 80;", ", 81;"),
    "another column's mask": ("ld.global.v2.b32 {%r", "+32]", "+64]"),
    "another row's mask": ("ld.global.v2.b32 {%r", "+32]", "+352]"),
}


@pytest.mark.parametrize("name", OF_EDGES)
def test_other_columns_are_not_placed(name: str) -> None:
    start, old, new = OF_EDGES[name]
    lines = EDGES.ptx.replace(" \t", " ").splitlines()
    at = [n for n, one in enumerate(lines) if start in one and old in one]
    for n in at if start == "setp" else at[:1]:
        lines[n] = lines[n].replace(old, new)
    text = "\n".join(lines) + "\n"
    assert EDGES.behaviour(text) != "clean"
    assert not verdict(EDGES, text).is_placed


# Eight parts of the columns, and a kernel that merges them.
PARTS = of_form(m=64, n=2048, k=64, d=64)


def test_parts_are_placed() -> None:
    for name in ("chain_chain", "chain_map"):
        report = verdict(PARTS, PARTS.ptx, name)
        assert report.verdict == "proven", report.misplaced
    one = of_form(heads=8, groups=4, m=1, n=4096, k=128, d=128)
    assert verdict(one, one.ptx, "chain_chain").verdict == "proven"


OF_PARTS = {
    "scales and totals exchanged": (
        r"(st.global.b32 .*, )(%r\d+);(\n.*, )(%r\d+);([^;]*;\n.*, )(%r\d+);",
        r"\1\6;\3\4;\5\2;",
    ),
    "rows exchanged": (r"(st.global.b32 .*, )(%r\d+);(\n.*, )(%r\d+);", r"\1\4;\3\2;"),
    "a total of half a quad": (
        r"add.rn.f32( %r\d+, %r\d+), %r\d+;(\n\s*shl.b64)",
        r"mov.b32\1;\2",
    ),
}
OF_MERGE = {
    "a part twice": (r"(ld.global.b32 %r\d+, \[%rd\d+)\+\d+\]", r"\1]"),
    "another part's total": (
        r"(ld.global.b32 %r\d+, \[%rd\d+)\+[^]]*(\];\n.*max)",
        r"\1\2",
    ),
}


@pytest.mark.parametrize("name", [*OF_PARTS, *OF_MERGE])
def test_wrong_parts_are_not_placed(name: str) -> None:
    old, new = {**OF_PARTS, **OF_MERGE}[name]
    text, count = re.subn(old, new, PARTS.ptx.replace(" \t", " "), count=1)
    assert count
    assert PARTS.behaviour(text) != "clean"
    kernel = "chain_chain" if name in OF_PARTS else "chain_map"
    assert not verdict(PARTS, text, kernel).is_placed


TEXT = ATTENTION.ptx.replace(" \t", " ")


def changed(old: str, new: str, which: int = -1) -> str:
    """The kernel with one of those replaced that a pattern finds."""
    found = [*re.finditer(old, TEXT)][which]
    return TEXT[: found.start()] + found.expand(new) + TEXT[found.end() :]


# Of the last tile 2 totals and 16 accumulators are brought to its scale; behind it 2
# totals are computed with, and 16 results are divided.
MUL = r"mul.rn.f32( %r\d+), (%r\d+), (%r\d+);"
OF_TOTAL, OF_SUM, OF_RESULT = -36, -34, -16
ADD = r"add.rn.f32( %r\d+), (%r\d+), (%r\d+);"
MUTANTS = {
    "keys of another tile": changed(r"\[%rd50\+8192\], 16", "[%rd50], 16"),
    "values of another tile": changed(r"\[%rd51\+8192\], 16", "[%rd51], 16"),
    "values of other columns": changed(r"(\.trans.*)\+\d+\]", r"\1+18432]"),
    "largest of half a quad": changed(r"(bfly.*), 2,( .*\s*max)", r"\1, 1,\2"),
    "total of half a quad": changed(r"(bfly.*), 2,( .*\s*add)", r"\1, 1,\2"),
    "total of one lane": changed(ADD, r"mov.b32\1, \2;"),
    "total of another scale": changed(MUL, r"mov.b32\1, \2;", OF_TOTAL),
    "sum of another scale": changed(MUL, r"mov.b32\1, \2;", OF_SUM),
    "scale of another row": changed(MUL, r"mul.rn.f32\1, \2, %r527;", OF_SUM),
    "total without what was before": changed(ADD, r"mov.b32\1, \2;", -68),
    "a weight twice": changed(ADD + r"\s*" + ADD, r"\g<0> add.f32\4, \2, \4;", -10),
    "a weight left out": changed(ADD, r"mov.b32\1, \3;", -10),
    "another row's total": changed(MUL, r"mul.rn.f32\1, \2, %r2858;", OF_RESULT),
    "not divided": changed(MUL, r"mov.b32\1, \2;", OF_RESULT),
    "columns stored as others": changed(
        r"(st.*\{%r\d+), (%r\d+), (%r\d+)", r"\1, \3, \2"
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_wrong_attention_is_not_placed(name: str) -> None:
    text = MUTANTS[name]
    assert text != TEXT
    assert ATTENTION.behaviour(text) != "clean"
    report = verdict(ATTENTION, text)
    assert report.verdict != "proven"
    assert not report.is_placed


@cache
def certificate() -> dict[str, Any]:
    """Of attention; nobody changes it."""
    found = verdict(ATTENTION, ATTENTION.ptx).certificate
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("chain", "lhs"), "attention_param_2"),
        (("chain", "rhs"), "attention_param_2"),
        (("chain", "reads"), ["attention_param_2"]),
        (("chain", "is_row"), False),
        (("chain", "is_row"), 1),
        (("chain", "order"), "bm"),
        (("lhs",), "attention_param_0"),
        (("rhs",), "attention_param_1"),
        (("init",), "attention_param_3"),
        (("outputs", "attention_param_3"), ["attention_param_1"]),
    ],
)
def test_another_statement_is_refused(path: tuple[str, ...], value: object) -> None:
    found = certificate()
    with pytest.raises(CertificateError):
        check(ATTENTION.ptx, restated(found, path, value))


def test_sets_of_columns_grow_with_turns() -> None:
    """Columns 0 and 1 of each 4, in two turns, and one of the third."""
    kind = Fold((), 4, None, None, ())
    columns = begun(4, 2)(0b0001_0011_0011)
    assert columns == 0b0001_0011
    assert begun(4, 2)(0b0001_0011) is None
    start = (("n7", 4),)
    kind = kind._replace(start=start)
    assert period(start) == 4
    after, rule = advanced(kind, lambda term: (*((("", -4),) if term else ()), *term))
    assert after.start == start
    assert rule(0b0011_0011) == 0b0011
    assert rule(0b0001_0011) is None
    after, rule = advanced(kind, lambda term: (("", 8),))
    assert after.start == ()
    assert rule(0b0001_0011) == 0b0001_0011_0011
    after, rule = advanced(kind, lambda term: (("", 6),))
    assert rule(0b0001_0011) is None


@pytest.mark.parametrize(
    ("columns", "start", "upto"),
    [
        (0b111, (), (("", 3),)),
        (0b101, (), None),
        (0b1111, (("n7", 4),), (("n7", 4),)),
        (0b11_1111, (("n7", 4),), (("", 2), ("n7", 4))),
        (0b11_1101, (("n7", 4),), None),
        (0b10_1111, (("n7", 4),), None),
    ],
)
def test_the_first_columns(columns: int, start: object, upto: object) -> None:
    assert prefix(columns, start) == upto  # type: ignore[arg-type]
