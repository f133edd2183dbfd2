"""Names of functions that users reported as failing; reported/ has whole programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from alcop_mlir.tools import run


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
