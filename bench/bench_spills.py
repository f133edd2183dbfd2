"""Registers and spills of all kernels that are chosen, as ptxas reports them.

usage: python bench/bench_spills.py [--target sm_80] [--jobs 4] [--type f16 ...]
                                    [--grid N]

C = A * B without a schedule: of open sizes, with four variants, and of known ones whose
rows are aligned to 16 bytes, to 8, 4, 2 or 1. All types and layouts. The last line
counts kernels and those that spill.

With `--grid N`: of N kernels drawn from many tiles, alignments, types and layouts,
beside what `alcop_mlir.resources` says of each: its estimate of registers, or
"refused". The last lines count those that spill among both.

Needs the extra `ptxas`. No GPU is used. Records go to bench/results/spills.jsonl.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import random
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import product

from bench_sass import LAYOUTS, TYPES, matmul_of
from records import print_table, store

from alcop_mlir import resources
from alcop_mlir.compilation import compiler, inputs
from alcop_mlir.errors import ConfigError
from alcop_mlir.resources import Copies
from alcop_mlir.schedule import Schedule
from alcop_mlir.target import find_target

Extents = tuple[int | str, int | str, int | str]
EXTENTS: tuple[Extents, ...] = (
    ("?", "?", "?"),
    (4096, 4096, 4096),
    (4094, 4094, 4094),
    (4095, 4095, 4095),
    (1001, 1003, 1005),
    (17, 4094, 4094),
)
# Rows and columns of a block, and of its warps.
TILES = (
    "block=16,32,{k} warp=16,16",
    "block=32,16,{k} warp=16,16",
    "block=32,32,{k} warp=16,32",
    "block=32,32,{k} warp=32,32",
    "block=16,64,{k} warp=16,32",
    "block=64,32,{k} warp=32,32",
    "block=64,64,{k} warp=32,32",
    "block=64,64,{k} warp=64,32",
    "block=64,64,{k} warp=64,64",
    "block=128,64,{k} warp=32,32",
    "block=128,64,{k} warp=64,32",
    "block=64,128,{k} warp=32,64",
    "block=32,128,{k} warp=16,64",
    "block=256,64,{k} warp=64,32",
    "block=128,128,{k} warp=64,32",
    "block=128,128,{k} warp=32,64",
    "block=128,128,{k} warp=64,64",
    "block=128,256,{k} warp=64,64",
)
STEPS = (64, 128)  # bytes
WIDEST = 16
LARGE = 4096
COLUMNS = ("type", "layout", "sizes", "schedule", "registers", "spill_bytes")
Record = dict[str, object]


@dataclass(frozen=True)
class Case:
    """A matmul, and its schedule, "" for what is chosen.

    row_bytes: what is known to divide rows; promised, where sizes are open
    """

    target: str
    kind: str
    layout: str
    extents: Extents
    row_bytes: int = 1
    schedule: str = ""

    @property
    def is_open(self) -> bool:
        """Whether sizes are not known."""
        return "?" in self.extents

    @property
    def estimate(self) -> int | str:
        """Registers of the kernel with that schedule, or "refused"."""
        size = TYPES[self.kind][2]
        width = max(size, self.row_bytes)
        copies = Copies((width, width))
        schedule, target = Schedule.parse(self.schedule), find_target(self.target)
        try:
            cost = resources.cost(schedule, target, size, copies=copies)
        except ConfigError:
            return "refused"
        return cost.registers_per_thread


def main() -> None:
    """Compile, print, store."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--target", default="sm_80")
    parser.add_argument("--jobs", type=int, default=4, metavar="N", help="processes")
    parser.add_argument("--type", nargs="+", choices=TYPES, default=list(TYPES))
    parser.add_argument("--grid", type=int, default=0, metavar="N")
    given = parser.parse_args()
    chosen = product(given.type, LAYOUTS, EXTENTS)
    cases = (
        drawn(given.target, given.type, given.grid)
        if given.grid
        else [Case(given.target, *one) for one in chosen]
    )
    with ProcessPoolExecutor(given.jobs) as pool:
        records = [one for found in pool.map(measure, cases) for one in found]
    columns = (*COLUMNS, *(["row_bytes", "estimate"] if given.grid else []))
    print_table(columns, [[record[name] for name in columns] for record in records])
    print()
    if given.grid:
        for text, some in parted(records):
            print(f"{text}: {spills(some)}")
    else:
        print(f"{given.target}: {spills(records)}")
    print(f"records: {store('spills', records)}")


def parted(records: Sequence[Record]) -> Iterator[tuple[str, list[Record]]]:
    """Kernels of narrow copies or of others, that pass or are refused."""
    for are_narrow, is_refused in product((True, False), repeat=2):
        text = f"copies {'below 16' if are_narrow else 'of 16'} bytes, "
        some = [
            record
            for record in records
            if (record["row_bytes"] != WIDEST) == are_narrow
            and (record["estimate"] == "refused") == is_refused
        ]
        yield text + ("refused" if is_refused else "pass"), some


def spills(records: Sequence[Record]) -> str:
    """How many spill, and how much."""
    spilled = [int(str(one["spill_bytes"])) for one in records if one["spill_bytes"]]
    most = f", {max(spilled)} bytes at most" if spilled else ""
    return f"{len(records)} kernels, {len(spilled)} spill{most}"


def drawn(target: str, kinds: Sequence[str], count: int) -> list[Case]:
    """So many cases with schedules, the same in each run."""
    every = list(product(kinds, LAYOUTS, TILES, STEPS, (16, 8, 4, 2, 1), (False, True)))
    random.Random(14).shuffle(every)
    found: list[Case] = []
    for kind, layout, tile, step, row_bytes, is_open in every:
        size = TYPES[kind][2]
        # Promises are of 16 or 4 bytes; rows are multiples of an element.
        if row_bytes < size or (is_open and row_bytes in (8, 2)):
            continue
        extent = LARGE if row_bytes == WIDEST else LARGE - (WIDEST - row_bytes) // size
        extents: Extents = ("?", "?", "?") if is_open else (extent, extent, extent)
        schedule = tile.format(k=step // size) + " stages=4,2 raster=8"
        case = Case(target, kind, layout, extents, row_bytes, schedule)
        with contextlib.suppress(ConfigError):
            resources.cost(Schedule.parse(schedule), find_target(target), size)
            found.append(case)
    return found[:count]


def measure(case: Case) -> list[Record]:
    """Of each kernel of a matmul: its schedule, registers and spills."""
    options = compiler.Options(
        find_target(case.target),
        Schedule.parse(case.schedule) if case.schedule else None,
        allow_tf32=case.kind == "tf32",
        variants=1 if case.schedule else 4,
    )
    promised = case.row_bytes if case.is_open else 1
    source = matmul_of(case.extents, case.kind, case.layout, promised)
    with contextlib.redirect_stderr(io.StringIO()):  # remarks
        bundle = compiler.compile_source(inputs.read_text(source), options)
    kernels = [one for function in bundle.functions for one in function.kernels]
    if any(kernel.registers is None for kernel in kernels):
        raise SystemExit("error: no ptxas, pip install 'alcop-mlir[compiler]'")
    return [
        {
            "type": case.kind,
            "layout": case.layout,
            "sizes": "x".join(map(str, case.extents)),
            "row_bytes": case.row_bytes,
            "estimate": case.estimate if case.schedule else "",
            "kernel": kernel.name,
            "schedule": str(kernel.schedule or "adds up the parts of K"),
            "registers": kernel.registers,
            "spill_bytes": kernel.spill_bytes,
        }
        for kernel in kernels
    ]


if __name__ == "__main__":
    main()
