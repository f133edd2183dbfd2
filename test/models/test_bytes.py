"""bench/least_bytes.py and bench/moved_bytes.py: by hand, and by the emulator."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).resolve().parents[2] / "bench"))

from fused_bytes import fused_bytes
from least_bytes import least_bytes
from moved_bytes import moved_by_kernel, moved_bytes

from alcop_mlir.compilation import compiler, inputs
from alcop_mlir.manifest.arrays import Parameter
from alcop_mlir.manifest.functions import Function
from alcop_mlir.reference.expressions import Argument
from alcop_mlir.reference.steps import Einsum, Gather, Map, Slice, Step
from alcop_mlir.runtime import checking
from alcop_mlir.runtime.bundle import Bundle
from alcop_mlir.runtime.emulation import Emulation, EmulatorOptions
from alcop_mlir.runtime.emulator import api
from alcop_mlir.runtime.emulator.machine.lanes import Lanes
from alcop_mlir.runtime.emulator.machine.loaded_kernel import Listing
from alcop_mlir.runtime.emulator.observers.counters import Counters, CounterSet
from alcop_mlir.runtime.launch import Program

# Rows of a table, times a weight, plus a residual; the sum of each row.
PROGRAM = """
#row = affine_map<(m, n) -> (m)>
#all = affine_map<(m, n) -> (m, n)>
func.func @rows(%table: tensor<64x32xf16>, %at: tensor<16xi64>, %w: tensor<32x32xf16>,
                %r: tensor<16x32xf16>) -> (tensor<16x32xf16>, tensor<16xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16x32xf16>
  %x = linalg.generic {indexing_maps = [#row, #all],
                       iterator_types = ["parallel", "parallel"]}
      ins(%at : tensor<16xi64>) outs(%e : tensor<16x32xf16>) {
  ^bb0(%i: i64, %o: f16):
    %n = linalg.index 1 : index
    %m = arith.index_cast %i : i64 to index
    %v = tensor.extract %table[%m, %n] : tensor<64x32xf16>
    linalg.yield %v : f16
  } -> tensor<16x32xf16>
  %f = tensor.empty() : tensor<16x32xf32>
  %init = linalg.fill ins(%zero : f32) outs(%f : tensor<16x32xf32>)
            -> tensor<16x32xf32>
  %p = linalg.matmul ins(%x, %w : tensor<16x32xf16>, tensor<32x32xf16>)
         outs(%init : tensor<16x32xf32>) -> tensor<16x32xf32>
  %y = linalg.generic {indexing_maps = [#all, #all, #all],
                       iterator_types = ["parallel", "parallel"]}
      ins(%p, %r : tensor<16x32xf32>, tensor<16x32xf16>) outs(%e : tensor<16x32xf16>) {
  ^bb0(%a: f32, %b: f16, %o: f16):
    %c = arith.extf %b : f16 to f32
    %d = arith.addf %a, %c : f32
    %t = arith.truncf %d : f32 to f16
    linalg.yield %t : f16
  } -> tensor<16x32xf16>
  %g = tensor.empty() : tensor<16xf32>
  %start = linalg.fill ins(%zero : f32) outs(%g : tensor<16xf32>) -> tensor<16xf32>
  %s = linalg.generic {indexing_maps = [#all, #row],
                       iterator_types = ["parallel", "reduction"]}
      ins(%y : tensor<16x32xf16>) outs(%start : tensor<16xf32>) {
  ^bb0(%a: f16, %o: f32):
    %b = arith.extf %a : f16 to f32
    %c = arith.addf %o, %b : f32
    linalg.yield %c : f32
  } -> tensor<16xf32>
  return %y, %s : tensor<16x32xf16>, tensor<16xf32>
}
"""


# The 16 rows of the table, their numbers, the weight, the residual; both results.
LEAST = 16 * 32 * 2 + 16 * 8 + 32 * 32 * 2 + 16 * 32 * 2 + 16 * 32 * 2 + 16 * 4


class Distinct(CounterSet):
    """Counts each byte that a launch reads once, and each that it writes."""

    moved = 0

    def __init__(self, listing: Listing) -> None:
        super().__init__(listing)
        self.touched: tuple[set[int], set[int]] = set(), set()

    def on_global(self, lanes: Lanes) -> None:
        places = lanes.offset[:, None] + np.arange(lanes.size)
        self.touched[lanes.ins.text.startswith("st.")].update(places.flat)

    def result(self) -> Counters:
        Distinct.moved += sum(map(len, self.touched))
        return super().result()


def emulated(bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> int:
    """Distinct bytes that the launches of a bundle move, on the emulator."""
    monkeypatch.setattr(api, "CounterSet", Distinct)
    monkeypatch.setattr(Distinct, "moved", 0)
    options = EmulatorOptions(counters=True)
    program = Program(bundle, None, "emulator", Emulation(options))
    program(*checking.random_arrays(bundle.function(), values="small").values())
    return Distinct.moved


def test_moved_as_the_emulator_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    options = compiler.Options(use_ptxas=False)
    bundle = compiler.compile_source(inputs.read_text(PROGRAM), options)
    moved = moved_bytes(inputs.read_text(PROGRAM), options, "rows")
    assert least_bytes(bundle.function()) == LEAST
    matrix, weight, sums = 16 * 32 * 2, 32 * 32 * 2, 16 * 4
    matmul = 16 * 8 + 3 * matrix + weight  # the rows that are looked up, of the table
    assert moved == matmul + matrix + sums
    assert emulated(bundle, monkeypatch) == moved


def function(*steps: Step) -> Function:
    """Of `a`, `b` (8x16, f16 and f32) and their result `c` (8x16, f16)."""
    kinds = {"a": "f16", "b": "f32", "c": "f16"}
    return Function(
        "f", tuple(Parameter(name, kinds[name], (8, 16)) for name in kinds), (), steps
    )


def part(rows: int, name: str) -> Slice:
    return Slice("b", name, (0, 0), (rows, 16), (1, 1))


@pytest.mark.parametrize(
    ("steps", "least"),
    [
        # `a` and `b` are read, `c` is written: 8 * 16 elements of 2, 4, and 2 bytes.
        ([Map(("a", "b"), "mn,mn->mn", "c", Argument(0), (8, 16))], 256 + 512 + 256),
        # Nothing is read of `b`.
        ([Map(("a",), "mn->mn", "c", Argument(0), (8, 16))], 256 + 256),
        # Three rows of `b`.
        (
            [part(3, "x"), Map(("x",), ".n->mn", "c", Argument(0), (8, 16))],
            3 * 16 * 4 + 256,
        ),
        # Parts of `b` that together have more than all of it.
        (
            [part(5, "x"), part(6, "y"), Map((), "->mn", "c", Argument(0), (8, 16))],
            512 + 256,
        ),
        # What is made in between is free; a contraction reads its operands whole.
        (
            [
                Einsum("a", "b", "x", "mk,nk->mn"),
                Map(("x",), "mn->mn", "c", Argument(0), (8, 16)),
            ],
            256 + 512 + 256,
        ),
        # Numbers of rows are read whole, of the table two rows.
        (
            [Gather("b", ("a",), "m.->mn", "c", (Argument(0), Argument(1)), (2, 16))],
            256 + 128 + 256,
        ),
    ],
)
def test_least_bytes_by_hand(steps: list[Step], least: int) -> None:
    assert least_bytes(function(*steps)) == least


def test_vectors_of_threads() -> None:
    """A softmax reads each row once, in vectors, and writes it once."""
    kind = "tensor<6x256xf32>"
    text = f"""
    func.func @f(%x: {kind}) -> {kind} {{
      %e = tensor.empty() : {kind}
      %y = linalg.softmax dimension(1) ins(%x : {kind}) outs(%e : {kind}) -> {kind}
      return %y : {kind}
    }}"""
    assert moved_bytes(inputs.read(text), compiler.Options(), "f") == 2 * 6 * 256 * 4


def test_by_kernel() -> None:
    """Two matmuls, the second of the first's result and of what that has read."""
    kind = "tensor<64x64xf16>"
    text = f"""
    func.func @f(%a: {kind}, %b: {kind}) -> {kind} {{
      %zero = arith.constant 0.0 : f16
      %e = tensor.empty() : {kind}
      %init = linalg.fill ins(%zero : f16) outs(%e : {kind}) -> {kind}
      %c = linalg.matmul ins(%a, %b : {kind}, {kind}) outs(%init : {kind}) -> {kind}
      %d = linalg.matmul ins(%c, %a : {kind}, {kind}) outs(%init : {kind}) -> {kind}
      return %d : {kind}
    }}"""
    array = 64 * 64 * 2
    first, second = moved_by_kernel(inputs.read(text), compiler.Options(), "f")
    assert (first.read, first.written, first.least) == (2 * array, array, 2 * array)
    assert (second.read, second.written, second.least) == (2 * array, array, array)
    assert first.schedule.startswith("block=")
    bundle = compiler.compile_source(inputs.read(text), compiler.Options())
    assert first.least + second.least == least_bytes(bundle.function())


@pytest.mark.parametrize(
    ("model", "batch", "tokens", "megabytes"),
    [
        ("bert_layer", 1, 128, 19.3),
        ("bert_layer", 8, 512, 177.7),
        ("gpt2_block", 1, 1024, 55.1),
        ("resnet50", 1, 128, 107.8),
        ("resnet50", 16, 128, 959.9),
    ],
)
def test_the_best_fusion(model: str, batch: int, tokens: int, megabytes: float) -> None:
    """As another program has added them up."""
    found = fused_bytes(model, batch, tokens)
    assert found is not None
    assert round(found / 1e6, 1) == megabytes
    assert fused_bytes("vgg16", 1, 128) is None
