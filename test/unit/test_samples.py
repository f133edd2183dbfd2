"""Of the cases of tests that are marked as samples some run, drawn by name, or all."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).parent.parent / "conftest.py"
CASES = """
import pytest

@pytest.mark.sample(3)
@pytest.mark.parametrize("number", range(10))
def test_sampled(number): ...

@pytest.mark.sample(3)
@pytest.mark.parametrize("number", range(2))
def test_few(number): ...

@pytest.mark.parametrize("number", range(4))
def test_whole(number): ...
"""
REST = [f"few-{n}" for n in range(2)] + [f"whole-{n}" for n in range(4)]


@pytest.mark.parametrize(
    ("all_tests", "arguments", "wanted"),
    [
        ("", (), [*(f"sampled-{n}" for n in (4, 8, 9)), *REST]),
        ("1", (), [*(f"sampled-{n}" for n in range(10)), *REST]),
        ("", ("test_cases.py::test_sampled[5]",), ["sampled-5"]),
    ],
)
def test_which_cases_run(
    all_tests: str, arguments: tuple[str, ...], wanted: list[str], tmp_path: Path
) -> None:
    shutil.copy(CONFTEST, tmp_path)
    shutil.copy(CONFTEST.parent / "devices.py", tmp_path)
    (tmp_path / "test_cases.py").write_text(CASES)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n  sample\n  fast\n")
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", *arguments]
    environment = {**os.environ, "ALCOP_ALL_TESTS": all_tests, "ALCOP_MUTANTS": ""}
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    found = [line for line in done.stdout.splitlines() if "::" in line]
    assert [_short(line) for line in found] == wanted


def _short(line: str) -> str:
    """Of "test_cases.py::test_whole[0]", "whole-0"."""
    name = line.partition("::test_")[2]
    return name.replace("[", "-").removesuffix("]")
