"""End to end: element-wise ops on A and B are fused into the contraction.

Their results are never stored: one kernel copies their inputs asynchronously. Numbers
against float64, on an emulator that raises on any hazard.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pytest

from alcop_mlir import dtypes
from alcop_mlir.compilation import compiler, inputs
from alcop_mlir.runtime.emulation import Emulation, EmulatorOptions
from alcop_mlir.runtime.launch import Program
from alcop_mlir.schedule import Schedule

SCALE = 0.375
TILE = "block=64,64,32 warp=32,32"
LAYOUTS = ("nn", "nt", "tn", "tt")  # "t": A is stored k x m, B is stored n x k


@dataclass(frozen=True)
class Step:
    """An element-wise op from `%e` to `%r`, of type `kind`, and the same in NumPy."""

    lines: str
    kind: str
    values: Callable[[np.ndarray], np.ndarray]
    reads_scale: bool = False
    reads_channels: bool = False


def convert(op: str, source: str, kind: str) -> Step:
    return Step(f"%r = arith.{op} %e : {source} to {kind}", kind, lambda x: x)


def relu(kind: str) -> Step:
    lines = f"""%zero = arith.constant 0.0 : {kind}
      %r = arith.maximumf %e, %zero : {kind}"""
    return Step(lines, kind, lambda x: np.maximum(x, 0))


def affine(kind: str, offset: float) -> Step:
    lines = f"""%factor = arith.constant {SCALE} : {kind}
      %offset = arith.constant {offset} : {kind}
      %scaled = arith.mulf %e, %factor : {kind}
      %r = arith.addf %scaled, %offset : {kind}"""
    return Step(lines, kind, lambda x: x * SCALE + offset)


def scaled_by_array(kind: str) -> Step:
    lines = f"%r = arith.mulf %e, %scale : {kind}"
    return Step(lines, kind, lambda x: x * SCALE, reads_scale=True)


def by_channel(kind: str) -> Step:
    """Multiplies by one number per row of A, or per column of B."""
    lines = f"%r = arith.mulf %e, %scale : {kind}"
    return Step(lines, kind, lambda x: x, reads_channels=True)


HALF = convert("truncf", "f32", "f16")
FROM_BYTE = convert("sitofp", "i8", "f16")
# Per case: the type in memory, then the ops.
CHAINS: dict[str, tuple[str, list[Step]]] = {
    "plain": ("f16", []),
    "relu": ("f16", [relu("f16")]),
    "half": ("f32", [HALF]),
    "relu-half": ("f32", [relu("f32"), HALF]),
    "byte": ("i8", [FROM_BYTE]),
    "byte-scaled": ("i8", [FROM_BYTE, affine("f16", 0.0)]),
    "byte-by-array": ("i8", [FROM_BYTE, scaled_by_array("f16")]),
    "byte-by-channel": ("i8", [FROM_BYTE, by_channel("f16")]),
    "half-by-channel": ("f32", [HALF, by_channel("f16")]),
    "half-of-bf16": ("bf16", [convert("extf", "bf16", "f32"), HALF]),
}


@dataclass(frozen=True)
class Operand:
    """A or B: a chain of ops on an array; letters of its loops."""

    name: str
    loops: str
    chain: tuple[str, list[Step]]
    dynamic: bool = False

    @property
    def memory(self) -> str:
        return self.chain[0]

    def kind(self, sizes: dict[str, int], element: str) -> str:
        extents = "x".join("?" if self.dynamic else str(sizes[i]) for i in self.loops)
        return f"memref<{extents}x{element}>"

    def ops(self, sizes: dict[str, int]) -> str:
        """From `%A` to `%A_<number of ops>`, each with a buffer of its own."""
        lines, name, element = [], f"%{self.name}", self.memory
        for number, step in enumerate(self.chain[1]):
            before, after = self.kind(sizes, element), self.kind(sizes, step.kind)
            made = f"%{self.name}_{number + 1}"
            given = f"(%{self.name}_d0, %{self.name}_d1)" if self.dynamic else "()"
            extra, scale, scale_kind, scale_element = self.scale(step, sizes)
            lines.append(f"""
              {made} = memref.alloc{given} : {after}
              linalg.generic {{indexing_maps = [#own{extra}, #own],
                               iterator_types = ["parallel", "parallel"]}}
                ins({name}{scale} : {before}{scale_kind}) outs({made} : {after}) {{
              ^bb0(%e: {element}{scale_element}, %o: {step.kind}):
                {step.lines}
                linalg.yield %r : {step.kind}
              }}""")
            name, element = made, step.kind
        return "\n".join(lines)

    def scale(self, step: Step, sizes: dict[str, int]) -> tuple[str, str, str, str]:
        """Map, operand, its type and the element's, of a step's other operand."""
        element = f", %scale: {step.kind}"
        if step.reads_scale:
            return ", #none", ", %scale_array", f", memref<{step.kind}>", element
        if not step.reads_channels:
            return "", "", "", ""
        kind = f", memref<{'?' if self.dynamic else sizes[self.channel]}x{step.kind}>"
        along = "#first" if self.loops[0] == self.channel else "#second"
        return f", {along}", f", %channels_{self.name}", kind, element

    @property
    def channel(self) -> str:
        """The loop that is not reduced."""
        return self.loops.replace("k", "")

    def values(self, array: np.ndarray, channels: np.ndarray) -> np.ndarray:
        """The values that are multiplied, rounded after each op."""
        values = dtypes.decode(array, self.memory)
        shape = [-1 if loop == self.channel else 1 for loop in self.loops]
        for step in self.chain[1]:
            scale = channels.reshape(shape).astype("f8") if step.reads_channels else 1
            encoded = dtypes.encode(step.values(values) * scale, step.kind)
            values = dtypes.decode(encoded, step.kind)
        return values


@dataclass(frozen=True)
class Matmul:
    """C = a(A) * b(B) in f16, accumulated in f32."""

    a: str
    b: str
    layout: str = "nn"
    sizes: dict[str, int] = field(default_factory=lambda: sizes(64, 64, 128))
    dynamic: bool = False

    @property
    def operands(self) -> tuple[Operand, Operand]:
        loops = {"n": ("mk", "kn"), "t": ("km", "nk")}
        first, second = self.layout
        return (
            Operand("A", loops[first][0], CHAINS[self.a], self.dynamic),
            Operand("B", loops[second][1], CHAINS[self.b], self.dynamic),
        )

    def text(self) -> str:
        a, b = self.operands
        kinds = [one.kind(self.sizes, one.memory) for one in (a, b)]
        c = Operand("C", "mn", CHAINS["plain"], self.dynamic).kind(self.sizes, "f32")
        read = [one.kind(self.sizes, "f16") for one in (a, b)]
        names = [
            f"%{one.name}_{len(one.chain[1])}" if one.chain[1] else f"%{one.name}"
            for one in (a, b)
        ]
        channels = [
            f"memref<{'?' if self.dynamic else self.sizes[one.channel]}xf16>"
            for one in (a, b)
        ]
        promise = " {alcop.row_alignment = 16 : i64}" if self.dynamic else ""
        dims = "\n".join(
            f"%{one.name}_d{n} = memref.dim %{one.name}, %c{n} : {kind}"
            for one, kind in zip((a, b), kinds, strict=True)
            for n in range(2)
            if self.dynamic
        )
        maps = ", ".join(
            f"affine_map<(m, n, k) -> ({', '.join(loops)})>"
            for loops in (a.loops, b.loops, "mn")
        )
        return f"""
          #own = affine_map<(x, y) -> (x, y)>
          #none = affine_map<(x, y) -> ()>
          #first = affine_map<(x, y) -> (x)>
          #second = affine_map<(x, y) -> (y)>
          func.func @matmul(%A: {kinds[0]}{promise}, %B: {kinds[1]}{promise},
                             %scale_array: memref<f16>, %channels_A: {channels[0]},
                             %channels_B: {channels[1]}, %C: {c}{promise}) {{
            %c0 = arith.constant 0 : index
            %c1 = arith.constant 1 : index
            %z = arith.constant 0.0 : f32
            {dims}
            {a.ops(self.sizes)}
            {b.ops(self.sizes)}
            linalg.fill ins(%z : f32) outs(%C : {c})
            linalg.generic {{indexing_maps = [{maps}],
              iterator_types = ["parallel", "parallel", "reduction"]}}
              ins({names[0]}, {names[1]} : {read[0]}, {read[1]}) outs(%C : {c}) {{
            ^bb0(%x: f16, %y: f16, %s: f32):
              %p = arith.extf %x : f16 to f32
              %q = arith.extf %y : f16 to f32
              %t = arith.mulf %p, %q : f32
              %u = arith.addf %s, %t : f32
              linalg.yield %u : f32
            }}
            return
          }}"""

    def arrays(self, given: dict[str, int]) -> list[np.ndarray]:
        """A, B, the scale, those of A's rows and of B's columns, and C."""
        random = np.random.default_rng(sum(given.values()))
        a, b = (
            dtypes.random(random, tuple(given[i] for i in one.loops), one.memory)
            for one in self.operands
        )
        c = np.full((given["m"], given["n"]), np.nan, np.float32)
        channels = [dtypes.random(random, (given[i],), "f16") for i in "mn"]
        return [a, b, np.array(SCALE, np.float16), *channels, c]

    def expected(self, arrays: list[np.ndarray]) -> np.ndarray:
        a, b, _, rows, columns, _ = arrays
        first, second = self.operands
        left, right = first.values(a, rows), second.values(b, columns)
        return np.einsum(f"{first.loops},{second.loops}->mn", left, right)


def sizes(m: int, n: int, k: int) -> dict[str, int]:
    return {"m": m, "n": n, "k": k}


def run_of(text: str, schedule: str) -> Program:
    """The program, on an emulator with counters."""
    options = compiler.Options(schedule=Schedule.parse(schedule), use_ptxas=False)
    bundle = compiler.compile_source(inputs.read(text), options)
    counting = Emulation(EmulatorOptions(counters=True))
    return Program(bundle, device="emulator", emulation=counting)


def compiled(matmul: Matmul, stages: str = "3,2") -> Program:
    """One kernel, with asynchronous copies."""
    program = run_of(matmul.text(), f"{TILE} stages={stages}")
    assert len(program.function.kernels) == 1
    assert ("cp.async" in program.ptx) == (stages != "1,1")
    return program


def check(
    matmul: Matmul, program: Program, given: dict[str, int] | None = None
) -> None:
    arrays = matmul.arrays(given or matmul.sizes)
    expected = matmul.expected(arrays)
    program(*arrays)
    tolerance = (given or matmul.sizes)["k"] * 2.0**-23 * np.abs(expected).max()
    np.testing.assert_allclose(arrays[-1], expected, atol=tolerance, rtol=0)


def check_conflicts(program: Program) -> None:
    """No bank conflict in any run so far."""
    assert program.emulation is not None
    for _, run in program.emulation.runs:
        assert run.counters is not None
        assert run.counters.bank_conflicts == 0


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("half", "plain"),
        ("plain", "half"),
        ("half", "half"),
        ("relu-half", "relu"),
        ("relu", "byte"),
        ("byte-scaled", "half-of-bf16"),
        ("half-of-bf16", "byte-by-array"),
        ("half-by-channel", "byte-by-channel"),
    ],
)
def test_transforms(a: str, b: str, layout: str) -> None:
    """Right, and without bank conflicts, whatever type shared memory holds."""
    matmul = Matmul(a, b, layout)
    program = compiled(matmul)
    check(matmul, program)
    check_conflicts(program)


@pytest.mark.parametrize("stages", ["1,1", "2,1", "4,2"])
@pytest.mark.parametrize("layout", ["nt", "tn"])
@pytest.mark.parametrize("shape", [(72, 64, 72), (130, 72, 104), (1, 16, 48)], ids=str)
def test_ragged(shape: tuple[int, int, int], layout: str, stages: str) -> None:
    """Tiles are padded with zeros, which the ops preserve."""
    matmul = Matmul("relu-half", "byte-scaled", layout, sizes(*shape))
    check(matmul, compiled(matmul, stages))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    "shape", [(72, 56, 128), (130, 88, 256), (1, 16, 128)], ids=str
)
def test_channels_end_with_c(shape: tuple[int, int, int], layout: str) -> None:
    """One number per row and per column, and none beyond the last."""
    matmul = Matmul("half-by-channel", "byte-by-channel", layout, sizes(*shape))
    check(matmul, compiled(matmul))


@pytest.mark.parametrize("shape", [(65, 67, 97), (5, 3, 7)], ids=str)
def test_rows_of_any_alignment(shape: tuple[int, int, int]) -> None:
    matmul = Matmul("half", "byte", "nn", sizes(*shape))
    check(matmul, compiled(matmul, "1,1"))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_sizes_at_run_time(layout: str) -> None:
    matmul = Matmul("relu-half", "byte", layout, dynamic=True)
    program = compiled(matmul)
    for shape in [(64, 64, 64), (208, 80, 176), (16, 16, 272), (80, 80, 0)]:
        check(matmul, program, sizes(*shape))
    check_conflicts(program)


@pytest.mark.parametrize("b", ["byte-scaled", "byte-by-array", "byte-by-channel"])
def test_split_k(b: str) -> None:
    """The parts of K apply the transforms, too; another kernel adds them up."""
    matmul = Matmul("relu-half", b, sizes=sizes(64, 64, 256))
    program = run_of(matmul.text(), f"{TILE} stages=3,2 split_k=2")
    assert len(program.function.kernels) == 2
    check(matmul, program)


TRANSPOSE = """
  %te = tensor.empty() : tensor<128x96xf16>
  %wt = linalg.transpose ins(%wh : tensor<96x128xf16>)
      outs(%te : tensor<128x96xf16>) permutation = [1, 0]"""
LAYER = """
#id = affine_map<(x, y) -> (x, y)>
#row = affine_map<(x, y) -> (y)>
func.func @layer(%x: tensor<64x128xf32>, %w: tensor<{w}xi8>,
                 %bias: tensor<96xf32>) -> tensor<64x96xf16> {{
  %scale = arith.constant 0.125 : f16
  %zero = arith.constant 0.0 : f32
  %xe = tensor.empty() : tensor<64x128xf16>
  %xh = linalg.generic {{indexing_maps = [#id, #id],
                        iterator_types = ["parallel", "parallel"]}}
      ins(%x : tensor<64x128xf32>) outs(%xe : tensor<64x128xf16>) {{
  ^bb0(%e: f32, %o: f16):
    %h = arith.truncf %e : f32 to f16
    linalg.yield %h : f16
  }} -> tensor<64x128xf16>
  %we = tensor.empty() : tensor<{w}xf16>
  %wh = linalg.generic {{indexing_maps = [#id, #id],
                        iterator_types = ["parallel", "parallel"]}}
      ins(%w : tensor<{w}xi8>) outs(%we : tensor<{w}xf16>) {{
  ^bb0(%e: i8, %o: f16):
    %h = arith.sitofp %e : i8 to f16
    %s = arith.mulf %h, %scale : f16
    linalg.yield %s : f16
  }} -> tensor<{w}xf16>
  {transpose}
  %ce = tensor.empty() : tensor<64x96xf32>
  %c0 = linalg.fill ins(%zero : f32) outs(%ce : tensor<64x96xf32>) -> tensor<64x96xf32>
  %c = linalg.matmul ins(%xh, {wt} : tensor<64x128xf16>, tensor<128x96xf16>)
      outs(%c0 : tensor<64x96xf32>) -> tensor<64x96xf32>
  %ye = tensor.empty() : tensor<64x96xf16>
  %y = linalg.generic {{indexing_maps = [#id, #row, #id],
                       iterator_types = ["parallel", "parallel"]}}
      ins(%c, %bias : tensor<64x96xf32>, tensor<96xf32>)
      outs(%ye : tensor<64x96xf16>) {{
  ^bb0(%e: f32, %b: f32, %o: f16):
    %s = arith.addf %e, %b : f32
    %r = arith.maximumf %s, %zero : f32
    %h = arith.truncf %r : f32 to f16
    linalg.yield %h : f16
  }} -> tensor<64x96xf16>
  return %y : tensor<64x96xf16>
}}
"""


@pytest.mark.parametrize("stored", ["nk", "kn"])
def test_a_layer_on_tensors_is_one_kernel(stored: str) -> None:
    """f32 activations, weights of 8 bits, then bias and activation."""
    shape, last, between = (96, 128), "%wt", TRANSPOSE
    if stored == "kn":
        shape, last, between = (128, 96), "%wh", ""
    text = LAYER.format(w=f"{shape[0]}x{shape[1]}", wt=last, transpose=between)
    program = run_of(text, f"{TILE} stages=3,2")
    assert len(program.function.kernels) == 1
    random = np.random.default_rng(5)
    x = dtypes.random(random, (64, 128), "f32")
    w = dtypes.random(random, shape, "i8")
    bias = dtypes.random(random, (96,), "f32")
    y = np.empty((64, 96), np.float16)
    program(x, w, bias, y)
    scaled = (w * np.float16(0.125)).astype(np.float64)
    right = scaled.T if stored == "nk" else scaled
    expected = np.maximum(x.astype(np.float16).astype("f8") @ right + bias, 0)
    np.testing.assert_allclose(y, expected, atol=1e-4, rtol=2.0**-10)


OPEN = """
#id = affine_map<(x, y) -> (x, y)>
#row = affine_map<(x, y) -> (y)>
func.func @open(%A: memref<?x256xf16>,
                %B: memref<256x?xi8> {alcop.row_alignment = 16 : i64},
                %s: memref<?xf16>, %C: memref<?x?xf32>) {
  %c1 = arith.constant 1 : index
  %z = arith.constant 0.0 : f32
  %n = memref.dim %B, %c1 : memref<256x?xi8>
  %b = memref.alloc(%n) : memref<256x?xf16>
  linalg.generic {indexing_maps = [#id, #row, #id],
                  iterator_types = ["parallel", "parallel"]}
      ins(%B, %s : memref<256x?xi8>, memref<?xf16>) outs(%b : memref<256x?xf16>) {
  ^bb0(%e: i8, %f: f16, %o: f16):
    %h = arith.sitofp %e : i8 to f16
    %r = arith.mulf %h, %f : f16
    linalg.yield %r : f16
  }
  linalg.fill ins(%z : f32) outs(%C : memref<?x?xf32>)
  linalg.matmul ins(%A, %b : memref<?x256xf16>, memref<256x?xf16>)
                outs(%C : memref<?x?xf32>)
  return
}
"""


def test_channels_of_any_number() -> None:
    """Weights of 8 bits with a scale for each column, for any number of columns."""
    program = run_of(OPEN, f"{TILE} stages=3,2")
    assert len(program.function.kernels) == 1
    random = np.random.default_rng(3)
    for m, n in [(70, 80), (128, 144), (1, 16)]:
        a = dtypes.random(random, (m, 256), "f16")
        w = dtypes.random(random, (256, n), "i8")
        s = dtypes.random(random, (n,), "f16")
        c = np.empty((m, n), np.float32)
        program(a, w, s, c)
        expected = a.astype("f8") @ (w * s).astype("f8")
        atol = 256 * 2.0**-23 * np.abs(expected).max()
        np.testing.assert_allclose(c, expected, atol=atol, rtol=0)
    check_conflicts(program)
