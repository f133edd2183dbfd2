"""The options of alcop-run for the emulator, and writing its traces to one file."""

from __future__ import annotations

import json
import sys
import tempfile
from argparse import ArgumentTypeError
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from alcop_mlir import limits
from alcop_mlir.errors import ConfigError, EmulationError
from alcop_mlir.files import write_whole
from alcop_mlir.runtime.bundle import is_bundle
from alcop_mlir.runtime.emulation import Emulation, EmulatorOptions
from alcop_mlir.tools.command_line import Parser, count, flags_given, positive
from alcop_mlir.tools.emulation_line import EmulationLine


def add_emulator_options(parser: Parser) -> None:
    """Add them; `emulator_options` names them in what is parsed."""
    group = parser.add_argument_group("on the emulator only")
    names: list[str] = []

    def add(name: str, **settings: Any) -> None:
        names.append(group.add_argument(name, **settings).dest)

    about = "count instructions, memory traffic, bank conflicts, and how early copies "
    about += "are issued"
    add("--profile", action="store_true", help=about)
    about = "write a timeline of one block, for ui.perfetto.dev"
    add("--trace", metavar="FILE.json", help=about)
    about = "which block, counted with x fastest; default 0"
    add("--trace-block", type=count, metavar="N", help=about)
    about = "when asynchronous copies land: as late (default) or as early as allowed"
    add("--visibility", choices=("late", "early"), help=about)
    about = "the order of warps: lockstep (default), ascending, descending, random or "
    about += "random(SEED)"
    add("--emulator-schedule", type=_schedule, metavar="NAME", help=about)
    about = "do not detect races: a third faster"
    add("--no-hazards", action="store_true", help=about)
    about = "stop after N warp instructions of 64 blocks; default 1000000000"
    add("--instruction-limit", type=positive, metavar="N", help=about)
    most = f"default {limits.SECONDS.default}, see docs/limits.md"
    about = f"stop after so many of each run; {most}"
    add("--time-limit", type=positive, metavar="SECONDS", help=about)
    parser.set_defaults(emulator_options=names)


def add_kernel_options(parser: Parser) -> None:
    """Add the options to run one kernel of a file."""
    group = "one kernel of a .ptx file, or of MLIR with a gpu.module"
    add = parser.add_argument_group(group).add_argument
    add("--launch", metavar="FILE.json", help="kernel, grid, block and arguments")
    add("--save-outputs", metavar="DIR", help="store all arrays after the run as .npy")


def is_one_kernel(given: Any) -> bool:
    """Whether to run one kernel; ConfigError for its options where that is not so."""
    if given.file.endswith(".ptx"):
        return True
    if is_bundle(given.file):
        for flag in flags_given(given, ("launch", "save_outputs")):
            raise ConfigError(
                f"{flag} is for PTX and MLIR files, '{given.file}' is a bundle"
            )
    if given.launch is None and given.save_outputs is not None:
        raise ConfigError("--save-outputs is for runs with --launch")
    return given.launch is not None


@contextmanager
def emulation(given: Any, device: str) -> Iterator[Emulation]:
    """Runs kernels as the options say; the trace is written at the end.

    Raises ConfigError for options that do not fit each other or the device.
    """
    used = flags_given(given, given.emulator_options)
    if used and device != "emulator":
        verb = "is" if len(used) == 1 else "are"
        raise ConfigError(
            f"{', '.join(used)} {verb} for the emulator only: add --device emulator"
        )
    if given.trace_block is not None and given.trace is None:
        raise ConfigError("--trace-block says which block --trace shows: give both")
    if given.repeat > 1 and (given.profile or given.trace is not None):
        raise ConfigError("--profile and --trace show one run: not with --repeat")
    seconds = given.time_limit or limits.SECONDS.most
    chosen = {
        "visibility": given.visibility,
        "schedule": given.emulator_schedule,
        "hazards": not given.no_hazards,
        "instruction_limit": given.instruction_limit,
        "time_limit": seconds * (1 if given.repeat == 1 else given.repeat + 1),
        "counters": given.profile,
        "trace_block": given.trace_block,
    }
    options = EmulatorOptions(**{n: v for n, v in chosen.items() if v is not None})
    if given.trace is None:
        with EmulationLine(sys.stderr) as line:
            yield Emulation(options, line)
        return
    with tempfile.TemporaryDirectory(prefix="alcop-trace-") as name:
        folder = Path(name)
        try:
            with EmulationLine(sys.stderr) as line:
                yield Emulation(replace(options, trace_folder=folder), line)
        finally:  # a run that a hazard stops is worth looking at
            parts = sorted(folder.glob("*.json"), key=lambda path: int(path.stem))
            if parts:
                write_whole(given.trace, _merged(parts))


def _merged(parts: list[Path]) -> str:
    """One trace with a process for each launch."""
    merged: dict[str, Any] = {}
    events: list[dict[str, Any]] = []
    for number, part in enumerate(parts):
        merged = json.loads(part.read_text(encoding="utf-8"))
        for event in merged["traceEvents"]:
            event["pid"] = number
            if "id" in event:  # of all processes together
                event["id"] = f"{number}.{event['id']}"
            events.append(event)
    return json.dumps({**merged, "traceEvents": events})


def _schedule(text: str) -> str:
    from alcop_mlir.runtime.emulator.turns import make_picker

    try:
        make_picker(text)
    except EmulationError as error:
        raise ArgumentTypeError(str(error)) from None
    return text
