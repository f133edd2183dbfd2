"""Hand-written tile code whose operands are converted after shared memory.

Elements in memory may have another size than those that are multiplied: f32 or i8 that
become f16 in registers. Copies stay asynchronous, results right, banks conflict-free.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from alcop_mlir import dtypes
from alcop_mlir.compilation import compiler, inputs
from alcop_mlir.runtime.emulator import emulate
from alcop_mlir.runtime.launch import grid_of

SIZE, WARP, K = 64, 32, 128  # M and N; a warp's part of both; K
STEPS = {"f16": 32, "bf16": 32, "tf32": 16, "i8": 64}
MMA_K = {"f16": 16, "bf16": 16, "tf32": 8, "i8": 32}
LAYOUTS = ("nn", "nt", "tn", "tt")  # "t": A is stored k x m, B is stored n x k
TEMPLATE = """
#ws = #gpu.address_space<workgroup>
func.func @matmul(%A: {A.array}, %B: {B.array}, %C: memref<64x64x{acc}>) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c32 = arith.constant 32 : index
  %c128 = arith.constant 128 : index
  %step = arith.constant {step} : index
  %piece = arith.constant {piece} : index
  %zero = arith.constant dense<{zero}> : vector<32x32x{acc}>
  %padA = arith.constant {A.zero} : {A.memory}
  %padB = arith.constant {B.zero} : {B.memory}
  gpu.launch blocks(%x, %y, %z) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%t, %u, %v) in (%bx = %c128, %by = %c1, %bz = %c1) {{
    %warp = arith.divui %t, %c32 : index
    %warp_m = arith.divui %warp, %c2 : index
    %warp_n = arith.remui %warp, %c2 : index
    %m = arith.muli %warp_m, %c32 : index
    %n = arith.muli %warp_n, %c32 : index
    %sA = memref.alloc() : {A.buffer}
    %sB = memref.alloc() : {B.buffer}
    %all = scf.for %k = %c0 to %c128 step %step
        iter_args(%acc = %zero) -> (vector<32x32x{acc}>) {{
      %gA = memref.subview %A{A.tile_of} : {A.array} to {A.view}
      memref.copy %gA, %sA : {A.view} to {A.buffer}
      %gB = memref.subview %B{B.tile_of} : {B.array} to {B.view}
      memref.copy %gB, %sB : {B.view} to {B.buffer}
      gpu.barrier
      %part = scf.for %kk = %c0 to %step step %piece
          iter_args(%sum = %acc) -> (vector<32x32x{acc}>) {{
        %{A.read} = vector.transfer_read %sA[{A.indices}], %padA
            {{in_bounds = [true, true]}}
            : {A.buffer}, vector<{A.fragment}x{A.memory}>
        {A.ops}
        %{B.read} = vector.transfer_read %sB[{B.indices}], %padB
            {{in_bounds = [true, true]}}
            : {B.buffer}, vector<{B.fragment}x{B.memory}>
        {B.ops}
        %next = vector.contract {{
          indexing_maps = [affine_map<(m, n, k) -> ({A.loops})>,
                           affine_map<(m, n, k) -> ({B.loops})>,
                           affine_map<(m, n, k) -> (m, n)>],
          iterator_types = ["parallel", "parallel", "reduction"],
          kind = #vector.kind<add>}} %mA, %mB, %sum
            : vector<{A.fragment}x{kind}>, vector<{B.fragment}x{kind}>
            into vector<32x32x{acc}>
        scf.yield %next : vector<32x32x{acc}>
      }}
      gpu.barrier
      scf.yield %part : vector<32x32x{acc}>
    }}
    vector.transfer_write %all, %C[%m, %n] {{in_bounds = [true, true]}}
        : vector<32x32x{acc}>, memref<64x64x{acc}>
    gpu.terminator
  }}
  return
}}"""


@dataclass(frozen=True)
class Operand:
    """A ("m") or B ("n"): elements `memory` in memory, multiplied as `kind`."""

    name: str
    loop: str
    memory: str
    kind: str
    is_along_k: bool

    @property
    def zero(self) -> str:
        return "0" if self.memory == "i8" else "0.0"

    @property
    def loops(self) -> str:
        return f"{self.loop}, k" if self.is_along_k else f"k, {self.loop}"

    @property
    def shape(self) -> tuple[int, int]:
        return self.ordered(SIZE, K)

    @property
    def array(self) -> str:
        return f"memref<{self.sizes(SIZE, K)}x{self.memory}>"

    @property
    def buffer(self) -> str:
        return f"memref<{self.sizes(SIZE, STEPS[self.kind])}x{self.memory}, #ws>"

    @property
    def view(self) -> str:
        sizes, pitch = self.sizes(SIZE, STEPS[self.kind]), self.shape[1]
        return f"memref<{sizes}x{self.memory}, strided<[{pitch}, 1], offset: ?>>"

    @property
    def tile_of(self) -> str:
        offsets = "0, %k" if self.is_along_k else "%k, 0"
        rows, columns = self.ordered(SIZE, STEPS[self.kind])
        return f"[{offsets}] [{rows}, {columns}] [1, 1]"

    @property
    def indices(self) -> str:
        return f"%{self.loop}, %kk" if self.is_along_k else f"%kk, %{self.loop}"

    @property
    def fragment(self) -> str:
        return self.sizes(WARP, MMA_K[self.kind])

    @property
    def read(self) -> str:
        return f"{'m' if self.memory == self.kind else 'r'}{self.name}"

    @property
    def ops(self) -> str:
        """From `%r` to `%m`."""
        way = conversions(self.memory, self.kind)
        kinds = [self.memory, *(kind for _, kind in way)]
        names = [f"%r{self.name}", *(f"%{kind}{self.name}" for kind in kinds[1:-1])]
        names.append(f"%m{self.name}")
        return "\n".join(
            f"{names[n + 1]} = {op} {names[n]} : vector<{self.fragment}x{kinds[n]}> "
            f"to vector<{self.fragment}x{kind}>"
            for n, (op, kind) in enumerate(way)
        )

    def ordered(self, other: int, k: int) -> tuple[int, int]:
        return (other, k) if self.is_along_k else (k, other)

    def sizes(self, other: int, k: int) -> str:
        return "x".join(map(str, self.ordered(other, k)))

    def multiplied(self, array: np.ndarray) -> np.ndarray:
        """The result of the ops on `array`, as float64; rows along `loop`."""
        values = dtypes.decode(array, self.memory)
        for _, kind in conversions(self.memory, self.kind):
            values = rounded(values, kind)
        return values if self.is_along_k else values.T


def conversions(memory: str, kind: str) -> list[tuple[str, str]]:
    """The ops from one type to the other, and the type of each result."""
    if memory == kind:
        return []
    if memory == "i8":
        wide = [("arith.sitofp", "f32"), ("arith.truncf", kind)]
        return wide if kind == "tf32" else [("arith.sitofp", kind)]
    if kind == "i8":
        return [("arith.fptosi", kind)]
    widened = [("arith.extf", "f32")] * (memory != "f32")
    return [*widened, ("arith.truncf", kind)]


def rounded(values: np.ndarray, kind: str) -> np.ndarray:
    if kind == "i8":
        return np.trunc(values)
    if kind == "tf32":  # to nearest, ties away from zero
        bits = values.astype(np.float32).view(np.uint32)
        wide = ((bits + 0x1000) & 0xFFFFE000).view(np.float32)
        return wide.astype(np.float64)
    return dtypes.decode(dtypes.encode(values, kind), kind)


def operands(layout: str, memory: tuple[str, str], kind: str) -> tuple[Operand, ...]:
    return (
        Operand("A", "m", memory[0], kind, layout[0] == "n"),
        Operand("B", "n", memory[1], kind, layout[1] == "t"),
    )


def text(a: Operand, b: Operand) -> str:
    acc, zero = ("i32", "0") if a.kind == "i8" else ("f32", "0.0")
    numbers = {"step": STEPS[a.kind], "piece": MMA_K[a.kind]}
    return TEMPLATE.format(A=a, B=b, kind=a.kind, acc=acc, zero=zero, **numbers)


def check(a: Operand, b: Operand) -> None:
    """Compile, run, and check numbers, hazards, bank conflicts and copies."""
    options = compiler.Options(use_ptxas=False)
    bundle = compiler.compile_source(inputs.read(text(a, b)), options)
    (kernel,) = bundle.functions[0].kernels
    code = bundle.code_of(kernel).ptx
    random = np.random.default_rng(7)
    left, right = (dtypes.random(random, one.shape, one.memory) for one in (a, b))
    if a.kind == "i8":  # so that not all become 0
        left, right = left * left.dtype.type(4), right * right.dtype.type(4)
    got = np.empty((SIZE, SIZE), np.int32 if a.kind == "i8" else np.float32)
    result = emulate(
        code,
        kernel.name,
        grid_of(kernel, {}),
        kernel.block,
        [left, right, got],
        dynamic_shared=kernel.shared_bytes,
        counters=True,
    )
    expected = a.multiplied(left) @ b.multiplied(right).T
    tolerance = 0 if a.kind == "i8" else K * 2.0**-23 * np.abs(expected).max()
    np.testing.assert_allclose(got, expected, atol=tolerance, rtol=0)
    assert not result.hazards
    assert result.counters is not None
    assert result.counters.bank_conflicts == 0
    assert "cp.async.cg.shared.global" in code


@pytest.mark.sample(6)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    ("memory", "kind"),
    [
        (("f32", "f16"), "f16"),
        (("f16", "f32"), "f16"),
        (("f32", "f32"), "bf16"),
        (("i8", "f16"), "f16"),
        (("bf16", "i8"), "bf16"),
        (("f16", "bf16"), "bf16"),
        (("f16", "f32"), "tf32"),
        (("i8", "bf16"), "tf32"),
    ],
    ids=lambda given: given if isinstance(given, str) else "-".join(given),
)
def test_conversions(layout: str, memory: tuple[str, str], kind: str) -> None:
    check(*operands(layout, memory, kind))


@pytest.mark.parametrize("memory", [("f16", "f16"), ("f16", "i8")], ids="-".join)
def test_bytes_of_halves_along_k(memory: tuple[str, str]) -> None:
    check(*operands("nt", memory, "i8"))
