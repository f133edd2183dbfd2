"""docs/upstream.md quotes what bench/bench_upstream.py prints."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "upstream.md"


@pytest.fixture(scope="module")
def bench() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "bench")
        return importlib.import_module("bench_upstream")


def test_the_page_has_the_table(bench: Any) -> None:
    """Each row, with the outcome that its case expects."""
    rows = [
        (case, bench.Outcome(case.runs, case.computes, "", "", 0.0))
        for case in bench.CASES
    ]
    assert bench.table(rows) in PAGE.read_text("utf-8"), (
        "quote the table of: python bench/bench_upstream.py"
    )


def test_every_input_and_script_is_used(bench: Any) -> None:
    folder = ROOT / bench.UPSTREAM
    used = {case.input for case in bench.CASES}
    used |= {f"scripts/{case.script}.mlir" for case in bench.CASES if case.script}
    there = {str(file.relative_to(folder)) for file in folder.rglob("*.mlir")}
    assert there == used


@pytest.mark.parametrize(
    "name",
    [
        "transform.nvgpu.pipeline_shared_memory_copies",
        "transform.structured.gpu.map_copy_to_threads, memrefs",
        "test-scf-pipelining",
    ],
)
def test_a_row_is_true(bench: Any, name: str) -> None:
    """One that runs, one that crashes, one that is refused."""
    (case,) = (case for case in bench.CASES if case.name == name)
    assert bench.faults(case, bench.run(case)) == []


def test_an_untrue_row_is_found(bench: Any) -> None:
    case = bench.Case("x", "math.mlir", "", "", shows=("a",), lacks=("b",))
    outcome = bench.Outcome("error", "", "b", "", 0.0)
    assert bench.faults(case, outcome) == [
        "does not show /a/",
        "shows /b/",
        "runs 'error', expected 'yes'",
    ]
