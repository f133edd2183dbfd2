"""Kernels of warps in roles for sm_90a: SASS of their loops, beside CUTLASS's.

usage: python bench/bench_hopper.py [--size 4096] [--once] [--alone] [--repeat 3]
                                     [--triton PYTHON] [--cutile PYTHON]

Compiles C = A * B, f16, with A stored M x K, for the tiles of CUTLASS's cooperative and
pingpong kernels, with B stored N x K and K x N, for sizes that are known and that are
not, and for clusters of two blocks that share B; 128x128 with half as many iterations,
too; and N x K of tf32, e4m3 and s8, with as many bytes along K. Of the loop that
multiplies and the one that copies it gives the instructions per 64 elements of f16
along K, 128 bytes; of the former also how often it waits for wgmma (DEPBAR) and begins
a group (ARRIVE); `kernel` is all there are but NOP, most of which store a tile.
`cpu_seconds` are those of `alcop-compile` as a process of its own, as in
bench_compile.py, the least of `--repeat`; with `--once` those of this process, which
then compiles each kernel once.

Triton's kernels of the same tiles, with warps specialised and without, are compiled in
the same run, and assembled by the same ptxas; those of cuTile by its own assembler, for
which it needs no ptxas. Both are of the extra `anchors`: without one of them there is
an error, before anything is compiled. `--triton` and `--cutile` name the Python of an
environment that has it, in place of this one; `--alone` leaves both out. One warpgroup
of cuTile's kernels has the whole tile, so that it issues twice as many wgmma for 64
elements: `per wgmma` is of one of them.

Needs the extra `ptxas`, and nvdisasm. The raw records go to bench/results/hopper.jsonl.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from bench_compile import cold, cost
from bench_sass import matmul_of
from records import print_table, store
from sass import backward_branches, disassemble, instructions, operation

from alcop_mlir.compilation import compiler, inputs
from alcop_mlir.runtime import ptx
from alcop_mlir.schedule import COOPERATIVE, PINGPONG, Partial
from alcop_mlir.target import find_target
from alcop_mlir.tools.command_line import positive

TARGET = "sm_90a"
STEP = 64  # elements along K that all tiles have, and that one box of TMA has
WGMMA_STEP = 16  # elements of f16 along K of a wgmma
HERE = Path(__file__).resolve().parent
# The type of A and B, as in bench_sass.py or MLIR's; bytes; the instruction in SASS.
KINDS = {
    "f16": ("f16", 2, "HGMMA"),
    "tf32": ("tf32", 4, "HGMMA"),
    "e4m3": ("f8E4M3FN", 1, "QGMMA"),
    "s8": ("s8", 1, "IGMMA"),
}
ADVISORY = re.compile(r"\bC75\d\d\b")  # of ptxas, where it cannot leave wgmma in flight


@dataclass(frozen=True)
class Figures:
    """Of the two loops per 64 elements along K, and of the kernel.

    multiply: instructions where wgmma is issued
    copy: instructions where the copies are issued
    """

    multiply: float
    copy: float
    registers: int
    stages: int
    shared_bytes: int


@dataclass(frozen=True)
class Tile:
    """What a block computes; each warp of a tile's warpgroups has all columns."""

    rows: int
    columns: int
    stages: int
    cluster: int = 1
    mode: str = COOPERATIVE
    step: int = STEP  # of f16 along K

    @property
    def warps(self) -> int:
        """That compute a tile."""
        return 4 if self.mode == PINGPONG else 8

    @property
    def schedule(self) -> str:
        """As an option of the compiler."""
        block = f"block={self.rows},{self.columns},{self.step}"
        warp = f"warp={self.rows // self.warps},{self.columns}"
        stages = f"stages={self.stages},2 cluster={self.cluster}"
        return f"{block} {warp} {stages} engine=wgmma mode={self.mode}"

    @property
    def name(self) -> str:
        """For a table."""
        name = f"{self.rows}x{self.columns}x{self.step}"
        parts = [name, *([self.mode] if self.mode == PINGPONG else [])]
        return ", ".join(parts + [f"cluster {self.cluster}"] * (self.cluster > 1))

    def boxes(self, layout: str) -> float:
        """Of TMA for 64 elements along K, which are at most 64 elements wide."""
        beside = 1 if layout == "nt" else self.columns / self.step
        return 1 + max(1, beside / self.cluster)

    @property
    def wgmmas(self) -> int:
        """Of a warpgroup for 64 elements along K."""
        return self.rows // (16 * self.warps) * (STEP // WGMMA_STEP)


