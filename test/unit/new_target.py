"""Asserts that everything knows the target sm_87: run in a copy that has its row."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from pathlib import Path

import alcop_mlir
from alcop_mlir import hardware, target
from alcop_mlir.runtime import bundle, ptx
from alcop_mlir.tools import command_line, compile, run, tune
from alcop_mlir.tuning.problem import Problem
from alcop_mlir.tuning.selection import Chooser

NAME = "sm_87"


def table(row: target.Target) -> None:
    """Names, costs and schedules come from the row."""
    assert NAME in target.target_names()
    assert row.compute_capability == 87
    assert row.runs_on(89)
    assert not row.runs_on(86)
    assert hardware.rates(row).l2_latency == 100 / row.clock_hz
    assert Chooser(row).choose(Problem(256, 256, 256))
    parser = ArgumentParser()
    command_line.add_compile_options(parser, "sm_80")
    assert NAME in parser.format_help()


def programs(folder: Path) -> None:
    """Compiled, stored, run on the emulator, searched."""
    source, path = folder / "matmul.mlir", folder / "matmul.zip"
    source.write_text(MATMUL)
    assert compile.main([str(source), "--target", NAME, "-o", str(path)]) == 0
    assert bundle.load(path).target == target.find_target(NAME)
    assert run.main([str(source), "--target", NAME, "--device", "emulator"]) == 0
    assert tune.main(["explain", str(source), "--target", NAME]) == 0
    program = alcop_mlir.compile(MATMUL, NAME)
    assert f".target {NAME}" in program.ptx
    if ptx.find_ptxas() is not None:
        assert ptx.assemble(program.ptx, target.find_target(NAME)) is not None


MATMUL = """
func.func @matmul(%A: memref<64x32xf16>, %B: memref<32x64xf16>, %C: memref<64x64xf32>) {
  linalg.matmul ins(%A, %B : memref<64x32xf16>, memref<32x64xf16>)
                outs(%C : memref<64x64xf32>)
  return
}
"""


if __name__ == "__main__":
    print(target.__file__)
    table(target.find_target(NAME))
    programs(Path(sys.argv[1]))
