"""The files of a bundle: read within limits, and replaced as a whole.

In a directory all but the manifest are named after their contents, and no file that a
manifest names is ever changed. A writer adds its files, replaces the manifest, which
makes them the bundle, and then removes what no longer belongs to it: who is killed
in between leaves the old bundle or the new one. Writers wait for each other. Readers do
not wait: one that misses a file, because the bundle was replaced, starts again.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TypeVar

from alcop_mlir import archives, files
from alcop_mlir.archives import Read as Read
from alcop_mlir.errors import ConfigError

MANIFEST = "manifest.json"
DATA_SUFFIX = ".bin"
SUFFIXES = (".ptx", ".cubin", ".cert", DATA_SUFFIX)
T = TypeVar("T")

_ZIP_TIME = (1980, 1, 1, 0, 0, 0)  # the earliest that the format knows
_ZIP_LEVEL = 6  # of 9, which takes five times as long, for 2% less
_TRIES = 4
_WAIT = 10.0  # seconds for another writer; one that was stopped must not stop all


def hashed_name(name: str, sha256: str) -> str:
    """What a file is called in a directory: `kernels-0123456789abcdef.ptx`."""
    stem, dot, suffix = name.rpartition(".")
    return f"{stem}-{sha256[:16]}{dot}{suffix}"


def zipped(contents: Mapping[str, bytes]) -> bytes:
    """An archive of these files; the same bytes wherever zlib and liblzma are the same.

    Contents of constants are stored as they are: numbers hardly get smaller.
    """
    data = BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name, whole in contents.items():
            called, content = archives.packed(name, whole)
            entry = zipfile.ZipInfo(called, _ZIP_TIME)
            entry.create_system = 3  # Unix, on every system
            entry.external_attr = 0o644 << 16
            is_stored = called != name or name.endswith(DATA_SUFFIX)
            form = zipfile.ZIP_STORED if is_stored else zipfile.ZIP_DEFLATED
            archive.writestr(entry, content, form, _ZIP_LEVEL)
    return data.getvalue()


def write_directory(contents: Mapping[str, bytes], folder: Path) -> None:
    """Make these files, named by `hashed_name`, the bundle at `folder`; OSError if that
    fails, and the bundle that was there stays.
    """
    made = not folder.exists()
    folder.mkdir(exist_ok=True)
    try:
        with _locked(folder, exclusive=True) as is_locked:
            for name, data in contents.items():
                if name != MANIFEST and not _holds(folder / name, data):
                    files.replace(folder / name, data)
            files.replace(folder / MANIFEST, contents[MANIFEST])
            if is_locked:  # else they may be another writer's
                _remove_others(folder, contents)
    except OSError:
        if made and not (folder / MANIFEST).exists():
            _remove_others(folder, ())
            folder.rmdir()
        raise


def is_replaceable(folder: Path) -> bool:
    """Whether writing a bundle to `folder` loses nothing but a bundle."""
    return folder.is_dir() and all(_is_part(name) for name in os.listdir(folder))


def reading(path: Path, make: Callable[[Read], T]) -> T:
    """What `make` makes of the files at `path`, which it is to read by their names.

    ConfigError for what is broken, is no regular file, or is beyond the limits.
    """
    try:
        return _from_directory(path, make) if path.is_dir() else _from_zip(path, make)
    except OSError as error:
        raise ConfigError(files.reason(error)) from None


def _from_directory(folder: Path, make: Callable[[Read], T]) -> T:
    for _ in range(_TRIES):
        before = _identity(folder)
        try:
            return make(archives.reader(lambda name: files.open_regular(folder / name)))
        except FileNotFoundError as error:
            if _identity(folder) == before:
                raise ConfigError(f"no {Path(error.filename).name}") from None
    with _locked(folder, exclusive=False):
        return make(archives.reader(lambda name: files.open_regular(folder / name)))


def _from_zip(path: Path, make: Callable[[Read], T]) -> T:
    with files.open_regular(path) as file, archives.opened(file) as archive:
        return make(archives.reader(lambda name: archives.member(archive, name)))


def _identity(folder: Path) -> tuple[int, int, int] | None:
    """Changes when the manifest is replaced."""
    try:
        found = (folder / MANIFEST).stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_ctime_ns


def _is_part(name: str) -> bool:
    """Whether files of that name belong to a bundle, or to one half-written."""
    return name == MANIFEST or name.endswith((*SUFFIXES, files.PART))


def _holds(path: Path, data: bytes) -> bool:
    """Whether the file is there, whole."""
    try:
        with files.open_regular(path) as file:
            return file.read(len(data) + 1) == data
    except OSError:
        return False


def _remove_others(folder: Path, kept: Iterable[str]) -> None:
    """Remove what belongs to no bundle any more."""
    for name in set(os.listdir(folder)) - set(kept):
        if _is_part(name):
            (folder / name).unlink(missing_ok=True)


@contextmanager
def _locked(folder: Path, exclusive: bool) -> Generator[bool, None, None]:
    """Hold the lock of a directory; whether it is held."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with files.locked(descriptor, exclusive, _WAIT) as is_held:
            yield is_held
    finally:
        os.close(descriptor)
