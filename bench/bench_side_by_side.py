"""The steady state compared with Triton's: compiled code, without a GPU.

usage: python bench/bench_side_by_side.py [--target sm_80]

The same tiles by this compiler and by Triton, f16 in and f32 out, M = N = K = 4096:
SASS per HMMA in the K loop, registers, spills, shared memory, blocks per SM, and the
CPU seconds that compiling took, ptxas included: cold from the start of the process,
warm once more in it (for Triton without its cache). Each compiler is used where it is
installed: run this once in each environment, and the table holds both. Raw records go
to bench/results/side-by-side.jsonl.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # for `bench.gpu`, wherever this is run from

from records import print_table, store  # noqa: E402
from sass import steady_state  # noqa: E402

from alcop_mlir.target import (  # noqa: E402
    SHARED_BYTES_RESERVED_PER_BLOCK,
    WARP_SIZE,
    Target,
    find_target,
)

SIZE = 4096
RESULTS = ROOT / "bench" / "results" / "side-by-side.jsonl"
REGISTER_UNIT = 256  # granularity of a warp's register allocation, sm_80 to sm_90


@dataclass(frozen=True)
class Tile:
    """M, N, K of the block, M, N of the warp, shared stages; two register stages."""

    block: tuple[int, int, int]
    warp: tuple[int, int]
    stages: int

    @property
    def warps(self) -> int:
        """The warps of a block."""
        (m, n, _), (warp_m, warp_n) = self.block, self.warp
        return m // warp_m * n // warp_n

    def __str__(self) -> str:
        return f"{'x'.join(map(str, self.block))}, {self.warps} warps"


TILES = (
    Tile((128, 128, 32), (64, 64), 3),
    Tile((128, 256, 32), (64, 64), 3),
    Tile((128, 128, 64), (64, 64), 3),
)
# SASS per HMMA of the same tiles, as given to the project: not measured here.
GIVEN = {
    "Triton 3.9 (given)": (2.7, 2.7, 2.15),
    "CUTLASS 4.2 (given)": (2.45, 2.19, 2.28),
}


@dataclass(frozen=True)
class Made:
    """A compiled kernel: its cubin, and what a thread and a block of it need."""

    compiler: str
    cubin: bytes
    registers: int
    spill_bytes: int
    shared_bytes: int


def ours(tile: Tile, target: str) -> Made:
    """The kernel of this compiler; ImportError where MLIR is missing."""
    from bench_sass import matmul

    from alcop_mlir import __version__
    from alcop_mlir.compilation import compiler, inputs
    from alcop_mlir.schedule import Schedule

    schedule = Schedule(tile.block, tile.warp, (tile.stages, 2))
    options = compiler.Options(find_target(target), schedule)
    bundle = compiler.compile_source(inputs.read_text(matmul(SIZE)), options)
    (code,), (function,) = bundle.code.values(), bundle.functions
    (kernel,) = function.kernels
    if code.cubin is None:
        raise SystemExit("error: no ptxas, pip install 'alcop-mlir[compiler]'")
    return Made(
        f"alcop_mlir {__version__}",
        code.cubin,
        kernel.registers or 0,
        kernel.spill_bytes or 0,
        kernel.shared_bytes,
    )


def tritons(tile: Tile, target: str, aligned: bool = True, even_k: bool = True) -> Made:
    """The kernel of Triton; ImportError where it is missing.

    aligned: specialised for pointers, sizes and strides that are multiples of 16
    even_k: for K of whole steps, whose copies need no bounds
    """
    block_m, block_n, block_k = tile.block
    constants = {"BLOCK_M": block_m, "BLOCK_N": block_n, "BLOCK_K": block_k}
    constants |= {"GROUP": 8, "EVEN_K": even_k, "a_k": 1, "b_n": 1}
    return triton_kernel(
        ("bench.gpu.triton_kernel", "matmul"),
        {"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp32"},
        constants,
        tile,
        target,
        aligned,
    )


def triton_kernel(
    kernel: tuple[str, str],
    pointers: Mapping[str, str],
    constants: Mapping[str, object],
    tile: Tile,
    target: str,
    aligned: bool = True,
) -> Made:
    """A kernel of Triton, assembled; ImportError where Triton is missing.

    See `triton_code`.
    """
    compiled = triton_code(kernel, pointers, constants, tile, target, aligned)
    triton = importlib.import_module("triton")
    ptxas = Path(str(triton.__file__)).parent / "backends" / "nvidia" / "bin" / "ptxas"
    registers, spills = _ptxas_says(ptxas, compiled.asm["ptx"], target)
    return Made(
        f"Triton {metadata.version('triton')}",
        compiled.asm["cubin"],
        registers,
        spills,
        compiled.metadata.shared,
    )


def triton_code(
    kernel: tuple[str, str],
    pointers: Mapping[str, str],
    constants: Mapping[str, object],
    tile: Tile,
    target: str,
    aligned: bool = True,
) -> Any:
    """What Triton makes of a kernel; ImportError where Triton is missing.

    kernel: its module and name
    pointers: Triton's types of the arguments that are; others are sizes or strides
    constants: the arguments that are known
    tile: gives warps and stages
    aligned: specialised for sizes and strides that are multiples of 16
    """
    if "torch" not in sys.modules and importlib.util.find_spec("torch") is None:
        # Triton asks torch for the GPU when it is imported; there is none to ask for.
        absent = types.ModuleType("torch")
        absent.cuda = types.SimpleNamespace(is_available=lambda: False)  # type: ignore[attr-defined]
        sys.modules["torch"] = absent
    triton = importlib.import_module("triton")
    backends = importlib.import_module("triton.backends.compiler")
    module, name = kernel
    function = getattr(importlib.import_module(module), name)
    names = function.arg_names
    signature = {name: pointers.get(name, "i32") for name in names}
    signature |= dict.fromkeys(constants, "constexpr")
    # As Triton specialises a call. The pointers of arrays are multiples of 16 always.
    divisible = {
        (position,): [["tt.divisibility", 16]]
        for position, name in enumerate(names)
        if name not in constants and (aligned or name in pointers)
    }
    source = triton.compiler.ASTSource(function, signature, constants, divisible)
    return triton.compile(
        source,
        target=backends.GPUTarget("cuda", int(target.removeprefix("sm_")), WARP_SIZE),
        options={"num_warps": tile.warps, "num_stages": tile.stages},
    )


COMPILERS: dict[str, Callable[[Tile, str], Made]] = {"ours": ours, "triton": tritons}


def compile_one(name: str, tile: Tile, target: str) -> dict[str, Any]:
    """The record of a tile; to be called in a fresh process."""
    made = COMPILERS[name](tile, target)
    cold = _cpu_seconds()
    COMPILERS[name](tile, target)
    warm = _cpu_seconds() - cold
    loop = steady_state(made.cubin)
    return {
        "compiler": made.compiler,
        "tile": str(tile),
        "target": target,
        "size": SIZE,
        "per_hmma": loop.per_matrix,
        "instructions": loop.size,
        "hmma": loop.matrix,
        "mix": dict(loop.instructions.most_common()),
        **{k: v for k, v in asdict(made).items() if k not in ("compiler", "cubin")},
        "blocks_per_sm": blocks_per_sm(made, tile, find_target(target)),
        "cold_seconds": cold,
        "warm_seconds": warm,
    }


def measure(name: str, target: str) -> list[dict[str, Any]]:
    """A record for each tile; none where the compiler is not installed."""
    records = []
    for number in range(len(TILES)):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                [sys.executable, __file__, "--target", target]
                + ["--one", name, str(number)],
                env={
                    **os.environ,
                    "TRITON_CACHE_DIR": folder,
                    "TRITON_ALWAYS_COMPILE": "1",
                },
                capture_output=True,
                text=True,
                check=False,
            )
        if done.returncode:
            why = done.stderr.strip().splitlines()[-1:]
            print(f"left out: {name}: {' '.join(why)}", file=sys.stderr)
            return []
        records.append(json.loads(done.stdout.splitlines()[-1]))
    return records


def blocks_per_sm(made: Made, tile: Tile, target: Target) -> int:
    """The limit by registers, shared memory, threads; [CC] of alcop_mlir/target.py."""
    warp = -(-made.registers * WARP_SIZE // REGISTER_UNIT) * REGISTER_UNIT
    shared = made.shared_bytes + SHARED_BYTES_RESERVED_PER_BLOCK
    return min(
        target.blocks_per_sm,
        target.threads_per_sm // (tile.warps * WARP_SIZE),
        target.registers_per_sm // (warp * tile.warps),
        target.shared_bytes_per_sm // shared,
    )


def rows(records: Sequence[dict[str, Any]]) -> list[list[str]]:
    """The latest record of each compiler and tile; then the given figures."""
    latest = {(r["tile"], r["compiler"]): r for r in records if "registers" in r}
    found = []
    for number, tile in enumerate(TILES):
        for (name, compiler), record in latest.items():
            if name == str(tile):
                found.append([name, compiler, *_cells(record)])
        for compiler, values in GIVEN.items():
            found.append([str(tile), compiler, str(values[number]), *[""] * 6])
    return found


def _cells(record: dict[str, Any]) -> list[str]:
    return [
        f"{record['per_hmma']:.2f}",
        *(str(record[k]) for k in ("registers", "spill_bytes", "shared_bytes")),
        str(record["blocks_per_sm"]),
        *(f"{record[k]:.2f}" for k in ("cold_seconds", "warm_seconds")),
    ]


def _ptxas_says(ptxas: Path, ptx: str, target: str) -> tuple[int, int]:
    """Registers per thread and bytes spilled, of PTX assembled once more."""
    with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
        file.write(ptx)
        file.flush()
        command = [str(ptxas), "-v", f"-arch={target}", "-o", os.devnull, file.name]
        said = subprocess.run(command, capture_output=True, text=True, check=True)
    (registers,) = re.findall(r"Used (\d+) registers", said.stderr)
    spills = re.findall(r"(\d+) bytes spill", said.stderr)
    return int(registers), sum(map(int, spills))


def _cpu_seconds() -> float:
    """CPU seconds of this process and of those that it started."""
    return sum(os.times()[:4])


def main() -> None:
    """Compile with each installed compiler, store, and print all that is stored."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--target", default="sm_80")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        name, number = given.one
        print(json.dumps(compile_one(name, TILES[int(number)], given.target)))
        return
    records = [record for name in COMPILERS for record in measure(name, given.target)]
    if records:
        store("side-by-side", records)
    stored = [json.loads(line) for line in RESULTS.read_text().splitlines()]
    mine = [record for record in stored if record["target"] == given.target]
    print(f"f16 in, f32 out, M = N = K = {SIZE}, {given.target}; CPU seconds")
    header = ["tile", "compiler", "SASS/HMMA", "registers", "spilled", "shared"]
    print_table([*header, "blocks/SM", "cold", "warm"], rows(mine))


if __name__ == "__main__":
    main()
