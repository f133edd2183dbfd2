"""Wrong sizes, strides and ranges are one line, from all tools; sizes of 0 run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import alcop_mlir
from alcop_mlir.errors import LaunchError
from alcop_mlir.tools import compile as compile_tool
from alcop_mlir.tools import run as run_tool
from alcop_mlir.tools import tune as tune_tool

OPEN = ("?x?", "?x?", "?x?")
STRIDED = tuple(f"{sizes}|, strided<[?, 1]>" for sizes in OPEN)


def text(
    shapes: tuple[str, ...] = OPEN,
    ranges: tuple[str, str] = ("", ""),
    *,
    reads_c: bool = True,
) -> str:
    """C += A * B, or C = A * B; a shape may have a layout after a bar."""
    kinds: list[str] = []
    for shape, element in zip(shapes, ("f16", "f16", "f32"), strict=True):
        sizes, _, layout = shape.partition("|")
        kinds.append(f"memref<{sizes}x{element}{layout}>")
    a, b, c = kinds
    expected = [f" {{alcop.size_range = {one}}}" if one else "" for one in ranges]
    filled = f"""%z = arith.constant 0.0 : f32
  linalg.fill ins(%z : f32) outs(%C : {c})"""
    return f"""
func.func @f(%A: {a}{expected[0]}, %B: {b}{expected[1]}, %C: {c}) {{
  {"" if reads_c else filled}
  linalg.matmul ins(%A, %B : {a}, {b}) outs(%C : {c})
  return
}}"""


BAD = {
    "contradicting sizes": (text(("8x16", "17x8", "8x8")), "to be 16, but found 17"),
    "contradicting ranges": (
        text(ranges=("[[1, 64], [1, 8]]", "[[16, 32], [1, 8]]")),
        "no size of K is in all its ranges: 16 at least, 8 at most",
    ),
    "size outside a range": (
        text(("?x?", "64x?", "?x?"), ("[[1, 64], [1, 8]]", "")),
        "the size of K is 64, and in no range: 1 at least, 8 at most",
    ),
    "empty range": (
        text(ranges=("[[64, 1], [1, 8]]", "")),
        "'alcop.size_range' has an empty range [64, 1], expected 1 <= least <= larg",
    ),
    "range of no size": (
        text(ranges=("[[0, 0], [1, 8]]", "")),
        "'alcop.size_range' has an empty range [0, 0], expected 1 <= least <= larges",
    ),
    "negative stride": (
        text(("8x16|, strided<[-16, 1]>", "16x8", "8x8")),
        "argument 1 of 'f' is memref<8x16xf16, strided<[-16, 1]>>, expected a memref "
        "without negative strides",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_compiled(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whether there may be variants or not; `alcop-tune` says it as well."""
    source, why = BAD[name]
    file = tmp_path / "f.mlir"
    file.write_text(source)
    runs = [(compile_tool, []), (compile_tool, ["--variants", "1"]), (run_tool, [])]
    if name != "negative stride":  # not a contraction, then
        runs.append((tune_tool, ["explain"]))
    for tool, options in runs:
        assert tool.main([*options, str(file)]) == 1
        said = capsys.readouterr().err.splitlines()
        (error,) = [line for line in said if "remark:" not in line]
        assert error.startswith("error: ")
        assert why in error


@pytest.mark.parametrize("most", ["1", "2"])
@pytest.mark.parametrize("reads_c", [True, False])
def test_sizes_of_0(
    most: str, reads_c: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without K C is as it was, or zero."""
    stored, file = tmp_path / "f.zip", tmp_path / "f.mlir"
    file.write_text(text(reads_c=reads_c))
    given = [str(file), "--variants", most, "-o", str(stored), "--no-ptxas"]
    assert compile_tool.main(given) == 0
    for sizes in ("M=0,N=8,K=8", "M=8,N=0,K=8", "M=9,N=8,K=0", "M=0,N=0,K=0"):
        capsys.readouterr()
        assert run_tool.main([str(stored), "--sizes", sizes]) == 0
        assert "check      OK" in capsys.readouterr().out
    program = alcop_mlir.load(stored, device="emulator")
    c = np.full((9, 8), 3, np.float32)
    program(np.zeros((9, 0), np.float16), np.zeros((0, 8), np.float16), c)
    assert (c == (3 if reads_c else 0)).all()


def test_strides_that_cannot_be(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An input may repeat a row, an output may not."""
    stored, file = tmp_path / "f.zip", tmp_path / "f.mlir"
    file.write_text(text(STRIDED))
    given = [str(file), "--variants", "2", "-o", str(stored), "--no-ptxas"]
    assert compile_tool.main(given) == 0
    run = [str(stored), "--sizes"]
    assert run_tool.main([*run, "M=8,N=8,K=8,arg0_stride_0=0"]) == 0
    for stride in (0, 7):
        capsys.readouterr()
        assert run_tool.main([*run, f"M=8,N=8,K=8,arg2_stride_0={stride}"]) == 1
        said = capsys.readouterr().err
        overlap = f"has strides of {4 * stride}x4 bytes and is written, expected rows"
        assert said.startswith("error: argument 3 ('arg2') ")
        assert overlap in said
        assert said.count("\n") == 1
    program = alcop_mlir.load(stored, device="emulator")
    a, b, c = (np.ones((8, 8), kind) for kind in ("f2", "f2", "f4"))
    once = np.broadcast_to(np.zeros((1, 8), "f4"), (8, 8))
    for arrays, why in (
        ((a[::-1], b, c), "strides of -16x2 bytes, expected multiples of 2, none neg"),
        ((a, b[:, ::-1], c), "strides of 16x-2 bytes, expected arg1_stride_0x2"),
        ((a, b, once), "strides of 0x4 bytes and is written, expected rows apart"),
        ((a, b[:7], c), "shape 7x8, expected 8xN: K is 8"),
    ):
        with pytest.raises(LaunchError, match=why) as refusal:
            program(*arrays)
        assert "\n" not in str(refusal.value)
