"""Random functions of matmuls and element-wise ops: fusion changes no result.

Buffers are overwritten, copied, read transposed and read again, so that most programs
have ops that must not be fused. Each runs on the emulator with hazards, and every
argument is compared to what NumPy computes step by step in float64.

    ALCOP_FUSION_SEED=7   other programs; a failure prints its program
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pytest

from alcop_mlir import diagnostics
from alcop_mlir.compilation import compiler, inputs
from alcop_mlir.runtime import checking
from alcop_mlir.runtime.launch import Program
from alcop_mlir.schedule import Schedule

Array = np.ndarray
SEED = int(os.environ.get("ALCOP_FUSION_SEED", "0"))
PROGRAMS = 48
SHARDS = 6
SIZE, K = 32, 48
MATRIX, VECTOR = f"memref<{SIZE}x{SIZE}xf32>", f"memref<{SIZE}xf32>"
LEFT, RIGHT = f"memref<{SIZE}x{K}xf16>", f"memref<{K}x{SIZE}xf16>"
ARGUMENTS = ("X0", "X1", "X2")
ALLOCATIONS = ("T0", "T1", "T2")
ARRAYS = (*ARGUMENTS, *ALLOCATIONS)
SCHEDULE = "block=32,32,16 warp=16,16 stages=2,1"
# The ways in which an op may read a buffer: its loops, and the same in NumPy.
READS: dict[str, Callable[[Array], Array]] = {
    "m, n": lambda x: x,
    "n, m": lambda x: x.T,
    "0, n": lambda x: x[:1],
    "m, 0": lambda x: x[:, :1],
}
ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "": lambda x: x,
    "arith.maximumf %v, %zero": lambda x: np.maximum(x, 0),
    "math.tanh %v": np.tanh,
}


@dataclass
class Function:
    """A function under construction: its text, and the same as steps in NumPy."""

    random: random.Random
    lines: list[str] = field(default_factory=list)
    steps: list[Callable[[dict[str, Array]], None]] = field(default_factory=list)

    def fill(self, out: str, value: str) -> None:
        self.lines.append(f"linalg.fill ins(%{value} : f32) outs(%{out} : {MATRIX})")
        number = {"zero": 0.0, "quarter": 0.25}[value]
        self._step(out, lambda _: np.full((SIZE, SIZE), number))

    def copy(self, out: str, source: str) -> None:
        self.lines.append(f"memref.copy %{source}, %{out} : {MATRIX} to {MATRIX}")
        self._step(out, lambda arrays: arrays[source].copy())

    def broadcast(self, out: str, along: int) -> None:
        self.lines.append(
            f"linalg.broadcast ins(%bias : {VECTOR}) outs(%{out} : {MATRIX}) "
            f"dimensions = [{along}]"
        )
        shape = (1, SIZE) if along == 0 else (SIZE, 1)
        self._step(
            out,
            lambda arrays: np.broadcast_to(
                arrays["bias"].reshape(shape), (SIZE, SIZE)
            ).copy(),
        )

    def matmul(self, out: str) -> None:
        """Add A * B to `out`, which may just have been filled."""
        start = self.random.random()
        if start < 0.5:
            self.fill(out, "zero")
        elif start < 0.75:
            self.broadcast(out, 0)
        self.lines.append(
            f"linalg.matmul ins(%A, %B : {LEFT}, {RIGHT}) outs(%{out} : {MATRIX})"
        )
        self._step(out, lambda arrays: arrays[out] + arrays["A"] @ arrays["B"])

    def elementwise(self, out: str) -> None:
        """An op on one or two buffers, perhaps on the old value of its output."""
        count = self.random.choice([1, 2, 2])
        read = [self._operand(out) for _ in range(count)]
        keeps = self.random.random() < 0.25
        activation = self.random.choice(list(ACTIVATIONS))
        maps = ", ".join(
            f"affine_map<(m, n) -> ({loops})>" for _, loops in (*read, (out, "m, n"))
        )
        names = ", ".join(f"%{name}" for name, _ in read)
        elements = "".join(f"%e{number}: f32, " for number in range(count))
        ops = ["%s0 = arith.mulf %e0, %half : f32"]
        if count == 2:
            ops.append("%s1 = arith.addf %s0, %e1 : f32")
        before = f"%s{count - 1}"
        last = f"arith.subf {before}, %o" if keeps else f"arith.addf {before}, %zero"
        ops.append(f"%v = {last} : f32")
        ops.append(f"%r = {activation or 'arith.addf %v, %zero'} : f32")
        body = "\n".join(ops)
        self.lines.append(
            f"""linalg.generic {{indexing_maps = [{maps}],
                iterator_types = ["parallel", "parallel"]}}
              ins({names} : {", ".join([MATRIX] * count)}) outs(%{out} : {MATRIX}) {{
            ^bb0({elements}%o: f32):
              {body}
              linalg.yield %r : f32
            }}"""
        )

        def compute(arrays: dict[str, Array]) -> Array:
            first, *rest = (READS[loops](arrays[name]) for name, loops in read)
            total = first / 2 + sum(rest) - keeps * arrays[out]
            whole = np.broadcast_to(total, (SIZE, SIZE))
            return ACTIVATIONS[activation](whole).copy()

        self._step(out, compute)

    def text(self) -> str:
        matrices = "".join(f", %{name}: {MATRIX}" for name in ARGUMENTS)
        made = "\n".join(f"%{name} = memref.alloc() : {MATRIX}" for name in ALLOCATIONS)
        constants = {"zero": 0.0, "quarter": 0.25, "half": 0.5}
        numbers = "\n".join(
            f"%{name} = arith.constant {value} : f32"
            for name, value in constants.items()
        )
        body = "\n".join(self.lines)
        return f"""func.func @f(%A: {LEFT}, %B: {RIGHT}, %bias: {VECTOR}{matrices}) {{
            {numbers}
            {made}
            {body}
            return
          }}"""

    def _operand(self, out: str) -> tuple[str, str]:
        """A buffer and its loops; the output itself is read at the same element."""
        name = self.random.choice(ARRAYS)
        if name == out or self.random.random() < 0.8:
            return name, "m, n"
        return name, self.random.choice(list(READS))

    def _step(self, out: str, compute: Callable[[dict[str, Array]], Array]) -> None:
        def run(arrays: dict[str, Array]) -> None:
            arrays[out] = compute(arrays)

        self.steps.append(run)


def random_function(seed: int) -> Function:
    choose = random.Random(seed)
    made = Function(choose)
    for name in ALLOCATIONS:
        made.fill(name, "quarter")
    kinds = ["matmul"] * choose.choice([1, 1, 2, 3])
    others = ["elementwise"] * 3 + ["copy", "broadcast", "fill"]
    kinds += choose.choices(others, k=choose.randint(2, 7))
    choose.shuffle(kinds)
    for kind in kinds:
        out = choose.choice(ARRAYS)
        if kind == "copy":
            made.copy(out, choose.choice([name for name in ARRAYS if name != out]))
        elif kind == "broadcast":
            made.broadcast(out, choose.choice([0, 1]))
        elif kind == "fill":
            made.fill(out, "quarter")
        else:
            getattr(made, kind)(out)
    made.copy("X2", choose.choice(ALLOCATIONS))
    return made


def run(seed: int) -> tuple[int, int]:
    """Compile, run, compare; returns the numbers of kernels and of steps."""
    function = random_function(seed)
    split = " split_k=3" if seed % 3 == 0 else ""
    options = compiler.Options(
        schedule=Schedule.parse(SCHEDULE + split), use_ptxas=False
    )
    with diagnostics.collect():
        bundle = compiler.compile_source(inputs.read(function.text()), options)
    values = np.random.default_rng(seed)
    arrays = {
        "A": values.uniform(-1, 1, (SIZE, K)).astype("f2"),
        "B": values.uniform(-1, 1, (K, SIZE)).astype("f2"),
        "bias": values.uniform(-1, 1, SIZE).astype("f4"),
    }
    for name in ARGUMENTS:
        arrays[name] = values.uniform(-1, 1, (SIZE, SIZE)).astype("f4")
    expected = {name: array.astype("f8") for name, array in arrays.items()}
    for step in function.steps:
        step(expected)
    program = Program(bundle, device="emulator")
    if program.function.reference:
        extreme = checking.random_arrays(program.function, seed)
        after = {name: array.copy() for name, array in extreme.items()}
        program(*after.values())
        found = checking.check(program.function, extreme, after)
        assert found.ok, f"seed {seed}, extreme inputs: {found}\n{function.text()}"
    program(*arrays.values())
    for name in ARGUMENTS:
        bound = 2.0**-15 * max(1.0, float(np.abs(expected[name]).max()))
        np.testing.assert_allclose(
            arrays[name], expected[name], atol=bound, rtol=0, err_msg=function.text()
        )
    return len(bundle.functions[0].kernels), len(function.steps)


@pytest.mark.parametrize("shard", range(SHARDS))
def test_nothing_changes(shard: int) -> None:
    seeds = range(SEED * PROGRAMS + shard, (SEED + 1) * PROGRAMS, SHARDS)
    counts = [run(seed) for seed in seeds]
    kernels, steps = (sum(column) for column in zip(*counts, strict=True))
    assert kernels < 0.75 * steps, "next to nothing was fused: the test tests little"
