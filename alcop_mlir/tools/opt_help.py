"""`alcop-opt --help` and `--list-passes`, made from the flags and the pass classes."""

from __future__ import annotations

import argparse
import textwrap

from alcop_mlir.passes.base import Pass
from alcop_mlir.pipelines import upstream
from alcop_mlir.pipelines.driver import similar
from alcop_mlir.pipelines.named import NAMED_PIPELINES
from alcop_mlir.pipelines.registry import Registry
from alcop_mlir.tools import opt_flags

_WIDTH = 88
_USAGE = """\
alcop-opt [FILE] [flags] [--PASS[='option=value ...'] ...]

Reads MLIR from FILE (or stdin), runs the passes, prints the result. Passes are given as
flags, in order, or as --pass-pipeline='builtin.module(PASS, func.func(PASS{...}))'.
MLIR's own passes are known like those below, see --list-passes."""


def help_text(registry: Registry) -> str:
    """The whole help, laid out by argparse: rows of its groups, which parse nothing."""
    page = argparse.ArgumentParser(
        usage=_USAGE,
        add_help=False,
        formatter_class=lambda prog: argparse.HelpFormatter(
            prog, max_help_position=34, width=_WIDTH
        ),
    )

    def row(group: argparse._ArgumentGroup, left: str, right: str) -> None:
        group.add_argument("row", metavar=left, help=right.replace("%", "%%"))

    flags = page.add_argument_group("flags")
    for flag in opt_flags.FLAGS:
        row(flags, opt_flags.usage(flag), flag.help or "")
    for title, kinds in (("passes", registry.passes()), ("pipelines", NAMED_PIPELINES)):
        group = page.add_argument_group(title)
        for kind in kinds:
            anchor = f" [{kind.anchor}]" if issubclass(kind, Pass) else ""
            row(group, f"--{kind.name}{anchor}", kind.summary())
            for option in kind.options():
                expected = f"{option.expected()}; default {option.shown_default()}"
                row(group, f"    {option.name}=...", f"{option.help} ({expected})")
    return page.format_help().rstrip()


def list_text(registry: Registry) -> str:
    """Every name that may stand in a pipeline string."""
    ours = [*registry.passes(), *NAMED_PIPELINES]
    known = [name for name in upstream.names() if upstream.find(name)]
    width = max(len(p.name) for p in ours) + 2
    return "\n".join(
        [
            *(f"{p.name:{width}}{p.summary()}" for p in ours),
            "",
            "of MLIR:",
            *textwrap.wrap(" ".join(known), _WIDTH, break_on_hyphens=False),
        ]
    )


def unknown_flag(name: str, registry: Registry) -> str:
    """A message that there is neither a flag nor a pass of this name."""
    flags = (f.option_strings[0].lstrip("-") for f in opt_flags.FLAGS)
    known = (*flags, *registry.names(), *upstream.names())
    return f"unknown flag '--{name}'{similar(name, known, dashes='--')}"
