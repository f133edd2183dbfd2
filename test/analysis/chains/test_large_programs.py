"""Chains in programs of many layers, and of many ops in a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

import alcop_mlir
from alcop_mlir.bindings import ir

MATRIX, WIDE, ROW = "tensor<64x64xf16>", "tensor<64x64xf32>", "tensor<64xf32>"
HEAD = f"""
#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#a = affine_map<(m, n) -> (m, n)>
#r = affine_map<(m, n) -> (m)>
func.func @f(%x0: {MATRIX}, %w: {WIDE}) -> {MATRIX} {{
  %zero = arith.constant 0.0 : f32
  %least = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : {WIDE}
  %er = tensor.empty() : {ROW}
  %eh = tensor.empty() : {MATRIX}
  %z = linalg.fill ins(%zero : f32) outs(%e : {WIDE}) -> {WIDE}
  %zr = linalg.fill ins(%zero : f32) outs(%er : {ROW}) -> {ROW}
  %lr = linalg.fill ins(%least : f32) outs(%er : {ROW}) -> {ROW}
"""


@dataclass
class Text:
    """Writes layers of x = x + softmax(f(x * x^T)) * x."""

    lines: list[str] = field(default_factory=lambda: [HEAD])

    def op(
        self,
        inputs: Sequence[tuple[str, str]],
        output: tuple[str, str],
        body: str,
        is_reduction: bool = False,
    ) -> str:
        """A linalg.generic of rows, whose body computes %q of %p, %c and %o."""
        start, kind = output
        maps = ["#r" if one == ROW else "#a" for _, one in (*inputs, output)]
        second = "reduction" if is_reduction else "parallel"
        arguments = [
            f"%{name}: {one[:-1].split('x')[-1]}"
            for name, (_, one) in zip("pc", inputs, strict=False)
        ]
        narrow = kind[:-1].split("x")[-1]
        result = f"%v{len(self.lines)}"
        self.lines.append(f"""
  {result} = linalg.generic {{indexing_maps = [{", ".join(maps)}],
      iterator_types = ["parallel", "{second}"]}}
      ins({", ".join(v for v, _ in inputs)} : {", ".join(k for _, k in inputs)})
      outs({start} : {kind}) {{
  ^bb0({", ".join(arguments)}, %o: {narrow}):
    {body}
    linalg.yield %q : {narrow}
  }} -> {kind}""")
        return result

    def layer(self, x: str, squares: int) -> str:
        """The layer; f squares `squares` times."""
        s = f"%s{len(self.lines)}"
        self.lines.append(
            f"  {s} = linalg.matmul indexing_maps = [#mk, #nk, #mn] "
            f"ins({x}, {x} : {MATRIX}, {MATRIX}) outs(%z : {WIDE}) -> {WIDE}"
        )
        for _ in range(squares):
            s = self.op([(s, WIDE)], ("%e", WIDE), "%q = arith.mulf %p, %p : f32")
        m = self.op([(s, WIDE)], ("%lr", ROW), "%q = arith.maximumf %p, %o : f32", True)
        w = self.op(
            [(s, WIDE), (m, ROW)],
            ("%e", WIDE),
            "%d = arith.subf %p, %c : f32\n    %q = math.exp %d : f32",
        )
        total = self.op([(w, WIDE)], ("%zr", ROW), "%q = arith.addf %p, %o : f32", True)
        h = self.op(
            [(w, WIDE), (total, ROW)],
            ("%eh", MATRIX),
            "%d = arith.divf %p, %c : f32\n    %q = arith.truncf %d : f32 to f16",
        )
        y = f"%y{len(self.lines)}"
        self.lines.append(
            f"  {y} = linalg.matmul ins({h}, {x} : {MATRIX}, {MATRIX}) "
            f"outs(%z : {WIDE}) -> {WIDE}"
        )
        return self.op(
            [(y, WIDE), (x, MATRIX)],
            ("%eh", MATRIX),
            "%d = arith.truncf %p : f32 to f16\n    %q = arith.addf %d, %c : f16",
        )


def chains_of(layers: int, squares: int) -> int:
    """The chains that are found in so many layers."""
    text, x = Text(), "%x0"
    for _ in range(layers):
        x = text.layer(x, squares)
    text.lines.append(f"  return {x} : {MATRIX}\n}}")
    context = ir.Context()
    alcop_mlir.register(context)
    module = ir.Module.parse("\n".join(text.lines), context)
    alcop_mlir.run_pipeline(module, "builtin.module(func.func(alcop-group-chains))")
    return str(module).count("scf.execute_region")


def test_sums_around_layers_lead_through_all_of_them() -> None:
    assert chains_of(100, 0) == 100


def test_an_element_that_is_read_twice_is_followed_once() -> None:
    """Else it takes time as two to the power of the ops."""
    assert chains_of(1, 40) == 1


@pytest.mark.parametrize("squares", [150, 600])
def test_what_is_too_far_apart_is_no_chain(squares: int) -> None:
    """Nor an error of recursion."""
    assert chains_of(1, squares) == 0
