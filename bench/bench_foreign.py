"""The effect of pipelining on kernels that were not written for it, without a GPU.

usage: python bench/bench_foreign.py [--target sm_80] [--stages 3,2] [FILE ...]

Each kernel of bench/foreign/ is compiled unchanged and pipelined. The loop that copies
into shared memory is read from both cubins. "to first use" is the number of SASS
instructions between a copy's issue and what first needs it: the store of the loaded
value, or the wait for its group. Last, the time to plan and to expand in modules of
5,000 ops. Needs the extra `ptxas`. The raw records go to bench/results/foreign.jsonl.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from records import print_table, store
from sass import backward_branches, disassemble, opcode, operation

from alcop_mlir import diagnostics
from alcop_mlir.bindings import ir, make_context
from alcop_mlir.compilation import inputs
from alcop_mlir.dialects import alcop
from alcop_mlir.pipelines.driver import run_pipeline
from alcop_mlir.runtime.ptx import assemble, emit_ptx
from alcop_mlir.target import find_target

KERNELS = Path(__file__).resolve().parent / "foreign"
MODULE_OPS = 5_000
FEW_PIPELINES = 10
LIMIT_SECONDS = 0.5
REPETITIONS = 5
PIPELINE = "alcop-multi-buffer,alcop-expand-pipelines"
LOWERING = (
    "canonicalize,cse,alcop-place-waits,alcop-distribute-copies,alcop-lower-mma,"
    "fold-memref-alias-ops,alcop-swizzle-shared,alcop-unroll-steady-state,"
    "canonicalize,cse,alcop-outline-kernels"
)
_DEPBAR = re.compile(r"DEPBAR\.LE SB0, (0x[0-9a-f]+)")


@dataclass(frozen=True)
class Code:
    """The loop that copies into shared memory, and the kernel's resources.

    tiles: iterations of the original loop in one of this loop, which may be unrolled
    """

    instructions: int
    tiles: int
    to_first_use: int | None
    registers: int
    spill_bytes: int

    @property
    def per_tile(self) -> float:
        return self.instructions / self.tiles


def compile_kernel(
    source: str, stages: str, target: str
) -> tuple[Code, list[dict[str, Any]]]:
    """The code of the one kernel in `source`, and the plan's report."""
    module = inputs.read_text(source).module
    with (
        module.context,
        ir.Location.unknown(),
        diagnostics.collect(),
        tempfile.TemporaryDirectory() as folder,
    ):
        report = Path(folder, "report.json")
        plan = (
            f"alcop-plan-pipelines{{stages={stages} target={target} "
            f"assume-noalias-args=true report={report}}}"
        )
        lower = f"{LOWERING},alcop-lower-to-nvvm{{target={target}}}"
        run_pipeline(module, f"builtin.module({plan},{PIPELINE},{lower})")
        ops = [op.operation for op in module.body.operations]
        (kernels,) = [op for op in ops if op.name == "gpu.module"]
        cubin = assemble(emit_ptx(kernels, find_target(target)), find_target(target))
        if cubin is None:
            raise SystemExit("error: no ptxas, pip install 'alcop-mlir[compiler]'")
        loop = copy_loop(disassemble(cubin.data))
        code = Code(
            len(loop),
            tiles(loop),
            to_first_use(loop),
            cubin.registers,
            cubin.spill_bytes,
        )
        return code, json.loads(report.read_text())


def copy_loop(listing: str) -> list[str]:
    """The loop that fills most tiles of shared memory, without the loops around it."""
    found = [loop for _, loop in backward_branches(listing) if any(map(_fills, loop))]
    if not found:
        raise SystemExit("error: no loop of the kernel copies into shared memory")
    # The tail may be longer than an iteration of the steady state, but not its tiles.
    return max(found, key=lambda loop: (tiles(loop), len(loop)))


def _fills(text: str) -> bool:
    return opcode(text) in ("LDGSTS", "STS")


