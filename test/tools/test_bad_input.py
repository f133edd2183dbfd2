"""What no tool expects to be given: one line, exit status 1, and soon."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from alcop_mlir.tools import compile, opt, run, tune

LONG = "q" * 5000
DIGITS = "9" * 5000
MATMUL = """func.func @f(%A: memref<?x16xf16>, %B: memref<16x16xf16>,
                     %C: memref<?x16xf32>) {
  linalg.matmul ins(%A, %B : memref<?x16xf16>, memref<16x16xf16>)
                outs(%C : memref<?x16xf32>)
  return
}
"""
TOOLS: dict[str, Any] = {
    "alcop-compile": compile.main,
    "alcop-run": run.main,
    "alcop-opt": opt.main,
    "alcop-tune": tune.main,
}


@pytest.fixture
def matmul(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A file in the current directory, which is empty besides."""
    monkeypatch.chdir(tmp_path)
    Path("matmul.mlir").write_text(MATMUL)
    return "matmul.mlir"


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (f"alcop-compile FILE -o {LONG}", "q': File name too long"),
        (f"alcop-compile FILE -o {LONG}.zip", "q.zip': File name too long"),
        ("alcop-compile FILE -o=--", "-o=: expected a value, got '--'"),
        (f"alcop-compile FILE --schedule raster={DIGITS}", "schedule: cannot read"),
        ("alcop-run FILE --trace=--", "--trace=: expected a value, got '--'"),
        (f"alcop-run {LONG}", "cannot read 'qqq"),
        (f"alcop-run FILE --sizes d0={DIGITS}", "argument --sizes: 'd0=999"),
        (f"alcop-run FILE --seed {DIGITS}", "argument --seed: '999"),
        (
            f"alcop-run FILE --emulator-schedule random({DIGITS})",
            "argument --emulator-schedule: expected a schedule of",
        ),
        (
            "alcop-run FILE --device emulator --sizes M=999999999999",
            "the arrays of 'f': 96000000000416 bytes, expected at most 536870912; "
            "ALCOP_MAX_ARRAYS=N allows more",
        ),
        (f"alcop-tune --import {LONG}", "no such file: 'qqq"),
        (
            f"alcop-opt FILE --pass-pipeline={'builtin.module(' * 2000}",
            "pipeline:1:1501: nested more than 100 deep",
        ),
    ],
)
def test_options_of_any_kind(
    matmul: str, command: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Long paths and numbers, sizes beyond all memory, the text `--`."""
    tool, *rest = command.split(" ")
    given = [matmul if one == "FILE" else one for one in rest]
    assert TOOLS[tool](given) == 1
    errors = capsys.readouterr().err
    found = [line for line in errors.splitlines() if line.startswith("error: ")]
    assert len(found) == 1
    assert message in found[0]
    assert os.listdir() == [matmul]


@pytest.mark.parametrize("tool", ["alcop-compile", "alcop-run", "alcop-opt"])
def test_text_that_is_no_utf_8(
    tool: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """MLIR's message about it could not be shown."""
    path = tmp_path / "in.mlir"
    path.write_bytes(MATMUL.encode() + b"\n\xff\xfe x")
    assert TOOLS[tool]([str(path)]) == 1
    errors = capsys.readouterr().err
    assert errors == f"error: {path}:8: no UTF-8 text, and no bytecode\n"


@pytest.mark.parametrize(
    ("variable", "command"),
    [
        ("ALCOP_MAX_MLIR", "alcop-compile matmul.mlir"),
        ("ALCOP_MAX_MLIR", "alcop-opt matmul.mlir"),
        ("ALCOP_MAX_JSON", "alcop-run in.ptx --launch launch.json"),
        ("ALCOP_MAX_PTX", "alcop-run in.ptx --launch small.json"),
        ("ALCOP_MAX_RECORDS", "alcop-tune --import launch.json --records out"),
    ],
)
def test_files_beyond_a_limit(
    matmul: str,
    variable: str,
    command: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also a device without an end; the line says what allows more."""
    Path("launch.json").symlink_to("/dev/zero")
    Path("in.ptx").symlink_to("/dev/zero")
    launch = {"grid": [1], "block": [32], "arguments": []}
    Path("small.json").write_text(json.dumps(launch))
    monkeypatch.setenv(variable, "100")
    tool, *rest = command.split(" ")
    assert TOOLS[tool](rest) == 1
    errors = capsys.readouterr().err
    assert f"has more than 100 bytes, expected at most 100; {variable}=N" in errors
    assert errors.count("\n") == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize("emit", ["mlir", "bundle"])
def test_a_full_disk_and_no_stdout(matmul: str, emit: str) -> None:
    """A full one is an error; where there is none, nothing is printed."""
    command = [sys.executable, "-m", "alcop_mlir.tools.compile", matmul, "--no-ptxas"]
    command += ["--emit", emit] + (["-o", "out"] if emit == "bundle" else [])
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert done.stderr.endswith("error: cannot write: No space left on device\n")
    assert "Traceback" not in done.stderr
    closed = subprocess.run(["sh", "-c", '"$@" >&-', "sh", *command], check=False)
    assert closed.returncode == 0


def test_programs_that_are_no_ptxas(
    matmul: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that does nothing, one that says what is no text."""
    monkeypatch.setenv("ALCOP_PTXAS", "/bin/true")
    assert compile.main([matmul]) == 1
    assert "error: /bin/true made no cubin, is it ptxas?" in capsys.readouterr().err
    other = Path("ptxas")
    other.write_text("#!/bin/sh\nprintf '\\377 error x\\n'\nexit 1\n")
    other.chmod(0o755)
    monkeypatch.setenv("ALCOP_PTXAS", str(other.absolute()))
    assert compile.main([matmul]) == 1
    assert capsys.readouterr().err.endswith("error: ptxas: \ufffd error x\n")
