"""`expected-...` comments: the lines that they refer to, and what meets them."""

from __future__ import annotations

import pytest

from alcop_mlir.diagnostics import Diagnostic
from alcop_mlir.tools.verify_diagnostics import check, expectations

FILE = "f.mlir"


def said(severity: str, message: str, line: int, *notes: Diagnostic) -> Diagnostic:
    return Diagnostic(severity, message, FILE if line else "", line, 1, notes)


def problems(
    text: str, *diagnostics: Diagnostic, only_expected: bool = False
) -> list[str]:
    return [str(d) for d in check(FILE, text, diagnostics, only_expected)]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("op // expected-error {{a}}", [1]),
        ("\n// expected-error@+2 {{a}}", [4]),
        ("\n\n// expected-note@-2 {{a}}", [1]),
        ("op\n// expected-error {{a}}\n// expected-error@above {{a}}", [2, 1]),
        ("// expected-error@below {{a}}\n// expected-remark@below {{b}}\nop", [3, 3]),
        ("// expected-warning@unknown {{a}}", [0]),
        ("//expected-error   @+1   {{a}}  ", [2]),
        ("// expected-error {{a}} and more", []),
        ("// expected-fatal {{a}}", []),
    ],
)
def test_where_a_comment_points(text: str, lines: list[int]) -> None:
    assert [expected.line for expected in expectations(text)] == lines


@pytest.mark.parametrize(
    ("wanted", "message", "fits"),
    [
        ("{{of 4 bytes}}", "a copy of 4 bytes", True),
        ("{{of [0-9] bytes}}", "a copy of 4 bytes", False),
        ("-re {{of {{[0-9]+}} bytes}}", "a copy of 16 bytes", True),
        ("-re {{of {{[0-9]+}} bytes}}", "a copy of many bytes", False),
        ("-re {{(4) {{a|b}}c}}", "(4) bc", True),
        ("-re {{(4) {{a|b}}c}}", "(4) a", False),
        ("{{}}", "anything", True),
    ],
)
def test_what_fits(wanted: str, message: str, fits: bool) -> None:
    found = problems(f"// expected-error{wanted}", said("error", message, 1))
    assert (found == []) is fits


def test_each_comment_is_met_once() -> None:
    text = "// expected-error {{a}}"
    twice = (said("error", "a", 1), said("error", "a again", 1))
    assert problems(text, *twice) == ["f.mlir:1:1: error: unexpected error: a again"]


def test_severity_and_line_must_fit() -> None:
    text = "// expected-remark {{a}}"
    missing = 'f.mlir:1:4: error: expected remark "a" was not produced'
    assert problems(text, said("warning", "a", 1)) == [
        "f.mlir:1:1: error: unexpected warning: a",
        missing,
    ]
    assert problems(text, said("remark", "a", 2)) == [
        "f.mlir:2:1: error: unexpected remark: a",
        missing,
    ]


def test_notes_count_but_not_the_op_that_mlir_adds() -> None:
    notes = (
        said("note", "defined here", 2),
        said("note", "see current operation: x", 1),
    )
    error = said("error", "a", 1, *notes)
    assert problems("// expected-error {{a}}", error) == [
        "f.mlir:2:1: error: unexpected note: defined here"
    ]
    assert problems("// expected-error {{a}}\n// expected-note {{def}}", error) == []


def test_without_a_line_or_in_another_file() -> None:
    elsewhere = Diagnostic("error", "a", "other.mlir", 1, 1)
    assert problems("// expected-error@unknown {{a}}", said("error", "a", 0)) == []
    assert problems("// expected-error@unknown {{a}}", elsewhere) == []


def test_only_expected_allows_more() -> None:
    more = said("remark", "b", 1)
    assert problems("", more, only_expected=True) == []
    assert problems("// expected-error {{a}}", more, only_expected=True) != []