def tiles(loop: Sequence[str]) -> int:
    """Iterations of the original loop: each makes a group, or has two barriers."""
    opcodes = [opcode(text) for text in loop]
    return opcodes.count("LDGDEPBAR") or max(1, opcodes.count("BAR") // 2)


def to_first_use(loop: Sequence[str]) -> int | None:
    """Instructions from the loop's first copy to its use; None without a copy."""
    for number, text in enumerate(loop):
        if opcode(text) == "LDGSTS":
            return _to_wait(loop, number)
    for number, text in enumerate(loop):
        distance = _to_store(loop, number) if opcode(text) == "LDG" else None
        if distance is not None:
            return distance
    return None


def _to_wait(loop: Sequence[str], issued: int) -> int | None:
    """Instructions to the wait that covers the copy's group, in any later iteration."""
    commits = 0
    for distance in range(1, 20 * len(loop)):
        text = loop[(issued + distance) % len(loop)]
        wait = _DEPBAR.search(text)
        if opcode(text) == "LDGDEPBAR":
            commits += 1
        elif wait and commits and commits - 1 >= int(wait[1], 16):
            return distance - 1
    return None


def _to_store(loop: Sequence[str], loaded: int) -> int | None:
    """Instructions to the store of the loaded register; None where it is not stored."""
    register = operation(loop[loaded])[1].rstrip(",")
    for distance in range(1, len(loop)):
        text = loop[(loaded + distance) % len(loop)]
        if re.search(rf"\b{register}\b", text):
            return distance - 1 if opcode(text) == "STS" else None
    return None


def measure(path: Path, stages: str, target: str) -> dict[str, Any]:
    """One record."""
    source = path.read_text(encoding="utf-8")
    before, _ = compile_kernel(source, "1,1", target)
    after, report = compile_kernel(source, stages, target)
    refused = [entry for entry in report if not entry["pipelined"]]
    return {
        "kernel": path.stem,
        "stages": stages,
        "target": target,
        "candidates": len(report),
        "pipelined": len(report) - len(refused),
        "refused": [f"rule {entry['rule']}: {entry['reason']}" for entry in refused],
        **{f"{name}_before": value for name, value in _columns(before).items()},
        **{f"{name}_after": value for name, value in _columns(after).items()},
    }


def _columns(code: Code) -> dict[str, Any]:
    return {
        "per_tile": round(code.per_tile, 1),
        "tiles": code.tiles,
        "to_first_use": code.to_first_use,
        "registers": code.registers,
        "spill_bytes": code.spill_bytes,
    }


def large_module(pipelines: int | None) -> tuple[str, int, int]:
    """A module of `MODULE_OPS` ops or more; how many ops and pipelines there are.

    It holds that many kernels with a pipeline, or only such kernels where None; all
    else is functions with arithmetic.
    """
    source = (KERNELS / "thread_matmul.mlir").read_text(encoding="utf-8")
    start = source.index("gpu.func")
    end = source.index("gpu.return") + len("gpu.return\n    }\n")
    kernel = source[start:end]
    ops = count_ops(kernel)
    pipelines = -(-MODULE_OPS // ops) if pipelines is None else pipelines
    kernels = "".join(
        kernel.replace("@thread_matmul", f"@kernel{number}")
        for number in range(pipelines)
    )
    body = "".join(
        f"  %{number} = arith.addi %x, %{number - 1 if number else 'x'} : i32\n"
        for number in range(MODULE_OPS - pipelines * ops)
    )
    function = f"func.func @rest(%x: i32) {{\n{body}  return\n}}\n"
    tail = source[end:].rstrip().removesuffix("}")
    text = f"{source[:start]}{kernels}{tail}{function}}}\n"
    return text, max(MODULE_OPS, pipelines * ops), pipelines


def count_ops(text: str) -> int:
    """Lines that begin with an op."""
    op = re.compile(r"\s*(%\w+(:\d+)? = |gpu\.|scf\.|memref\.)")
    return sum(bool(op.match(line)) for line in text.splitlines())


def planning_seconds(source: str, stages: str) -> float:
    """Median processor time of planning, multi-buffering and expanding."""
    passes = f"alcop-plan-pipelines{{stages={stages}}},{PIPELINE}"
    taken = []
    for _ in range(REPETITIONS):
        with make_context(), ir.Location.unknown(), diagnostics.collect():
            alcop.load()
            module = ir.Module.parse(source)
            start = time.process_time()
            run_pipeline(module, f"builtin.module({passes})", verify_each=False)
            taken.append(time.process_time() - start)
    return statistics.median(taken)


def main() -> None:
    """Measure, print, store."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE")
    parser.add_argument("--target", default="sm_80")
    parser.add_argument("--stages", default="3,2", help="shared,register")
    given = parser.parse_args()
    files = given.files or sorted(KERNELS.glob("*.mlir"))
    records = [measure(path, given.stages, given.target) for path in files]
    print(f"stages {given.stages}, {given.target}; before -> after pipelining")
    pairs = ("per_tile", "to_first_use", "registers", "spill_bytes")
    print_table(
        ["kernel", "candidates", "pipelined", "SASS per tile", *pairs[1:]],
        [
            [
                *(record[name] for name in ("kernel", "candidates", "pipelined")),
                *(f"{record[f'{n}_before']} -> {record[f'{n}_after']}" for n in pairs),
            ]
            for record in records
        ],
    )
    for record in records:
        for reason, count in _counted(record["refused"]):
            print(f"{record['kernel']}: {count} refused, {reason}")
    for asked in (FEW_PIPELINES, None):
        source, ops, pipelines = large_module(asked)
        seconds = planning_seconds(source, given.stages)
        print(
            f"plan, multi-buffer, expand {pipelines} pipelines in a module of {ops} "
            f"ops: {seconds:.3f} s, the limit is {LIMIT_SECONDS} s"
        )
        size = {"ops": ops, "pipelines": pipelines}
        records.append({"kernel": "large module", **size, "plan_seconds": seconds})
    print(f"\nrecords: {store('foreign', records)}")


def _counted(reasons: list[str]) -> list[tuple[str, int]]:
    return [(reason, reasons.count(reason)) for reason in dict.fromkeys(reasons)]


if __name__ == "__main__":
    main()