# CUTLASS's kernels with the same tiles: CUTLASS 4.2 collective builder, nvcc 13.0, f16
# with f32 accumulators, as many blocks as SMs for all tiles.
CUTLASS = {
    (Tile(128, 256, 4), "nt"): Figures(48, 38, 168, 4, 214016),
    (Tile(128, 256, 4), "nn"): Figures(48, 56, 168, 4, 214016),
    (Tile(128, 128, 6), "nt"): Figures(48, 35, 168, 6, 214016),
    (Tile(256, 128, 4), "nt"): Figures(57, 38, 168, 4, 214016),
    (Tile(128, 256, 4, 2), "nt"): Figures(48, 40, 168, 4, 214016),
    (Tile(128, 128, 6, 1, PINGPONG), "nt"): Figures(57, 36, 168, 6, 205824),
    (Tile(64, 256, 5, 1, PINGPONG), "nt"): Figures(48, 37, 168, 5, 214016),
}
# Fewer iterations, with as many bytes in the ring: what goes round a loop is shared by
# as many wgmma as a warpgroup of cuTile's has.
LONGER = Tile(128, 128, 3, step=2 * STEP)
# Stages and warps of Triton's kernels, by whether these have roles, for which it adds
# some: as many stages as shared memory holds.
TRITON = {
    (128, 256): {True: (3, 4), False: (3, 8)},
    (128, 128): {True: (4, 4), False: (4, 8)},
    (256, 128): {True: (3, 4), False: (3, 8)},
}
# Other compilers, by their options.
ANCHORS = {"triton": "Triton", "cutile": "cuTile"}
LAYOUTS = ("nt", "nn")  # B stored N x K, and K x N
SIZES = ("known", "open")  # open: known at run time only, with rows of 16 bytes


@dataclass(frozen=True)
class Case:
    """A kernel."""

    tile: Tile
    layout: str
    sizes: str = "known"
    kind: str = "f16"

    def text(self, size: int) -> str:
        """As MLIR, of `size` cubed where that is known; f16 is stored as f16."""
        extent = size if self.sizes == "known" else "?"
        promised = 1 if self.sizes == "known" else 16
        kind, _, _ = KINDS[self.kind]
        given = "f16" if kind.startswith("f8") else kind
        text = matmul_of((extent, extent, extent), given, self.layout, promised)
        if self.kind == "f16":
            return text.replace("xf32>", "xf16>").replace(": f32", ": f16")
        return text.replace("xf16>", f"x{kind}>")

    @property
    def step(self) -> int:
        """Elements of 128 bytes."""
        return self.tile.step * 2 // KINDS[self.kind][1]

    @property
    def schedule(self) -> str:
        """As an option of the compiler, with rows of 128 bytes along K."""
        return self.tile.schedule.replace(f",{self.tile.step} ", f",{self.step} ")

    @property
    def name(self) -> str:
        """For a table."""
        return self.tile.name.replace(f"x{self.tile.step}", f"x{self.step}")


def cases() -> Iterator[Case]:
    """All tiles in both layouts, of both kinds of sizes; clusters of known ones, and
    the one of fewer iterations; all of one cluster in other types."""
    tiles = dict.fromkeys(replace(tile, cluster=1) for tile, _ in CUTLASS)
    for sizes in SIZES:
        for tile in tiles:
            if sizes == SIZES[0] or tile.mode == COOPERATIVE:
                for layout in LAYOUTS:
                    yield Case(tile, layout, sizes)
    for tile in tiles:
        for layout in LAYOUTS:
            yield Case(replace(tile, cluster=2), layout)
    for layout in LAYOUTS:
        yield Case(LONGER, layout)
    for kind in KINDS:
        for tile in tiles:
            if kind != "f16" and tile.mode == COOPERATIVE:
                yield Case(tile, "nt", kind=kind)


