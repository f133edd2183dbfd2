"""Random functions of ops on rows: to compute them row by row changes no result.

Buffers are overwritten, read again, and broadcast, so that many programs have ops that
must stay apart. Each runs on the emulator with hazards, and every argument is compared
to what NumPy computes step by step in float64.

    ALCOP_ROWS_SEED=7   other programs; a failure prints its program
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

import alcop_mlir
from alcop_mlir import diagnostics
from alcop_mlir.compilation import compiler, inputs
from alcop_mlir.runtime.emulation import Emulation, EmulatorOptions
from alcop_mlir.runtime.launch import Program

Array = np.ndarray
Step = Callable[[dict[str, Array]], Array]
SEED = int(os.environ.get("ALCOP_ROWS_SEED", "0"))
PROGRAMS = int(os.environ.get("ALCOP_ROWS_PROGRAMS", "8"))
# Of which each lane has at most one, two in a vector, four but for the last lanes, and
# more than a warp holds.
LENGTHS = (24, 64, 100, 2040)
FULL = ("X0", "X1", "T0", "T1", "T2")
PER_ROW = ("s0", "s1", "s2")
MODES = (("late", "lockstep"), ("early", "random"))
# How an op on rows may read: its loops, and the same in NumPy.
READS: dict[str, Callable[[Array], Array]] = {
    "m, n": lambda x: x,
    "0, n": lambda x: x[:1],
    "m, 0": lambda x: x[:, :1],
}
REDUCTIONS: dict[str, Callable[[Array], Array]] = {
    "addf": lambda x: x.sum(1),
    "maximumf": lambda x: x.max(1),
    "minimumf": lambda x: x.min(1),
}


@dataclass
class Function:
    """A function under construction: its text, and the same as steps in NumPy."""

    choose: random.Random
    columns: int
    rows: int
    lines: list[str] = field(default_factory=list)
    steps: list[Callable[[dict[str, Array]], None]] = field(default_factory=list)

    def kind(self, name: str) -> str:
        shape = {"s": f"{self.rows}", "w": f"{self.columns}"}.get(
            name[0], f"{self.rows}x{self.columns}"
        )
        return f"memref<{shape}x{'f16' if name[0] == 'w' else 'f32'}>"

    def reduce(self, out: str) -> None:
        """Over a row, from 0.5 on, or from what was there."""
        source, how = self.choose.choice(FULL), self.choose.choice(list(REDUCTIONS))
        if starts := self.choose.random() < 0.8:
            self._fill(out)
        self.lines.append(
            f"linalg.reduce {{ arith.{how} }} ins(%{source} : {self.kind(source)}) "
            f"outs(%{out} : {self.kind(out)}) dimensions = [1]"
        )

        def terms(arrays: dict[str, Array]) -> Array:
            start = np.full(self.rows, 0.5) if starts else arrays[out]
            return np.column_stack((start, arrays[source]))

        self._step(out, lambda arrays: REDUCTIONS[how](terms(arrays)))

    def _fill(self, out: str) -> None:
        self.lines.append(
            f"linalg.fill ins(%half : f32) outs(%{out} : {self.kind(out)})"
        )

    def map(self, out: str) -> None:
        """On a row, from elements of rows, one a row, and one a column."""
        name = self.choose.choice(FULL)
        loops = "m, n"
        if name != out and self.choose.random() < 0.15:
            loops = self.choose.choice(list(READS))
        one = self.choose.choice(PER_ROW)
        self._generic(out, [(name, loops), (one, "m"), ("w", "n")], "m, n")
        self._step(
            out,
            lambda arrays: (
                np.tanh(
                    READS[loops](arrays[name])
                    - 0.5 * arrays[one][:, None]
                    + arrays["w"]
                )
                + np.zeros((self.rows, self.columns))
            ),
        )

    def map_per_row(self, out: str) -> None:
        one, two, three = (self.choose.choice(PER_ROW) for _ in range(3))
        self._generic(out, [(one, "m"), (two, "m"), (three, "m")], "m")
        self._step(
            out,
            lambda arrays: np.tanh(arrays[one] - 0.5 * arrays[two] + arrays[three]),
        )

    def _generic(self, out: str, read: list[tuple[str, str]], loops: str) -> None:
        dims = "(m, n)" if "n" in loops else "(m)"
        maps = ", ".join(
            f"affine_map<{dims} -> ({at})>" for _, at in [*read, (out, loops)]
        )
        kinds = ", ".join(self.kind(name) for name, _ in read)
        names = ", ".join(f"%{name}" for name, _ in read)
        iterators = ", ".join('"parallel"' for _ in loops.split(","))
        last = "%c" if read[-1][0] != "w" else "%d"
        widen = "" if last == "%c" else "%d = arith.extf %c : f16 to f32"
        c_kind = "f16" if widen else "f32"
        self.lines.append(
            f"""linalg.generic {{indexing_maps = [{maps}],
                iterator_types = [{iterators}]}}
              ins({names} : {kinds}) outs(%{out} : {self.kind(out)}) {{
            ^bb0(%a: f32, %b: f32, %c: {c_kind}, %o: f32):
              {widen}
              %0 = arith.mulf %b, %half : f32
              %1 = arith.subf %a, %0 : f32
              %2 = arith.addf %1, {last} : f32
              %3 = math.tanh %2 : f32
              linalg.yield %3 : f32
            }}"""
        )

    def text(self) -> str:
        given = ", ".join(
            f"%{name}: {self.kind(name)}" for name in ("X0", "X1", "s0", "w")
        )
        made = [name for name in (*FULL, *PER_ROW) if name not in ("X0", "X1", "s0")]
        allocations = "\n".join(
            f"%{name} = memref.alloc() : {self.kind(name)}\n"
            f"linalg.fill ins(%half : f32) outs(%{name} : {self.kind(name)})"
            for name in made
        )
        body = "\n".join(self.lines)
        return f"""func.func @f({given}) {{
            %half = arith.constant 0.5 : f32
            {allocations}
            {body}
            return
          }}"""

    def _step(self, out: str, compute: Step) -> None:
        def run(arrays: dict[str, Array]) -> None:
            arrays[out] = compute(arrays)

        self.steps.append(run)


def random_function(seed: int) -> Function:
    choose = random.Random(seed)
    made = Function(choose, LENGTHS[seed % len(LENGTHS)], choose.choice([3, 8, 9]))
    for _ in range(choose.randint(5, 12)):
        kind = choose.choice(["reduce", "map", "map", "map_per_row"])
        out = choose.choice(FULL if kind == "map" else PER_ROW)
        getattr(made, kind)(out)
    made.map("X1")
    # Most others vanish in a tanh.
    made.reduce("s0")
    return made


def run(seed: int) -> tuple[int, int]:
    """Compile, run, compare; returns the numbers of kernels and of steps."""
    function = random_function(seed)
    with diagnostics.collect():
        compiled = compiler.Options(use_ptxas=False)
        bundle = compiler.compile_source(inputs.read(function.text()), compiled)
    values = np.random.default_rng(seed)
    full = (function.rows, function.columns)
    given = {
        "X0": values.uniform(-1, 1, full).astype("f4"),
        "X1": values.uniform(-1, 1, full).astype("f4"),
        "s0": values.uniform(-1, 1, function.rows).astype("f4"),
        "w": values.uniform(-1, 1, function.columns).astype("f2"),
    }
    expected = {name: array.astype("f8") for name, array in given.items()}
    for name in ("T0", "T1", "T2"):
        expected[name] = np.full(full, 0.5)
    for name in ("s1", "s2"):
        expected[name] = np.full(function.rows, 0.5)
    for step in function.steps:
        step(expected)
    visibility, schedule = MODES[seed % len(MODES)]
    options = EmulatorOptions(visibility=visibility, schedule=schedule)
    program = Program(bundle, device="emulator", emulation=Emulation(options))
    program(*given.values())
    for name, array in given.items():
        bound = 2.0**-15 * max(1.0, float(np.abs(expected[name]).max()))
        np.testing.assert_allclose(
            array, expected[name], atol=bound, rtol=0, err_msg=function.text()
        )
    return len(bundle.functions[0].kernels), len(function.steps) + 5


def test_nothing_changes() -> None:
    seeds = range(SEED * PROGRAMS, (SEED + 1) * PROGRAMS)
    counts = [run(seed) for seed in seeds]
    kernels, steps = (sum(column) for column in zip(*counts, strict=True))
    print(kernels, steps)
    assert kernels < 0.6 * steps, "next to nothing was grouped: the test tests little"


SOFTMAX = """
func.func @softmax(%x: tensor<6x256xf32>) -> tensor<6x256xf32> {
  %e = tensor.empty() : tensor<6x256xf32>
  %y = linalg.softmax dimension(1) ins(%x : tensor<6x256xf32>)
    outs(%e : tensor<6x256xf32>) -> tensor<6x256xf32>
  return %y : tensor<6x256xf32>
}"""


def test_rows_that_are_not_finite() -> None:
    """As of NumPy, element by element: no lane makes another one's NaN a number."""
    program = alcop_mlir.compile(SOFTMAX, device="emulator")
    assert len(program.function.kernels) == 1
    assert program.ptx.count("ld.global.v4") == program.ptx.count("ld.global") == 2
    x = np.random.default_rng(0).uniform(-3, 3, (6, 256)).astype("f4")
    x[1] = -np.inf
    x[2, 77] = np.nan
    x[3, 200] = np.inf
    x[4] *= 1e30
    x[5, ::2] = -np.inf
    with np.errstate(all="ignore"):
        wide = x.astype("f8")
        powers = np.exp(wide - wide.max(axis=1, keepdims=True))
        expected = powers / powers.sum(axis=1, keepdims=True)
    result = np.zeros_like(x)
    program(x, result)
    np.testing.assert_allclose(result, expected, rtol=2.0**-18, atol=2.0**-24)
