"""One float instruction over many operands, given as bit patterns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from exact_floats import BF16, F16, F32, F64, Format
from kernel_text import run_lanes
from operand_values import array


@dataclass(frozen=True)
class Kind:
    """A float type: its format and the register that holds one value of it."""

    name: str
    fmt: Format

    @property
    def register(self) -> str:
        return self.name if self.name in ("f32", "f64") else "b16"


KINDS = {
    "f16": Kind("f16", F16),
    "bf16": Kind("bf16", BF16),
    "f32": Kind("f32", F32),
    "f64": Kind("f64", F64),
}


def run(
    text: str, kind: Kind, columns: list[list[int]], target: str, version: str
) -> np.ndarray:
    inputs = {
        name: (kind.register, array(column, kind.fmt.bits))
        for name, column in zip("abc", columns, strict=False)
    }
    outputs = {"d": kind.register}
    return run_lanes(text, inputs, outputs, target=target, version=version)["d"]
