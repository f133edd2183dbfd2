"""`alcop-opt --help` and `--list-passes`, made from the flags and the pass classes."""

from __future__ import annotations

import difflib
import textwrap
from collections.abc import Iterator

from alcop_mlir.passes.base import Configured
from alcop_mlir.pipelines import upstream
from alcop_mlir.pipelines.named import NAMED_PIPELINES
from alcop_mlir.pipelines.registry import Registry
from alcop_mlir.tools.opt_flags import FLAGS

_USAGE = """\
usage: alcop-opt [FILE] [flags] [--PASS[='option=value ...'] ...]

Reads MLIR from FILE (or stdin), runs the passes, prints the result. Passes are given as
flags, in order, or as --pass-pipeline='builtin.module(PASS, func.func(PASS{...}))'.
MLIR's own passes are known like those below, see --list-passes."""


def help_text(registry: Registry) -> str:
    """The whole help."""
    return "\n".join(
        [
            _USAGE,
            "",
            "flags:",
            *(row for f in FLAGS for row in _row(f.usage(), f.help, 2)),
            "",
            "passes:",
            *(row for p in registry.passes() for row in _entry(p, f" [{p.anchor}]")),
            "",
            "pipelines:",
            *(row for p in NAMED_PIPELINES for row in _entry(p, "")),
        ]
    )


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
            *textwrap.wrap(" ".join(known), 88, break_on_hyphens=False),
        ]
    )


def unknown_flag(name: str, registry: Registry) -> str:
    """A message that there is neither a flag nor a pass of this name."""
    known = (*(f.name for f in FLAGS), *registry.names(), *upstream.names())
    near = difflib.get_close_matches(name, known, n=2)
    hint = " or ".join(f"'--{other}'" for other in near)
    return f"unknown flag '--{name}'" + (f", did you mean {hint}?" if hint else "")


def _entry(kind: type[Configured], anchor: str) -> Iterator[str]:
    yield from _row(f"--{kind.name}{anchor}", kind.summary(), 2)
    for option in kind.options():
        default = f"; default {option.shown_default()}"
        yield from _row(
            f"{option.name}=...", f"{option.help} ({option.expected()}{default})", 6
        )


def _row(left: str, right: str, indent: int) -> Iterator[str]:
    """`left` and, from column 34 on, `right` in as many lines as it needs."""
    lines = textwrap.wrap(right, 88 - 34) or [""]
    head = " " * indent + left
    if len(head) > 32:
        yield head
        head = ""
    for line in lines:
        yield f"{head:34}{line}".rstrip()
        head = ""
