"""Ops on rows as torch exports them: one kernel each, which moves each array once.

fixtures/rows what `alcop_mlir.torch.export` makes of small modules: batch norm in
              training, cross-channel statistics, layer norm of a sum of bias and
              residual that is a result as well, RMS norm in 16 bits with f32
              statistics, torch.max, argmax, log_softmax, average pools
"""

from __future__ import annotations

import sys
from math import prod
from pathlib import Path

import pytest

import alcop_mlir
from alcop_mlir.compilation import compiler, inputs
from alcop_mlir.runtime import checking
from alcop_mlir.runtime.emulation import Emulation, EmulatorOptions
from alcop_mlir.runtime.launch import Program

sys.path.append(str(Path(__file__).resolve().parents[2] / "bench"))

from moved_bytes import moved_bytes

FILES = sorted((Path(__file__).parent / "fixtures" / "rows").glob("*.mlir"))
# Windows of an average pool overlap: the last row and column of the image are in none.
PARTLY_READ = ("average_pool_f32",)
MODES = (("late", "lockstep"), ("early", "random"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_exported_rows(path: Path) -> None:
    """Right by the reference, extreme values among the inputs."""
    program = alcop_mlir.compile(path.read_text(), device="emulator")
    (kernel,) = program.function.kernels
    assert kernel.spill_bytes in (0, None)
    before = checking.random_arrays(program.function)
    for visibility, schedule in MODES:
        emulation = Emulation(EmulatorOptions(visibility=visibility, schedule=schedule))
        after = {name: array.copy() for name, array in before.items()}
        Program(program.bundle, device="emulator", emulation=emulation)(*after.values())
        assert checking.check(program.function, before, after).ok
    moved = moved_bytes(inputs.read_file(str(path)), compiler.Options(), "main")
    every = sum(prod(array.shape) * array.itemsize for array in before.values())
    assert moved <= every if path.stem in PARTLY_READ else moved == every


def test_there_are_some() -> None:
    assert len(FILES) == 10
