"""Matmuls of rows of a table: SASS per mma.sync, registers, and sectors.

usage: python bench/bench_tables.py [--target sm_80]

An embedding with a projection: 4096 rows of a table of 32,000, which indices of 32 bits
name, times a matrix, in f16 with f32 outputs, beside the matmul of rows that lie one
after the other. Reads the loop along K from the cubin. Runs one block of each on the
emulator, and counts the sectors of global memory that it reads and writes, against the
least. Needs the extra `ptxas`. The raw records go to bench/results/tables.jsonl.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np
from records import print_table, store
from sass import steady_state

from alcop_mlir.compilation import compiler, inputs
from alcop_mlir.runtime.emulator import emulate
from alcop_mlir.runtime.launch import grid_of
from alcop_mlir.schedule import Schedule
from alcop_mlir.target import find_target

SCHEDULES = (
    "block=128,128,32 warp=64,64 stages=4,2",
    "block=128,128,32 warp=64,64 stages=3,2",
    "block=128,128,64 warp=64,64 stages=3,2",
    "block=64,64,32 warp=32,32 stages=4,2",
)
ROWS, COLUMNS, DEPTH, TABLE = 4096, 4096, 4096, 32_000
EMULATED = (128, 128, 256, 300)  # the same, on the emulator


@dataclass(frozen=True)
class Case:
    """A matmul, of rows of a table or of rows in a row."""

    is_gathered: bool
    schedule: str

    def text(self, m: int, n: int, k: int, table: int) -> str:
        """As MLIR on tensors; the matmul takes indices, too, and does not read them."""
        a, b, c = f"tensor<{m}x{k}xf16>", f"tensor<{k}x{n}xf16>", f"tensor<{m}x{n}xf32>"
        t, i = f"tensor<{table}x{k}xf16>", f"tensor<{m}x1xi32>"
        first = t if self.is_gathered else a
        rows = (
            f"%a = tensor.gather %t[%i] gather_dims([0]) : ({t}, {i}) -> {a}"
            if self.is_gathered
            else f"%a = tensor.cast %t : {a} to {a}"
        )
        return f"""
          func.func @f(%t: {first}, %i: {i}, %b: {b}) -> {c} {{
            %zero = arith.constant 0.0 : f32
            {rows}
            %e = tensor.empty() : {c}
            %f = linalg.fill ins(%zero : f32) outs(%e : {c}) -> {c}
            %c = linalg.matmul ins(%a, %b : {a}, {b}) outs(%f : {c}) -> {c}
            return %c : {c}
          }}"""


def measure(case: Case, target: str) -> dict[str, object]:
    """One record."""
    schedule = Schedule.parse(case.schedule)
    source = inputs.read_text(case.text(ROWS, COLUMNS, DEPTH, TABLE))
    options = compiler.Options(find_target(target), schedule)
    bundle = compiler.compile_source(source, options)
    (kernel,) = bundle.functions[0].kernels
    cubin = bundle.code_of(kernel).cubin
    if cubin is None:
        raise SystemExit("error: no ptxas, pip install 'alcop-mlir[compiler]'")
    code = steady_state(cubin)
    read, least = sectors(case, target)
    return {
        **vars(case),
        "target": target,
        "per_mma": code.per_matrix,
        "instructions": code.size,
        "registers": kernel.registers,
        "spill_bytes": kernel.spill_bytes,
        "shared_bytes": kernel.shared_bytes,
        "sectors": read,
        "least_sectors": least,
    }


def sectors(case: Case, target: str) -> tuple[int, int]:
    """Of global memory, that a small matmul takes on the emulator, and the least."""
    m, n, k, table = EMULATED
    options = compiler.Options(
        find_target(target), Schedule.parse(case.schedule), use_ptxas=False
    )
    source = inputs.read_text(case.text(m, n, k, table))
    bundle = compiler.compile_source(source, options)
    (kernel,) = bundle.functions[0].kernels
    indices = np.random.default_rng(0).integers(0, table, (m, 1), np.int32)
    arrays = {
        "arg0": np.ones((table if case.is_gathered else m, k), np.float16),
        "arg1": indices,
        "arg2": np.ones((k, n), np.float16),
        "result": np.zeros((m, n), np.float32),
    }
    result = emulate(
        bundle.code_of(kernel).ptx,
        kernel.name,
        grid_of(kernel, {}),
        kernel.block,
        [arrays[name] for name in kernel.arrays],
        dynamic_shared=kernel.shared_bytes,
        counters=True,
    )
    assert result.counters is not None
    assert not result.hazards
    return result.counters.global_sectors, result.counters.global_sectors_ideal


def main() -> None:
    """Measure, print, store."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--target", default="sm_80")
    given = parser.parse_args()
    records = [
        measure(Case(is_gathered, schedule), given.target)
        for schedule in SCHEDULES
        for is_gathered in (False, True)
    ]
    columns = ("registers", "spill_bytes", "shared_bytes", "sectors", "least_sectors")
    print(f"{ROWS} x {COLUMNS} x {DEPTH}, f16 into f32, {given.target}: steady state")
    print_table(
        ["rows", "schedule", "SASS per mma", *columns],
        [
            [
                "of a table" if r["is_gathered"] else "in a row",
                r["schedule"],
                f"{r['per_mma']:.2f}",
                *(r[name] for name in columns),
            ]
            for r in records
        ],
    )
    print(f"\nrecords: {store('tables', records)}")


if __name__ == "__main__":
    main()
