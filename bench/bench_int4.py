"""Weights of four bits against f16: machine code, and the bytes of a step of one row.

usage: python bench/bench_int4.py [--target sm_80] [--size 4096] [SCHEDULE ...]

C = x * W, W [n, k] packed two in a byte, with scales by groups along K. Of the loop of
the steady state, SASS instructions per mma.sync, registers, spilled bytes, for as many
rows and for one, also by the schedule that is chosen where none is given; and the bytes
of global memory that a call with one row moves (`moved_bytes.py`), with those of the
same matmul of f16 weights. No GPU; the machine code needs the extra `ptxas`. The raw
records go to bench/results/int4.jsonl.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any

from bench_sass import matmul_of
from moved_bytes import moved_bytes
from records import print_table, store
from sass import steady_state

from alcop_mlir.compilation import compiler, inputs
from alcop_mlir.schedule import Schedule
from alcop_mlir.target import find_target

DEFAULT = ""  # what is chosen where none is given
SCHEDULES = (
    DEFAULT,
    "block=128,128,32 warp=64,64 stages=3,2",
    "block=128,128,32 warp=64,64 stages=3,1",
    "block=128,128,64 warp=64,64 stages=3,2",
    "block=128,128,64 warp=64,64 stages=3,1",
)


@dataclass(frozen=True)
class Case:
    """Rows of x, N and K; elements of a group, 0 for f16 weights; whether codes have
    a zero point.
    """

    rows: int
    size: int
    group: int
    zeros: bool = False
    element: str = "f16"

    def __str__(self) -> str:
        if not self.group:
            return f"{self.element}, none"
        return f"int4 by {self.group}{', zero points' * self.zeros}, {self.element}"

    @property
    def text(self) -> str:
        """The function, as alcop-sink-unpacking makes it."""
        if not self.group:
            return matmul_of((self.rows, self.size, self.size), self.element, "nt")
        m, n, e = self.rows, self.size, self.element
        x, p, c = (
            f"memref<{m}x{n}x{e}>",
            f"memref<{n}x{n // 2}xi8>",
            f"memref<{m}x{n}xf32>",
        )
        s = f"memref<{n // self.group}x{n}x{e}>"
        subtract = f"%d = arith.subf %u, %y : {e}" if self.zeros else ""
        value = "%d" if self.zeros else "%u"
        return f"""
          #a = affine_map<(m, n, k) -> (m, k)>
          #b = affine_map<(m, n, k) -> (n, k floordiv 2)>
          #g = affine_map<(m, n, k) -> (k floordiv {self.group}, n)>
          #c = affine_map<(m, n, k) -> (m, n)>
          func.func @matmul(%x: {x}, %p: {p}, %s: {s}, %z: {s}, %c: {c}) {{
            %zero = arith.constant 0.0 : f32
            %c1 = arith.constant 1 : i8
            %c2 = arith.constant 2 : i8
            linalg.fill ins(%zero : f32) outs(%c : {c})
            linalg.generic {{indexing_maps = [#a, #b, #g, #g, #c],
                iterator_types = ["parallel", "parallel", "reduction"]}}
              ins(%x, %p, %s, %z : {x}, {p}, {s}, {s}) outs(%c : {c}) {{
            ^bb0(%v: {e}, %byte: i8, %t: {e}, %y: {e}, %o: f32):
              %k = linalg.index 2 : index
              %i = arith.index_cast %k : index to i8
              %odd = arith.andi %i, %c1 : i8
              %by = arith.shli %odd, %c2 : i8
              %half = arith.shrui %byte, %by : i8
              %q = arith.trunci %half : i8 to i4
              %u = arith.uitofp %q : i4 to {e}
              {subtract}
              %w = arith.mulf {value}, %t : {e}
              %v32 = arith.extf %v : {e} to f32
              %w32 = arith.extf %w : {e} to f32
              %r = arith.mulf %v32, %w32 : f32
              %a = arith.addf %o, %r : f32
              linalg.yield %a : f32
            }}
            return
          }}"""


def measure(case: Case, target: str, schedule: str) -> dict[str, object]:
    """One record."""
    given = Schedule.parse(schedule) if schedule else None
    options = compiler.Options(find_target(target), given, variants=1)
    bundle = compiler.compile_source(inputs.read_text(case.text), options)
    (function,) = bundle.functions
    (kernel, *_) = function.kernels
    cubin = bundle.code_of(kernel).cubin
    if cubin is None or kernel.schedule is None:
        raise SystemExit("error: no ptxas, pip install 'alcop-mlir[compiler]'")
    loop = steady_state(cubin)
    return {
        "weights": str(case),
        "rows": case.rows,
        "schedule": str(kernel.schedule),
        "target": target,
        "size": case.size,
        "per_mma": loop.per_matrix,
        "mix": dict(loop.instructions.most_common()),
        "registers": kernel.registers,
        "spill_bytes": kernel.spill_bytes,
    }


def moved(case: Case, target: str) -> dict[str, Any]:
    """The bytes of a call, and those of f16 weights."""
    plain = Case(case.rows, case.size, 0, element=case.element)
    options = compiler.Options(find_target(target), variants=1)
    ours, others = (
        moved_bytes(inputs.read_text(one.text), options, "matmul")
        for one in (case, plain)
    )
    return {"weights": str(case), "rows": case.rows, "bytes": ours, "f16 bytes": others}


def main() -> None:
    """Measure, print, store."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("schedules", nargs="*", metavar="SCHEDULE")
    parser.add_argument("--target", default="sm_80")
    parser.add_argument("--size", type=int, default=4096, help="N and K, and M")
    given = parser.parse_args()
    size, target = given.size, given.target
    many = [
        Case(size, size, group, zeros) for group, zeros in ((0, False), (128, False))
    ]
    many += [Case(size, size, 128, True), Case(size, size, 32, True)]
    schedules = given.schedules or SCHEDULES
    records = [measure(one, target, text) for text in schedules for one in many]
    records += [measure(Case(1, size, group), target, DEFAULT) for group in (0, 128)]
    names = ("rows", "weights", "schedule", "per_mma", "registers", "spill_bytes")
    print(f"C = x * W, N and K {size}, {target}: loop of the steady state")
    rows = [[one[name] for name in names] for one in records]
    for row in rows:
        row[3] = f"{row[3]:.2f}"
    print_table(["rows", *names[1:3], "SASS per mma", *names[4:]], rows)
    steps = [moved(Case(1, size, group), target) for group in (32, 128)]
    print(f"\nbytes of global memory that one row moves, N and K {size}")
    print_table(
        ["weights", "bytes", "of f16 weights", "share"],
        [
            [
                one["weights"],
                one["bytes"],
                one["f16 bytes"],
                f"{one['bytes'] / one['f16 bytes']:.3f}",
            ]
            for one in steps
        ],
    )
    print(f"\nrecords: {store('int4', [*records, *steps])}")


if __name__ == "__main__":
    main()
