"""How lean is the steady state beside Triton's? SASS per HMMA, compiled, without a GPU.

usage: python bench/bench_side_by_side.py [--target sm_80]

The same tiles by this compiler and by Triton, f16 in and f32 out, M = N = K = 4096. The
K loop is read out of the cubins. Each compiler is used where it is installed: run this
once in each environment, and the table holds both. Raw records go to
bench/results/side-by-side.jsonl.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # for `bench.gpu`, wherever this is run from

from records import print_table, store  # noqa: E402
from sass import Loop, steady_state  # noqa: E402

from alcop_mlir.errors import ConfigError  # noqa: E402

SIZE = 4096
RESULTS = ROOT / "bench" / "results" / "side-by-side.jsonl"


@dataclass(frozen=True)
class Tile:
    """M, N, K of the block, M, N of the warp, shared stages; two register stages."""

    block: tuple[int, int, int]
    warp: tuple[int, int]
    stages: int

    @property
    def warps(self) -> int:
        """Of a block."""
        (m, n, _), (warp_m, warp_n) = self.block, self.warp
        return m // warp_m * n // warp_n

    def __str__(self) -> str:
        return f"{'x'.join(map(str, self.block))}, {self.warps} warps"


TILES = (
    Tile((128, 128, 32), (64, 64), 3),
    Tile((128, 256, 32), (64, 64), 3),
    Tile((128, 128, 64), (64, 64), 3),
)
# SASS per HMMA of the same tiles as told by the project's issue 7: not measured here.
GIVEN = {"Triton 3.9 (given)": (2.7, 2.7, 2.15), "CUTLASS 4.2": (2.45, 2.19, 2.28)}


def ours(tile: Tile, target: str) -> tuple[Loop, str]:
    """The loop by this compiler; ConfigError where MLIR is missing."""
    from bench_sass import matmul

    from alcop_mlir import __version__, compiler, inputs
    from alcop_mlir.schedule import Schedule
    from alcop_mlir.target import find_target

    schedule = Schedule(tile.block, tile.warp, (tile.stages, 2))
    options = compiler.Options(find_target(target), schedule)
    bundle = compiler.compile_source(inputs.read_text(matmul(SIZE)), options)
    (code,) = bundle.code.values()
    if code.cubin is None:
        raise SystemExit("error: no ptxas, pip install alcop-mlir[ptxas]")
    return steady_state(code.cubin), f"alcop_mlir {__version__}"


def tritons(tile: Tile, target: str) -> tuple[Loop, str]:
    """The loop by Triton for the same tile; ImportError where it is missing."""
    if "torch" not in sys.modules and importlib.util.find_spec("torch") is None:
        # Triton asks torch for the GPU when it is imported; there is none to ask for.
        absent = types.ModuleType("torch")
        absent.cuda = types.SimpleNamespace(is_available=lambda: False)  # type: ignore[attr-defined]
        sys.modules["torch"] = absent
    triton = importlib.import_module("triton")
    backends = importlib.import_module("triton.backends.compiler")
    kernel = importlib.import_module("bench.gpu.triton_kernel").matmul
    names = kernel.arg_names
    block_m, block_n, block_k = tile.block
    constants = {"BLOCK_M": block_m, "BLOCK_N": block_n, "BLOCK_K": block_k}
    constants |= {"GROUP": 8, "EVEN_K": True, "a_k": 1, "b_n": 1}
    kinds = {"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp32"}
    signature = {name: kinds.get(name, "i32") for name in names}
    signature |= dict.fromkeys(constants, "constexpr")
    # What a call with these arrays would tell the compiler: all are multiples of 16.
    divisible = {
        (position,): [["tt.divisibility", 16]]
        for position, name in enumerate(names)
        if name not in constants
    }
    source = triton.compiler.ASTSource(kernel, signature, constants, divisible)
    compiled = triton.compile(
        source,
        target=backends.GPUTarget("cuda", int(target.removeprefix("sm_")), 32),
        options={"num_warps": tile.warps, "num_stages": tile.stages},
    )
    return steady_state(compiled.asm["cubin"]), f"Triton {metadata.version('triton')}"


def measure(
    compile_tile: Callable[[Tile, str], tuple[Loop, str]], target: str
) -> list[dict[str, Any]]:
    """A record for each tile; none where the compiler is not installed."""
    records = []
    for tile in TILES:
        try:
            loop, compiler = compile_tile(tile, target)
        except (ImportError, ConfigError) as error:
            print(f"left out: {error}", file=sys.stderr)
            return []
        records.append(
            {
                "compiler": compiler,
                "tile": str(tile),
                "target": target,
                "size": SIZE,
                "per_hmma": loop.per_matrix,
                "instructions": loop.size,
                "hmma": loop.matrix,
                "mix": dict(loop.instructions.most_common()),
            }
        )
    return records


def table(records: Sequence[dict[str, Any]]) -> list[list[str]]:
    """Rows by compiler, the latest record of each tile; then what was given."""
    found: dict[str, dict[str, str]] = {}
    for record in records:
        found.setdefault(record["compiler"], {})[record["tile"]] = (
            f"{record['per_hmma']:.2f}"
        )
    rows = [
        [name, *(values.get(str(tile), "") for tile in TILES)]
        for name, values in found.items()
    ]
    return rows + [[name, *map(str, values)] for name, values in GIVEN.items()]


def main() -> None:
    """Compile with what there is, store, print everything that is stored."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--target", default="sm_80")
    given = parser.parse_args()
    records = measure(ours, given.target) + measure(tritons, given.target)
    if records:
        store("side-by-side", records)
    stored = [json.loads(line) for line in RESULTS.read_text().splitlines()]
    mine = [record for record in stored if record["target"] == given.target]
    print(f"SASS instructions per HMMA in the K loop, {given.target}")
    print_table(["compiler", *map(str, TILES)], table(mine))


if __name__ == "__main__":
    main()
