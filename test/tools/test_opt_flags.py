"""alcop-opt's command line: what argparse is made to take as mlir-opt does."""

from __future__ import annotations

import sys

import pytest

from alcop_mlir.errors import ConfigError
from alcop_mlir.tools import opt, opt_flags


def test_passes_keep_their_order_around_flags_and_the_file() -> None:
    line = opt_flags.parse(
        [
            "--cse",
            "--load=a.py",
            "in.mlir",
            "-one-shot-bufferize=x",
            "-o",
            "out",
            "-cse",
        ]
    )
    assert [name for name, _ in line.passes] == ["cse", "one-shot-bufferize", "cse"]
    assert line.passes[1][1] == "one-shot-bufferize{x}"
    assert (line.inputs, line.load, line.o) == (["in.mlir"], ["a.py"], "out")


def test_options_of_a_pass_may_hold_blanks_and_signs() -> None:
    line = opt_flags.parse(["--a=x=1 y='b c'", "-", "--b=-1"])
    assert [text for _, text in line.passes] == ["a{x=1 y='b c'}", "b{-1}"]
    assert line.inputs == ["-"]


@pytest.mark.parametrize("flag", ["--split-input-file", "-split-input-file"])
def test_a_switch_does_not_take_the_file(flag: str) -> None:
    line = opt_flags.parse([flag, "in.mlir"])
    assert line.split_input_file is True
    assert line.inputs == ["in.mlir"]


def test_switches_take_values() -> None:
    given = ["--split-input-file=// ---", "--verify-each=false", "--mlir-timing=1"]
    line = opt_flags.parse(given)
    assert line.split_input_file == "// ---"
    assert (line.verify_each, line.mlir_timing) == (False, True)
    assert opt_flags.parse([]).verify_each


def test_names_are_not_abbreviated() -> None:
    """A pass may be called as a flag begins."""
    assert opt_flags.parse(["--mlir-tim", "--p"]).passes[1] == ("p", "p")


def test_after_two_dashes_there_are_files() -> None:
    assert opt_flags.parse(["--cse", "--", "--odd.mlir"]).inputs == ["--odd.mlir"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--load"], "'--load' needs a value: --load=FILE.py"),
        (["-pass-pipeline"], "'--pass-pipeline' needs a value: --pass-pipeline=TEXT"),
        (["-o", "a", "-o", "b"], "'-o' is given more than once"),
        (["--mlir-timing=2"], "'--mlir-timing' is '2', expected true or false"),
        (
            ["--mlir-elide-elementsattrs-if-larger=-1"],
            "'--mlir-elide-elementsattrs-if-larger': '-1' is no whole number",
        ),
        (["a", "b"], "expected one input file, got a and b"),
    ],
)
def test_a_wrong_line_is_one_clear_error(arguments: list[str], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        opt_flags.parse(arguments)
    assert str(error.value) == message


def test_bytecode_is_not_shown_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert opt.main(["--emit-bytecode"]) == 1
    said = capsys.readouterr()
    assert said == ("", "error: bytecode is nothing for a terminal, give -o FILE\n")
