"""Scalar bodies on values of all magnitudes: LLVM must not change what they compute.

Each body extends two elements to a wider type, computes in it, and truncates. The
expected bits are NumPy's, op by op, rounded once per op. LLVM's optimiser narrows such
code where it believes that nothing is lost; it compares mantissas and forgets
exponents, which f16 and bf16 do not share.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest

from alcop_mlir import dtypes
from alcop_mlir.bindings import ir, make_context, passmanager
from alcop_mlir.compilation import compiler, inputs
from alcop_mlir.runtime import checking, llvm_text, ptx
from alcop_mlir.runtime.emulator import emulate
from alcop_mlir.runtime.launch import Program
from alcop_mlir.target import find_target
from alcop_mlir.transforms.kernels.lower_to_nvvm import LowerToNvvm

COUNT = 512
Array = np.ndarray
SOURCES = ("f16", "bf16", "f32", "f64", "i8", "i32")
# Bits of the mantissa with the leading one, and the exponent of the smallest subnormal.
FORMATS = {"f16": (11, -24), "bf16": (8, -133), "f32": (24, -149), "f64": (53, -1074)}
WIDE = {"f32": np.float32, "f64": np.float64}
FACTORS = (1024.0, 0.0625, 1e5, 2.0**-20)

# What is stored, as MLIR of %x, %y and constants %c0 ..., and as NumPy.
BODIES: dict[str, Callable[[Array, Array, list[Array]], Array]] = {
    "arith.addf %x, %y": lambda x, y, c: x + y,
    "arith.subf %x, %y": lambda x, y, c: x - y,
    "arith.mulf %x, %y": lambda x, y, c: x * y,
    "arith.divf %x, %y": lambda x, y, c: x / y,
    "arith.maximumf %x, %y": lambda x, y, c: np.maximum(x, y),
    "arith.mulf %x, %c0": lambda x, y, c: x * c[0],
    "arith.mulf %x, %c1": lambda x, y, c: x * c[1],
    "arith.mulf %c2, %y": lambda x, y, c: c[2] * y,
    "arith.addf %x, %c3": lambda x, y, c: x + c[3],
    "arith.divf %c0, %y": lambda x, y, c: c[0] / y,
    "arith.negf %x": lambda x, y, c: -x,
    "arith.select %less, %x, %y": lambda x, y, c: np.where(x < y, x, y),
}


def kernel(x: str, y: str, wide: str, out: str) -> str:
    """Each thread stores all bodies of its pair of elements, one below the other."""
    constants = "\n".join(
        f"%c{n} = arith.constant {factor} : {wide}" for n, factor in enumerate(FACTORS)
    )
    bodies = "\n".join(
        f"""%v{n} = {body} : {wide}
            %o{n} = {narrowed(f"%v{n}", wide, out)}
            %p{n} = arith.constant {n} : index
            memref.store %o{n}, %d[%p{n}, %t] : memref<{len(BODIES)}x{COUNT}x{out}>"""
        for n, body in enumerate(BODIES)
    )
    shapes = f"offset: [0], sizes: [{COUNT}], strides: [1]"
    table = f"sizes: [{len(BODIES)}, {COUNT}], strides: [{COUNT}, 1]"
    return f"""
    gpu.func @{x}_{y}_{wide}_{out}(%px: memref<1x{x}>, %py: memref<1x{y}>,
        %pd: memref<1x{out}>) kernel
        attributes {{known_block_size = array<i32: {COUNT}, 1, 1>}} {{
      %a = memref.reinterpret_cast %px to {shapes}
        : memref<1x{x}> to memref<{COUNT}x{x}>
      %b = memref.reinterpret_cast %py to {shapes}
        : memref<1x{y}> to memref<{COUNT}x{y}>
      %d = memref.reinterpret_cast %pd to offset: [0], {table}
        : memref<1x{out}> to memref<{len(BODIES)}x{COUNT}x{out}>
      %t = gpu.thread_id x
      %sx = memref.load %a[%t] : memref<{COUNT}x{x}>
      %sy = memref.load %b[%t] : memref<{COUNT}x{y}>
      %x = {widened("%sx", x, wide)}
      %y = {widened("%sy", y, wide)}
      %less = arith.cmpf olt, %x, %y : {wide}
      {constants}
      {bodies}
      gpu.return
    }}"""


def widened(name: str, kind: str, wide: str) -> str:
    if kind == wide:
        return f"arith.addf {name}, {name} : {wide}"
    op = "sitofp" if dtypes.is_integer(kind) else "extf"
    return f"arith.{op} {name} : {kind} to {wide}"


def narrowed(name: str, wide: str, out: str) -> str:
    if wide == out:
        return f"arith.negf {name} : {wide}"
    return f"arith.truncf {name} : {wide} to {out}"


def rounded(values: Array, kind: str) -> Array:
    """Values of f32 or f64 as `kind` has them, to nearest, ties to even; as float64."""
    digits, smallest = FORMATS[kind]
    wide = values.astype(np.float64)
    _, exponent = np.frexp(wide)
    unit = np.maximum(exponent - digits, smallest)
    near = np.ldexp(np.rint(np.ldexp(wide, -unit)), unit)
    with np.errstate(over="ignore"):
        near = np.where(np.abs(near) > dtypes.LARGEST[kind], wide * np.inf, near)
    return np.where(np.isfinite(wide), near, wide)


def drawn(random: np.random.Generator, kind: str) -> Array:
    """Random bits: every exponent, subnormals, infinities, NaNs; and small numbers."""
    width = np.dtype(dtypes.NUMPY_DTYPES[kind]).itemsize
    bits = random.integers(0, 256, COUNT * width, np.uint8).view(f"u{width}")
    values = bits.view(dtypes.NUMPY_DTYPES[kind]).copy()
    if dtypes.is_integer(kind):
        return values
    values[: COUNT // 4] = dtypes.encode(random.normal(0, 100, COUNT // 4), kind)
    return values


def expected(body: str, x: Array, y: Array, kinds: tuple[str, ...]) -> Array:
    """As float64, each op rounded once."""
    of_x, of_y, wide, out = kinds
    with np.errstate(all="ignore"):
        left, right = (
            rounded(dtypes.decode(values, kind), wide).astype(WIDE[wide])
            * (2 if kind == wide else 1)
            for values, kind in ((x, of_x), (y, of_y))
        )
        constants = [WIDE[wide](factor) for factor in FACTORS]
        result = BODIES[body](left, right, constants)
        return -result.astype("f8") if wide == out else rounded(result, out)


@pytest.mark.parametrize("wide", WIDE)
def test_llvm_changes_no_number(wide: str) -> None:
    """All pairs of source types, computed in `wide`, truncated to each type."""
    narrower = [kind for kind in FORMATS if FORMATS[kind][0] <= FORMATS[wide][0]]
    sources = [kind for kind in SOURCES if kind in narrower or kind[0] == "i"]
    random = np.random.default_rng(11)
    wrong = []
    for kinds in itertools.product(sources, sources, [wide], narrower):
        x, y = drawn(random, kinds[0]), drawn(random, kinds[1])
        out = np.zeros((len(BODIES), COUNT), dtypes.NUMPY_DTYPES[kinds[3]])
        name = "_".join(kinds)
        code = emitted(f"gpu.module @all {{ {kernel(*kinds)} }}")
        emulate(code, name, (1, 1, 1), (COUNT, 1, 1), [x, y, out], hazards=False)
        for body, row in zip(BODIES, dtypes.decode(out, kinds[3]), strict=True):
            want = expected(body, x, y, kinds)
            differs = ~((row == want) | (np.isnan(row) & np.isnan(want)))
            if differs.any():
                at = differs.argmax()
                wrong.append(
                    f"{name}: {body} of {dtypes.decode(x, kinds[0])[at]} and "
                    f"{dtypes.decode(y, kinds[1])[at]}: {row[at]}, not {want[at]}"
                )
    assert not wrong, "\n".join(wrong)


def emitted(text: str) -> str:
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        manager = passmanager.PassManager("builtin.module")
        manager.add(LowerToNvvm(), "alcop-lower-to-nvvm")
        manager.run(module.operation)
        return ptx.emit_ptx(module.body.operations[0], find_target("sm_80"))


FACTOR = """
  #i = affine_map<(m, n) -> (m, n)>
  func.func @f(%A: memref<16x16xbf16>, %B: memref<16x16xf16>, %C: memref<16x16xf32>) {{
    %c = arith.constant {factor} : f32
    %T = memref.alloc() : memref<16x16xf16>
    linalg.generic {{indexing_maps = [#i, #i],
        iterator_types = ["parallel", "parallel"]}}
        ins(%A : memref<16x16xbf16>) outs(%T : memref<16x16xf16>) {{
    ^bb0(%a: bf16, %o: f16):
      %u = arith.extf %a : bf16 to f32
      %s = arith.mulf %u, %c : f32
      %h = arith.truncf %s : f32 to f16
      linalg.yield %h : f16
    }}
    linalg.matmul ins(%T, %B : memref<16x16xf16>, memref<16x16xf16>)
      outs(%C : memref<16x16xf32>)
    return
  }}"""


@pytest.mark.parametrize("values", checking.VALUES)
def test_the_check_finds_what_llvm_narrowed(
    values: checking.Values, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By inputs with extremes only: as they were drawn before, they showed nothing."""
    monkeypatch.setattr(llvm_text, "_shifted", lambda match: match[0])
    bundle = compiler.compile_source(
        inputs.read(FACTOR.format(factor=0.0625)), compiler.Options(use_ptxas=False)
    )
    program = Program(bundle, device="emulator")
    found = False
    for seed in range(16):
        before = checking.random_arrays(program.function, seed, values)
        after = {name: array.copy() for name, array in before.items()}
        program(*after.values())
        found |= not checking.check(program.function, before, after).ok
    assert found == (values == "mixed")


@pytest.mark.parametrize(("value", "factor"), [(1e5, 0.0625), (3e-8, 1024.0)])
def test_a_factor_beyond_f16(value: float, factor: float) -> None:
    """A bf16 beyond the range of f16, scaled to one within it."""
    bundle = compiler.compile_source(
        inputs.read(FACTOR.format(factor=factor)), compiler.Options(use_ptxas=False)
    )
    left = dtypes.encode(np.full((16, 16), value), "bf16")
    out = np.zeros((16, 16), np.float32)
    Program(bundle, device="emulator")(left, np.eye(16, dtype=np.float16), out)
    scaled = dtypes.decode(left, "bf16").astype("f4") * np.float32(factor)
    np.testing.assert_array_equal(out, scaled.astype("f2").astype("f4"))
