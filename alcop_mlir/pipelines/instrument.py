"""Instruments run around the steps of a pipeline: print the IR, measure time.

Passes do not depend on them. A step is a pass, or an anchor op with steps inside it.
What checks pipelines is in `checked_steps.py`.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from alcop_mlir import files
from alcop_mlir.bindings import ir
from alcop_mlir.frozen import frozen


class RunningStep(Protocol):
    """What an instrument knows about a step."""

    @property
    def name(self) -> str:
        """Of a pass: as in a pipeline string; of an anchor: `'func.func' Pipeline`."""
        ...

    @property
    def is_pass(self) -> bool:
        """Whether it is a pass, not an anchor with steps inside."""
        ...


class Instrument:
    """Does nothing; a subclass overrides what it needs."""

    def configure(self, step: RunningStep, manager: Any) -> None:
        """Set up the C++ pass manager that runs the pass `step`, before any run."""

    @contextmanager
    def around(self, step: RunningStep, op: ir.Operation) -> Iterator[None]:
        """Runs around each run of `step` on `op`; may raise PassError afterwards."""
        yield


@frozen
class PrintIR(Instrument):
    """MLIR's own dumps to stderr, before or after passes, by name or all (None).

    options: of the pass manager's `enable_ir_printing`, by name
    """

    before: frozenset[str] | None
    after: frozenset[str] | None
    options: Mapping[str, bool | int | None]

    def configure(self, step: RunningStep, manager: Any) -> None:
        """Ask C++ to print where this step is asked for."""
        before = self.before is None or step.name in self.before
        after = self.after is None or step.name in self.after
        if before or after:
            manager.enable_ir_printing(
                print_before_all=before, print_after_all=after, **self.options
            )


@dataclass
class PrintTree(Instrument):
    """Writes the IR after each pass to files under `directory`, as mlir-opt does.

    A file is named after the op's path and numbered in the order of its passes:
    `builtin_module_no-symbol-name/func_func_f/1_0_cse.mlir`. `after` are the passes to
    write for, None for all. Raises ConfigError where a file cannot be written.
    """

    directory: Path
    after: frozenset[str] | None = None
    _counts: dict[tuple[str, ...], int] = field(default_factory=dict)

    @contextmanager
    def around(self, step: RunningStep, op: ir.Operation) -> Iterator[None]:
        """Write the file after the pass."""
        yield
        if step.is_pass and (self.after is None or step.name in self.after):
            self._write(step.name, op)

    def _write(self, name: str, op: ir.Operation) -> None:
        # Counted by path: the hash of an op changes with its attributes.
        path = _path(op)
        self._counts[path] = self._counts.get(path, -1) + 1
        numbers = [
            str(self._counts.setdefault(path[:depth], 0))
            for depth in range(1, len(path) + 1)
        ]
        folder = self.directory.joinpath(*path)
        files.make_folder(folder)
        file = folder / f"{'_'.join(numbers)}_{name}.mlir"
        files.write_whole(file, f"{op}\n")


@dataclass
class StepTimes(Instrument):
    """Adds up wall time per step, nested as the pipeline is; `table()` shows it."""

    clock: Callable[[], float] = time.perf_counter
    total: TimedStep = field(default_factory=lambda: TimedStep("Total"))
    _open: list[TimedStep] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._open.append(self.total)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Time work that is not a pass, such as reading the input."""
        yield from self._timed(name, name)

    @contextmanager
    def around(self, step: RunningStep, op: ir.Operation) -> Iterator[None]:
        """Time the step; two passes of one name are two rows."""
        yield from self._timed(step.name, step)

    def table(self) -> str:
        """The report, in the form of mlir-opt's."""
        self.total.seconds = sum(part.seconds for part in self.total.parts.values())
        whole = self.total.seconds or 1.0
        rule = f"===-{'-' * 73}-==="
        rows = [*_rows(self.total, 0), (self.total, 0)]
        return "\n".join(
            [
                rule,
                "... Execution time report ...".center(len(rule)).rstrip(),
                rule,
                f"  Total Execution Time: {self.total.seconds:.4f} seconds",
                "",
                "  ----Wall Time----  ----Name----",
                *(
                    f"  {row.seconds:8.4f} ({100 * row.seconds / whole:5.1f}%)  "
                    f"{'  ' * depth}{row.name}"
                    for row, depth in rows
                ),
            ]
        )

    def _timed(self, name: str, key: Any) -> Iterator[None]:
        row = self._open[-1].parts.setdefault(key, TimedStep(name))
        self._open.append(row)
        start = self.clock()
        try:
            yield
        finally:
            row.seconds += self.clock() - start
            self._open.pop()


@dataclass
class TimedStep:
    """A row of the timing table, and the rows inside it."""

    name: str
    seconds: float = 0.0
    parts: dict[Any, TimedStep] = field(default_factory=dict)


def _rows(step: TimedStep, depth: int) -> Iterator[tuple[TimedStep, int]]:
    for part in step.parts.values():
        yield part, depth
        yield from _rows(part, depth + 1)


def _path(op: ir.Operation) -> tuple[str, ...]:
    """A name for each op from the outermost to `op`."""
    symbol = "no-symbol-name"
    if "sym_name" in op.attributes:
        symbol = re.sub(r"[^\w.\-]", "_", op.attributes["sym_name"].value)
    own = f"{op.name.replace('.', '_')}_{symbol}"
    return (*(_path(op.parent.operation) if op.parent is not None else ()), own)
