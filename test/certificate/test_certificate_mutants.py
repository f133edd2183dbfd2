"""A few mutants of compiled kernels: what misbehaves is not proven.

`bench/bench_certificate_mutants.py` tries 1,100 of ten kernels; so does this test, with
ALCOP_MUTANTS=all.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
from bench_certificate_mutants import attempt, is_contradiction
from certificate_kernels import CASES, Case
from certificate_mutants import STRICTER, changes, mutants

IS_WHOLE = os.environ.get("ALCOP_MUTANTS") == "all"
SAMPLE = ("nt i8 3,1", "convolution 3,1")
CHOSEN = [case for case in CASES if IS_WHOLE or case.name in SAMPLE]


@pytest.mark.parametrize("case", CHOSEN, ids=lambda one: one.name)
def test_what_misbehaves_is_not_proven(case: Case) -> None:
    listed = mutants(case.ptx, case.launched.name, 110 if IS_WHOLE else 7)
    rows = [attempt(case, mutant) for mutant in listed]
    assert not [row for row in rows if is_contradiction(row)]
    hazards = [row for row in rows if row["ran"] == "hazards"]
    assert len(hazards) > len(rows) / 5


def test_a_contradiction_is_one() -> None:
    row = {"kind": "copy left out", "said": "proven", "ran": "hazards"}
    assert is_contradiction(row)
    assert not is_contradiction({**row, "said": "not proven"})
    assert is_contradiction({**row, "kind": STRICTER, "said": "outside"})


def test_conflicts_between_blocks_are_a_fault() -> None:
    """Blocks that write rows of each other: of that a proof says nothing."""
    (rows,) = (case for case in CASES if case.name == "rows")
    line = ", %rd8, 255;"
    assert line in rows.ptx
    assert rows.behaviour(rows.ptx.replace(line, ", %rd8, 510;")) == "fault"


@pytest.mark.parametrize(
    ("line", "kinds"),
    [
        ("cp.async.wait_group 1;", {"wait left out", "wait weakened", STRICTER}),
        ("bar.sync 0;", {"barrier left out"}),
        ("cp.async.commit_group;", {"commit left out", "commit twice"}),
        (
            "cp.async.cg.shared.global [%rd7+4096], [%rd9], 16;",
            {"copy left out", "copy to elsewhere", "copy from elsewhere"},
        ),
        ("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r1}, [%rd2];", {"read elsewhere"}),
        ("st.shared.b32 [%rd2+4], %r1;", {"store elsewhere"}),
        ("ld.shared.b32 %r1, [shared+4];", {"read elsewhere"}),
        ("ld.global.v2.b32 {%r1, %r2}, [%rd2+4];", {"load elsewhere"}),
        ("shfl.sync.bfly.b32 %r2, %r1, 16, 31, -1;", {"shuffle"}),
        ("setp.eq.b64 %p48, %rd2, 3;", {"wrap moved", "comparison"}),
        ("@%p5 bra LOOP;", {"guard turned", "guard left out"}),
        ("selp.b64 %rd1, 0, %rd2, %p48;", {"selection turned"}),
        ("shl.b64 %rd2, %rd1, 12;", {"number"}),
        ("ret;", set()),
    ],
)
def test_every_kind_of_line_changes(line: str, kinds: set[str]) -> None:
    made = list(changes(line))
    assert {kind for kind, _ in made} == kinds
    assert all(new != line for _, new in made)
