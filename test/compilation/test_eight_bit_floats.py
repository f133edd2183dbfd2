"""End to end with f8E4M3FN and f8E5M2: contractions, scales, conversions.

Values are decoded here by the definition of the types (OCP, "8-bit Floating Point
Specification"), not by what the package does. Kernels run on the emulator.
"""

from __future__ import annotations

import itertools
import math
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from alcop_mlir.compilation import compiler, inputs
from alcop_mlir.runtime import checking
from alcop_mlir.runtime.bundle import Bundle
from alcop_mlir.runtime.emulator import emulate
from alcop_mlir.runtime.launch import Program, grid_of
from alcop_mlir.schedule import Schedule
from alcop_mlir.target import find_target

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
E4, E5 = "f8E4M3FN", "f8E5M2"
TYPES = (E4, E5)
FRACTION = {E4: 3, E5: 2}
BIAS = {E4: 7, E5: 15}
LARGEST = {E4: 448.0, E5: 57344.0}
NATIVE, WIDENING = "sm_89", ("sm_80", "sm_90")
MODES = tuple(itertools.product(("late", "early"), ("lockstep", "random(1)")))
SIZE, DEPTH = 64, 256
Array = np.ndarray


def value(bits: int, kind: str) -> float:
    """What a byte is."""
    fraction, bias = FRACTION[kind], BIAS[kind]
    exponent, low = (bits & 0x7F) >> fraction, bits & (1 << fraction) - 1
    sign = -1.0 if bits >> 7 else 1.0
    if kind == E4 and bits & 0x7F == 0x7F:
        return math.nan
    if kind == E5 and exponent == 31:
        return math.nan if low else sign * math.inf
    steps = low + (1 << fraction) if exponent else low
    return math.ldexp(sign * steps, max(exponent, 1) - bias - fraction)


VALUES = {kind: np.array([value(n, kind) for n in range(256)]) for kind in TYPES}


