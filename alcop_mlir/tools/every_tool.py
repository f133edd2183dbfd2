"""`python -m alcop_mlir TOOL ...`: any tool by its name; alone, which there are."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

from alcop_mlir.errors import check_known
from alcop_mlir.tools import command_line

COMMAND = "python -m alcop_mlir"
# Module, and what it is for.
TOOLS = {
    "opt": "run passes on MLIR, as mlir-opt does",
    "compile": "from linalg to kernels: a bundle, PTX or MLIR",
    "run": "run a file or a bundle on random arrays, and check the result",
    "tune": "find the fastest schedule; explain and report",
    "certify": "prove that kernels use shared memory right",
    "completion": "print what makes a shell complete their options",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns the exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    name = given[0].removeprefix("alcop-") if given else "--help"
    if name in TOOLS:
        tool = importlib.import_module(f"alcop_mlir.tools.{name}")
        return tool.main(given[1:])
    return command_line.run_command(lambda: _about(name))


def _about(name: str) -> int:
    if name == "--version":
        print(command_line.version_text("alcop_mlir"))
    elif name in ("--help", "-h"):
        print(_help())
    else:
        check_known("tool", name, TOOLS)
    return 0


def _help() -> str:
    rows = [[f"  {name}", about] for name, about in TOOLS.items()]
    return "\n".join(
        [
            f"usage: {COMMAND} TOOL ...",
            "",
            *map(str.rstrip, command_line.aligned(rows)),
            "",
            f"'{COMMAND} compile FILE' is 'alcop-compile FILE', where that is on PATH.",
            "Each has --help.",
        ]
    )
