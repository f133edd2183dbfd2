"""Random graphs of contractions, maps, reductions and gathers on tensors.

Each is compiled as ever, and with no chains, no ops on rows together and nothing
inlined. Both are within the error that the reference of the program allows, which is
evaluated in float64, with NaN and infinities among the inputs; the emulator finds no
hazard. Attention is drawn often, with masks of indices, lengths and bytes, and with
readers of what lies between, so that some graphs have chains and some must not.

    ALCOP_GRAPHS_SEED=7 ALCOP_GRAPHS=100   others; a failure prints its program
"""

from __future__ import annotations

import os
import random
from dataclasses import dataclass, field

import numpy as np

from alcop_mlir import diagnostics
from alcop_mlir.compilation import compiler, inputs
from alcop_mlir.pipelines.named import AlcopCompile
from alcop_mlir.runtime import checking
from alcop_mlir.runtime.bundle import Bundle
from alcop_mlir.runtime.emulation import Emulation, EmulatorOptions
from alcop_mlir.runtime.launch import Program

SEED = int(os.environ.get("ALCOP_GRAPHS_SEED", "0"))
PROGRAMS = int(os.environ.get("ALCOP_GRAPHS", "4"))
SIZE, TABLE = 32, 20
TYPES = {
    "h": f"tensor<{SIZE}x{SIZE}xf16>",
    "x": f"tensor<{SIZE}x{SIZE}xf32>",
    "v": f"tensor<{SIZE}xf32>",
    "l": f"tensor<{SIZE}xi64>",
    "i": f"tensor<{SIZE}xi64>",
    "b": f"tensor<{SIZE}xi8>",
    "t": f"tensor<{TABLE}x{SIZE}xf16>",
}
GIVEN = ("h0", "h1", "x0", "v0", "l0", "b0", "i0", "t0")
MODES = (("late", "lockstep"), ("early", "random"), ("late", "descending"))
# What a pass of the way does not do: the rest is the same.
FUSING = (
    "alcop-group-chains,",
    "alcop-inline-elementwise,",
    "alcop-sink-reshapes,",
    "alcop-fuse-elementwise{assume-noalias-args=true},",
    "alcop-launch-rows{target=sm_80},",
)
LENGTHS = """\
    %j = linalg.index 1 : index
    %n = arith.index_cast %j : index to i64
    %sees = arith.cmpi sle, %n, %b : i64"""
CAUSAL = """\
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %sees = arith.cmpi sle, %j, %i : index"""
BYTES = """\
    %none = arith.constant 0 : i8
    %sees = arith.cmpi ne, %b, %none : i8"""
SELECT = "\n    %y = arith.select %sees, %a, %low : f32"
MASKS = (("", "", CAUSAL), ("l0", "m", LENGTHS), ("b0", "n", BYTES))


@dataclass(frozen=True)
class Unfused(compiler.Options):
    """Without what puts several ops into one kernel."""

    def pipeline(self) -> str:
        text = ",".join(AlcopCompile(target=self.target.name).steps())
        for one in FUSING:
            assert text.count(one) == 1, one
            text = text.replace(one, "")
        return f"builtin.module({text})"


