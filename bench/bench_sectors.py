"""Sectors of 32 bytes that loads of A and B touch, without a GPU.

usage: python bench/bench_sectors.py

C = A * B of f16, by kernels for open sizes with the promise of 16-byte rows, or of
4-byte rows, or without one; sizes whose rows have no better alignment. Counted:

  instructions  sectors of each load or copy of a warp, summed up by the emulator; one
                that several instructions of a warp touch counts several times
  tiles         sectors that the rows of a tile of A, or B, lie in, each once in a K
                step of a block: the least that any kernel with these tiles touches
  blocks        the same, each once in a block: where the L1 cache keeps a sector that
                two K steps share until the second one

each over the sectors that the bytes of the tiles would fill.
"""

from __future__ import annotations

import numpy as np
from bench_sass import NARROW, SCHEDULES, matmul
from records import print_table

from alcop_mlir.compilation import compiler, inputs
from alcop_mlir.manifest.kernels import SizeValue
from alcop_mlir.runtime.emulator import emulate
from alcop_mlir.runtime.launch import grid_of
from alcop_mlir.schedule import Schedule

SECTOR = 32
BYTES = 2  # of an element
# Layout, promise, schedule and sizes: M, N, K.
CASES = tuple(
    (layout, promise, schedule, sizes)
    for promise, schedule, sizes in (
        ("open", SCHEDULES[0], (256, 264, 520)),
        ("open, 4 bytes", NARROW, (128, 134, 522)),
        ("open, no promise", NARROW, (128, 131, 521)),
    )
    for layout in ("nn", "nt", "tn")
)
Case = tuple[str, str, str, tuple[int, int, int]]


def instructions(case: Case) -> tuple[int, int]:
    """Sectors that loads and copies touch, and would at the least for their bytes."""
    layout, promise, schedule, (m, n, k) = case
    text = matmul(0, "f16", layout, promise)
    options = compiler.Options(
        schedule=Schedule.parse(schedule), use_ptxas=False, variants=1
    )
    bundle = compiler.compile_source(inputs.read_text(text), options)
    (kernel,) = bundle.functions[0].kernels
    a, b = (np.zeros(size, "f2") for size in (m * k, k * n))
    named = {"arg0": a, "arg1": b, "arg2": np.zeros((m, n), "f4")}
    named |= {"M": m, "N": n, "K": k}
    result = emulate(
        bundle.code_of(kernel).ptx,
        kernel.name,
        grid_of(kernel, {"M": m, "N": n, "K": k}),
        kernel.block,
        [
            named[str(one.size) if isinstance(one, SizeValue) else one.array]
            for one in kernel.arguments
        ],
        dynamic_shared=kernel.shared_bytes,
        counters=True,
    )
    assert result.counters is not None
    lines = [line for line in result.counters.lines if "st.global" not in line.text]
    return (
        sum(line.global_sectors for line in lines),
        sum(line.global_sectors_ideal for line in lines),
    )


def rows(case: Case) -> tuple[float, float]:
    """Sectors that the rows of tiles lie in over those of their bytes; see above."""
    layout, _, schedule, (m, n, k) = case
    block = dict(zip("mnk", Schedule.parse(schedule).block, strict=True))
    size = {"m": m, "n": n, "k": k}
    touched = {"tiles": 0, "blocks": 0}
    filled = 0.0
    loops = ("mk" if layout[0] == "n" else "km", "kn" if layout[1] == "n" else "nk")
    for (outer, inner), times in zip(loops, "nm", strict=True):
        first = np.arange(size[outer])[:, None] * size[inner]
        # Blocks along the third loop load the same tiles.
        again = -(-size[times] // block[times])
        for name, step in (("tiles", block[inner]), ("blocks", size[inner])):
            if name == "blocks" and inner != "k":
                step = block[inner]
            starts = np.arange(0, size[inner], step)[None, :]
            ends = np.minimum(starts + step, size[inner])
            low = (first + starts) * BYTES // SECTOR
            high = ((first + ends) * BYTES - 1) // SECTOR
            touched[name] += int((high - low + 1).sum()) * again
        filled += size[outer] * size[inner] * BYTES / SECTOR * again
    return touched["tiles"] / filled, touched["blocks"] / filled


def main() -> None:
    """Count and print."""
    table = []
    for case in CASES:
        touched, least = instructions(case)
        by_tiles, by_blocks = rows(case)
        layout, promise, schedule, (m, n, k) = case
        table.append(
            [
                layout,
                promise,
                schedule.split()[0],
                f"{m}x{n}x{k}",
                f"{touched / least:.2f}",
                f"{by_tiles:.2f}",
                f"{by_blocks:.2f}",
            ]
        )
    names = ["layout", "sizes", "tile", "M x N x K", "instructions", "tiles", "blocks"]
    print("sectors that loads of A and B touch, over those that their bytes would fill")
    print_table(names, table)


if __name__ == "__main__":
    main()
