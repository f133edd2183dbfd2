"""What alcop-opt reads: a file or stdin, whole or in parts; diagnostics about it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from alcop_mlir import files, limits
from alcop_mlir.bindings import ir
from alcop_mlir.diagnostics import Diagnostic

SPLIT_MARKER = "// -----"
STDIN = "<stdin>"
_MLIR_NAME = "-"  # what MLIR calls a source that is no file


@dataclass(frozen=True)
class SourcePart:
    """An input or a part of one; lines are counted from the start of the file.

    `path` is None for stdin and for parts, which MLIR gets as text.
    """

    name: str
    path: str | None
    data: bytes

    @cached_property
    def text(self) -> str:
        """What it holds."""
        return self.data.decode(errors="replace")

    def parse(self, as_module: bool = True) -> Any:
        """The module, or one op; ir.MLIRError where it is not valid MLIR."""
        if not as_module:
            return ir.Operation.parse(self.text, source_name=self.name)
        if self.path is not None:
            return ir.Module.parseFile(self.path)
        return ir.Module.parse(self.data)

    def named(self, diagnostic: Diagnostic) -> Diagnostic:
        """`diagnostic` with the name of the source as the user knows it."""
        notes = tuple(map(self.named, diagnostic.notes))
        name = self.name if diagnostic.file == _MLIR_NAME else diagnostic.file
        return replace(diagnostic, file=name, notes=notes)

    def with_name(self, printed: str) -> str:
        """Printed IR with the name of the source in its locations.

        Exact: in a string attribute the quote of `loc("-":` would be escaped.
        """
        if self.path is not None or self.name == STDIN:
            return printed
        name = self.name.replace("\\", "\\\\").replace('"', '\\"')
        return printed.replace(f'loc("{_MLIR_NAME}":', f'loc("{name}":')

    def show(self, diagnostic: Diagnostic) -> None:
        """Print to stderr with the line and a caret, as mlir-opt does."""
        print("\n".join(self._shown(self.named(diagnostic))), file=sys.stderr)

    def _shown(self, diagnostic: Diagnostic) -> Iterator[str]:
        yield f"{diagnostic.place()}: {diagnostic.severity}: {diagnostic.message}"
        lines = self.text.split("\n")
        if diagnostic.file == self.name and 0 < diagnostic.line <= len(lines):
            yield lines[diagnostic.line - 1].replace("\t", " ")
            yield " " * (diagnostic.column - 1) + "^"
        for note in diagnostic.notes:
            yield from self._shown(note)


def read(path: str) -> SourcePart:
    """The whole input, "-" for stdin; ConfigError where it cannot be read."""
    if path == "-":
        data = files.read_most(sys.stdin.buffer, limits.MLIR, "stdin")
        files.check_mlir(data, STDIN)
        return SourcePart(STDIN, None, data)
    data = files.read(path, limits.MLIR)
    files.check_mlir(data, path)
    # A pipe has been read; from the file itself, locations name it.
    return SourcePart(path, path if os.path.isfile(path) else None, data)


def split(source: SourcePart, marker: str = SPLIT_MARKER) -> list[SourcePart]:
    """The parts between lines that are `marker`, each at its own line numbers."""
    parts, at = [], 0
    lines = source.data.split(b"\n")
    for end, content in enumerate([*lines, marker.encode()]):
        if content.rstrip() == marker.encode():
            data = b"\n" * at + b"\n".join(lines[at:end])
            parts.append(SourcePart(source.name, None, data))
            at = end + 1
    return parts
