"""Reading files of bundles that others made, as many bytes as the limits allow.

Zip archives may be broken, or such that reading them takes much memory. A member
`NAME.xz` is the file NAME, packed by LZMA: kernels that are like each other lie farther
apart than deflate looks back. zipfile has LZMA too, but gives what it unpacks, and its
dictionary, as much memory as the archive says.
"""

from __future__ import annotations

import importlib
import io
import os
import struct
import zipfile
import zlib
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import IO, Any

from alcop_mlir import limits
from alcop_mlir.errors import ConfigError

Read = Callable[[str], bytes]  # a file, by its name

# What reading a broken archive raises; RuntimeError: encrypted, or a feature that
# zipfile does not know.
_BROKEN = (EOFError, RuntimeError, ValueError, zipfile.BadZipFile, zlib.error)
_FORMS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # their memory is bounded
_PACKED = ".xz"
_MOST_MEMORY = 2**24  # bytes to unpack: twice what `packed` makes needs
_PRESET = 6  # of 9, which takes twice as long, for nothing
# What a byte depends on: of text the bytes before it, in code where it is in one of
# the instructions of 16 bytes.
_DEPENDS_ON = {
    ".ptx": {"lc": 3, "lp": 0, "pb": 0},
    ".cubin": {"lc": 0, "lp": 4, "pb": 4},
}
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
    entry = _entry(archive, name) or _entry(archive, f"{name}{_PACKED}")
    if entry is None:
        raise ConfigError(f"no {name}")
    if entry.compress_type not in _FORMS:
        raise ConfigError(f"{name} is compressed in a way that bundles are not")
    if entry.filename == name:
        return archive.open(entry)
    limits.BUNDLE.check(entry.file_size, entry.filename)
    return io.BytesIO(_unpacked(archive.read(entry), entry.filename))


def _entry(archive: zipfile.ZipFile, name: str) -> zipfile.ZipInfo | None:
    try:
        return archive.getinfo(name)
    except KeyError:
        return None


def packed(name: str, data: bytes) -> tuple[str, bytes]:
    """What an archive holds of a file, and under which name: itself, or packed.

    The same bytes wherever liblzma is the same. Packed is what code of that kind gets
    shorter by than by deflate, and only where Python has liblzma.
    """
    depends_on = _DEPENDS_ON.get(os.path.splitext(name)[1])
    lzma = _lzma()
    if depends_on is None or lzma is None:
        return name, data
    filters = [{"id": lzma.FILTER_LZMA2, "preset": _PRESET, **depends_on}]
    # No checksums: the manifest has hashes.
    small = lzma.compress(data, check=lzma.CHECK_NONE, filters=filters)
    if len(small) >= len(zlib.compress(data)):
        return name, data
    return f"{name}{_PACKED}", small


def _unpacked(data: bytes, name: str) -> bytes:
    """No more than a byte beyond the limit; ConfigError where it is not all."""
    lzma = _lzma()
    if lzma is None:
        raise ConfigError(f"{name}: this Python has no lzma, install liblzma for it")
    unpacking = lzma.LZMADecompressor(lzma.FORMAT_XZ, _MOST_MEMORY)
    most = limits.BUNDLE.most + 1
    try:
        found: bytes = unpacking.decompress(data, most)
    except (lzma.LZMAError, EOFError) as error:
        raise ConfigError(f"{name}: {error}") from None
    if not unpacking.eof and len(found) < most:
        raise ConfigError(f"{name} is cut off")
    return found


def _lzma() -> Any:
    """Python's module; None where Python was built without liblzma."""
    try:
        return importlib.import_module("lzma")
    except ImportError:
        return None


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
