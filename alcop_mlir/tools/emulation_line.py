"""How far a long run of the emulator is: one line on a terminal, gone at the end."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import TextIO

_CLEAR = "\r\x1b[K"  # to the start of the line, and erase it


class EmulationLine:
    """Given to `Emulation`, is told how many blocks of a launch are done.

    Nothing is written before a launch has taken `patience` seconds, nor where `out` is
    no terminal. A thread writes, since a batch of blocks may take long by itself.
    """

    def __init__(self, out: TextIO, patience: float = 2.0, every: float = 0.5):
        self._out, self._patience, self._every = out, patience, every
        self._launch: tuple[str, int, int, float] | None = None
        self._stop = threading.Event()
        self._shown = False
        self._thread = threading.Thread(target=self._write, daemon=True)

    def __call__(self, kernel: str, done: int, blocks: int) -> None:
        """Tell of progress; a launch begins with 0 blocks, and ends with all."""
        if done == blocks:
            self._launch = None
            return
        start = self._launch[-1] if done and self._launch else time.monotonic()
        self._launch = kernel, done, blocks, start

    def __enter__(self) -> EmulationLine:
        if self._out.isatty():
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        if self._shown:
            self._put("")

    def _write(self) -> None:
        while not self._stop.wait(self._every):
            launch = self._launch
            if launch is not None and time.monotonic() - launch[-1] >= self._patience:
                self._put(_text(*launch))

    def _put(self, text: str) -> None:
        try:
            self._out.write(f"{_CLEAR}{text}")
            self._out.flush()
            self._shown = True
        except (OSError, ValueError):  # the terminal is gone: no reason to stop
            self._stop.set()


def _text(kernel: str, done: int, blocks: int, start: float) -> str:
    passed = time.monotonic() - start
    left = f", about {passed / done * (blocks - done):.0f} s left" if done else ""
    return f"emulating {kernel}: {done:,} of {blocks:,} blocks, {passed:.0f} s{left}"
