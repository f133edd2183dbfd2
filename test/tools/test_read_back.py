"""Every tool reads what alcop-opt prints, whichever pass ran last."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import alcop_mlir
from alcop_mlir.compilation import compiler, inputs
from alcop_mlir.errors import CompileError
from alcop_mlir.measurement import program_operators
from alcop_mlir.pipelines.driver import run_pipeline
from alcop_mlir.pipelines.instrument import Instrument, RunningStep
from alcop_mlir.tools import compile as compile_tool
from alcop_mlir.tools import run as run_tool
from alcop_mlir.tools import tune as tune_tool

MATMUL = """
func.func @matmul(%A: memref<64x64xf16>, %B: memref<64x64xf16>, %C: memref<64x64xf32>,
                  %D: memref<64x64xf64>, %E: memref<64x64xf64>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%C : memref<64x64xf32>)
  linalg.matmul ins(%A, %B : memref<64x64xf16>, memref<64x64xf16>)
                outs(%C : memref<64x64xf32>)
  linalg.matmul ins(%D, %D : memref<64x64xf64>, memref<64x64xf64>)
                outs(%E : memref<64x64xf64>)
  linalg.softmax dimension(1) ins(%D : memref<64x64xf64>) outs(%E : memref<64x64xf64>)
  return
}
"""


class _Printed(Instrument):
    """The module as text, after each step."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}

    @contextmanager
    def around(self, step: RunningStep, op: Any) -> Iterator[None]:
        yield
        module = op
        while module.parent is not None:
            module = module.parent.operation
        self.texts[f"{len(self.texts):02}-{step.name}"] = str(module)


@pytest.fixture(scope="module")
def printed() -> dict[str, str]:
    """What alcop-opt would print after each pass of alcop-compile."""
    module = inputs.read_text(MATMUL).module
    instrument = _Printed()
    run_pipeline(module, "builtin.module(alcop-compile)", instruments=[instrument])
    return instrument.texts


def test_all_passes_are_there(printed: dict[str, str]) -> None:
    names = [name.partition("-")[2] for name in printed]
    assert names[-1] == "alcop-lower-to-nvvm"
    assert "alcop-plan-pipelines" in names
    # Without attributes and ops of ours in it the test would show nothing.
    assert any("#alcop.schedule" in text for text in printed.values())
    assert any("alcop.producer_commit" in text for text in printed.values())


@pytest.mark.parametrize(
    "tool",
    [
        lambda path: alcop_mlir.compile(path),
        lambda path: compile_tool.main([str(path)]),
        lambda path: run_tool.main([str(path), "--device=emulator"]),
        lambda path: tune_tool.main([str(path), "--device=simulated"]),
    ],
    ids=["compile", "alcop-compile", "alcop-run", "alcop-tune"],
)
def test_every_tool_reads_it(
    tool: Callable[[Path], object],
    printed: dict[str, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It need not compile: the tools get as far as that, and no further."""

    def stop(*_: object) -> None:
        raise CompileError("has been read")

    monkeypatch.setattr(compiler, "lower", stop)
    monkeypatch.setattr(program_operators, "find_tunables", stop)
    for name, text in printed.items():
        path = tmp_path / f"{name}.mlir"
        path.write_text(text)
        try:
            tool(path)
        except CompileError as error:
            print(error, file=sys.stderr)
        assert "has been read" in capsys.readouterr().err, name


def test_a_module_of_the_caller_is_read_too(printed: dict[str, str]) -> None:
    text = next(t for t in printed.values() if "#alcop.schedule" in t)
    module = inputs.read_text(text).module
    assert "#alcop.schedule" in str(inputs.read(module).module)
