"""Contractions with sizes known at run time only, as text; for bench_variants.py."""

from __future__ import annotations

from dataclasses import dataclass

from alcop_mlir.compilation import inputs
from alcop_mlir.measurement.tunables import Tunable, find_tunable

KNOWN = 4096  # each size that is known
_FLOATS = ("arith.extf", "arith.mulf", "arith.addf")
_INTEGERS = ("arith.extsi", "arith.muli", "arith.addi")
_WIDENED = "%x = {0} %a : {1} to {2}\n    %y = {0} %b : {1} to {2}"


@dataclass(frozen=True)
class Kind:
    """A contraction: element types, the loops of A and B, and what is known.

    open_loops: whose sizes are known at run time only
    rows:       what divides rows of A, B and C in bytes, as is promised; 0 if nothing
    """

    inputs: str
    out: str
    a: str = "mk"
    b: str = "kn"
    open_loops: str = "mnk"
    rows: int = 0

    @property
    def rounds(self) -> bool:
        """Whether inputs of f32 are rounded to tf32."""
        return self.inputs == "f32"

    def tunable(self) -> Tunable:
        """As the tuner and alcop-select-schedule see it."""
        return find_tunable(inputs.read(self.text()), "matmul", self.rounds)

    def text(self, are_known: bool = False) -> str:
        """Its module; with all sizes KNOWN, if they are to be."""
        loops = (self.a, self.b, "mn")
        kinds = [
            f"memref<{self._shape(one, are_known)}x{element}>"
            for one, element in zip(loops, (*[self.inputs] * 2, self.out), strict=True)
        ]
        promise = f" {{alcop.row_alignment = {self.rows}}}" if self.rows else ""
        arguments = ", ".join(
            f"%{name}: {kind}{promise}" for name, kind in zip("ABC", kinds, strict=True)
        )
        maps = ", ".join(
            f"affine_map<(m, n, k) -> ({', '.join(one)})>" for one in loops
        )
        widen, times, plus = _INTEGERS if self.out == "i32" else _FLOATS
        wide = _WIDENED.format(widen, self.inputs, self.out)
        wide = "" if self.inputs == self.out else wide
        names = ("%x", "%y") if wide else ("%a", "%b")
        return f"""
func.func @matmul({arguments}) {{
  linalg.generic {{indexing_maps = [{maps}],
      iterator_types = ["parallel", "parallel", "reduction"]}}
      ins(%A, %B : {kinds[0]}, {kinds[1]}) outs(%C : {kinds[2]}) {{
  ^bb0(%a: {self.inputs}, %b: {self.inputs}, %c: {self.out}):
    {wide}
    %p = {times} {", ".join(names)} : {self.out}
    %s = {plus} %c, %p : {self.out}
    linalg.yield %s : {self.out}
  }}
  return
}}
"""

    def _shape(self, loops: str, are_known: bool) -> str:
        sizes = (
            KNOWN if are_known or loop not in self.open_loops else "?" for loop in loops
        )
        return "x".join(map(str, sizes))


KINDS = {
    "f16 nn": Kind("f16", "f32"),
    "f16 nt": Kind("f16", "f32", b="nk"),
    "f16 tn": Kind("f16", "f32", a="km"),
    "bf16 nn": Kind("bf16", "f32"),
    "tf32 nn": Kind("f32", "f32"),
    "s8 nt": Kind("i8", "i32", b="nk"),
    "f16 nn, rows promised": Kind("f16", "f32", rows=16),
    "f16 nn, M open": Kind("f16", "f32", open_loops="m"),
}
