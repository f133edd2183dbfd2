"""Networks as torch-mlir exports them: compiled, right, and on tensor cores.

`python examples/models/small.py test/models/fixtures f16` writes `fixtures`: programs
with weights as arguments, and results by torch in f64. torch-mlir scales what attention
multiplies in f32: those contractions need tf32.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import alcop_mlir

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parents[1] / "examples" / "models"))

from small_values import drawn  # noqa: E402

# Contractions and convolutions of each network, all of them on tensor cores.
CONTRACTIONS = {
    "mlp": 3,
    "resnet_basic": 3,
    "resnet_bottleneck": 4,
    "bert_layer": 8,
    "gpt2_block": 6,
    "llama_step": 9,
}
TOLERANCE = 4e-3  # of the largest value: a few roundings to f16


@pytest.mark.parametrize("name", CONTRACTIONS)
def test_as_exported(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    source = HERE / "fixtures" / f"{name}_f16.mlir"
    program = alcop_mlir.compile(source, allow_tf32=True)
    capsys.readouterr()  # remarks
    assert on_tensor_cores(program) == CONTRACTIONS[name]
    wanted = np.load(HERE / "fixtures" / f"{name}_f16.npz").values()
    inputs = [
        drawn(number, [int(size) for size in one.shape], NUMPY[one.dtype])
        for number, one in enumerate(program.function.parameters)
        if not one.name.startswith("result")
    ]
    got = program(*inputs)
    for one, other in zip(
        got if isinstance(got, tuple) else (got,), wanted, strict=True
    ):
        error = np.abs(one.astype(np.float64) - other).max()
        assert error < TOLERANCE * np.abs(other).max()


NUMPY = {"f16": "float16", "i64": "int64"}


def on_tensor_cores(program: Any) -> int:
    """Launches whose kernels have an `mma.sync`."""
    found = {
        name
        for name, text in re.findall(
            r"\.entry (\w+)\((.*?)^\}", program.ptx, re.M | re.S
        )
        if "mma.sync" in text
    }
    return sum(
        any(kernel.name in found for kernel in launch.variants[0].kernels)
        for launch in program.function.launches
    )
