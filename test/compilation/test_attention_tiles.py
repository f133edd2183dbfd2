"""Fused attention as tile code (bench/attention_tiles.py), on the emulator.

The emulator finds no hazard in any of its modes, and results are equal to the last bit
for all numbers of stages.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from alcop_mlir import dtypes
from alcop_mlir.compilation import compiler, inputs
from alcop_mlir.pipelines.named import AlcopCompile
from alcop_mlir.runtime.emulation import Emulation, EmulatorOptions
from alcop_mlir.runtime.launch import Program

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
from attention_tiles import Attention

Array = np.ndarray
CASES = {
    "plain": Attention(2, 128, 64),
    "tall": Attention(1, 256, 64, (128, 64)),
    "bf16": Attention(1, 128, 64, kind="bf16"),
    "causal": Attention(1, 256, 64, causal=True),
    "causal, tall": Attention(1, 256, 32, (128, 64), causal=True),
    "one warp": Attention(1, 64, 32, (16, 16), 1, causal=True),
    "head of 96": Attention(1, 128, 96),
    "head of 128": Attention(1, 128, 128, (128, 64), 8),
    "head of 256": Attention(1, 64, 256, (64, 32)),
}
# Units of the last place of weights, which are rounded before they are multiplied.
UNIT = {"f16": 2.0**-11, "bf16": 2.0**-8}
MODES = (
    ("late", "lockstep"),
    ("early", "lockstep"),
    ("late", "ascending"),
    ("late", "descending"),
    ("early", "random(3)"),
)


@dataclass(frozen=True)
class Checked(compiler.Options):
    """With so many stages, and what pipelining made checked.

    stages: "" for those that planning chooses
    """

    stages: str = ""

    def pipeline(self) -> str:
        """As `alcop-compile`, with both."""
        text = ",".join(AlcopCompile(target=self.target.name).steps())
        chosen = f"stages={self.stages}" if self.stages else ""
        for old, new in (
            ("alcop-plan-pipelines{", f"alcop-plan-pipelines{{{chosen} "),
            ("alcop-place-waits", "alcop-place-waits,alcop-check-pipelines"),
        ):
            assert text.count(old) == 1
            text = text.replace(old, new)
        return f"builtin.module({text})"


def program(case: Attention, stages: str = "") -> Program:
    options = Checked(use_ptxas=False, stages=stages)
    source = inputs.read_text(case.text())
    return Program(compiler.compile_source(source, options), device="emulator")


def arrays(case: Attention) -> list[Array]:
    """q, k, v; scores are up to 30 or so: weights differ by many powers of 2."""
    random = np.random.default_rng(5)
    shape = (case.heads, case.size, case.head)
    return [
        dtypes.encode(random.standard_normal(shape) * size, case.kind)
        for size in (2.0, 2.0, 1.0)
    ]


def result(made: Program, case: Attention, given: list[Array]) -> Array:
    out = dtypes.unwritten((case.heads, case.size, case.head), case.kind)
    made(*given, out)
    return out


def expected(case: Attention, given: list[Array]) -> tuple[Array, Array]:
    """In float64, and the bound of the error."""
    q, k, v = (dtypes.decode(one, case.kind).astype("f8") for one in given)
    scores = q @ k.transpose(0, 2, 1) / np.sqrt(case.head)
    if case.causal:
        scores = np.where(np.tril(np.ones(scores.shape[1:], bool)), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    # Weights and outputs are rounded once each, f32 before that hardly counts.
    wanted, largest = weights @ v, weights @ np.abs(v)
    return wanted, UNIT[case.kind] * (1.1 * largest + np.abs(wanted))


@pytest.mark.parametrize("name", CASES)
def test_outputs_are_those_of_float64(name: str) -> None:
    case = CASES[name]
    given = arrays(case)
    out = dtypes.decode(result(program(case), case, given), case.kind)
    wanted, bound = expected(case, given)
    assert (np.abs(out - wanted) <= bound + 1e-6).all()


@pytest.mark.parametrize("stages", ["1,1", "2,1", "2,2", "3,1", "3,2", "4,1"])
def test_any_number_of_stages_gives_the_same_bits(stages: str) -> None:
    case = CASES["causal"]
    given = arrays(case)
    one = result(program(case), case, given)
    np.testing.assert_array_equal(result(program(case, stages), case, given), one)


@pytest.mark.parametrize(("visibility", "schedule"), MODES)
def test_no_hazards_in_any_mode(visibility: str, schedule: str) -> None:
    case = CASES["causal"]
    made, given = program(case, "3,2"), arrays(case)
    one = result(made, case, given)
    options = EmulatorOptions(visibility=visibility, schedule=schedule)
    made.emulation = Emulation(options)
    np.testing.assert_array_equal(result(made, case, given), one)


def test_infinite_and_overflowing_scores() -> None:
    """A row of scores with +inf is NaN; scores of thousands are no matter."""
    case = CASES["plain"]
    given = arrays(case)
    given[0][0, 3] = np.inf
    given[0][0, 5] = 1000
    out = result(program(case), case, given)
    assert np.isnan(out[0, 3]).all()
    assert np.isfinite(np.delete(out, 3, axis=1)).all()