def measure(case: Case, size: int = 4096) -> dict[str, Any]:
    """The record of a kernel; `cpu_seconds` of this compile, imports left out."""
    options = compiler.Options(
        find_target(TARGET), Partial.parse(case.schedule), variants=1, allow_tf32=True
    )
    source = inputs.read(case.text(size))
    bundles: list[Any] = []
    used = cost(lambda: bundles.append(compiler.compile_source(source, options)))
    (bundle,) = bundles
    ((kernel,),) = (function.kernels for function in bundle.functions)
    code = bundle.code_of(kernel)
    if code.cubin is None:
        raise SystemExit("error: no ptxas, pip install 'alcop-mlir[compiler]'")
    return {
        "tile": case.name,
        "layout": case.layout,
        "sizes": case.sizes,
        "type": case.kind,
        "compiler": "alcop_mlir",
        **_loops(case, code.cubin, case.tile.boxes(case.layout)),
        "kernel": len(instructions(disassemble(code.cubin))),
        "registers": kernel.registers,
        "spill_bytes": kernel.spill_bytes,
        "stages": case.tile.stages,
        "shared_bytes": kernel.shared_bytes,
        "advisories": advisories(code.ptx),
        "cpu_seconds": round(used.own + used.started, 2),
    }


def _loops(
    case: Case, cubin: bytes, boxes: float | None = None, warpgroups: int = 2
) -> dict[str, Any]:
    """Of the shortest loops that multiply and that copy, per 128 bytes along K.

    boxes: of TMA for these; None where an iteration of the loop that copies has them,
        or where it is the one that multiplies
    warpgroups: that share a tile
    """
    found = [texts for _, texts in backward_branches(disassemble(cubin))]
    multiply, wgmmas = _shortest(found, KINDS[case.kind][2])
    copy, copied = _shortest(found, "UTMALDG")
    steps = wgmmas / (case.tile.wgmmas * 2 // warpgroups)
    copies = copied / boxes if boxes else steps if copy == multiply else 1
    names = Counter(".".join(operation(text)[0].split(".")[:2]) for text in multiply)
    return {
        "multiply": len(multiply) / steps,
        "per wgmma": round(len(multiply) / wgmmas, 2),
        "copy": len(copy) / copies,
        "depbar": names["WARPGROUP.DEPBAR"] / steps,
        "arrive": names["WARPGROUP.ARRIVE"] / steps,
    }


def _shortest(loops: list[list[str]], name: str) -> tuple[list[str], int]:
    """The shortest loop with an instruction, and how many of it are in it."""
    counted = [
        (texts, sum(operation(text)[0].split(".")[0] == name for text in texts))
        for texts in loops
    ]
    having = [one for one in counted if one[1]]
    if not having:
        raise SystemExit(f"error: no loop with {name} in the cubin")
    return min(having, key=lambda one: len(one[0]))


def advisories(text: str) -> list[str]:
    """What ptxas says of wgmma that it lets wait, or of registers: C75xx, by number."""
    ptxas = ptx.find_ptxas()
    if ptxas is None:
        raise SystemExit("error: no ptxas, pip install 'alcop-mlir[compiler]'")
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "kernel.ptx")
        source.write_text(text)
        command = [ptxas, f"-arch={TARGET}", "-o", Path(folder, "kernel.cubin"), source]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    return sorted(set(ADVISORY.findall(done.stdout + done.stderr)))


def cold_seconds(case: Case, size: int, repeat: int, folder: Path) -> float:
    """CPU seconds of `alcop-compile`, the least of `repeat` processes."""
    file = folder / "kernel.mlir"
    file.write_text(case.text(size))
    options = f"--target={TARGET}", "--variants=1", "--allow-tf32"
    runs = [cold(file, case.schedule, folder, *options) for _ in range(repeat)]
    return round(min(run.started for run in runs), 2)


def cutlass(case: Case) -> dict[str, Any] | None:
    """CUTLASS's record with the same tile and layout; its sizes are all run-time's."""
    figures = CUTLASS.get((case.tile, case.layout))
    if figures is None:
        return None
    return {
        "tile": case.tile.name,
        "layout": case.layout,
        "compiler": "CUTLASS 4.2",
        **asdict(figures),
        "per wgmma": round(figures.multiply / case.tile.wgmmas, 2),
        "depbar": 1,
        "spill_bytes": 0,
    }


