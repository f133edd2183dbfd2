"""The line that says how far a long emulation is."""

from __future__ import annotations

import io
import time

import pytest

from alcop_mlir.tools import run as tool
from alcop_mlir.tools.emulation_line import EmulationLine

SMALL = """
func.func @small(%x: memref<100x256xf32>, %y: memref<100x256xf32>) {
  linalg.exp ins(%x : memref<100x256xf32>) outs(%y : memref<100x256xf32>)
  return
}
"""


class Terminal(io.StringIO):
    """One in which all that was ever written can be read."""

    def isatty(self) -> bool:
        return True


def wait_for(out: io.StringIO, text: str) -> None:
    for _ in range(1000):
        if text in out.getvalue():
            return
        time.sleep(0.005)
    raise AssertionError(f"no {text!r} in {out.getvalue()!r}")


def test_a_long_run_is_told_of_and_the_line_erased() -> None:
    out = Terminal()
    with EmulationLine(out, patience=0, every=0.001) as line:
        line("gemm", 0, 4096)
        wait_for(out, "emulating gemm: 0 of 4,096 blocks, 0 s\r")
        line("gemm", 1024, 4096)
        wait_for(out, "emulating gemm: 1,024 of 4,096 blocks, 0 s, about 0 s left\r")
        line("gemm", 4096, 4096)
    assert out.getvalue().endswith("\r\x1b[K")


def test_a_short_run_is_not_told_of() -> None:
    out = Terminal()
    with EmulationLine(out, every=0.001) as line:
        line("gemm", 0, 4096)
        time.sleep(0.02)
    assert out.getvalue() == ""


def test_nothing_is_written_to_a_file() -> None:
    out = io.StringIO()
    with EmulationLine(out, patience=0, every=0.001) as line:
        line("gemm", 0, 4096)
        time.sleep(0.02)
    assert out.getvalue() == ""


def test_a_terminal_that_is_gone_does_not_stop_a_run() -> None:
    class Gone(Terminal):
        def write(self, _: str) -> int:
            raise OSError(5, "Input/output error")

    with EmulationLine(Gone(), patience=0, every=0.001) as line:
        line("gemm", 0, 4096)
        time.sleep(0.02)


def test_alcop_run_tells_it_of_each_batch(
    tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the first, and after each."""
    told: list[tuple[str, int, int]] = []
    monkeypatch.setattr(EmulationLine, "__call__", lambda _, *one: told.append(one))
    file = f"{tmp_path}/small.mlir"
    with open(file, "w") as opened:
        opened.write(SMALL)
    assert tool.main([file, "--device", "emulator"]) == 0
    ((kernel, first, blocks), *_, last) = told
    assert first == 0
    assert last == (kernel, blocks, blocks)
    assert [done for _, done, _ in told] == [*range(0, blocks, 64), blocks]
