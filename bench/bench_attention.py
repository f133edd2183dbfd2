"""Attention as one kernel: SASS per HMMA, registers and spills, beside Triton's.

usage: python bench/bench_attention.py [--target sm_80] [--triton PYTHON] [--all]
                                       [--register-stages N]

Compiles the tile code of `attention_tiles.py` with two shared stages, and a plain
program on tensors (`plain_attention.py`) with the same tiles. Reads the loops over
tiles of keys from the cubin, in order: the steady state, what may be left of it, and in
causal attention a loop with a mask. `--triton` names the Python of an environment that
has Triton: its kernel with the same tiles, warps and stages, of which the PTX is
assembled by the same ptxas. `--all` adds bf16 and heads of 32 to 256.
`--register-stages` loads fragments of both contractions so many stages early, whether
registers suffice or not. The raw records go to bench/results/attention.jsonl.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # for `bench.gpu`, wherever this is run from

from attention_tiles import Attention  # noqa: E402
from bench_side_by_side import Tile, triton_code  # noqa: E402
from records import print_table, store  # noqa: E402
from sass import disassemble, loops  # noqa: E402

from alcop_mlir.target import find_target  # noqa: E402

HEADS, SIZE, STAGES = 4, 1024, 2
TILES = ((64, (64, 64), 4), (64, (128, 64), 4), (128, (128, 64), 8))
CASES = tuple(
    Attention(HEADS, SIZE, head, block, warps, causal=causal)
    for head, block, warps in TILES
    for causal in (False, True)
)
# Of which the project promises no figures.
FURTHER = (
    Attention(HEADS, SIZE, 64, (64, 64), kind="bf16"),
    Attention(HEADS, SIZE, 64, (128, 64), 8),
    # What is chosen where keys are many.
    Attention(HEADS, SIZE, 64, (64, 128)),
    Attention(HEADS, SIZE, 64, (64, 128), causal=True),
    Attention(HEADS, SIZE, 64, (128, 128), 8),
    Attention(HEADS, SIZE, 128, (128, 128), 8),
    Attention(HEADS, SIZE, 32, (64, 64)),
    Attention(HEADS, SIZE, 32, (128, 64)),
    Attention(HEADS, SIZE, 96, (64, 64)),
    Attention(HEADS, SIZE, 128, (64, 64)),
    Attention(HEADS, SIZE, 128, (128, 32), 8),
    Attention(HEADS, SIZE, 256, (64, 32)),
)


def ours(case: Attention, target: str, stages: int | None) -> dict[str, Any]:
    """The record of our kernel."""
    from alcop_mlir.compilation import compiler, inputs

    options = _options(case, target, stages)
    bundle = compiler.compile_source(inputs.read_text(case.text()), options)
    return _ours(case, bundle, "of tile code")


def _options(case: Attention, target: str, stages: int | None) -> Any:
    """With the tiles of a case, and so many register stages, if that is said."""
    from plain_attention import Tiled

    tiles = (case.block[0] // case.warps, case.warps, case.block[1])
    forced = None if stages is None else (STAGES, stages)
    return Tiled(find_target(target), tiles=tiles, stages=forced)


def _ours(case: Attention, bundle: Any, source: str) -> dict[str, Any]:
    from alcop_mlir import __version__

    (kernel,) = bundle.functions[0].kernels
    cubin = bundle.code_of(kernel).cubin
    if cubin is None:
        raise SystemExit("error: no ptxas, pip install 'alcop-mlir[compiler]'")
    return {
        "compiler": f"alcop_mlir {__version__}, {source}",
        **_figures(case, cubin),
        "registers": kernel.registers,
        "spill_bytes": kernel.spill_bytes,
        "shared_bytes": kernel.shared_bytes,
    }


def generated(case: Attention, target: str, stages: int | None) -> dict[str, Any]:
    """The record of the kernel that is made of a plain program on tensors."""
    from plain_attention import plain_attention

    from alcop_mlir.compilation import compiler, inputs

    options = _options(case, target, stages)
    source = inputs.read_text(plain_attention(case))
    bundle = compiler.compile_source(source, options)
    return _ours(case, bundle, "of a plain program")


def tritons(case: Attention, target: str, python: str) -> dict[str, Any]:
    """The record of Triton's kernel, compiled by another Python."""
    from alcop_mlir.runtime import ptx

    command = [python, __file__, "--target", target, "--one", json.dumps(asdict(case))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"error: {python}: {done.stderr.strip().splitlines()[-1]}")
    made = json.loads(done.stdout.splitlines()[-1])
    cubin = ptx.assemble(made.pop("ptx"), find_target(target))
    assert cubin is not None
    return {
        **made,
        **_figures(case, cubin.data),
        "registers": cubin.registers,
        "spill_bytes": cubin.spill_bytes,
    }


