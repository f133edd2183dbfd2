"""Chains of two contractions, as attention: results are of all columns, of one scale."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from placed_cases import assert_proven, restated, verdict

from alcop_mlir.checker.check import check
from alcop_mlir.checker.placed.columns import advanced, begun, period, prefix
from alcop_mlir.checker.placed.kinds import Fold
from alcop_mlir.errors import CertificateError

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
from attention_tiles import Attention
from certificate_kernels import Case
from plain_attention import plain_attention

ATTENTION = Case("attention", plain_attention(Attention(1, 512, 32)))
LOOP = Case("attention in a loop", plain_attention(Attention(16, 2048, 64)))
WIDE = Case("heads of 128", plain_attention(Attention(2, 512, 128, kind="bf16")))


@pytest.mark.parametrize("case", [ATTENTION, LOOP, WIDE], ids=lambda case: case.name)
def test_attention_is_placed(case: Case) -> None:
    assert ("bra" in case.ptx) == (case is LOOP)
    assert_proven(case)


TEXT = ATTENTION.ptx.replace(" \t", " ")


def changed(old: str, new: str, which: int = -1) -> str:
    """The kernel with one of the places that a pattern finds replaced."""
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
