"""Compiles chains with given stages and parts, and runs them on the emulator."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from chain_forms import Form

from alcop_mlir import dtypes
from alcop_mlir.compilation import compiler, inputs
from alcop_mlir.manifest.functions import Function, with_sizes
from alcop_mlir.pipelines.named import AlcopCompile
from alcop_mlir.runtime import checking
from alcop_mlir.runtime.bundle import Bundle
from alcop_mlir.runtime.emulation import Emulation, EmulatorOptions
from alcop_mlir.runtime.launch import Program, grid_of

Array = np.ndarray[Any, Any]
MODES = (
    EmulatorOptions(visibility="late", schedule="lockstep"),
    EmulatorOptions(visibility="early", schedule="ascending"),
    EmulatorOptions(visibility="late", schedule="descending"),
    EmulatorOptions(visibility="early", schedule="random"),
)


@dataclass(frozen=True)
class Chosen(compiler.Options):
    """With so many stages and parts, and what pipelining made checked.

    stages, parts: "" and 0 for what passes choose
    """

    stages: str = ""
    parts: int = 0

    def pipeline(self) -> str:
        """As `alcop-compile`, with these."""
        text = ",".join(AlcopCompile(target=self.target.name).steps())
        stages = f"stages={self.stages} " if self.stages else ""
        for old, new in (
            ("alcop-tile-chains{", f"alcop-tile-chains{{parts={self.parts} "),
            ("alcop-plan-pipelines{", f"alcop-plan-pipelines{{{stages}"),
            ("alcop-place-waits", "alcop-place-waits,alcop-check-pipelines"),
        ):
            assert text.count(old) == 1
            text = text.replace(old, new)
        return f"builtin.module({text})"


def compiled(text: str, parts: int = 0, stages: str = "") -> Bundle:
    """The bundle of a function."""
    options = Chosen(use_ptxas=False, stages=stages, parts=parts)
    return compiler.compile_source(inputs.read_text(text), options)


def run(bundle: Bundle, *arrays: Array, mode: EmulatorOptions = MODES[0]) -> Array:
    """The result, in float64."""
    made = Program(bundle, None, "emulator", Emulation(mode))(*arrays)
    return np.asarray(made, np.float64)


def first_grid(bundle: Bundle) -> tuple[int, ...]:
    """The blocks of the first kernel."""
    (kernel,) = bundle.function().launches[0].variants[0].kernels
    return grid_of(kernel, {})


def checked(form: Form, number: int, parts: int = 0) -> checking.Check:
    """The worst element of one run; EmulationError where there is a hazard.

    number: of the mode and of random inputs
    """
    bundle = compiled(form.text(), parts)
    function = bundle.function()
    assert len(function.launches) == 1 + (parts > 1), "a chain, and a merge"
    function = with_sizes(function, sizes_of(form, function))
    arrays = checking.random_arrays(function, number)
    out = function.parameters[-1].name
    given = [arrays[one.name] for one in function.parameters[:-1]]
    mode = MODES[number % len(MODES)]
    made = Program(bundle, None, "emulator", Emulation(mode))(*given)
    return checking.check(function, arrays, {**arrays, out: np.asarray(made)})


def sizes_of(form: Form, function: Function) -> dict[str, int]:
    """The sizes that the form leaves open, by the names that the function has."""
    _, _, known = replace(form, open="").text().partition("func.func")
    signature, _, _ = known.partition(" -> ")
    shapes = re.findall(r"tensor<([\dx]*)\w+>", signature)
    return {
        name: int(size)
        for parameter, shape in zip(function.parameters, shapes, strict=False)
        for name, size in zip(parameter.shape, shape.split("x")[:-1], strict=True)
        if isinstance(name, str)
    }


def drawn_arrays(seed: int, *shapes: tuple[int, ...], largest: float = 1) -> list[Any]:
    """Arrays of f16, uniform from -largest on."""
    draw = np.random.default_rng(seed)
    return [draw.uniform(-largest, largest, one).astype(np.float16) for one in shapes]


def expected(q: Array, k: Array, v: Array, mask: Any, scale: float) -> Array:
    """Softmax in float64, as NumPy has it: NaN for a row of -inf."""
    with np.errstate(all="ignore"):
        scores = np.einsum("bhmk,bhnk->bhmn", *(x.astype(float) for x in (q, k)))
        scores = scores * scale + mask
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        return np.einsum("bhmn,bhnd->bhmd", weights, v.astype(float))


def check_equal_scores(exponent: int, m: int, n: int, parts: int = 0) -> None:
    """Weights of equal scores, about 60 * 4^|exponent| of its sign, make a mean of V.

    Offsets of rows are rounded by far more than 1, and weights must be 1 still.
    """
    form = Form(batch=1, heads=1, m=m, n=n, scale=0.3, dtype="bf16")
    size = 1.37 * 2.0 ** abs(exponent)
    q = dtypes.encode(np.full((1, 1, m, 32), size), "bf16")
    k = dtypes.encode(np.full((1, 1, n, 32), size * np.sign(exponent)), "bf16")
    v = np.random.default_rng(4).uniform(-1, 1, (1, 1, n, 32))
    made = Program(compiled(form.text(), parts), None, "emulator")(
        q, k, dtypes.encode(v, "bf16")
    )
    mean = np.broadcast_to(v.mean(axis=2, keepdims=True), made.shape)
    np.testing.assert_allclose(dtypes.decode(made, "bf16"), mean, atol=2e-3)
