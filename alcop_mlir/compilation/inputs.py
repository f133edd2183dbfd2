"""Modules to compile: from a file, from text, or the caller's own module."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from alcop_mlir import diagnostics, files, limits
from alcop_mlir.bindings import ir, make_context
from alcop_mlir.dialects import alcop
from alcop_mlir.errors import ConfigError

_TEXT = "-"  # what MLIR calls a source that is no file


@dataclass(frozen=True)
class Input:
    """A module in a context of its own, and the text that it was read from.

    place: the file that locations in `module` name where they are places in `text`
    """

    module: Any
    text: bytes
    place: str | None = None


def read(source: str | bytes | Path | ir.Module | ir.Operation) -> Input:
    """An `Input` from an MLIR module, a path, or MLIR text.

    A `str` is a path if it is one line that ends in .mlir. The caller's module is not
    modified. Raises ConfigError where there is no such file, or no MLIR in it; the
    message names line and column.
    """
    if isinstance(source, Path):
        return read_file(source)
    if isinstance(source, str) and source.endswith(".mlir") and "\n" not in source:
        return read_file(source)
    if isinstance(source, str | bytes):
        return read_text(source)
    if hasattr(source, "operation"):
        text = source.operation.get_asm(enable_debug_info=True)
        # Locations are those of the caller's module, not places in this text.
        return replace(read_text(text), place=None)
    raise ConfigError(
        f"cannot compile a {type(source).__name__}, expected MLIR text, a path, or a "
        "module"
    )


def read_file(path: str | Path) -> Input:
    """The module in the file `path`; see `read`."""
    text = files.read(path, limits.MLIR)
    files.check_mlir(text, str(path))
    if not Path(path).is_file():
        return read_text(text)  # a pipe has been read
    # From the file itself: locations name it.
    return Input(_parsed(lambda: ir.Module.parseFile(str(path))), text, str(path))


def read_text(text: str | bytes) -> Input:
    """The module that `text` holds; see `read`."""
    data = text.encode() if isinstance(text, str) else text
    files.check_mlir(data, "the module")
    return Input(_parsed(lambda: ir.Module.parse(data)), data, _TEXT)


def _parsed(parse: Callable[[], Any]) -> Any:
    with make_context():
        alcop.load()  # alcop-opt prints attributes and ops of ours
        try:
            return parse()
        except ir.MLIRError as error:
            found = [diagnostics.from_mlir(d) for d in error.error_diagnostics]
            first = found[0] if found else None
            message = f"{first.place()}: {first.message}" if first else str(error)
            raise ConfigError(message.strip()) from None
