"""No collections of cycles while a command compiles, nor when it ends."""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path

import pytest

from alcop_mlir import collector
from alcop_mlir.tools import compile as tool

CYCLE = """
class Loud:
    def __del__(self): print("collected")
one = Loud()
one.itself = one
del one
"""


@pytest.mark.parametrize("was_enabled", [True, False])
def test_a_pause_ends_as_it_began(was_enabled: bool) -> None:
    """Also by an exception; it says whether the collector was enabled meanwhile."""
    before = gc.isenabled()
    (gc.enable if was_enabled else gc.disable)()
    try:
        with pytest.raises(KeyError, match="False"), collector.paused():
            {}[gc.isenabled()]
        assert gc.isenabled() is was_enabled
    finally:
        (gc.enable if before else gc.disable)()


@pytest.mark.parametrize(
    ("first", "said"),
    [("", "collected\n"), ("from alcop_mlir.collector import *; skip_at_exit()", "")],
)
def test_a_process_ends_without_a_collection(first: str, said: str) -> None:
    """Python's own end collects cycles."""
    command = [sys.executable, "-c", f"{first}\n{CYCLE}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == said


def test_nothing_is_collected_while_a_command_compiles(tmp_path: Path) -> None:
    """From the first module loaded to the last byte packed."""
    file = tmp_path / "empty.mlir"
    file.write_text("module {}")
    found: list[str] = []

    def collected(phase: str, about: dict[str, int]) -> None:
        found.append(phase)

    limits = gc.get_threshold()
    gc.callbacks.append(collected)
    gc.set_threshold(100)
    try:
        tool.main([str(file), "--emit", "mlir", "-o", str(tmp_path / "out.mlir")])
    finally:
        gc.set_threshold(*limits)
        gc.callbacks.remove(collected)
    assert len(found) < 20  # some before the command's options are read


def test_a_process_that_compiles_collects_nothing_after_it(tmp_path: Path) -> None:
    """A first collection would look at all that was made."""
    file = tmp_path / "empty.mlir"
    file.write_text("module {}")
    program = (
        "import gc, sys\n"
        "from alcop_mlir.tools.compile import main\n"
        "sys.argv = ['alcop-compile', *sys.argv[1:]]\n"
        "gc.callbacks.append(lambda phase, about: print(phase))\n"
        "main()\n"
        "cycles = [[] for _ in range(5000)]\n"
        "print('end')\n"
    )
    options = [str(file), "--emit", "mlir", "-o", str(tmp_path / "out.mlir")]
    command = [sys.executable, "-c", program, *options]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "end\n"
