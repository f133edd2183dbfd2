"""What alcop-compile and alcop-run share: how tables look, how commands end."""

from __future__ import annotations

import sys

import pytest

from alcop_mlir.errors import LaunchError
from alcop_mlir.tools import command_line

ROWS = [("arrays", ["A", "B"]), ("check", ["FAILED: off by one"])]


def test_tables_are_plain_where_nobody_looks(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Without rich, and without spaces at the ends of lines."""
    command_line.print_table("title", ROWS)
    assert capsys.readouterr().out == (
        "title\n  arrays     A\n             B\n  check      FAILED: off by one\n"
    )


def test_tables_are_coloured_on_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same text, and a failure in red."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    command_line.print_table("title", ROWS)
    text = capsys.readouterr().out
    assert "\x1b[1mtitle\x1b[0m" in text
    assert "\x1b[1;31mFAILED: off by one\x1b[0m" in text


def test_long_lines_are_not_broken(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A terminal wraps them itself, and what is copied from it stays whole."""
    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    command_line.print_table("title", [("path", ["x" * 60])])
    assert "x" * 60 in capsys.readouterr().out


def test_columns_are_aligned() -> None:
    """Each as wide as its widest cell."""
    assert command_line.aligned([["a", "bb"], ["ccc", "d"]]) == ["a    bb", "ccc  d "]
    assert command_line.aligned([]) == []


def test_errors_become_one_line_and_a_status(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Any error that is not ours is a defect, and keeps its traceback."""

    def fail() -> int:
        raise LaunchError("no such array")

    assert command_line.run_command(fail) == 1
    assert capsys.readouterr().err == "error: no such array\n"
    with pytest.raises(ZeroDivisionError):
        command_line.run_command(lambda: 1 // 0)
