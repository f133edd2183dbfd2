"""`--mlir-pass-statistics`: what each pass did to the IR, counted around it.

Passes keep counters of their own only where LLVM is built with assertions, which wheels
are not; passes in Python have none.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from alcop_mlir.bindings import ir
from alcop_mlir.pipelines.instrument import Instrument, RunningStep


@dataclass
class _Row:
    """A pass, or an anchor with rows inside; summed over all ops that it ran on."""

    name: str
    is_pass: bool
    runs: int = 0
    changed: int = 0
    added: int = 0
    erased: int = 0
    parts: dict[Any, _Row] = field(default_factory=dict)


class PassStatistics(Instrument):
    """Counts per pass, nested as the pipeline is; `table()` shows them."""

    def __init__(self) -> None:
        self._root = _Row("", False)
        self._open = [self._root]

    @contextmanager
    def around(self, step: RunningStep, op: ir.Operation) -> Iterator[None]:
        """Compare the IR after a pass with that before it."""
        row = self._open[-1].parts.setdefault(step, _Row(step.name, step.is_pass))
        self._open.append(row)
        try:
            if not step.is_pass:
                yield
                return
            before, ops = str(op), _count(op)
            yield
            change = _count(op) - ops
            row.runs += 1
            row.changed += str(op) != before
            row.added += max(change, 0)
            row.erased += max(-change, 0)
        finally:
            self._open.pop()

    def table(self) -> str:
        """The report, in the form of mlir-opt's."""
        rule = f"===-{'-' * 73}-==="
        title = "... Pass statistics report ...".center(len(rule)).rstrip()
        return "\n".join([rule, title, rule, *_lines(self._root, 0)])


def _lines(row: _Row, depth: int) -> Iterator[str]:
    for part in row.parts.values():
        yield f"{'  ' * depth}{part.name}"
        if part.is_pass:
            for count, name, about in (
                (part.runs, "num-runs", "Number of ops that it ran on"),
                (part.changed, "num-changed", "Number of those that it changed"),
                (part.added, "num-ops-added", "Ops inside more than before"),
                (part.erased, "num-ops-erased", "Ops inside fewer than before"),
            ):
                yield f"{'  ' * depth}  (S) {count} {name} - {about}"
        yield from _lines(part, depth + 1)


def _count(op: ir.Operation) -> int:
    number = 0

    def visit(_: Any) -> Any:
        nonlocal number
        number += 1
        return ir.WalkResult.ADVANCE

    op.walk(visit)
    return number
