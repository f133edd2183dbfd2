"""Weights of four bits, two in a byte, unpacked by the contraction that reads them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import alcop_mlir
from alcop_mlir import dtypes
from alcop_mlir.compilation import inputs
from alcop_mlir.errors import CompileError
from alcop_mlir.runtime import checking
from alcop_mlir.runtime.launch import Program

EACH = 'iterator_types = ["parallel", "parallel"]'
EACH_3 = 'iterator_types = ["parallel", "parallel", "parallel"]'
# The weights W[n, k] of packed bytes, as torch-mlir exports them, times a matrix.
TEXT = """
#id = affine_map<(i, j) -> (i, j)>
#across = affine_map<(i, j) -> (j, i)>
#id3 = affine_map<(i, j, k) -> (i, j, k)>
#kept = affine_map<(i, j, k) -> (i, j, 0)>
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
func.func @f(%x: tensor<{f.m}x{f.k}x{f.kind}>, %p: tensor<{f.bytes}xi8> {f.mark},
    %s: tensor<{f.n}x{f.groups}x{f.kind}>, %z: tensor<{f.n}x{f.groups}x{f.zero}>)
    -> tensor<{f.m}x{f.n}xf32> {{
  %c4 = arith.constant 4 : i8
  %c15 = arith.constant 15 : i8
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<{f.n}x{f.half}xi8>
  %low = linalg.generic {{indexing_maps = [{f.map}, #id], {each}}}
    ins(%p : tensor<{f.bytes}xi8>) outs(%e : tensor<{f.n}x{f.half}xi8>) {{
  ^bb0(%v: i8, %o: i8):
    {f.low}
    linalg.yield %r : i8
  }} -> tensor<{f.n}x{f.half}xi8>
  %high = linalg.generic {{indexing_maps = [{f.map}, #id], {each}}}
    ins(%p : tensor<{f.bytes}xi8>) outs(%e : tensor<{f.n}x{f.half}xi8>) {{
  ^bb0(%v: i8, %o: i8):
    %r = {f.shift} %v, %c4 : i8
    linalg.yield %r : i8
  }} -> tensor<{f.n}x{f.half}xi8>
  %l = tensor.expand_shape %low [[0], [1, 2]] output_shape [{f.n}, {f.half}, 1]
    : tensor<{f.n}x{f.half}xi8> into tensor<{f.n}x{f.half}x1xi8>
  %h = tensor.expand_shape %high [[0], [1, 2]] output_shape [{f.n}, {f.half}, 1]
    : tensor<{f.n}x{f.half}xi8> into tensor<{f.n}x{f.half}x1xi8>
  %both = tensor.concat dim(2) %l, %h
    : (tensor<{f.n}x{f.half}x1xi8>, tensor<{f.n}x{f.half}x1xi8>)
    -> tensor<{f.n}x{f.half}x2xi8>
  %all = tensor.collapse_shape %both [[0], [1, 2]]
    : tensor<{f.n}x{f.half}x2xi8> into tensor<{f.n}x{f.k}xi8>
  %g = tensor.expand_shape %all [[0], [1, 2]]
    output_shape [{f.n}, {f.groups}, {f.group}]
    : tensor<{f.n}x{f.k}xi8> into tensor<{f.of_groups}xi8>
  %s1 = tensor.expand_shape %s [[0], [1, 2]] output_shape [{f.n}, {f.groups}, 1]
    : tensor<{f.n}x{f.groups}x{f.kind}> into tensor<{f.n}x{f.groups}x1x{f.kind}>
  %z1 = tensor.expand_shape %z [[0], [1, 2]] output_shape [{f.n}, {f.groups}, 1]
    : tensor<{f.n}x{f.groups}x{f.zero}> into tensor<{f.n}x{f.groups}x1x{f.zero}>
  %ew = tensor.empty() : tensor<{f.of_groups}x{f.kind}>
  %w3 = linalg.generic {{indexing_maps = [#id3, #kept, #kept, #id3], {each_3}}}
    ins(%g, %s1, %z1 : tensor<{f.of_groups}xi8>, tensor<{f.n}x{f.groups}x1x{f.kind}>,
        tensor<{f.n}x{f.groups}x1x{f.zero}>)
    outs(%ew : tensor<{f.of_groups}x{f.kind}>) {{
  ^bb0(%q: i8, %t: {f.kind}, %y: {f.zero}, %o: {f.kind}):
    {f.subtract}
    %r = arith.mulf %d, %t : {f.kind}
    linalg.yield %r : {f.kind}
  }} -> tensor<{f.of_groups}x{f.kind}>
  %w = tensor.collapse_shape %w3 [[0], [1, 2]]
    : tensor<{f.of_groups}x{f.kind}> into tensor<{f.n}x{f.k}x{f.kind}>
  %ec = tensor.empty() : tensor<{f.m}x{f.n}xf32>
  %fc = linalg.fill ins(%zero : f32) outs(%ec : tensor<{f.m}x{f.n}xf32>)
    -> tensor<{f.m}x{f.n}xf32>
  %y = linalg.matmul indexing_maps = [#a, #b, #c]
    ins(%x, %w : tensor<{f.m}x{f.k}x{f.kind}>, tensor<{f.n}x{f.k}x{f.kind}>)
    outs(%fc : tensor<{f.m}x{f.n}xf32>) -> tensor<{f.m}x{f.n}xf32>
  return %y : tensor<{f.m}x{f.n}xf32>
}}"""
LOW = {
    False: "%r = arith.andi %v, %c15 : i8",
    True: "%u = arith.shli %v, %c4 : i8\n    %r = arith.shrsi %u, %c4 : i8",
}


@dataclass(frozen=True)
class Form:
    """One way to hold weights: sizes, codes, zero points, how bytes lie."""

    m: int = 16
    n: int = 32
    k: int = 128
    group: int = 32
    signed: bool = False
    zero: str = "f16"  # the type of zero points
    kind: str = "f16"
    across: bool = False  # bytes are [k / 2, n]
    is_weight: bool = False

    half = property(lambda self: self.k // 2)
    groups = property(lambda self: self.k // self.group)
    of_groups = property(lambda self: f"{self.n}x{self.groups}x{self.group}")
    map = property(lambda self: "#across" if self.across else "#id")
    mark = property(lambda self: "{alcop.weight}" if self.is_weight else "")
    low = property(lambda self: LOW[self.signed])
    shift = property(lambda self: "arith.shrsi" if self.signed else "arith.shrui")

    @property
    def bytes(self) -> str:
        return f"{self.half}x{self.n}" if self.across else f"{self.n}x{self.half}"

    @property
    def subtract(self) -> str:
        if self.zero == "i8":
            return (
                "%u = arith.subi %q, %y : i8\n"
                f"    %d = arith.sitofp %u : i8 to {self.kind}"
            )
        return (
            f"%u = arith.sitofp %q : i8 to {self.kind}\n"
            f"    %d = arith.subf %u, %y : {self.kind}"
        )

    @property
    def text(self) -> str:
        return TEXT.format(f=self, each=EACH, each_3=EACH_3)


def weights(form: Form, packed: np.ndarray, scales: np.ndarray, zeros: np.ndarray):
    """The weights in float64; each of few bits, which are exact in f16."""
    packed = packed.T if form.across else packed
    codes = np.stack((packed & 15, packed >> 4 & 15), -1).reshape(form.n, form.k)
    if form.signed:
        codes = np.where(codes > 7, codes - 16, codes)
    spread = (np.repeat(one, form.group, 1) for one in (scales, zeros))
    scale, zero = spread
    return (codes - zero) * scale


def right(form: Form, program: Program) -> None:
    """Run on the emulator and compare."""
    draw = np.random.default_rng(0)
    x = draw.integers(-4, 5, (form.m, form.k)).astype(float)
    shape = tuple(map(int, form.bytes.split("x")))
    packed = draw.integers(-128, 128, shape).astype(np.int8)
    scales = 2.0 ** draw.integers(-3, 1, (form.n, form.groups))
    zeros = draw.integers(0, 16, (form.n, form.groups)).astype(float)
    got = program(
        dtypes.encode(x, form.kind),
        packed,
        dtypes.encode(scales, form.kind),
        dtypes.encode(zeros, form.zero),
    )
    assert np.array_equal(got, x @ weights(form, packed, scales, zeros).T)


FORMS = (
    Form(),
    Form(signed=True, group=64, kind="bf16", zero="bf16"),
    Form(group=128, zero="i8", m=1),
    Form(across=True, is_weight=True, n=40),
)


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_packed_weights(form: Form) -> None:
    program = alcop_mlir.compile(form.text)
    right(form, program)
    kernels = [one for one in program.function.kernels if one.schedule is not None]
    (kernel,) = kernels
    copied = [one.buffer for one in kernel.pipelines if one.level == "shared"]
    (packed,) = (one for one in copied if "xi8" in one)
    rows, columns = map(int, packed.split()[-1].removesuffix("xi8").split("x"))
    assert kernel.schedule is not None
    _, n, k = kernel.schedule.block
    assert rows * columns == n * k // 2


def test_a_step_of_several_groups() -> None:
    form = Form(k=256)
    right(form, alcop_mlir.compile(form.text, schedule="block=16,32,64 stages=3,2"))


@pytest.mark.parametrize("schedule", ["block=16,32,48", "split_k=2"])
def test_a_schedule_that_does_not_fit(schedule: str) -> None:
    form = Form(k=384)
    with pytest.raises(CompileError, match=r"groups of 32|is not split"):
        alcop_mlir.compile(form.text, schedule=schedule)


@pytest.mark.parametrize(
    ("form", "why"),
    [
        (Form(k=96), "K is 96, expected a multiple of 128"),
        (Form(group=8), "expected groups of a multiple of 16"),
        (Form(across=True), "they would be transposed in each call"),
    ],
    ids=str,
)
def test_left_unpacked(
    form: Form, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where the contraction does not, a kernel of its own unpacks them."""
    program = alcop_mlir.compile(form.text)
    assert why in capsys.readouterr().err
    right(form, program)


def test_reference() -> None:
    """The bundle's own reference knows shifts, and the kernel agrees with it."""
    program = alcop_mlir.compile(Form(signed=True).text)
    function = program.function
    before = checking.random_arrays(function, values="plain")
    *inputs, result = (one.name for one in function.parameters)
    got = program(*(before[name] for name in inputs))
    assert checking.check(function, before, {**before, result: got}).ok
    got = got + 1
    assert not checking.check(function, before, {**before, result: got}).ok


def test_arrays_of_i4_are_refused() -> None:
    each = "affine_map<(i) -> (i)>"
    text = f"""
      func.func @f(%p: memref<64xi4>, %c: memref<64xf16>) {{
        linalg.generic {{indexing_maps = [{each}, {each}],
            iterator_types = ["parallel"]}}
          ins(%p : memref<64xi4>) outs(%c : memref<64xf16>) {{
        ^bb0(%q: i4, %o: f16):
          %r = arith.sitofp %q : i4 to f16
          linalg.yield %r : f16
        }}
        return
      }}"""
    with pytest.raises(CompileError, match="has i4 elements, expected one of f16"):
        alcop_mlir.compile(text)


def test_a_deep_network_is_searched_once() -> None:
    """Each op reads the one before twice: paths double, and calls would nest."""
    kind = "tensor<128x32xf16>"
    ops = [
        f"""%t{i + 1} = linalg.generic {{indexing_maps = [#id, #id, #id], {EACH}}}
          ins(%t{i}, %t{i} : {kind}, {kind}) outs(%e : {kind}) {{
        ^bb0(%a: f16, %b: f16, %o: f16):
          %r = arith.addf %a, %b : f16
          linalg.yield %r : f16
        }} -> {kind}"""
        for i in range(400)
    ]
    text = f"""
      #id = affine_map<(i, j) -> (i, j)>
      func.func @f(%x: tensor<16x128xf16>, %t0: {kind}, %c: tensor<16x32xf32>)
          -> (tensor<16x32xf32>, tensor<128x64xf16>) {{
        %e = tensor.empty() : {kind}
        %k = tensor.concat dim(1) %t0, %t0 : ({kind}, {kind}) -> tensor<128x64xf16>
        {" ".join(ops)}
        %y = linalg.matmul ins(%x, %t400 : tensor<16x128xf16>, {kind})
          outs(%c : tensor<16x32xf32>) -> tensor<16x32xf32>
        return %y, %k : tensor<16x32xf32>, tensor<128x64xf16>
      }}"""
    module = inputs.read_text(text).module
    alcop_mlir.run_pipeline(module, "builtin.module(func.func(alcop-sink-unpacking))")
    assert "linalg.matmul" in str(module)
