"""End to end: fused ops on accumulators of every type and layout, whole and ragged."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from alcop_mlir import dtypes
from alcop_mlir.compilation import compiler, inputs
from alcop_mlir.runtime.launch import Program
from alcop_mlir.schedule import Schedule

STORAGE = {"f16": "f2", "bf16": "u2", "f32": "f4", "i8": "i1", "i32": "i4"}
K_STEPS = {"f16": 32, "bf16": 32, "f32": 16, "i8": 64}


@dataclass(frozen=True)
class Layer:
    """D = out(scale[n] * (A * B) + shift[m] + R), C of the accumulator type."""

    kind: str
    layout: str  # "t": A is stored k x m, B is stored n x k
    out: str
    m: int
    n: int
    k: int

    @property
    def accumulator(self) -> str:
        return "i32" if self.kind == "i8" else "f32"

    def shapes(self) -> dict[str, tuple[tuple[int, ...], str]]:
        a, b = (self.m, self.k), (self.k, self.n)
        return {
            "A": (a if self.layout[0] == "n" else a[::-1], self.kind),
            "B": (b if self.layout[1] == "n" else b[::-1], self.kind),
            "scale": ((self.n,), "f32"),
            "shift": ((self.m,), "f32"),
            "R": ((self.m, self.n), self.out),
            "D": ((self.m, self.n), self.out),
        }

    def text(self) -> str:
        types = {
            name: f"memref<{'x'.join(map(str, shape))}x{kind}>"
            for name, (shape, kind) in self.shapes().items()
        }
        acc = self.accumulator
        c = f"memref<{self.m}x{self.n}x{acc}>"
        a = "m, k" if self.layout[0] == "n" else "k, m"
        b = "k, n" if self.layout[1] == "n" else "n, k"
        given = ", ".join(f"%{name}: {kind}" for name, kind in types.items())
        arrays = [types[name] for name in ("scale", "shift", "R")]
        return f"""
          #a = affine_map<(m, n, k) -> ({a})>
          #b = affine_map<(m, n, k) -> ({b})>
          #c = affine_map<(m, n, k) -> (m, n)>
          #mn = affine_map<(m, n) -> (m, n)>
          #n = affine_map<(m, n) -> (n)>
          #m = affine_map<(m, n) -> (m)>
          func.func @layer({given}) {{
            %zero = arith.constant {"0" if self.kind == "i8" else "0.0"} : {acc}
            %C = memref.alloc() : {c}
            linalg.fill ins(%zero : {acc}) outs(%C : {c})
            linalg.matmul indexing_maps = [#a, #b, #c]
              ins(%A, %B : {types["A"]}, {types["B"]}) outs(%C : {c})
            linalg.generic {{indexing_maps = [#mn, #n, #m, #mn, #mn],
                iterator_types = ["parallel", "parallel"]}}
              ins(%C, %scale, %shift, %R : {c}, {", ".join(arrays)})
              outs(%D : {types["D"]}) {{
            ^bb0(%x: {acc}, %s: f32, %h: f32, %r: {self.out}, %d: {self.out}):
              {self.body()}
              linalg.yield %y : {self.out}
            }}
            return
          }}"""

    def body(self) -> str:
        lines, total, addend = [], "%x", "%r"
        if self.accumulator == "i32":
            lines.append("%f = arith.sitofp %x : i32 to f32")
            total = "%f"
        if self.out != "f32":
            lines.append(f"%w = arith.extf %r : {self.out} to f32")
            addend = "%w"
        last = "%y" if self.out == "f32" else "%v"
        lines += [
            f"%t = arith.mulf {total}, %s : f32",
            "%u = arith.addf %t, %h : f32",
            f"{last} = arith.addf %u, {addend} : f32",
        ]
        if self.out != "f32":
            lines.append(f"%y = arith.truncf %v : f32 to {self.out}")
        return "\n".join(lines)

    def arrays(self) -> list[np.ndarray]:
        random = np.random.default_rng(5)
        return [self._array(random, *one) for one in self.shapes().values()]

    def _array(
        self, random: np.random.Generator, shape: tuple[int, ...], kind: str
    ) -> np.ndarray:
        # Eighths have few bits: exact in every type, also when multiplied.
        values = random.integers(-8, 9, shape)
        if kind == "i8":
            return values.astype("i1")
        eighths = (values / 8).astype("f4")
        if kind != "bf16":
            return eighths.astype(STORAGE[kind])
        return (eighths.view("u4") >> 16).astype("u2")

    def expected(self, arrays: list[np.ndarray]) -> np.ndarray:
        kinds = [kind for _, kind in self.shapes().values()]
        a, b, scale, shift, residual, _ = (
            dtypes.decode(array, kind)
            for array, kind in zip(arrays, kinds, strict=True)
        )
        left = a if self.layout[0] == "n" else a.T
        right = b if self.layout[1] == "n" else b.T
        return left @ right * scale + shift[:, None] + residual


def check(layer: Layer) -> None:
    step = K_STEPS[layer.kind]
    options = compiler.Options(
        schedule=Schedule((64, 64, step), (32, 32), (3, 2)),
        use_ptxas=False,
        allow_tf32=True,
    )
    bundle = compiler.compile_source(inputs.read(layer.text()), options)
    assert len(bundle.functions[0].kernels) == 1
    arrays = layer.arrays()
    expected = layer.expected(arrays)
    Program(bundle, device="emulator")(*arrays)
    got = dtypes.decode(arrays[-1], layer.out)
    rounding = dtypes.ROUNDING[layer.out] if layer.out != "f32" else 2.0**-22
    np.testing.assert_allclose(got, expected, rtol=rounding, atol=0)


@pytest.mark.parametrize("layout", ["nn", "nt", "tn", "tt"])
@pytest.mark.parametrize("kind", K_STEPS)
def test_layouts(kind: str, layout: str) -> None:
    check(Layer(kind, layout, "f32", 64, 128, 4 * K_STEPS[kind]))


@pytest.mark.parametrize("out", ["f16", "bf16"])
@pytest.mark.parametrize("kind", K_STEPS)
def test_outputs(kind: str, out: str) -> None:
    check(Layer(kind, "nt", out, 64, 64, 2 * K_STEPS[kind]))


@pytest.mark.parametrize("layout", ["nn", "tt"])
@pytest.mark.parametrize("kind", K_STEPS)
def test_ragged(kind: str, layout: str) -> None:
    check(Layer(kind, layout, "f16", 80, 112, K_STEPS[kind] + 16))


@pytest.mark.parametrize("kind", ["f16", "i8"])
def test_odd_sizes(kind: str) -> None:
    check(Layer(kind, "tn", "f32", 67, 45, 23))
