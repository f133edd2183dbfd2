"""Modules to compile: from a file, from text, or the caller's own module."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from alcop_mlir import diagnostics, files, limits
from alcop_mlir.bindings import ir, make_context
from alcop_mlir.compilation.attention_text import written_out
from alcop_mlir.compilation.resource_constants import inline_resources
from alcop_mlir.dialects import alcop
from alcop_mlir.errors import ConfigError
from alcop_mlir.frozen import frozen

_TEXT = "-"  # what MLIR calls a source that is no file
# What the parser says of ops and types that it does not know.
_UNKNOWN = re.compile(r"unregistered dialect|^Dialect .* not found")
_QUOTED = re.compile(r'"([\w.$]+)"$')  # an op in generic form, up to where it stops
_OF_MESSAGE = re.compile(r"(?:custom op '|^`)([^'`]+)")
_EXPECTED = (
    "expected linalg, tensor, arith, math and the like; lower it to these before"
)


@frozen
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
    made = written_out(text, str(path))
    if made != text:
        return Input(_parsed(lambda: ir.Module.parse(made), made), made, _TEXT)
    # From the file itself: locations name it.
    return Input(_parsed(lambda: ir.Module.parseFile(str(path)), text), text, str(path))


def read_text(text: str | bytes) -> Input:
    """The module that `text` holds; see `read`."""
    data = text.encode() if isinstance(text, str) else text
    files.check_mlir(data, "the module")
    data = written_out(data, _TEXT)
    return Input(_parsed(lambda: ir.Module.parse(data), data), data, _TEXT)


def _parsed(parse: Callable[[], Any], text: bytes) -> Any:
    with make_context():
        alcop.load()  # alcop-opt prints attributes and ops of ours
        try:
            module = parse()
        except ir.MLIRError as error:
            found = [diagnostics.from_mlir(d) for d in error.error_diagnostics]
            first = found[0] if found else None
            message = _message(first, text) if first else str(error)
            raise ConfigError(message.strip()) from None
        inline_resources(module)
        return module


def _message(found: diagnostics.Diagnostic, text: bytes) -> str:
    """What MLIR's parser says; of ops and types of unknown dialects, their names."""
    if not _UNKNOWN.search(found.message):
        return f"{found.place()}: {found.message}"
    line = text.split(b"\n")[found.line - 1] if found.line else b""
    before = line[: found.column - 1].decode(errors="replace")
    names = (_QUOTED.search(before), _OF_MESSAGE.search(found.message))
    name = next((match[1] for match in names if match), "an op or type")
    what = name.replace('"', "")
    return f"{found.place()}: '{what}' is in no dialect that is known: {_EXPECTED}"