@dataclass
class Graph:
    """A function under construction. Names of values begin with a letter of TYPES."""

    choose: random.Random
    lines: list[str] = field(default_factory=list)
    known: list[str] = field(default_factory=lambda: list(GIVEN))

    def pick(self, letter: str) -> str:
        return self.choose.choice([one for one in self.known if one[0] == letter])

    def op(
        self, letter: str, read: list[tuple[str, str]], body: str, start: str = ""
    ) -> str:
        """An op on loops m, n and perhaps k; its result's name.

        read: values, and the loops that index them
        start: the number that a reduction starts from
        """
        name = f"{letter}_{len(self.lines)}"
        loops = "m, n, k" if any("k" in at for _, at in read) else "m, n"
        kept = "m" if letter == "v" else "m, n"
        maps = [f"affine_map<({loops}) -> ({at})>" for _, at in [*read, ("", kept)]]
        kinds = [
            '"parallel"' if one in kept else '"reduction"' for one in loops.split(", ")
        ]
        kind, out = TYPES[letter], f"%{name}e"
        element = kind[:-1].split("x")[-1]
        text = f"  {out} = tensor.empty() : {kind}\n"
        if start:
            text += f"  %{name}f = linalg.fill ins(%{start} : f32) outs({out} : {kind})"
            text += f" -> {kind}\n"
            out = f"%{name}f"
        ins = ""
        if read:
            values = ", ".join(f"%{one}" for one, _ in read)
            ins = f"ins({values} : {', '.join(TYPES[one[0]] for one, _ in read)})"
        arguments = "".join(
            f"%{argument}: {TYPES[one[0]][:-1].split('x')[-1]}, "
            for argument, (one, _) in zip("abcd", read, strict=False)
        )
        self.lines.append(
            f"{text}  %{name} = linalg.generic {{indexing_maps = [{', '.join(maps)}],"
            f" iterator_types = [{', '.join(kinds)}]}}\n    {ins} outs({out} : {kind})"
            f" {{\n  ^bb0({arguments}%o: {element}):\n{body}\n"
            f"    linalg.yield %y : {element}\n  }} -> {kind}"
        )
        self.known.append(name)
        return name

    def narrow(self, source: str) -> str:
        return self.op("h", [(source, "m, n")], "    %y = arith.truncf %a : f32 to f16")

    def contraction(self, one: str, other: str, transposed: bool) -> str:
        body = """\
    %0 = arith.extf %a : f16 to f32
    %1 = arith.extf %b : f16 to f32
    %2 = arith.mulf %0, %1 : f32
    %y = arith.addf %o, %2 : f32"""
        at = "n, k" if transposed else "k, n"
        return self.op("x", [(one, "m, k"), (other, at)], body, start="zero")

    def map(self) -> str:
        """Of elements, one of each row or column, and perhaps a mask."""
        one, other = self.pick("x"), self.pick("v")
        along = self.choose.choice("mn")
        body = """\
    %0 = arith.mulf %a, %quarter : f32
    %1 = arith.subf %0, %b : f32
    %y = math.tanh %1 : f32"""
        return self.op("x", [(one, "m, n"), (other, along)], body)

    def masked(self, source: str) -> str:
        value, at, body = self.choose.choice(MASKS)
        read = [(source, "m, n"), *([(value, at)] if value else [])]
        return self.op("x", read, body + SELECT)

    def reduction(self) -> str:
        how, start = self.choose.choice([("addf", "zero"), ("maximumf", "low")])
        body = f"    %y = arith.{how} %o, %a : f32"
        return self.op("v", [(self.pick("x"), "m, n")], body, start)

    def gather(self) -> str:
        """Rows of a table."""
        body = """\
    %j = linalg.index 1 : index
    %r = arith.index_cast %a : i64 to index
    %y = tensor.extract %t0[%r, %j] : """
        return self.op("h", [("i0", "m")], body + TYPES["t"])

    def attention(self) -> str:
        """Or nearly so: what lies between may have another reader."""
        one, other, third = (self.pick("h") for _ in range(3))
        scores = self.contraction(one, other, transposed=self.choose.random() < 0.7)
        scaled = self.op(
            "x", [(scores, "m, n")], "    %y = arith.mulf %a, %quarter : f32"
        )
        if self.choose.random() < 0.7:
            scaled = self.masked(scaled)
        weights = f"x_{len(self.lines)}"
        kind = TYPES["x"]
        self.lines.append(
            f"  %{weights}e = tensor.empty() : {kind}\n  %{weights} = linalg.softmax "
            f"dimension(1) ins(%{scaled} : {kind}) outs(%{weights}e : {kind}) -> {kind}"
        )
        self.known.append(weights)
        narrow = self.narrow(weights)
        if self.choose.random() < 0.75:  # others must not read what lies between
            inside = {scores, scaled, weights, narrow}
            self.known = [one for one in self.known if one not in inside]
        return self.contraction(narrow, third, transposed=False)

    def text(self) -> str:
        results = [one for one in self.known if one[0] == "x"][-2:]
        kinds = ", ".join(TYPES[one[0]] for one in results)
        body = "\n".join(self.lines)
        arguments = ", ".join(f"%{one}: {TYPES[one[0]]}" for one in GIVEN)
        return f"""func.func @f({arguments}) -> ({kinds}) {{
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %quarter = arith.constant 0.25 : f32
{body}
  return {", ".join(f"%{one}" for one in results)} : {kinds}
}}
"""


def random_graph(seed: int) -> Graph:
    choose = random.Random(seed)
    made = Graph(choose)
    kinds = ["map", "reduction", "gather", "attention", "attention", "contraction"]
    for _ in range(choose.randint(3, 6)):
        kind = choose.choice(kinds)
        if kind == "contraction":
            made.contraction(made.pick("h"), made.pick("h"), choose.random() < 0.5)
        else:
            getattr(made, kind)()
        if choose.random() < 0.3:
            made.narrow(made.pick("x"))
    made.attention()
    made.map()
    return made


def check(bundle: Bundle, seed: int, text: str) -> None:
    function = bundle.function()
    arrays = checking.random_arrays(function, seed)
    visibility, schedule = MODES[seed % len(MODES)]
    emulation = Emulation(EmulatorOptions(visibility=visibility, schedule=schedule))
    given = [arrays[one.name] for one in function.parameters[: len(GIVEN)]]
    made = Program(bundle, None, "emulator", emulation)(*given)
    outputs = [one.name for one in function.parameters[len(GIVEN) :]]
    found = dict(zip(outputs, map(np.asarray, made), strict=True))
    checked = checking.check(function, arrays, {**arrays, **found})
    assert checked.ok, (checked, text)


def test_fused_and_unfused_are_the_program() -> None:
    kernels: list[tuple[int, int]] = []
    chains = 0
    for seed in range(SEED * PROGRAMS, (SEED + 1) * PROGRAMS):
        text = random_graph(seed).text()
        counts = []
        for options in (compiler.Options(use_ptxas=False), Unfused(use_ptxas=False)):
            with diagnostics.collect():
                bundle = compiler.compile_source(inputs.read_text(text), options)
            check(bundle, seed, text)
            names = [one.name for one in bundle.function().kernels]
            counts.append(len(bundle.function().launches))
            chains += sum("chain" in one for one in names)
        kernels.append((counts[0], counts[1]))
    few, many = (sum(column) for column in zip(*kernels, strict=True))
    print(few, many, chains)
    assert few < 0.7 * many, "next to nothing was fused: the test tests little"
    assert PROGRAMS / 2 < chains, "next to no graph has a chain"
