"""`python -m alcop_mlir completion bash`: completion of the tools, by shtab."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from alcop_mlir.errors import optional
from alcop_mlir.tools import command_line
from alcop_mlir.tools.command_line import Parser

COMMAND = "python -m alcop_mlir completion"
SHELLS = ("bash", "zsh", "fish", "tcsh", "powershell")
_FILES = ("FILE", "PATH", "DIR")


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns the exit status."""
    return command_line.run_command(lambda: _run(arguments))


def _run(arguments: Sequence[str] | None) -> int:
    parser = Parser(COMMAND, "Print completion of the tools in a shell.")
    about = f"as in 'eval \"$({COMMAND} bash)\"' in ~/.bashrc"
    parser.add_argument("shell", choices=SHELLS, help=about)
    shell = parser.parse_args(arguments).shell
    shtab = optional("shtab", "completion needs shtab", "completion")
    scripts = []
    for tool in (*_parsers(), _opt_parser()):
        for action in tool._actions:
            if str(action.metavar or action.dest).upper().startswith(_FILES):
                action.complete = shtab.FILE  # type: ignore[attr-defined]
        scripts.append(shtab.complete(tool, shell))
    sys.stdout.write("\n".join(scripts))
    return 0


def _parsers() -> list[argparse.ArgumentParser]:
    from alcop_mlir.tools import certify, compile, run, tune_options

    parsers = (compile, run, certify)
    return [*(tool.parser() for tool in parsers), tune_options.parser("")]


def _opt_parser() -> argparse.ArgumentParser:
    """alcop-opt's flags, and a flag for each pass."""
    from alcop_mlir.pipelines import upstream
    from alcop_mlir.pipelines.registry import Registry
    from alcop_mlir.tools import opt_flags

    parser = argparse.ArgumentParser("alcop-opt", add_help=False)
    more: dict[str, Any]
    for flag in opt_flags.FLAGS:
        is_switch = isinstance(flag, opt_flags.Switch)
        more = {"action": "store_true"} if is_switch else {"metavar": flag.metavar}
        parser.add_argument(*flag.option_strings, help=flag.help, **more)
    for name in dict.fromkeys((*Registry().names(), *upstream.names())):
        parser.add_argument(f"--{name}", action="store_true")
    parser.add_argument("file", nargs="?")
    return parser
