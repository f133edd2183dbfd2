"""Reading files whole, and writing them atomically: whole or not at all."""

from __future__ import annotations

import math
import os
import stat
import time
import uuid
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from alcop_mlir.errors import ConfigError
from alcop_mlir.limits import Limit

# So that opening a pipe does not wait for who writes to it; 0 where there is none.
_NO_WAIT = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_BYTECODE = b"ML\xefR"  # what MLIR's begins with
_POLL = 0.005  # seconds between two looks at a lock
PART = ".part"  # what a file that is being written ends in
_MOST_SHOWN = 200  # characters of a path


def read(path: str | Path, limit: Limit) -> bytes:
    """What is at `path`, which may be a pipe. ConfigError where it cannot be read, or
    is larger than the limit; a pipe to which nobody writes is not waited for.
    """
    try:
        with _opened(path) as file:
            data = read_most(file, limit, f"'{path}'")
            if not data and stat.S_ISFIFO(os.fstat(file.fileno()).st_mode):
                raise OSError(0, "a pipe to which nobody writes")
            return data
    except (OSError, ValueError) as error:  # ValueError: a path with a null character
        raise ConfigError(f"cannot read {named(path)}: {reason(error)}") from None


def _opened(path: str | Path) -> IO[bytes]:
    """The file at `path`; reading waits for those who write, opening does not."""
    descriptor = os.open(path, os.O_RDONLY | _NO_WAIT)
    if hasattr(os, "set_blocking"):
        os.set_blocking(descriptor, True)
    return os.fdopen(descriptor, "rb")


def read_most(file: IO[bytes], limit: Limit, what: str) -> bytes:
    """What is left of `file`; ConfigError, naming it `what`, beyond the limit."""
    most = limit.most
    data = file.read(most + 1)
    if len(data) > most:
        raise ConfigError(f"{what} has more than {most} bytes, {limit.expected()}")
    return data


def check_mlir(data: bytes, what: str) -> None:
    """ConfigError, naming it `what`, where `data` is neither text nor bytecode."""
    if data.startswith(_BYTECODE):
        return
    try:
        data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{what}:{line}: no UTF-8 text, and no bytecode") from None


def open_regular(path: str | Path) -> IO[bytes]:
    """The regular file at `path`, or what it links to, opened for reading.

    OSError, also for a device, a pipe or a directory, which could never end.
    """
    descriptor = os.open(path, os.O_RDONLY | _NO_WAIT)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    raise OSError(0, "not a regular file")


@contextmanager
def locked(
    descriptor: int, exclusive: bool, seconds: float = math.inf
) -> Generator[bool, None, None]:
    """Hold the lock of an open file or directory, asked for so many seconds at most.

    Whether it is held: not every system, and not every disk, has locks.
    """
    try:
        import fcntl
    except ImportError:
        yield False
        return
    kind = fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH
    end, is_held = time.monotonic() + seconds, False
    while not is_held and time.monotonic() < end:
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
            is_held = True
        except BlockingIOError:
            time.sleep(_POLL)
        except OSError:
            break
    try:
        yield is_held
    finally:
        if is_held:
            fcntl.flock(descriptor, fcntl.LOCK_UN)


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
        replace(path, data)
    except (OSError, ValueError) as error:
        raise ConfigError(f"cannot write {named(path)}: {reason(error)}") from None


def make_folder(path: str | Path) -> None:
    """Make the directory, unless it is there; ConfigError where it cannot be made."""
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"cannot make folder {named(path)}: {reason(error)}"
        ) from None


def replace(path: Path, data: bytes) -> None:
    """Write the regular file `path`, whole or not at all; OSError if that fails."""
    half = path.with_name(f".{uuid.uuid4().hex}{PART}")
    try:
        half.write_bytes(data)
        half.replace(path)
    finally:
        half.unlink(missing_ok=True)


def named(path: str | Path) -> str:
    """`path` in quotes for a message, cut in the middle where it is long."""
    text = str(path)
    if len(text) > _MOST_SHOWN:
        text = f"{text[: _MOST_SHOWN // 2]}...{text[-_MOST_SHOWN // 2 :]}"
    return f"'{text}'"


def reason(error: OSError | ValueError) -> str:
    """Why, without the path."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
