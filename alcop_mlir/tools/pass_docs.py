"""Writes docs/passes.md from the pass classes and their contracts.

usage: python -m alcop_mlir.tools.pass_docs > docs/passes.md
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from alcop_mlir.passes.base import Configured, Option, Pass
from alcop_mlir.pipelines.named import NAMED_PIPELINES, NamedPipeline
from alcop_mlir.pipelines.pipeline_text import parse_elements
from alcop_mlir.pipelines.registry import Registry

_HEAD = """\
# Passes

Generated from the passes by `python -m alcop_mlir.tools.pass_docs > docs/passes.md`; a
test checks that it is up to date. How they work together is in
[architecture.md](architecture.md).

Every pass stands alone, `alcop-opt FILE.mlir --alcop-plan-pipelines='stages=3,2'`, or
in a pipeline next to MLIR's own, `--pass-pipeline='builtin.module(func.func(cse))'`.
"""


def document() -> str:
    """The whole page."""
    passes = Registry().passes()
    return "\n".join(
        [
            _HEAD,
            "| pass | on | what it does |",
            "|---|---|---|",
            *(
                f"| [`{p.name}`](#{p.name}) | `{p.anchor}` | {p.summary()} |"
                for p in passes
            ),
            *(line for p in passes for line in _pass(p)),
            "",
            "# Pipelines",
            *(line for p in NAMED_PIPELINES for line in _pipeline(p)),
            "",
        ]
    )


def _pass(documented: type[Pass]) -> Iterator[str]:
    yield from ("", f"## {documented.name}", "")
    for paragraph in documented.contract().split("\n\n"):
        yield from (*_paragraph(paragraph), "")
    where = "any op" if documented.anchor == "any" else f"`{documented.anchor}`"
    yield f"Runs on {where}."
    yield from _options(documented)


def _pipeline(documented: type[NamedPipeline]) -> Iterator[str]:
    yield from ("", f"## {documented.name}", "", documented.summary())
    yield from ("", "Runs on `builtin.module`. With its defaults it stands for", "")
    yield "```text"
    for step in documented().steps():
        yield from _step(step)
    yield "```"
    yield from _options(documented)


def _step(step: str) -> list[str]:
    """One line a step, those inside an anchor indented."""
    lines = []
    for element in parse_elements(step):
        if element.children is None:
            lines.append(element.text)
        else:
            inner = (f"  {child.text}" for child in element.children)
            lines += [f"{element.name}(", *inner, ")"]
    return lines


def _paragraph(text: str) -> list[str]:
    """The text as Markdown; text that is laid out by spaces is unchanged."""
    is_list = re.match(r"(\d+\.|[-*]) ", text)
    laid_out = re.search(r"^(Before:|After:| )", text, re.MULTILINE)
    if laid_out and not is_list:
        return ["```text", text, "```"]
    return [text]


def _options(documented: type[Configured]) -> Iterator[str]:
    options = documented.options()
    if not options:
        return
    yield from ("", "| option | | default | |", "|---|---|---|---|")
    for option in options:
        yield (
            f"| `{option.name}` | {option.expected()} | {_default(option)} "
            f"| {option.help} |"
        )


def _default(option: Option) -> str:
    shown = option.shown_default()
    return shown if shown == "none" else f"`{shown}`"


if __name__ == "__main__":
    print(document(), end="")
