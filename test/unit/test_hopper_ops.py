"""docs/upstream.md quotes what bench/bench_hopper_ops.py prints: it is what happens."""

from __future__ import annotations

import importlib
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
BENCH = ROOT / "bench" / "bench_hopper_ops.py"
PAGE = ROOT / "docs" / "upstream.md"


def test_the_page_has_what_each_op_does() -> None:
    """All ops, each in a process that LLVM may end."""
    done = subprocess.run(
        [sys.executable, str(BENCH)],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() in PAGE.read_text("utf-8"), (
        "quote the table of: python bench/bench_hopper_ops.py"
    )


def test_an_untrue_row_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "bench")
    bench: Any = importlib.import_module("bench_hopper_ops")
    op = next(one for one in bench.OPS if one.name == "nvvm.elect.sync")
    right = bench.Outcome(bench.YES, "intrinsic", "elect.sync %r1|%p1, -1;")
    assert bench.fault(op, right) == ""
    assert bench.fault(op, replace(right, said="ret;")).startswith("does not show")
    died = bench.Outcome(bench.ABORT, said="LLVM ERROR: Cannot select")
    said = "process ends, expected yes: LLVM ERROR: Cannot select"
    assert bench.fault(op, died) == said
