"""The code of variants beside Triton's, compiled without a GPU; for bench_variants.py.

Triton's kernels have the tiles, warps and stages of the variants. They are specialised
for rows of 16 bytes and K of whole steps, for such rows, or for nothing, as Triton does
for a call. Neither compiler knows the sizes.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from bench_side_by_side import Tile, tritons
from sass import steady_state

from alcop_mlir.runtime.bundle import Bundle
from alcop_mlir.target import Target

COLUMNS = ("f16 nn", "tile", "SASS per mma", "registers", "bytes spilled")
TRITONS = (
    ("rows of 16 bytes, whole K steps", True, True),
    ("rows of 16 bytes", True, False),
    ("any rows", False, False),
)
GIVEN = "given to the project: cuTile, SASS per mma 2.46, with bounds checked 3.31"


def code_rows(bundle: Bundle, target: Target) -> Iterator[list[object]]:
    """Of each variant of a bundle's only launch, then of Triton's; see COLUMNS."""
    (launch,) = bundle.functions[0].launches
    tiles: dict[Tile, None] = {}
    for variant in launch.variants:
        kernel = variant.kernels[0]
        cubin, schedule = bundle.code_of(kernel).cubin, kernel.schedule
        if cubin is None or schedule is None:
            raise SystemExit("error: no ptxas, pip install 'alcop-mlir[compiler]'")
        loop = steady_state(cubin, kernel.name)
        used = [kernel.registers, kernel.spill_bytes]
        yield [kernel.name, str(schedule), f"{loop.per_matrix:.2f}", *used]
        tiles[Tile(schedule.block, schedule.warp, schedule.stages[0])] = None
    for (name, aligned, even_k), tile in product(TRITONS, tiles):
        try:
            made = tritons(tile, target.name, aligned, even_k)
        except ImportError as error:
            print(f"Triton is left out: {error}; pip install 'alcop-mlir[anchors]'")
            return
        loop = steady_state(made.cubin)
        used = [made.registers, made.spill_bytes]
        stages = f"{tile}, {tile.stages} stages"
        yield [f"Triton, {name}", stages, f"{loop.per_matrix:.2f}", *used]
