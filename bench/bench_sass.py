"""SASS instructions per mma.sync in the steady state, and registers, without a GPU.

usage: python bench/bench_sass.py [--target sm_80] [--size 4096] [--type f16]
                                  [--layout nn] [--sizes known] [SCHEDULE ...]

Compiles C = A * B and reads the K loop from the cubin: for the schedules given, else
those of f16 and one of each other type and layout. tf32 stands for f32 inputs. Sizes
are known, or "ragged" (known, and no multiple of a tile), or open: known at run time
only, with the promise of 16-byte rows, or of 4-byte rows, or without one. Needs the
extra `ptxas`. The raw records go to bench/results/sass.jsonl.
"""

from __future__ import annotations

import argparse

from records import print_table, store
from sass import steady_state

from alcop_mlir.compilation import compiler, inputs
from alcop_mlir.schedule import Schedule
from alcop_mlir.target import find_target

# Element types of the inputs and of C, and bytes of the former, by name of the type.
TYPES = {
    "f16": ("f16", "f32", 2),
    "bf16": ("bf16", "f32", 2),
    "tf32": ("f32", "f32", 4),
    "s8": ("i8", "i32", 1),
}
LAYOUTS = ("nn", "nt", "tn", "tt")  # "t": A is stored k x m, B is stored n x k
# The project's figures are those of the first, and of the two with larger tiles.
SCHEDULES = (
    "block=128,128,32 warp=64,64 stages=3,2",
    "block=128,128,32 warp=64,64 stages=4,2",
    "block=128,128,32 warp=64,64 stages=2,2",
    "block=128,128,32 warp=64,64 stages=3,1",
    "block=128,256,32 warp=64,64 stages=3,2",
    "block=128,128,64 warp=64,64 stages=3,2",
)
# Of open sizes, the promised alignment of rows in bytes.
PROMISES = {"open": 16, "open, 4 bytes": 4, "open, no promise": 1}
SIZES = ("known", "ragged", *PROMISES)
NARROW = "block=64,64,32 warp=32,32 stages=3,2"  # what is chosen for narrow copies
RAGGED = 88  # elements less than the size, in each dimension
Case = tuple[str, str, str, str]  # type, layout, sizes, schedule


def cases() -> list[Case]:
    """f16 with all schedules; every type and layout with 64 bytes along K.

    Of open sizes, f16 with the figures' two steps along K in every layout, and with
    the tile for rows that are not promised to be aligned.
    """
    found = [("f16", "nn", "known", schedule) for schedule in SCHEDULES]
    found.append(("f16", "nt", "known", "block=128,128,64 warp=64,64 stages=3,2"))
    found += [("f16", layout, "ragged", SCHEDULES[0]) for layout in LAYOUTS[:2]]
    for schedule in (SCHEDULES[0], SCHEDULES[-1]):
        found += [("f16", layout, "open", schedule) for layout in LAYOUTS]
    for sizes in ("open, 4 bytes", "open, no promise"):
        found += [("f16", layout, sizes, NARROW) for layout in LAYOUTS]
    for kind, (_, _, size) in TYPES.items():
        for layout in LAYOUTS:
            schedule = f"block=128,128,{64 // size} warp=64,64 stages=3,2"
            if (kind, layout, "known", schedule) not in found:
                found.append((kind, layout, "known", schedule))
    return found


def matmul(
    size: int, kind: str = "f16", layout: str = "nn", sizes: str = "known"
) -> str:
    """C = A * B of `size` cubed, or about, as MLIR."""
    extent = {"known": size, "ragged": size - RAGGED}.get(sizes, "?")
    return matmul_of((extent, extent, extent), kind, layout, PROMISES.get(sizes, 1))


def matmul_of(
    extents: tuple[int | str, int | str, int | str],
    kind: str,
    layout: str,
    promised: int = 1,
) -> str:
    """C = A * B as MLIR.

    extents: M, N and K, "?" where they are not known
    promised: alignment of rows, in bytes
    """
    m, n, k = extents
    element, out, _ = TYPES[kind]
    a = f"memref<{f'{m}x{k}' if layout[0] == 'n' else f'{k}x{m}'}x{element}>"
    b = f"memref<{f'{k}x{n}' if layout[1] == 'n' else f'{n}x{k}'}x{element}>"
    c = f"memref<{m}x{n}x{out}>"
    promise = f" {{alcop.row_alignment = {promised} : i64}}" if promised > 1 else ""
    a_loops = "m, k" if layout[0] == "n" else "k, m"
    b_loops = "k, n" if layout[1] == "n" else "n, k"
    return f"""
      func.func @matmul(%A: {a}{promise}, %B: {b}{promise}, %C: {c}{promise}) {{
        %zero = arith.constant {"0" if out == "i32" else "0.0"} : {out}
        linalg.fill ins(%zero : {out}) outs(%C : {c})
        linalg.matmul
          indexing_maps = [affine_map<(m, n, k) -> ({a_loops})>,
                           affine_map<(m, n, k) -> ({b_loops})>,
                           affine_map<(m, n, k) -> (m, n)>]
          ins(%A, %B : {a}, {b}) outs(%C : {c})
        return
      }}"""


def measure(case: Case, target: str, size: int) -> dict[str, object]:
    """One record, of the one kernel for the promise."""
    kind, layout, sizes, schedule = case
    options = compiler.Options(
        find_target(target),
        Schedule.parse(schedule),
        allow_tf32=kind == "tf32",
        variants=1,
    )
    source = inputs.read_text(matmul(size, kind, layout, sizes))
    bundle = compiler.compile_source(source, options)
    (function,) = bundle.functions
    (kernel,) = function.kernels
    cubin = bundle.code_of(kernel).cubin
    if cubin is None:
        raise SystemExit("error: no ptxas, pip install 'alcop-mlir[compiler]'")
    loop = steady_state(cubin)
    return {
        "type": kind,
        "layout": layout,
        "sizes": sizes,
        "schedule": schedule,
        "target": target,
        "size": size,
        "per_mma": loop.per_matrix,
        "instructions": loop.size,
        "mma": loop.matrix,
        "mix": dict(loop.instructions.most_common()),
        "registers": kernel.registers,
        "spill_bytes": kernel.spill_bytes,
        "shared_bytes": kernel.shared_bytes,
    }


def main() -> None:
    """Measure, print, store."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("schedules", nargs="*", metavar="SCHEDULE")
    parser.add_argument("--target", default="sm_80")
    parser.add_argument("--size", type=int, default=4096, help="M, N and K")
    parser.add_argument("--type", choices=TYPES, default="f16", help="of SCHEDULE")
    parser.add_argument("--layout", choices=LAYOUTS, default="nn", help="of SCHEDULE")
    parser.add_argument("--sizes", choices=SIZES, default="known", help="of SCHEDULE")
    given = parser.parse_args()
    wanted = [
        (given.type, given.layout, given.sizes, text) for text in given.schedules
    ] or cases()
    records = [measure(case, given.target, given.size) for case in wanted]
    columns = ("instructions", "mma", "registers", "spill_bytes", "shared_bytes")
    print(f"C = A * B, {given.size} cubed, {given.target}: loop of the steady state")
    print_table(
        ["type", "layout", "sizes", "schedule", "SASS per mma", *columns],
        [
            [
                *(r[name] for name in ("type", "layout", "sizes", "schedule")),
                f"{r['per_mma']:.2f}",
                *(r[name] for name in columns),
            ]
            for r in records
        ],
    )
    print(f"\nrecords: {store('sass', records)}")


if __name__ == "__main__":
    main()