def tritons(case: Case, has_roles: bool, python: str) -> dict[str, Any]:
    """Triton's record with the same tile and layout; its sizes are all run-time's."""
    stages, warps = TRITON[case.tile.rows, case.tile.columns][has_roles]
    config = {
        "block": (case.tile.rows, case.tile.columns, STEP),
        "stages": stages,
        "warps": warps,
        "n_by_k": case.layout == "nt",
        "has_roles": has_roles,
    }
    made = _elsewhere(python, "bench.gpu.triton_hopper", config)
    cubin = ptx.assemble(made["ptx"], find_target(TARGET))
    assert cubin is not None
    return {
        "tile": case.tile.name,
        "layout": case.layout,
        "sizes": "open",
        "compiler": made["compiler"] + (", roles" if has_roles else ""),
        **_loops(case, cubin.data),
        "registers": cubin.registers,
        "spill_bytes": cubin.spill_bytes,
        "stages": stages,
        "shared_bytes": made["shared_bytes"],
        "advisories": advisories(made["ptx"]),
    }


def cutiles(case: Case, python: str) -> dict[str, Any]:
    """cuTile's record with the same tile and layout."""
    block = (case.tile.rows, case.tile.columns, STEP)
    config = {"block": block, "n_by_k": case.layout == "nt"}
    made = _elsewhere(python, "bench.gpu.cutile_hopper", config)
    cubin = base64.b64decode(made["cubin"])
    return {
        "tile": case.tile.name,
        "layout": case.layout,
        "sizes": "open",
        "compiler": made["compiler"],
        **_loops(case, cubin, warpgroups=1),
    }


def _elsewhere(python: str, module: str, config: dict[str, Any]) -> dict[str, Any]:
    """What a module prints, as JSON, when another Python runs it."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [python, "-m", module, json.dumps(config)],
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(map(str, (HERE.parent, HERE))),
                "TRITON_CACHE_DIR": folder,
            },
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        why = done.stderr.strip().splitlines()[-1:] or ["no message"]
        raise SystemExit(f"error: {python}: {why[0]}")
    return json.loads(done.stdout.splitlines()[-1])


def check_anchors(given: argparse.Namespace) -> None:
    """SystemExit, in one line, where one of the other compilers is missing."""
    modules = {"triton": "triton", "cutile": "cuda.tile"}
    for name, shown in ANCHORS.items():
        python, module = getattr(given, name), modules[name]
        command = [python, "-c", f"import {module}"]
        try:
            done = subprocess.run(command, capture_output=True, check=False)
        except OSError as error:
            raise SystemExit(f"error: --{name} {python}: {error.strerror}") from error
        if done.returncode:
            raise SystemExit(
                f"error: {python} has no {shown}: pip install 'alcop-mlir[anchors]', "
                f"name an environment that has it by --{name}, or leave out all others "
                "by --alone"
            )


def main() -> None:
    """Compile, store, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--size", type=int, default=4096)
    parser.add_argument("--once", action="store_true", help="in this process")
    parser.add_argument("--alone", action="store_true", help="without others' kernels")
    for name, shown in ANCHORS.items():
        where = f"of an environment with {shown}"
        parser.add_argument(
            f"--{name}", metavar="PYTHON", default=sys.executable, help=where
        )
    parser.add_argument("--repeat", type=positive, default=3)
    given = parser.parse_args()
    if not given.alone:
        check_anchors(given)
    records = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if not given.once:
            cold_seconds(next(cases()), given.size, 1, folder)  # makes byte code
        for case in cases():
            record = measure(case, given.size)
            if not given.once:
                seconds = cold_seconds(case, given.size, given.repeat, folder)
                record["cpu_seconds"] = seconds
            records.append(record)
            beside = cutlass(case)
            if beside is not None and case.sizes == SIZES[0]:
                records.append(beside)
            if not given.alone and case.sizes == "open":
                records += [tritons(case, one, given.triton) for one in (True, False)]
                records.append(cutiles(case, given.cutile))
    path = store("hopper", records)
    columns = (
        *(
            "multiply",
            "per wgmma",
            "copy",
            "kernel",
            "depbar",
            "arrive",
            "registers",
            "spill_bytes",
        ),
        *("stages", "shared_bytes", "cpu_seconds"),
    )
    print(f"{given.size} cubed, {TARGET}, per {STEP} along K, 128 bytes")
    print_table(
        ["tile", "layout", "sizes", "type", "compiler", *columns, "C75xx"],
        [
            [
                *(record.get(key, "") for key in ("tile", "layout", "sizes", "type")),
                record["compiler"],
                *(_shown(record.get(key, "")) for key in columns),
                " ".join(record.get("advisories", ())),
            ]
            for record in records
        ],
    )
    print(f"\nrecords: {path}")


def _shown(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    main()
