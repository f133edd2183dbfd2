"""Random functions of ops on rows: to compute them row by row changes no result.

Buffers are overwritten, read again, and broadcast, so that many programs have ops that
must stay apart. Lengths are known or open, of rows that are held and of longer ones;
neighbours in memory are elements of a row, or of neighbouring rows. Each runs on the
emulator with hazards, and every argument is compared to what NumPy computes step by
step in float64.

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
# Of which each lane has at most one, two in a vector, four but for the last lanes, more
# than a warp holds, one, and more than a block holds of some.
LENGTHS = (24, 64, 100, 2040, 1, 7000)
# Whether lengths are open, and whether elements of neighbouring rows are neighbours.
FORMS = ((False, False), (True, False), (False, True), (False, False), (True, True))
FULL = ("X0", "X1", "T0", "T1", "T2")
PER_ROW = ("s0", "s1", "s2")
GIVEN = ("X0", "X1", "s0", "w", "k0")
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
    is_open: bool
    across: bool
    lines: list[str] = field(default_factory=list)
    steps: list[Callable[[dict[str, Array]], None]] = field(default_factory=list)
    exact: set[str] = field(default_factory=lambda: {"X0", "X1"})  # as they were given

    def kind(self, name: str) -> str:
        rows, columns = ("?", "?") if self.is_open else (self.rows, self.columns)
        shape = {"s": f"{rows}", "k": f"{rows}", "w": f"{columns}"}.get(
            name[0], f"{columns}x{rows}" if self.across else f"{rows}x{columns}"
        )
        return f"memref<{shape}x{ {'w': 'f16', 'k': 'i64'}.get(name[0], 'f32') }>"

    def at(self, name: str, loops: str) -> str:
        """The indices of an array that is read or written at these loops."""
        if name[0] in "XT" and self.across:
            return ", ".join(reversed(loops.split(", ")))
        return loops

    def reduce(self, out: str) -> None:
        """Over a row, from 0.5 on, or from what was there."""
        source, how = self.choose.choice(FULL), self.choose.choice(list(REDUCTIONS))
        if starts := self.choose.random() < 0.8:
            self._fill(out)
        self.lines.append(
            f"linalg.reduce {{ arith.{how} }} ins(%{source} : {self.kind(source)}) "
            f"outs(%{out} : {self.kind(out)}) dimensions = [{0 if self.across else 1}]"
        )

        def terms(arrays: dict[str, Array]) -> Array:
            start = np.full(self.rows, 0.5) if starts else arrays[out]
            return np.column_stack((start, arrays[source]))

        self._step(out, lambda arrays: REDUCTIONS[how](terms(arrays)))

    def reduce_twice(self, out: str) -> None:
        """Sum and maximum of a row by one op, from 0.5 on."""
        source = self.choose.choice(FULL)
        other = self.choose.choice([one for one in PER_ROW if one != out])
        self._fill(out)
        self._fill(other)
        self._several(
            source,
            [out, other],
            """^bb0(%a: f32, %b: f32, %c: f32):
              %0 = arith.addf %a, %b : f32
              %1 = arith.maximumf %a, %c : f32
              linalg.yield %0, %1 : f32, f32""",
        )
        self._step(out, lambda arrays: 0.5 + arrays[source].sum(1))
        self._step(other, lambda arrays: np.maximum(0.5, arrays[source].max(1)))

    def extreme(self, out: str) -> None:
        """The largest or smallest element of a row, and the first place where it is.

        Of what was given only: what is computed is rounded otherwise than in NumPy.
        """
        if not self.exact:
            self.reduce(out)
            return
        source = self.choose.choice(sorted(self.exact))
        largest = self.choose.random() < 0.5
        how, beats = ("maximumf", "ogt") if largest else ("minimumf", "olt")
        self._fill(out)
        self.lines.append(f"linalg.fill ins(%none : i64) outs(%k0 : {self.kind('k0')})")
        self._several(
            source,
            [out, "k0"],
            f"""^bb0(%a: f32, %b: f32, %n: i64):
              %i = linalg.index 1 : index
              %j = arith.index_cast %i : index to i64
              %0 = arith.{how} %a, %b : f32
              %is = arith.cmpf {beats}, %a, %b : f32
              %k = arith.select %is, %j, %n : i64
              linalg.yield %0, %k : f32, i64""",
        )

        def places(arrays: dict[str, Array]) -> Array:
            x = arrays[source] if largest else -arrays[source]
            return np.where(x.max(1) > (0.5 if largest else -0.5), x.argmax(1), -1)

        self._step("k0", places)
        self._step(
            out,
            lambda arrays: (
                np.maximum(0.5, arrays[source].max(1))
                if largest
                else np.minimum(0.5, arrays[source].min(1))
            ),
        )

    def _several(self, source: str, outs: list[str], body: str) -> None:
        """A reduction with several outputs."""
        maps = [f"affine_map<(m, n) -> ({self.at(source, 'm, n')})>"]
        maps += ["affine_map<(m, n) -> (m)>"] * len(outs)
        self.lines.append(
            f"""linalg.generic {{indexing_maps = [{", ".join(maps)}],
                iterator_types = ["parallel", "reduction"]}}
              ins(%{source} : {self.kind(source)})
              outs({", ".join(f"%{one}" for one in outs)} :
                {", ".join(map(self.kind, outs))}) {{
            {body} }}"""
        )

    def _fill(self, out: str) -> None:
        self.lines.append(
            f"linalg.fill ins(%half : f32) outs(%{out} : {self.kind(out)})"
        )

    def map(self, out: str) -> None:
        """On a row, from elements of rows, one a row, and one a column."""
        name = self.choose.choice(FULL)
        self.exact.discard(out)
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
            f"affine_map<{dims} -> ({self.at(name, at)})>"
            for name, at in [*read, (out, loops)]
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
        given = ", ".join(f"%{name}: {self.kind(name)}" for name in GIVEN)
        made = [name for name in (*FULL, *PER_ROW) if name not in GIVEN]
        allocations = "\n".join(
            f"%{name} = memref.alloc({self._sizes(name)}) : {self.kind(name)}\n"
            f"linalg.fill ins(%half : f32) outs(%{name} : {self.kind(name)})"
            for name in made
        )
        body = "\n".join(self.lines)
        return f"""func.func @f({given}) {{
            %half = arith.constant 0.5 : f32
            %none = arith.constant -1 : i64
            %c0 = arith.constant 0 : index
            %rows = memref.dim %s0, %c0 : {self.kind("s0")}
            %columns = memref.dim %w, %c0 : {self.kind("w")}
            {allocations}
            {body}
            return
          }}"""

    def _sizes(self, name: str) -> str:
        if not self.is_open:
            return ""
        if name[0] != "T":
            return "%rows"
        return "%columns, %rows" if self.across else "%rows, %columns"

    def _step(self, out: str, compute: Step) -> None:
        def run(arrays: dict[str, Array]) -> None:
            arrays[out] = compute(arrays)

        self.steps.append(run)


def random_function(seed: int) -> Function:
    choose = random.Random(seed)
    length = LENGTHS[seed % len(LENGTHS)]
    rows = choose.choice([3, 8, 9]) if length < LENGTHS[-1] else 2
    made = Function(choose, length, rows, *FORMS[seed % len(FORMS)])
    kinds = ["reduce", "map", "map", "map_per_row", "reduce_twice", "extreme"]
    for _ in range(choose.randint(5, 12)):
        kind = choose.choice(kinds)
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
        # With equal elements, and exact in f32.
        "X0": np.round(values.uniform(-1, 1, full) * 8).astype("f4") / 8,
        "X1": values.uniform(-1, 1, full).astype("f4"),
        "s0": values.uniform(-1, 1, function.rows).astype("f4"),
        "w": values.uniform(-1, 1, function.columns).astype("f2"),
        "k0": np.zeros(function.rows, "i8"),
    }
    expected = {name: array.astype("f8") for name, array in given.items()}
    if function.across:
        given |= {name: given[name].T.copy() for name in ("X0", "X1")}
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
        found = array.T if function.across else array
        bound = 2.0**-15 * max(1.0, float(np.abs(expected[name]).max()))
        np.testing.assert_allclose(
            found, expected[name], atol=bound, rtol=0, err_msg=function.text()
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
