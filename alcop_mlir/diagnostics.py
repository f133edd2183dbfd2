"""Warnings and remarks in MLIR's format; errors go through MLIR itself.

The bindings can emit only errors, so the other severities have a sink of their own. It
prints `file:line:col: remark: message` to stderr, as mlir-opt does; `collect()` gathers
them instead, for `--verify-diagnostics` and for tests.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from alcop_mlir.bindings import ir
from alcop_mlir.frozen import frozen

_warned: set[str] = set()
_MERGED = "alcop.merged"  # of a fused location: equal ops there became one


@frozen
class Diagnostic:
    """One message at one location; `line` and `column` count from 1, 0 if unknown."""

    severity: str  # "error", "warning", "remark", "note"
    message: str
    file: str
    line: int
    column: int
    notes: tuple[Diagnostic, ...] = ()

    def __str__(self) -> str:
        """`file:line:col: severity: message`, one line per note below."""
        own = f"{self.place()}: {self.severity}: {self.message}"
        return "\n".join([own, *map(str, self.notes)])

    def place(self) -> str:
        """`file:line:col`, as far as it is known."""
        if self.line:
            return f"{self.file}:{self.line}:{self.column}"
        return self.file or "loc(unknown)"


_handlers: list[Callable[[Diagnostic], None]] = []


def remark(op: Any, message: str) -> None:
    """Emit a remark at `op`: what the user may want to know; not a failure.

    At each location of the equal ops that became this one.
    """
    for location in _places(op.operation.location):
        _emit(at(location, "remark", message))


def warning(op: Any, message: str) -> None:
    """Emit a warning at `op`: what the user should look at; not a failure."""
    _emit(at(op.operation.location, "warning", message))


def warn_once(op: Any, message: str) -> None:
    """As `warning`, for the first op of this process that the message is of."""
    if message not in _warned:
        _warned.add(message)
        warning(op, message)


@contextmanager
def collect() -> Iterator[list[Diagnostic]]:
    """Collect remarks and warnings in the list instead of printing them."""
    gathered: list[Diagnostic] = []
    with handled_by(gathered.append):
        yield gathered


@contextmanager
def handled_by(handler: Callable[[Diagnostic], None]) -> Iterator[None]:
    """Give remarks and warnings to `handler` instead of printing them."""
    _handlers.append(handler)
    try:
        yield
    finally:
        _handlers.pop()


@contextmanager
def handle_all_of(context: Any) -> Iterator[None]:
    """Emit MLIR's own diagnostics in `context` as ours; errors become MLIRError."""

    def handle(diagnostic: Any) -> bool:
        _emit(from_mlir(diagnostic))
        return True

    attached = context.attach_diagnostic_handler(handle)
    try:
        yield
    finally:
        attached.detach()


def from_mlir(given: Any) -> Diagnostic:
    """A binding's `Diagnostic` or `DiagnosticInfo` as ours, its notes included."""
    severity = given.severity.name.lower()
    # The location of a diagnostic lacks its concrete type; its attribute has it.
    location = ir.Location.from_attr(given.location.attr, given.location.context)
    found = at(location, severity, given.message)
    return replace(found, notes=tuple(from_mlir(note) for note in given.notes))


def merged(locations: Iterable[Any]) -> Any:
    """The location of an op that stands for several equal ones."""
    places = {place.attr: place for one in locations for place in _places(one)}
    if len(places) == 1:
        return next(iter(places.values()))
    return ir.Location.fused(list(places.values()), ir.StringAttr.get(_MERGED))


def _places(location: Any) -> list[Any]:
    """The locations that `merged` was given."""
    if isinstance(location, ir.FusedLoc) and str(location.metadata) == f'"{_MERGED}"':
        return list(location.locations)
    return [location]


def at(location: Any, severity: str, message: str) -> Diagnostic:
    """A diagnostic at the innermost file location that `location` names."""
    file, line, column = _file_location(location)
    return Diagnostic(severity, message, file, line, column)


def _emit(diagnostic: Diagnostic) -> None:
    if _handlers:
        _handlers[-1](diagnostic)
    else:
        print(diagnostic, file=sys.stderr)


def _file_location(location: Any) -> tuple[str, int, int]:
    if isinstance(location, ir.FileLineColLoc):
        return location.filename, location.start_line, location.start_col
    if isinstance(location, ir.NameLoc):
        return _file_location(location.child_loc)
    if isinstance(location, ir.CallSiteLoc):
        return _file_location(location.callee)
    if isinstance(location, ir.FusedLoc):
        found = [_file_location(part) for part in location.locations]
        return next((one for one in found if one[1]), ("", 0, 0))
    return "", 0, 0
