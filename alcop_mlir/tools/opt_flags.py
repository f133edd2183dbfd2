"""The command line of alcop-opt: flags of its own, and a flag for every pass.

Flags are written `--flag`, `--flag=value` or, as upstream allows too, with one dash.
What is no flag of its own must be a pass; whether it is one is found out later, as that
needs MLIR.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from alcop_mlir.errors import ConfigError


@dataclass(frozen=True)
class Flag:
    """A flag: `default` False or True: a switch; a text or None: takes a value.

    A switch with `value` may be given one, as in `--split-input-file='// ---'`.
    """

    name: str
    help: str
    default: bool | str | None = False
    value: str = ""
    repeats: bool = False

    @property
    def is_switch(self) -> bool:
        """Whether it means something without a value."""
        return isinstance(self.default, bool)

    def usage(self) -> str:
        """As shown in the help."""
        dashes = "-" if len(self.name) == 1 else "--"
        if not self.value:
            return f"{dashes}{self.name}"
        if self.is_switch:
            return f"{dashes}{self.name}[={self.value}]"
        return f"{dashes}{self.name}{' ' if len(self.name) == 1 else '='}{self.value}"


FLAGS = (
    Flag("o", "write the result there instead of to stdout", "-", "FILE"),
    Flag("pass-pipeline", "the passes to run, as 'builtin.module(...)'", None, "TEXT"),
    Flag(
        "load", "make the passes defined in a Python file known", None, "FILE.py", True
    ),
    Flag(
        "split-input-file",
        "treat the parts between '// -----' lines as files of their own",
        value="MARKER",
    ),
    Flag(
        "verify-diagnostics",
        "check 'expected-error {{...}}' comments (also -warning, -remark, -note) "
        "against what is said; 'only-expected': more may be said",
        value="all|only-expected",
    ),
    Flag("verify-each", "verify the IR after each pass", True, "true|false"),
    Flag("allow-unregistered-dialect", "accept ops of dialects that nobody defined"),
    Flag("no-implicit-module", "the input is one op, which is not put in a module"),
    Flag("mlir-print-ir-before-all", "print the IR before each pass, to stderr"),
    Flag("mlir-print-ir-after-all", "print the IR after each pass, to stderr"),
    Flag("mlir-print-ir-before", "print the IR before these passes", "", "PASS,..."),
    Flag("mlir-print-ir-after", "print the IR after these passes", "", "PASS,..."),
    Flag("mlir-print-ir-after-change", "print after a pass only if it changed the IR"),
    Flag("mlir-print-ir-module-scope", "print the whole module each time"),
    Flag(
        "mlir-print-ir-tree-dir", "write the IR after each pass to files", None, "DIR"
    ),
    Flag("mlir-print-debuginfo", "print locations"),
    Flag("mlir-print-local-scope", "print locations and maps in place, not as aliases"),
    Flag("mlir-print-op-generic", "print every op in its generic form"),
    Flag("mlir-timing", "print the time of each pass, to stderr"),
    Flag("mlir-disable-threading", "accepted: there are no threads"),
    Flag("dump-pass-pipeline", "print the pipeline that runs, to stderr"),
    Flag("list-passes", "list all passes and pipelines, and stop"),
    Flag("help", "print this, and stop"),
    Flag("version", "print the version, and stop"),
)
_BY_NAME = {flag.name: flag for flag in FLAGS}


@dataclass(frozen=True)
class PassFlag:
    """A flag that is not one of alcop-opt's own: `--name` or `--name=options`."""

    name: str
    options: str | None

    @property
    def text(self) -> str:
        """As an element of a pipeline string."""
        return self.name if self.options is None else f"{self.name}{{{self.options}}}"


@dataclass
class CommandLine:
    """A command line, taken apart."""

    inputs: list[str] = field(default_factory=list)
    passes: list[PassFlag] = field(default_factory=list)
    given: dict[str, bool | str | list[str]] = field(default_factory=dict)

    def on(self, name: str) -> bool:
        """Whether the switch is on."""
        value = self.given.get(name, _BY_NAME[name].default)
        return value is not False

    def text(self, name: str) -> str | None:
        """The value of the flag, its default, or None."""
        value = self.given.get(name, _BY_NAME[name].default)
        return value if isinstance(value, str) else None

    def texts(self, name: str) -> list[str]:
        """All values of a flag that may be given more than once."""
        value = self.given.get(name)
        return value if isinstance(value, list) else []


def parse(arguments: Sequence[str]) -> CommandLine:
    """Take a command line apart; ConfigError where a value is missing or wrong."""
    line = CommandLine()
    rest = iter(arguments)
    for argument in rest:
        if argument == "--":
            line.inputs += rest
        elif argument == "-" or not argument.startswith("-"):
            line.inputs.append(argument)
        else:
            _take(argument, rest, line)
    if len(line.inputs) > 1:
        raise ConfigError(f"expected one input file, got {' and '.join(line.inputs)}")
    if line.passes and line.text("pass-pipeline") is not None:
        raise ConfigError(
            f"'--pass-pipeline' and '--{line.passes[0].name}' cannot be used together; "
            "put all passes into the pipeline"
        )
    return line


def _take(argument: str, rest: Iterator[str], line: CommandLine) -> None:
    dashed, equals, value = argument.partition("=")
    name = dashed.lstrip("-")
    flag = _BY_NAME.get({"h": "help"}.get(name, name))
    if flag is None:
        line.passes.append(PassFlag(name, value if equals else None))
        return
    if flag.is_switch:
        line.given[flag.name] = _switch(flag, value) if equals else True
        return
    if not equals:
        following = next(rest, None)
        if following is None:
            raise ConfigError(f"'{dashed}' needs a value: {flag.usage()}")
        value = following
    if flag.repeats:
        line.given[flag.name] = [*line.texts(flag.name), value]
    elif flag.name in line.given:
        raise ConfigError(f"'{dashed}' is given more than once")
    else:
        line.given[flag.name] = value


def _switch(flag: Flag, value: str) -> bool | str:
    if value in ("true", "1"):
        return True
    if value in ("false", "0"):
        return False
    choices = flag.value.split("|")
    if flag.value == "MARKER" or (value in choices and value not in ("true", "false")):
        return value
    expected = " or ".join(choices) if flag.value else "true or false"
    raise ConfigError(f"'--{flag.name}' is '{value}', expected {expected}")
