"""Reading files of bundles that others made, as many bytes as the limits allow.

Zip archives may be broken, or such that reading them takes much memory.
"""

from __future__ import annotations

import os
import struct
import zipfile
import zlib
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import IO

from alcop_mlir import limits
from alcop_mlir.errors import ConfigError

Read = Callable[[str], bytes]  # a file, by its name

# What reading a broken archive raises; RuntimeError: encrypted, or a feature that
# zipfile does not know.
_BROKEN = (EOFError, RuntimeError, ValueError, zipfile.BadZipFile, zlib.error)
_FORMS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # their memory is bounded
_MAX_DIRECTORY = 2**21  # bytes of an archive's list of files: some 30,000 names
_END = struct.Struct("<4s4H2LH")  # "end of central directory", without its comment
_MAX_COMMENT = 2**16 - 1


@contextmanager
def opened(file: IO[bytes]) -> Generator[zipfile.ZipFile, None, None]:
    """The archive in `file`; ConfigError where it is none, broken, too large, or turns
    out to be so while it is read.
    """
    limits.BUNDLE.check(file.seek(0, os.SEEK_END), "the archive")
    _check_directory(file)
    try:
        with zipfile.ZipFile(file) as archive:
            yield archive
    except _BROKEN as error:
        if isinstance(error, ConfigError):
            raise
        raise ConfigError(f"broken zip archive: {error}") from None


def member(archive: zipfile.ZipFile, name: str) -> IO[bytes]:
    """The file of that name; what is read of it is what memory it takes."""
    try:
        entry = archive.getinfo(name)
    except KeyError:
        raise ConfigError(f"no {name}") from None
    if entry.compress_type not in _FORMS:
        raise ConfigError(f"{name} is compressed in a way that bundles are not")
    return archive.open(entry)


def reader(opened: Callable[[str], IO[bytes]]) -> Read:
    """Reads files by name, all together no more than a bundle may have."""
    left = limits.BUNDLE.most

    def read(name: str) -> bytes:
        nonlocal left
        most = left
        if name.endswith(".json"):
            most = min(left, limits.JSON.most)
        with opened(name) as file:
            data = file.read(most + 1)
        if len(data) > most:
            which = limits.JSON if most < left else limits.BUNDLE
            files = "" if most < left else ", with the files read before it,"
            raise ConfigError(
                f"{name}{files} has more bytes than allowed: {which.expected()}"
            )
        left -= len(data)
        return data

    return read


def _check_directory(file: IO[bytes]) -> None:
    """ConfigError where the list of files would take much memory to read."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - _END.size - _MAX_COMMENT))
    tail = file.read()
    at = tail.rfind(b"PK\x05\x06")
    if at < 0 or len(tail) - at < _END.size:
        raise ConfigError("no zip archive, or one that is cut off")
    listed = _END.unpack_from(tail, at)[5]
    # The larger form of the format is for what is beyond our limits.
    if listed > _MAX_DIRECTORY or tail[:at][-20:].startswith(b"PK\x06\x07"):
        raise ConfigError("the zip archive has too many files")