def triton_ptx(case: Attention, target: str) -> dict[str, Any]:
    """What Triton makes of its kernel; ImportError where it is missing."""
    from importlib import metadata

    block_m, block_n = case.block
    element = {"f16": "*fp16", "bf16": "*bf16"}[case.kind]
    scale = math.log2(math.e) / math.sqrt(case.head)
    compiled = triton_code(
        ("bench.gpu.triton_attention", "attention"),
        {f"{name}_ptr": element for name in "qkvo"},
        {"SIZE": case.size, "HEAD": case.head, "SCALE": scale, "CAUSAL": case.causal}
        | {"BLOCK_M": block_m, "BLOCK_N": block_n},
        # Triton knows a tile by its warps and stages.
        Tile((block_m, block_n, 16), (block_m // case.warps, block_n), STAGES),
        target,
    )
    return {
        "compiler": f"Triton {metadata.version('triton')}",
        "ptx": compiled.asm["ptx"],
        "shared_bytes": compiled.metadata.shared,
    }


def _figures(case: Attention, cubin: bytes) -> dict[str, Any]:
    """Of each loop over tiles of keys, in the order of the program."""
    found = sorted(loops(disassemble(cubin)), key=lambda loop: loop.start)
    return {
        **asdict(case),
        "case": _name(case),
        "per_hmma": [round(loop.per_matrix, 3) for loop in found],
        "instructions": [loop.size for loop in found],
        "hmma": [loop.matrix for loop in found],
        "mix": [dict(loop.instructions.most_common()) for loop in found],
    }


def _name(case: Attention) -> str:
    block = "x".join(map(str, case.block))
    causal = ", causal" if case.causal else ""
    return f"{case.kind}, head {case.head}, {block}, {case.warps} warps{causal}"


def main() -> None:
    """Compile, store, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--target", default="sm_80")
    parser.add_argument("--triton", metavar="PYTHON", help="an environment with Triton")
    parser.add_argument("--all", action="store_true", help="further kinds and heads")
    parser.add_argument("--register-stages", type=int, help="of both contractions")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        case = json.loads(given.one)
        case["block"] = tuple(case["block"])
        print(json.dumps(triton_ptx(Attention(**case), given.target)))
        return
    records = []
    for case in (*CASES, *(FURTHER if given.all else ())):
        stages = given.register_stages
        records.append(ours(case, given.target, stages))
        records.append(generated(case, given.target, stages))
        is_power = case.head & (case.head - 1) == 0  # all that Triton has
        if given.triton and is_power:
            records.append(tritons(case, given.target, given.triton))
    path = store("attention", [{**one, "target": given.target} for one in records])
    print(f"attention, {HEADS} heads, {SIZE} keys, {given.target}")
    columns = ("registers", "spill_bytes", "shared_bytes")
    print_table(
        ["case", "compiler", "SASS per HMMA", *columns],
        [
            [
                record["case"],
                record["compiler"],
                ", ".join(f"{number:.2f}" for number in record["per_hmma"]),
                *(record[name] for name in columns),
            ]
            for record in records
        ],
    )
    print(f"\nrecords: {path}")


if __name__ == "__main__":
    main()
