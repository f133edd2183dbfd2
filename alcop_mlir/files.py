"""Reading files whole, and writing them atomically: whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

from alcop_mlir.errors import ConfigError


def read(path: str | Path) -> bytes:
    """What is at `path`; ConfigError where it cannot be read."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ConfigError(f"cannot read '{path}': {error.strerror or error}") from None


def write_whole(path: str | Path, content: str | bytes) -> None:
    """Write `content` to `path`; a failure keeps the file's old content.

    Anything but a regular file (a pipe, /dev/stdout) is written directly. Raises
    ConfigError where it cannot be written.
    """
    path = Path(path)
    data = content.encode() if isinstance(content, str) else content
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(data)
            return
        # A symbolic link stays one: what it points to is replaced.
        path = path.resolve()
        half = path.with_name(f".{path.name}.{os.getpid()}.part")
        try:
            half.write_bytes(data)
            half.replace(path)
        finally:
            half.unlink(missing_ok=True)
    except OSError as error:
        raise ConfigError(f"cannot write '{path}': {error.strerror or error}") from None
