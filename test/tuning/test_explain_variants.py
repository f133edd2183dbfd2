"""What `alcop-tune explain` says of sizes that are known at run time only."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from alcop_mlir.tools import tune

pytest.importorskip("torch_mlir", exc_type=ImportError)

ALL_OPEN = "?x?", "?x?", "?x?"
OPTIONS = ("--target", "sm_80", "--variants", "4")


def matmul(folder: Path, a: str, b: str, c: str, kind: str = "f16") -> str:
    file = folder / "matmul.mlir"
    file.write_text(
        f"func.func @matmul(%A: memref<{a}x{kind}>, %B: memref<{b}x{kind}>, "
        f"%C: memref<{c}xf32>) {{\n"
        f"  linalg.matmul ins(%A, %B : memref<{a}x{kind}>, memref<{b}x{kind}>) "
        f"outs(%C : memref<{c}xf32>)\n  return\n}}\n"
    )
    return str(file)


def explained(file: str, *options: str) -> int:
    return tune.main(["explain", file, *OPTIONS, *options])


def test_the_variants_and_what_each_asks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert explained(matmul(tmp_path, *ALL_OPEN)) == 0
    said = capsys.readouterr().out
    assert said.startswith("matmul (1 to 16384)x(1 to 16384)x(1 to 16384) f16->f32 on")
    assert len(re.findall(r"variant \d  block=.*, from analytical model", said)) == 4
    asked = r"where rows of A, B and C are multiples of \d+ bytes, M \* N <= \d+"
    assert re.search(asked, said)
    assert re.search(r"where rows of A, B and C are multiples of 16 bytes\n", said)
    assert said.rstrip().endswith("for all sizes")


def test_which_runs_and_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = matmul(tmp_path, *ALL_OPEN)
    ran: list[str] = []
    for sizes in ("M=17,N=4096,K=4096", "M=17,N=4095,K=4096", "M=4096,N=4096,K=4096"):
        assert explained(file, "--sizes", sizes) == 0
        said = capsys.readouterr().out
        assert sizes.replace("=", " = ").replace(",", ", ") in said
        (number,) = re.findall(r"runs +variant (\d) of 4", said)
        assert re.search(rf"variant {number}  [0-9.]+ [um]s +runs *\n", said)
        (ratio,) = re.findall(r"what runs takes ([0-9.]+) times as long", said)
        assert 1.0 <= float(ratio) < 4.0
        assert ("not rows of A, B and C" in said) == ("4095" in sizes)
        ran.append(number)
    assert len({*ran}) == 3


def test_known_sizes_need_not_be_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = matmul(tmp_path, "?x4096", "4096x256", "?x256")
    assert explained(file, "--sizes", "M=17") == 0
    assert "M = 17, N = 256, K = 4096" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("shapes", "sizes", "why"),
    [
        (ALL_OPEN, "M=1,N=2", "sizes say nothing of K"),
        (ALL_OPEN, "M=1,N=2,K=0", "K is 0, expected 1 at least"),
        (ALL_OPEN, "M=1,N=2,Q=3", "no size is called 'Q', expected M, N, K"),
        (("?x64", "64x64", "?x64"), "M=1,K=65", "K is 64, not 65"),
        (("64x64",) * 3, "M=64", "has a single schedule, whatever sizes are"),
    ],
)
def test_wrong_sizes(
    tmp_path: Path,
    shapes: tuple[str, str, str],
    sizes: str,
    why: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert explained(matmul(tmp_path, *shapes), "--sizes", sizes) == 1
    said = capsys.readouterr().err
    assert why in said
    assert said.count("\n") == 1
