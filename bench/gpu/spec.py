"""Specifications of kernels: what they compute and how they are compiled.

Sizes are always (batch, M, N, K). A layout names the loops that index A and B, each in
the operand's own order; both begin with the batch where there is one.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from alcop_mlir.errors import ConfigError
from alcop_mlir.tuning.problem import Problem

Shape = tuple[int, int, int, int]  # batch, M, N, K
LAYOUTS = {"nn": "mk,kn", "nt": "mk,nk", "tn": "km,kn", "tt": "km,nk"}
BYTES = {"f16": 2, "bf16": 2, "f32": 4}
PROGRAMS = Path(__file__).with_name("programs")


@dataclass(frozen=True)
class Spec:
    """One kernel to compile.

    shape: None where one kernel is for all sizes, known when arrays are given
    operand, out: dtypes of A and B, of C; accumulators are f32
    schedule: text form; "" leaves the choice to the compiler
    program: a file of `programs/` to compile instead, without its suffix
    allow_tf32: whether contractions of f32 may round their inputs
    """

    op: str = "matmul"
    shape: Shape | None = None
    operand: str = "f16"
    out: str = "f32"
    layout: str = "mk,kn"
    schedule: str = ""
    target: str = "sm_90"
    program: str = ""
    allow_tf32: bool = False

    @property
    def key(self) -> str:
        """Names the kernel among all others: readable, then a hash."""
        if self.program:
            made_from = json.dumps(asdict(self)) + self.mlir()
            digest = hashlib.sha256(made_from.encode()).hexdigest()[:10]
            return f"{self.program}-{digest}"
        size = "any" if self.shape is None else "x".join(map(str, self.shape))
        digest = hashlib.sha256(json.dumps(asdict(self)).encode()).hexdigest()[:10]
        return f"{self.op}-{size}-{self.operand}-{self.out}-{digest}"

    def problem(self, shape: Shape) -> Problem:
        """What the kernel computes at `shape`."""
        batch, m, n, k = shape
        dtypes = (self.operand, self.operand, "f32", self.out)
        return Problem(m, n, k, batch, self.op, dtypes, self.layout)

    def mlir(self) -> str:
        """The function that is compiled: C = A * B, C filled with zeros before."""
        if self.program:
            return (PROGRAMS / f"{self.program}.mlir").read_text()
        letters = dict(zip("bmnk", self.shape or "????", strict=True))
        lhs, rhs, out = self._maps()
        a = _memref(lhs, letters, self.operand)
        b = _memref(rhs, letters, self.operand)
        c = _memref(out, letters, self.out)
        return f"""
func.func @{self.op}(%A: {a}, %B: {b}, %C: {c}) {{
  %zero = arith.constant 0.0 : {self.out}
  linalg.fill ins(%zero : {self.out}) outs(%C : {c})
  linalg.{self.op}{self._indexing()} ins(%A, %B : {a}, {b}) outs(%C : {c})
  return
}}
"""

    def to_json(self) -> dict[str, Any]:
        """JSON values; a shape becomes a list."""
        return {
            **asdict(self),
            "shape": None if self.shape is None else list(self.shape),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Spec:
        """From the form of `to_json`; ConfigError where it is something else."""
        try:
            members = dict(value)
            shape = members.pop("shape")
            return cls(shape=None if shape is None else as_shape(shape), **members)
        except (KeyError, TypeError, ValueError) as error:
            raise ConfigError(f"a kernel of the bundle's index: {error}") from error

    def _maps(self) -> tuple[str, str, str]:
        """Loops that index A, B and C."""
        lhs, rhs = self.layout.split(",")
        batch = "b" if self.op == "batch_matmul" else ""
        return batch + lhs, batch + rhs, f"{batch}mn"

    def _indexing(self) -> str:
        """The indexing maps where they are not linalg's defaults."""
        if self.layout == LAYOUTS["nn"]:
            return ""
        loops = "bmnk" if self.op == "batch_matmul" else "mnk"
        maps = (
            f"affine_map<({', '.join(loops)}) -> ({', '.join(one)})>"
            for one in self._maps()
        )
        return f" indexing_maps = [{', '.join(maps)}]"


def as_shape(values: Any) -> Shape:
    """Four positive integers; ValueError if they are not."""
    batch, m, n, k = values
    if not all(isinstance(v, int) and v > 0 for v in (batch, m, n, k)):
        raise ValueError(f"{values} is no shape")
    return batch, m, n, k


def extents(problem: Problem) -> tuple[tuple[int, ...], ...]:
    """Shapes of A, B and C."""
    sizes = {"b": problem.batch, "m": problem.m, "n": problem.n, "k": problem.k}
    batch = "b" if problem.op == "batch_matmul" else ""
    lhs, rhs = problem.layout.split(",")
    return tuple(
        tuple(sizes[loop] for loop in loops)
        for loops in (batch + lhs, batch + rhs, f"{batch}mn")
    )


def array_bytes(problem: Problem) -> int:
    """Bytes of A, B and C together."""
    dtypes = (*problem.dtypes[:2], problem.dtypes[3])
    return sum(
        BYTES[dtype] * math.prod(extent)
        for dtype, extent in zip(dtypes, extents(problem), strict=True)
    )


def _memref(loops: str, letters: Mapping[str, object], dtype: str) -> str:
    return f"memref<{'x'.join(str(letters[loop]) for loop in loops)}x{dtype}>"
