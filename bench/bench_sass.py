"""How lean is the steady state? SASS instructions per HMMA, registers, spills. No GPU.

usage: python bench/bench_sass.py [--target sm_80] [--size 4096] [SCHEDULE ...]

Compiles C = A * B, f16 in and f32 out, and reads the K loop out of the cubin. Needs the
extra `ptxas`. The raw records go to bench/results/sass.jsonl.
"""

from __future__ import annotations

import argparse

from records import print_table, store
from sass import steady_state

from alcop_mlir import compiler, inputs
from alcop_mlir.schedule import Schedule
from alcop_mlir.target import find_target

# 4 warps each; the first is the one that the project's figures are about.
SCHEDULES = (
    "block=128,128,32 warp=64,64 stages=3,2",
    "block=128,128,32 warp=64,64 stages=4,2",
    "block=128,128,32 warp=64,64 stages=2,2",
    "block=128,128,32 warp=64,64 stages=3,1",
)


def matmul(size: int) -> str:
    """C = A * B of `size` cubed, as MLIR."""
    f16, f32 = f"memref<{size}x{size}xf16>", f"memref<{size}x{size}xf32>"
    return f"""
      func.func @matmul(%A: {f16}, %B: {f16}, %C: {f32}) {{
        %zero = arith.constant 0.0 : f32
        linalg.fill ins(%zero : f32) outs(%C : {f32})
        linalg.matmul ins(%A, %B : {f16}, {f16}) outs(%C : {f32})
        return
      }}"""


def measure(schedule: str, target: str, size: int) -> dict[str, object]:
    """One record."""
    options = compiler.Options(find_target(target), Schedule.parse(schedule))
    bundle = compiler.compile_source(inputs.read_text(matmul(size)), options)
    (function,) = bundle.functions
    (kernel,) = function.kernels
    cubin = bundle.code[kernel.name].cubin
    if cubin is None:
        raise SystemExit("error: no ptxas, pip install alcop-mlir[ptxas]")
    loop = steady_state(cubin)
    return {
        "schedule": schedule,
        "target": target,
        "size": size,
        "per_hmma": loop.per_matrix,
        "instructions": loop.size,
        "hmma": loop.matrix,
        "mix": dict(loop.instructions.most_common()),
        "registers": kernel.registers,
        "spill_bytes": kernel.spill_bytes,
        "shared_bytes": kernel.shared_bytes,
    }


def main() -> None:
    """Measure, print, store."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("schedules", nargs="*", default=SCHEDULES, metavar="SCHEDULE")
    parser.add_argument("--target", default="sm_80")
    parser.add_argument("--size", type=int, default=4096, help="M, N and K")
    given = parser.parse_args()
    records = [measure(text, given.target, given.size) for text in given.schedules]
    columns = ("instructions", "hmma", "registers", "spill_bytes", "shared_bytes")
    print(
        f"f16 matmul, {given.size} cubed, {given.target}: the loop of the steady state"
    )
    print_table(
        ["schedule", "SASS per HMMA", *columns],
        [
            [r["schedule"], f"{r['per_hmma']:.2f}", *(r[name] for name in columns)]
            for r in records
        ],
    )
    print(f"\nrecords: {store('sass', records)}")


if __name__ == "__main__":
    main()
