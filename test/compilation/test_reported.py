"""Programs that users reported as failing: they compile, and compute what they say."""

from __future__ import annotations

from pathlib import Path

import pytest

from alcop_mlir.tools import run

PROGRAMS = sorted((Path(__file__).parent / "reported").glob("*.mlir"))
# Beside the file's name: what the program failed with.
OPTIONS = {
    "bias_i32_n95": ["--schedule", "block=32,32,32 warp=16,16 stages=2,1"],
    "crash_roles_h": ["--allow-tf32"],
}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_runs(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status = run.main([str(program), *OPTIONS.get(program.stem, [])])
    said = capsys.readouterr()
    assert status == 0, said.err
    assert "check      OK" in said.out or "check      none" in said.out


@pytest.mark.parametrize("name", ["", "_", "é", "WARP_SZ", "a b", "1x"])
def test_function_names(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Any name of a function becomes one that PTX, and ptxas, takes."""
    path = tmp_path / "named.mlir"
    path.write_text(
        f"""func.func @"{name}"(%A: memref<8x8xf32>) {{
          linalg.exp ins(%A : memref<8x8xf32>) outs(%A : memref<8x8xf32>)
          return
        }}"""
    )
    status = run.main([str(path)])
    said = capsys.readouterr()
    assert status == 0, said.err
