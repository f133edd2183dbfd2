"""How convolution layers are compiled: tensor cores or not, with which schedule.

    python bench/bench_conv_layers.py [--batch 1,64] [--target sm_80] [--sass] [--run]
                                      [LIST ...]

The layers are the ALCOP paper's (`alcop2d`, `alcop3d`) and those of
`shapes/convolutions.txt` (`resnet18`, `resnet50`, `vgg16`, `odd`); default: all. f16
images, channels last, with zeros around them by `tensor.pad`, and f16 outputs.

`--sass` adds SASS instructions per mma.sync in the loop, registers and spilled bytes
(needs the extra `ptxas`); where that is unrolled, up to its last barrier.
`--run` runs each with the same schedule, and images, batch and channels cut down, on
the emulator, against the float64 reference. The paper's batch is 64, whatever is given.
Exit status 1 where a result is wrong. Records go to bench/results/conv_layers.jsonl.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from conv_layers import Layer, layers
from records import print_table, store
from sass import disassemble, loops, straight

from alcop_mlir.compilation import compiler, inputs
from alcop_mlir.errors import AlcopError
from alcop_mlir.manifest.kernels import Kernel
from alcop_mlir.runtime import checking, constants
from alcop_mlir.runtime.bundle import Bundle
from alcop_mlir.runtime.launch import Program
from alcop_mlir.schedule import Schedule
from alcop_mlir.target import find_target

SIMT, FAILED = "SIMT", "error"  # where other layers have a schedule


@dataclass(frozen=True)
class Compiled:
    """A layer's kernels, and what was said of it."""

    layer: Layer
    bundle: Bundle
    remarks: tuple[str, ...]
    seconds: float

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        return self.bundle.functions[0].kernels

    @property
    def contraction(self) -> Kernel | None:
        """The kernel that runs on tensor cores."""
        return next((one for one in self.kernels if one.schedule), None)

    @property
    def why(self) -> str:
        """Why it does not run on tensor cores, and what is computed besides."""
        if self.contraction is None:
            said = [one.fallback for one in self.kernels if one.fallback]
            return "; ".join(dict.fromkeys(said)) or "no reason given"
        return "; ".join(self.remarks)

    def sass(self) -> tuple[str, ...]:
        """Instructions per matrix instruction, registers, bytes spilled."""
        kernel = self.contraction
        if kernel is None:
            return "", "", ""
        cubin = self.bundle.code_of(kernel).cubin
        if cubin is None:
            raise SystemExit("error: no ptxas, pip install 'alcop-mlir[compiler]'")
        listing = disassemble(cubin)
        found = loops(listing)
        code = found[0] if found else straight(listing)
        return f"{code.per_matrix:.2f}", str(kernel.registers), str(kernel.spill_bytes)


def compiled(
    layer: Layer, target: str, schedule: Schedule | None = None, ptxas: bool = False
) -> Compiled:
    """Compile it."""
    options = compiler.Options(find_target(target), schedule, use_ptxas=ptxas)
    start = time.perf_counter()
    with contextlib.redirect_stderr(io.StringIO()):  # remarks
        lowered = compiler.lower(inputs.read_text(layer.text()), options)
        bundle = compiler.pack(lowered)
    seconds = time.perf_counter() - start
    remarks = tuple(dict.fromkeys(one.message for one in lowered.remarks))
    return Compiled(layer, bundle, remarks, seconds)


def excess(whole: Compiled, target: str) -> float:
    """The error of the layer cut down, with the same schedule; 1 is the tolerance."""
    cut, kernel = whole.layer.cut(), whole.contraction
    schedule = kernel.schedule if kernel else None
    if schedule and schedule.split_k > 1 and cut.channels != whole.layer.channels:
        # It has fewer steps along K. Without parts, an epilogue needs registers too.
        shared, _ = schedule.stages
        schedule = replace(schedule, split_k=1, stages=(shared, 1))
    bundle = compiled(cut, target, schedule).bundle
    program = Program(bundle, device="emulator")
    before = checking.random_arrays(program.function)
    after = {name: array.copy() for name, array in before.items()}
    program(*after.values())
    read = constants.reference_constants(bundle, program.function)
    return checking.check(program.function, before, after, read).excess


def measure(layer: Layer, given: argparse.Namespace) -> dict[str, object]:
    """One record; of a layer that is not compiled or run, the error."""
    try:
        return _measure(layer, given)
    except AlcopError as error:
        names = {"network": layer.network, "batch": layer.batch, "layer": str(layer)}
        return {**names, "schedule": FAILED, "remark": str(error)}


def _measure(layer: Layer, given: argparse.Namespace) -> dict[str, object]:
    found = compiled(layer, given.target, ptxas=given.sass)
    kernel = found.contraction
    record: dict[str, object] = {
        "network": layer.network,
        "batch": layer.batch,
        "layer": str(layer),
        "schedule": str(kernel.schedule) if kernel else SIMT,
        "kernels": len(found.kernels),
        "compile s": f"{found.seconds:.2f}",
    }
    if given.sass:
        names = ("SASS per mma", "registers", "spilled")
        record |= dict(zip(names, found.sass(), strict=True))
    if given.run:
        record["error / tolerance"] = f"{excess(found, given.target):.2g}"
    return {**record, "remark": found.why}


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status: 1 if a result is wrong."""
    given = parser().parse_args(arguments)
    batches = [int(batch) for batch in given.batch.split(",")]
    wanted = list(layers(given.lists, batches))
    if not wanted:
        raise SystemExit(f"error: no list is called {', '.join(given.lists)}")
    records: list[dict[str, object]] = []
    for number, layer in enumerate(wanted):
        _show(f"{number}/{len(wanted)} {layer.network} {layer}, batch {layer.batch}")
        records.append(measure(layer, given))
    _show("")
    names = [*max(records, key=len)]
    print_table(names, [[one.get(name, "") for name in names] for one in records])
    ways = Counter(
        way if way in (SIMT, FAILED) else "tensor cores"
        for way in (one["schedule"] for one in records)
    )
    print(", ".join(f"{way}: {count}" for way, count in ways.items()))
    if given.sass:
        spilled = [str(one["layer"]) for one in records if _spills(one)]
        print(f"kernels that spill: {len(spilled)}", *spilled, sep="; ")
    print(f"records in {store('conv_layers', records)}")
    wrong = sum(not _is_right(one) for one in records)
    if wrong:
        print(f"{wrong} layers are wrong, or are not compiled")
    return 1 if wrong else 0


def _spills(record: dict[str, object]) -> bool:
    return int(str(record.get("spilled") or 0)) > 0


def _is_right(record: dict[str, object]) -> bool:
    is_compiled = record["schedule"] != FAILED
    return is_compiled and float(str(record.get("error / tolerance", 0))) <= 1


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("lists", nargs="*", metavar="LIST")
    parser.add_argument("--batch", default="1,64")
    parser.add_argument("--target", default="sm_80")
    parser.add_argument("--sass", action="store_true", help="figures of the cubin")
    parser.add_argument("--run", action="store_true", help="on the emulator, cut down")
    return parser


def _show(what: str) -> None:
    """Progress on one line of stderr."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{what}", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
