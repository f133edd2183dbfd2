"""The command line of alcop-opt: flags of its own, and a flag for every pass.

argparse reads it, and leaves what it does not know: input files and pass flags, in
order. Whether a pass flag names a pass is found out later, as that needs MLIR.

argparse knows neither of two habits of mlir-opt, so the arguments are rewritten first:
long flags with one dash, and switches that may be given a value but never take the
argument that follows.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from alcop_mlir.errors import ConfigError
from alcop_mlir.tools import command_line

_SWITCH_VALUES = {"true": True, "1": True, "false": False, "0": False}


class _Once(argparse.Action):
    """A flag that takes a value, and is given once."""

    def __call__(self, parser: Any, given: Any, values: Any, flag: Any = None) -> None:
        if getattr(given, self.dest) != self.default:
            raise ConfigError(f"'{flag}' is given more than once")
        setattr(given, self.dest, values)


class Switch(argparse.Action):
    """`--flag`, `--flag=true`, `--flag=false`, or one of the values that it lists."""

    def __call__(self, parser: Any, given: Any, values: Any, flag: Any = None) -> None:
        listed = str(self.metavar or "true|false").split("|")
        if values in _SWITCH_VALUES:
            values = _SWITCH_VALUES[values]
        elif self.metavar != "MARKER" and values not in listed:
            expected = " or ".join(listed)
            raise ConfigError(f"'{flag}' is '{values}', expected {expected}")
        setattr(given, self.dest, values)


# Name, value and meaning, as the help lists them.
_VALUES = (
    ("-o", "FILE", "write the result there instead of to stdout"),
    ("--pass-pipeline", "TEXT", "the passes to run, as 'builtin.module(...)'"),
    ("--load", "FILE.py", "make the passes defined in a Python file known"),
    ("--mlir-print-ir-before", "PASS,...", "print the IR before these passes"),
    ("--mlir-print-ir-after", "PASS,...", "print the IR after these passes"),
    ("--mlir-print-ir-tree-dir", "DIR", "write the IR after each pass to files"),
    (
        "--mlir-elide-elementsattrs-if-larger",
        "N",
        "print constants of more than N elements without them; not to be read back",
    ),
)
_DEFAULTS = {"-o": "-", "--load": [], "--verify-each": True} | dict.fromkeys(
    ("--mlir-print-ir-before", "--mlir-print-ir-after"), ""
)
_SWITCHES = (
    ("--split-input-file", "MARKER", "take the parts between '// -----' lines apart"),
    (
        "--verify-diagnostics",
        "all|only-expected",
        "check 'expected-error {{...}}' comments (also -warning, -remark, -note) "
        "against what is said; 'only-expected': more may be said",
    ),
    ("--verify-each", "true|false", "verify the IR after each pass"),
    ("--allow-unregistered-dialect", None, "accept ops of unknown dialects"),
    ("--no-implicit-module", None, "the input is one op, which is not put in a module"),
    ("--mlir-print-ir-before-all", None, "print the IR before each pass, to stderr"),
    ("--mlir-print-ir-after-all", None, "print the IR after each pass, to stderr"),
    ("--mlir-print-ir-after-change", None, "print after a pass that changed the IR"),
    ("--mlir-print-ir-after-failure", None, "print after a pass that failed"),
    ("--mlir-print-ir-module-scope", None, "print the whole module each time"),
    ("--mlir-print-debuginfo", None, "print locations"),
    ("--mlir-print-local-scope", None, "print locations and maps without aliases"),
    ("--mlir-print-op-generic", None, "print every op in its generic form"),
    ("--mlir-timing", None, "print the time of each pass, to stderr"),
    ("--mlir-pass-statistics", None, "print what each pass did to the IR, to stderr"),
    ("--mlir-disable-threading", None, "accepted: threads change no result"),
    ("--dump-pass-pipeline", None, "print the pipeline that runs, to stderr"),
    ("--emit-bytecode", None, "write MLIR bytecode instead of text"),
    ("--list-passes", None, "list all passes and pipelines, and stop"),
    ("--show-dialects", None, "list all dialects, and stop"),
    ("--help", None, "print this, and stop"),
    ("--version", None, "print the version, and stop"),
)


_PARSER = argparse.ArgumentParser(
    add_help=False, allow_abbrev=False, exit_on_error=False
)
FLAGS: list[argparse.Action] = [
    _PARSER.add_argument(
        name,
        metavar=value,
        help=about,
        action="append" if name == "--load" else action,
        default=_DEFAULTS.get(name, default),
        type=command_line.count if value == "N" else str,
    )
    for rows, action, default in ((_VALUES, _Once, None), (_SWITCHES, Switch, False))
    for name, value, about in rows
]
_SWITCH_NAMES = {name for name, _, _ in _SWITCHES}


def usage(flag: argparse.Action) -> str:
    """A flag as the help shows it."""
    (name,) = flag.option_strings
    if flag.metavar is None:
        return name
    if isinstance(flag, Switch):
        return f"{name}[={flag.metavar}]"
    return f"{name}{'=' if name.startswith('--') else ' '}{flag.metavar}"


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """A value per flag by its name with `_` for `-`, and `inputs` and `passes`.

    Raises ConfigError where a value is missing or wrong.
    """
    end = list(arguments).index("--") if "--" in arguments else len(arguments)
    try:
        given, rest = _PARSER.parse_known_args(map(_rewritten, arguments[:end]))
    except argparse.ArgumentError as error:
        if error.__context__ is not None:
            raise ConfigError(f"'{error.argument_name}': {error.message}") from None
        (flag,) = (f for f in FLAGS if error.argument_name in f.option_strings)
        raise ConfigError(
            f"'{error.argument_name}' needs a value: {usage(flag)}"
        ) from None
    flags = [text for text in rest if text.startswith("-") and text != "-"]
    given.passes = list(map(_pass_flag, flags))
    given.inputs = [text for text in rest if text not in flags]
    given.inputs += arguments[end + 1 :]
    if len(given.inputs) > 1:
        raise ConfigError(f"expected one input file, got {' and '.join(given.inputs)}")
    if given.passes and given.pass_pipeline is not None:
        raise ConfigError(
            f"'--pass-pipeline' and '--{given.passes[0][0]}' cannot be used "
            "together; put all passes into the pipeline"
        )
    return given


def _rewritten(argument: str) -> str:
    """`argument` as argparse reads it: with two dashes, a switch with a value."""
    if argument == "-h":
        argument = "--help"
    if argument.startswith("-") and len(argument.partition("=")[0]) > 2:
        argument = f"--{argument.lstrip('-')}"
    return f"{argument}=true" if argument in _SWITCH_NAMES else argument


def _pass_flag(text: str) -> tuple[str, str]:
    """The name of a pass, and the element of a pipeline that the flag stands for."""
    name, equals, options = text.lstrip("-").partition("=")
    return name, f"{name}{{{options}}}" if equals else name
