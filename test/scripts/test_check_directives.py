"""The check of the checks: what it must find, and what it must not report."""

from __future__ import annotations

from pathlib import Path

import pytest
from check_directives import dead_lines, main

CHECKED = "// RUN: alcop-opt %s | FileCheck %s\n// CHECK: a\n"
PREFIXED = "// RUN: alcop-opt %s | FileCheck %s --check-prefixes=SM80,ALL\n// ALL: a\n"
VERIFIED = "// RUN: alcop-opt %s --verify-diagnostics\n"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("// CHEKC: nvgpu.device_async_wait", "no RUN line looks for CHEKC"),
        ("// CHEC: scf.for", "no RUN line looks for CHEC"),
        ("// CHEC-NEXT scf.for", "no RUN line looks for CHEC"),
        ("// check: scf.for", "in capitals"),
        ("// Check: scf.for", "in capitals"),
        ("// CHECK scf.for", "no colon"),
        ("// CHECK-NEXT scf.for", "no colon"),
        ("// CHECK-SAME (a)", "no colon"),
        ("// CHECK : scf.for", "no colon"),
        ("%a = x // CHECK-DAG a", "no colon"),
        ("// CHECK-NXT: scf.for", "no such suffix"),
        ("// CHECK-COUNT: scf.for", "no such suffix"),
        ("// SM90: scf.for", "no RUN line looks for SM90"),
        ("// SM90-NEXT: scf.for", "no RUN line looks for SM90"),
        ("// RNU: alcop-opt %s", "no RUN line looks for RNU"),
        ("// RUN alcop-opt %s", "RUN without its colon"),
        ("// expected-error @+1 {{a}}", "--verify-diagnostics"),
    ],
)
def test_dead_line_is_found(line: str, reason: str) -> None:
    ((number, text, why),) = dead_lines(CHECKED + line + "\n", ".mlir")
    assert (number, text) == (3, line)
    assert reason in why


@pytest.mark.parametrize(
    "line",
    [
        "// CHECK-COUNT-2: scf.for",
        "// CHECK-LABEL: @f",
        "// CHECK-NEXT{LITERAL}: [[a]]",
        "// CHECK: // CHEKC: is what it prints",
        "// COM: CHEKC: switched off",
        "// Check that the loop is left unchanged.",
        "// NOTE: the second loop is not one of ours.",
        "// NT: B is transposed.",
        "// Rule 6: the source is written in the loop.",
        "#map = affine_map<(d0) -> (d0)>",
        "func.func @CHEKC() // a function",
        "",
    ],
)
def test_live_line_is_left_alone(line: str) -> None:
    assert list(dead_lines(CHECKED + line + "\n", ".mlir")) == []


def test_prefix_of_the_run_line_counts() -> None:
    assert list(dead_lines(PREFIXED + "// SM80-NEXT: b\n", ".mlir")) == []
    ((_, _, why),) = dead_lines(PREFIXED + "// SM80: b\n// CHECK: c\n", ".mlir")
    assert why == "no RUN line looks for CHECK"


def test_prefix_without_directives_is_found() -> None:
    ((_, _, why),) = dead_lines(PREFIXED, ".mlir")
    assert why == "no directive for the prefix SM80"


def test_prefix_in_a_continued_run_line_counts() -> None:
    text = "// RUN: alcop-opt %s | \\\n// RUN: FileCheck %s --check-prefix A1\n"
    assert list(dead_lines(text + "// A1: b\n", ".mlir")) == []


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("// expected-eror @+1 {{a}}", "no such diagnostic"),
        ("// expected-error @below: a", "no {{message}}"),
    ],
)
def test_dead_expectation_is_found(line: str, reason: str) -> None:
    ((_, _, why),) = dead_lines(VERIFIED + line + "\n", ".mlir")
    assert reason in why


def test_live_expectation_is_left_alone() -> None:
    lines = "// expected-error@+1 {{a}}\n// expected-remark-re @below {{b}}\n"
    assert list(dead_lines(VERIFIED + lines, ".mlir")) == []


def test_python_comments_count_in_python_files() -> None:
    text = "# RUN: %PYTHON %s | FileCheck %s\n# CHECK: a\n# CHECK-SAME (b)\n"
    ((number, _, _),) = dead_lines(text, ".py")
    assert number == 3


def test_command_names_the_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "good.mlir").write_text(CHECKED)
    assert main([str(tmp_path)]) == 0
    (tmp_path / "bad.mlir").write_text(CHECKED + "// CHEKC: b\n")
    (tmp_path / "no_lit_test.py").write_text("# CHEKC: b\n")
    assert main([str(tmp_path)]) == 1
    printed = capsys.readouterr().out
    assert printed.endswith("bad.mlir:3: no RUN line looks for CHEKC: // CHEKC: b\n")
    assert printed.count("\n") == 1