def decoded(array: Array, kind: str) -> Array:
    if kind == "bf16":
        return (array.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    with np.errstate(invalid="ignore"):  # signalling NaN
        return VALUES[kind][array] if kind in TYPES else array.astype(np.float64)


def saturated(number: float, kind: str) -> float:
    """The nearest number of the type, ties to even; the largest where there is none."""
    if math.isnan(number):
        return math.nan
    size = min(abs(number), LARGEST[kind])
    finite = [one for one in VALUES[kind][:128] if math.isfinite(one)]
    near = min(range(len(finite)), key=lambda n: (abs(finite[n] - size), n % 2))
    return math.copysign(finite[near], number)


def drawn(shape: tuple[int, ...], kind: str, seed: int) -> Array:
    """Bytes of finite numbers of one to two magnitudes."""
    random = np.random.default_rng(seed)
    if kind not in TYPES:
        numbers = random.uniform(-1, 1, shape)
        return numbers.astype(np.float16 if kind == "f16" else np.float32)
    middle = BIAS[kind] << FRACTION[kind]
    bits = random.integers(middle - 12, middle + 4, shape)
    return (bits | random.integers(0, 2, shape) << 7).astype(np.uint8)


NUMPY = {E4: np.uint8, E5: np.uint8, "f16": np.float16, "bf16": np.uint16}
ROUNDING = {E4: 2.0**-4, E5: 2.0**-3, "f16": 2.0**-11, "bf16": 2.0**-8, "f32": 0.0}


@dataclass(frozen=True)
class Product:
    """C = A * B of these types; "t": A is stored k x m, B is stored n x k."""

    a: str
    b: str
    out: str = "f32"
    layout: str = "nt"
    depth: int = DEPTH

    @property
    def shapes(self) -> tuple[tuple[int, int], tuple[int, int]]:
        a = (SIZE, self.depth) if self.layout[0] == "n" else (self.depth, SIZE)
        b = (self.depth, SIZE) if self.layout[1] == "n" else (SIZE, self.depth)
        return a, b

    def text(self) -> str:
        (am, ak), (bk, bn) = self.shapes
        a, b = f"memref<{am}x{ak}x{self.a}>", f"memref<{bk}x{bn}x{self.b}>"
        c = f"memref<{SIZE}x{SIZE}x{self.out}>"
        rows = "m, k" if self.layout[0] == "n" else "k, m"
        columns = "k, n" if self.layout[1] == "n" else "n, k"
        is_wide = self.out == "f32"
        old = "" if is_wide else f"%old = arith.extf %c : {self.out} to f32"
        new = "" if is_wide else f"%new = arith.truncf %s : f32 to {self.out}"
        return f"""
          func.func @f(%A: {a}, %B: {b}, %C: {c}) {{
            %z = arith.constant 0.0 : {self.out}
            linalg.fill ins(%z : {self.out}) outs(%C : {c})
            linalg.generic {{
              indexing_maps = [affine_map<(m, n, k) -> ({rows})>,
                               affine_map<(m, n, k) -> ({columns})>,
                               affine_map<(m, n, k) -> (m, n)>],
              iterator_types = ["parallel", "parallel", "reduction"]
            }} ins(%A, %B : {a}, {b}) outs(%C : {c}) {{
            ^bb0(%a: {self.a}, %b: {self.b}, %c: {self.out}):
              %x = arith.extf %a : {self.a} to f32
              %y = arith.extf %b : {self.b} to f32
              %p = arith.mulf %x, %y : f32
              {old}
              %s = arith.addf {"%c" if is_wide else "%old"}, %p : f32
              {new}
              linalg.yield {"%s" if is_wide else "%new"} : {self.out}
            }}
            return
          }}"""

    def check(self, target: str, stages: tuple[int, int], modes: tuple = MODES[:1]):
        """Runs it; the PTX."""
        schedule = Schedule((SIZE, SIZE, 64), (32, 32), stages)
        bundle = compiled(self.text(), target, schedule)
        (kernel,) = bundle.functions[0].kernels
        ptx = bundle.code_of(kernel).ptx
        a, b = (
            drawn(shape, kind, number)
            for number, (shape, kind) in enumerate(
                zip(self.shapes, (self.a, self.b), strict=True)
            )
        )
        left, right = decoded(a, self.a), decoded(b, self.b)
        exact = (left if self.layout[0] == "n" else left.T) @ (
            right if self.layout[1] == "n" else right.T
        )
        for visibility, order in modes:
            c = np.zeros((SIZE, SIZE), NUMPY.get(self.out, np.float32))
            done = emulate(
                ptx,
                kernel.name,
                grid_of(kernel, {}),
                kernel.block,
                [a, b, c],
                dynamic_shared=kernel.shared_bytes,
                visibility=visibility,
                schedule=order,
                counters=True,
            )
            assert not done.hazards
            assert done.counters is not None
            assert done.counters.bank_conflicts == 0
            error = np.abs(decoded(c, self.out) - exact)
            allowed = self.depth * 2.0**-23 * np.abs(exact).max()
            assert (error <= allowed + ROUNDING[self.out] * np.abs(exact)).all()
        return ptx


def compiled(text: str, target: str, schedule: Schedule | None = None) -> Bundle:
    options = compiler.Options(
        target=find_target(target), schedule=schedule, use_ptxas=False
    )
    return compiler.compile_source(inputs.read(text), options)


PTX = {E4: "e4m3", E5: "e5m2"}


@pytest.mark.parametrize("b", TYPES)
@pytest.mark.parametrize("a", TYPES)
def test_all_types_are_multiplied_by_one_instruction(a: str, b: str) -> None:
    ptx = Product(a, b).check(NATIVE, (3, 2), MODES)
    assert f"mma.sync.aligned.m16n8k32.row.col.f32.{PTX[a]}.{PTX[b]}.f32" in ptx
    assert not re.search(r"cvt\.\S*(f16|e4m3|e5m2)", ptx)


@pytest.mark.parametrize("target", [NATIVE, "sm_90"])
@pytest.mark.parametrize("b", TYPES)
def test_loops_carry_fragments(b: str, target: str) -> None:
    """Of a steady state that is left as a loop, and fragments loaded a step early."""
    ptx = Product(E4, b, depth=1024).check(target, (2, 2))
    assert re.search(r"@%p\d+ bra", ptx)


@pytest.mark.parametrize(("target", "layout"), [(NATIVE, "nt"), ("sm_80", "tn")])
def test_rows_that_are_known_at_run_time_only(target: str, layout: str) -> None:
    """Of whole 16 bytes, and of any length: threads copy these byte by byte."""
    text = Product(E4, E5, layout=layout).text()
    text = text.replace(f"{SIZE}x", "?x").replace(f"{DEPTH}x", "?x")
    program = Program(compiled(text, target), device="emulator")
    for m, n, k in ((50, 70, 96), (33, 35, 37)):
        a = drawn((m, k), E4, 1)
        b = drawn((n, k), E5, 2)
        c = np.zeros((m, n), np.float32)
        given = a if layout[0] == "n" else np.ascontiguousarray(a.T)
        other = b.T if layout[1] == "n" else b
        program(given, np.ascontiguousarray(other), c)
        exact = decoded(a, E4) @ decoded(b, E5).T
        assert np.abs(c - exact).max() <= k * 2.0**-23 * np.abs(exact).max()


@pytest.mark.parametrize("target", [NATIVE, "sm_80"])
@pytest.mark.parametrize("layout", ["nn", "tn", "tt"])
def test_layouts(layout: str, target: str) -> None:
    """Of bytes across K ldmatrix moves pairs, and prmt parts them."""
    Product(E5, E4, layout=layout).check(target, (2, 1))


@pytest.mark.parametrize(
    ("out", "layout"),
    [("f16", "nt"), ("bf16", "tt"), (E4, "nt"), (E5, "nt"), (E4, "nn"), (E5, "tn")],
)
def test_outputs(out: str, layout: str) -> None:
    """Rounded once; bytes of one row by stores of 16, if rows allow."""
    ptx = Product(E4, E4, out, layout).check(NATIVE, (3, 2))
    is_whole = out not in TYPES or layout == "nt"
    assert ("st.global.v4" in ptx or "st.global.b128" in ptx) is is_whole


@pytest.mark.parametrize("target", WIDENING)
def test_others_multiply_what_f16_holds(
    target: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """sm_90 has the instruction, but ptxas makes conversions and two others of it."""
    ptx = Product(E4, E5).check(target, (3, 2))
    assert "m16n8k16.row.col.f32.f16.f16.f32" in ptx
    assert "cp.async.cg.shared.global" in ptx  # bytes, as they lie
    said = capsys.readouterr().err
    assert (
        f"multiplies {E4} by {E5} as f16, at half the rate: behind mma.sync, the "
        f"tensor cores of {target} multiply no {E4} or {E5}, those of sm_89"
    ) in said


@pytest.mark.parametrize(("a", "b"), [("f16", E4), (E5, "f16")])
def test_weights_of_eight_bits(a: str, b: str) -> None:
    """Multiplied as the other operand's type, on all targets alike."""
    ptx = Product(a, b).check(NATIVE, (3, 1))
    assert "m16n8k16.row.col.f32.f16.f16.f32" in ptx


SCALED = f"""
func.func @f(%A: tensor<48x96x{E4}>, %B: tensor<80x96x{E5}>, %all: tensor<f32>,
             %rows: tensor<48xf32>, %columns: tensor<80xf32>) -> tensor<48x80xOUT> {{
  %z = arith.constant 0.0 : f32
  %none = tensor.empty() : tensor<48x80xf32>
  %zeros = linalg.fill ins(%z : f32) outs(%none : tensor<48x80xf32>)
      -> tensor<48x80xf32>
  %sums = linalg.generic {{
    indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>,
                     affine_map<(m, n, k) -> (m, n)>],
    iterator_types = ["parallel", "parallel", "reduction"]
  }} ins(%A, %B : tensor<48x96x{E4}>, tensor<80x96x{E5}>)
    outs(%zeros : tensor<48x80xf32>) {{
  ^bb0(%a: {E4}, %b: {E5}, %c: f32):
    %x = arith.extf %a : {E4} to f32
    %y = arith.extf %b : {E5} to f32
    %p = arith.mulf %x, %y : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  }} -> tensor<48x80xf32>
  %empty = tensor.empty() : tensor<48x80xOUT>
  %scaled = linalg.generic {{
    indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> ()>,
                     affine_map<(m, n) -> (m)>, affine_map<(m, n) -> (n)>,
                     affine_map<(m, n) -> (m, n)>],
    iterator_types = ["parallel", "parallel"]
  }} ins(%sums, %all, %rows, %columns
        : tensor<48x80xf32>, tensor<f32>, tensor<48xf32>, tensor<80xf32>)
    outs(%empty : tensor<48x80xOUT>) {{
  ^bb0(%s: f32, %one: f32, %row: f32, %column: f32, %old: OUT):
    %p = arith.mulf %s, %one : f32
    %q = arith.mulf %p, %row : f32
    %r = arith.mulf %q, %column : f32
    %t = arith.truncf %r : f32 to OUT
    linalg.yield %t : OUT
  }} -> tensor<48x80xOUT>
  return %scaled : tensor<48x80xOUT>
}}"""


@pytest.mark.parametrize("target", [NATIVE, "sm_80"])
@pytest.mark.parametrize("out", ["bf16", E4])
def test_scales_are_computed_on_accumulators(out: str, target: str) -> None:
    """Of the tensor, of rows and of columns: one kernel, also what is out of range."""
    bundle = compiled(SCALED.replace("OUT", out), target)
    (kernel,) = bundle.functions[0].kernels
    assert kernel.fallback is None
    a, b = drawn((48, 96), E4, 1), drawn((80, 96), E5, 2)
    random = np.random.default_rng(3)
    rows, columns = (random.uniform(1, 40, n).astype(np.float32) for n in (48, 80))
    whole = np.array(0.25, np.float32)
    c = np.zeros((48, 80), NUMPY[out])
    Program(bundle, device="emulator")(a, b, whole, rows, columns, c)
    exact = (decoded(a, E4) @ decoded(b, E5).T) * 0.25 * rows[:, None] * columns
    got = decoded(c, out)
    limit = LARGEST.get(out, math.inf)
    expected = np.clip(exact, -limit, limit)
    error = np.abs(got - expected)
    assert (error <= ROUNDING[out] * 1.01 * np.abs(expected) + 1e-3).all()
    if out in TYPES:
        assert 0.05 < (np.abs(exact) > limit).mean() < 0.95


def test_the_reference_knows_what_is_out_of_range() -> None:
    """Inputs are extreme in places, NaN too; the largest is right where it is reached,
    and another number is not.
    """
    bundle = compiled(SCALED.replace("OUT", E4), NATIVE)
    function = bundle.functions[0]
    before = checking.random_arrays(function, seed=5)
    names = [one.name for one in function.parameters]
    scale = next(n for n in names if before[n].shape == (48,))
    before[scale] = before[scale] * np.float32(3000)
    after = {name: array.copy() for name, array in before.items()}
    Program(bundle, device="emulator")(*(after[name] for name in names))
    found = checking.check(function, before, after)
    assert found.ok
    out = after[names[-1]]
    places = np.argwhere((out & 0x7F) == 0x7E)
    assert len(places) > 20
    for row, column in places[:40]:
        out[row, column] -= 2
    assert not checking.check(function, before, after).ok


def test_the_example_is_one_kernel_and_right() -> None:
    """By the reference that its bundle holds."""
    bundle = compiled((EXAMPLES / "matmul_scaled_f8.mlir").read_text(), NATIVE)
    function = bundle.functions[0]
    assert len(function.kernels) == 1
    before = checking.random_arrays(function)
    after = {name: array.copy() for name, array in before.items()}
    Program(bundle, device="emulator")(*after.values())
    assert checking.check(function, before, after).ok


def converting(given: str, made: str, count: int) -> str:
    op = "extf" if given in TYPES else "truncf"
    return f"""
      func.func @f(%x: memref<{count}x{given}>, %y: memref<{count}x{made}>) {{
        linalg.generic {{
          indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
          iterator_types = ["parallel"]
        }} ins(%x : memref<{count}x{given}>) outs(%y : memref<{count}x{made}>) {{
        ^bb0(%a: {given}, %old: {made}):
          %b = arith.{op} %a : {given} to {made}
          linalg.yield %b : {made}
        }}
        return
      }}"""


@pytest.mark.parametrize("target", [NATIVE, "sm_80"])
@pytest.mark.parametrize("wide", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize("kind", TYPES)
def test_every_byte_is_widened(kind: str, wide: str, target: str) -> None:
    given = np.arange(256, dtype=np.uint8)
    made = np.zeros(256, {**NUMPY, "f64": np.float64}.get(wide, np.float32))
    Program(compiled(converting(kind, wide, 256), target), device="emulator")(
        given, made
    )
    got = decoded(made, wide)
    assert np.array_equal(got, VALUES[kind], equal_nan=True)
    numbers = ~np.isnan(got)
    assert np.array_equal(np.signbit(got)[numbers], np.signbit(VALUES[kind])[numbers])


def awkward(kind: str, dtype: type) -> Array:
    """Numbers, what lies half way between two, and their neighbours; the extremes."""
    finite = VALUES[kind][np.isfinite(VALUES[kind])]
    sizes = np.unique(np.abs(finite))
    half = (sizes[1:] + sizes[:-1]) / 2
    at = np.concatenate([finite, half, -half, [LARGEST[kind] * 1.04, 1e-30, 3e4, -9e9]])
    exact = at.astype(dtype)
    found = [exact, np.nextafter(exact, dtype(np.inf)), np.nextafter(exact, dtype(0))]
    found.append(np.array([np.inf, -np.inf, np.nan, 0.0, -0.0], dtype))
    return np.concatenate(found)


@pytest.mark.parametrize("target", [NATIVE, "sm_80"])
@pytest.mark.parametrize("wide", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("kind", TYPES)
def test_numbers_are_rounded_once_and_saturate(
    kind: str, wide: type, target: str
) -> None:
    """To nearest, ties to even; f64 as if in one step."""
    with np.errstate(over="ignore"):
        given = awkward(kind, wide)
    made = np.zeros(len(given), np.uint8)
    name = f"f{8 * given.itemsize}"
    Program(compiled(converting(name, kind, len(given)), target), device="emulator")(
        given, made
    )
    expected = np.array([saturated(float(one), kind) for one in given])
    got = VALUES[kind][made]
    assert np.array_equal(got, expected, equal_nan=True)
    numbers = ~np.isnan(expected)
    assert np.array_equal(np.signbit(got)[numbers], np.signbit(given)[numbers])


@pytest.mark.parametrize("target", [NATIVE, "sm_80"])
def test_other_arithmetic_is_done_in_f32(target: str) -> None:
    """Each op is rounded; upstream has no lowering of it, nor of integers to eight."""
    text = converting(E4, E4, 256).replace(
        f"%b = arith.extf %a : {E4} to {E4}",
        f"""%one = arith.constant 1.5 : {E4}
          %sum = arith.addf %a, %one : {E4}
          %three = arith.constant 3 : i32
          %of = arith.sitofp %three : i32 to {E4}
          %product = arith.mulf %sum, %of : {E4}
          %less = arith.cmpf olt, %product, %one : {E4}
          %b = arith.select %less, %one, %product : {E4}""",
    )
    given, made = np.arange(256, dtype=np.uint8), np.zeros(256, np.uint8)
    Program(compiled(text, target), device="emulator")(given, made)
    expected = []
    for number in VALUES[E4]:
        total = saturated(number + 1.5, E4)
        product = saturated(total * 3, E4)
        expected.append(1.5 if product < 1.5 else product)
    assert np.array_equal(VALUES[E4][made], expected, equal_nan=True)
