"""The kit's command line; see the package's docstring.

Exit status: 0 if every row went well, 1 if one failed, 2 without a GPU or for a wrong
command or bundle.
"""

from __future__ import annotations

import argparse
import importlib
import os
import re
import sys
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from alcop_mlir.errors import AlcopError
from bench.gpu import benchmark, check, collect, pack, plots, records, report, supervise
from bench.gpu.cuda_device import CudaDevice
from bench.gpu.device import Device, EmulatedDevice
from bench.gpu.records import Budget, Recorder
from bench.gpu.session import Session

NO_GPU = 2
TARGET = "sm_90"
MINUTES = 7.5  # of each command: it has to end within 8
_ROOT = Path(__file__).parents[2]
RESULTS = _ROOT / "bench" / "gpu" / "results"
BUNDLE = _ROOT / "build" / "gpu-bundle.zip"
COMMANDS = ("check", "bench", "collect")
_END_SECONDS = 10.0  # kept for summaries and plots
_SMALL_POOL = 2**16 + 1  # random numbers, when the emulator replaces the GPU


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    given = _parser().parse_args(arguments)
    try:
        return given.run(given)
    except AlcopError as error:
        print(f"error: {error}", file=sys.stderr)
        return NO_GPU


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.gpu", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    build = commands.add_parser("bundle", help="compile the lists; needs no GPU")
    build.add_argument("bundle", type=Path, nargs="?", default=BUNDLE)
    build.add_argument("--target", default=TARGET, help=f"default {TARGET}")
    build.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    build.add_argument("--only", default="", help="items whose group or name match")
    build.set_defaults(run=_bundle)
    for command in COMMANDS:
        _add_device_command(commands, command)
    one = commands.add_parser("one", help="launch one kernel, for compute-sanitizer")
    one.add_argument("bundle", type=Path)
    one.add_argument("kernel")
    one.add_argument("shape")
    one.set_defaults(run=_one)
    shown = commands.add_parser("report", help="tables and plots from records")
    shown.add_argument("records", type=Path, nargs="+")
    shown.add_argument("--write", type=Path, help="a page with marks to write between")
    shown.add_argument("--out", type=Path, help="folder for plots")
    shown.set_defaults(run=_report)
    return parser


def _add_device_command(commands: Any, command: str) -> None:
    parser = commands.add_parser(command, help=f"{command} on a GPU")
    parser.add_argument("bundle", type=Path, nargs="?", default=BUNDLE)
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for records")
    parser.add_argument("--minutes", type=float, default=MINUTES)
    parser.add_argument("--only", default="", help="rows whose group or name match")
    parser.add_argument("--jobs", type=int, help="processes of the emulator")
    parser.add_argument("--device", choices=("cuda", "emulator"), default="cuda")
    parser.add_argument("--no-triton", action="store_true")
    parser.add_argument("--data", type=Path, help="the tuner's records to add to")
    # Given to the process that does the work, see supervise.py.
    parser.add_argument("--records", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--deadline", type=float, help=argparse.SUPPRESS)
    parser.set_defaults(run=_on_device, command=command)


def _bundle(given: argparse.Namespace) -> int:
    from bench.gpu import build, lists

    items = [
        item
        for item in lists.all_items(given.target)
        if re.search(given.only, f"{item.use} {item.group} {item.spec.key}")
    ]
    cache = given.bundle.absolute().parent / "gpu-kernels"
    return build.build(given.bundle, given.target, cache, given.jobs, items)


def _on_device(given: argparse.Namespace) -> int:
    """Check, bench or collect: this process supervises, another does the work."""
    if given.records is not None:
        return _work(given)
    kit = pack.read(given.bundle)
    if given.device == "cuda" and _cupy() is None:
        return NO_GPU
    seconds = 60 * given.minutes - _END_SECONDS
    budget = Budget.of(max(1.0, seconds))
    given.records, given.deadline = _records_file(given), budget.deadline
    why = ""
    if given.device == "cuda":
        why = supervise.run(_worker_arguments(given), given.records, budget)
    else:
        _work(given)
    if why:
        Recorder(given.records).add("worker", f"worker {why}", ok=False, error=why)
    return _finish(given, kit)


def _worker_arguments(given: argparse.Namespace) -> list[str]:
    arguments = ["-m", "bench.gpu", given.command, str(given.bundle)]
    for name in ("out", "only", "jobs", "device", "data", "records", "deadline"):
        value = getattr(given, name)
        if value is not None:
            arguments += [f"--{name}", str(value)]
    return arguments + (["--no-triton"] if given.no_triton else [])


def _work(given: argparse.Namespace) -> int:
    """Everything that touches the GPU."""
    session = _session(given)
    emulated = session.device.name == "emulator"
    session.begin(given.command, given.command)
    try:
        if given.command == "check":
            check.run(session)
        elif given.command == "bench":
            effort = benchmark.QUICK if emulated else benchmark.FULL
            benchmark.run(session, effort, not given.no_triton)
        else:
            effort = benchmark.QUICK if emulated else collect.FULL
            collect.run(session, _data(given, session.kit.target), effort)
    except supervise.DeviceLost:
        sys.stdout.flush()
        # Without cleaning up: freeing CUDA's objects would fail, or never return.
        os._exit(supervise.LOST)
    return 0


def _session(given: argparse.Namespace) -> Session:
    emulated = given.device == "emulator"
    cupy = None if emulated else _cupy()
    device: Device = EmulatedDevice() if emulated else CudaDevice(cupy)
    return Session(
        kit=pack.read(given.bundle),
        device=device,
        records=Recorder(given.records),
        budget=Budget(given.deadline),
        only=given.only,
        jobs=0 if emulated else given.jobs,
        sanitizer=(lambda: None) if emulated else check.find_sanitizer,
        pool_size=_SMALL_POOL if emulated else None,
    )


def _finish(given: argparse.Namespace, kit: pack.Kit) -> int:
    rows = records.read(given.records)
    if given.command == "collect":
        data = _data(given, kit.target)
        count = collect.merge(rows, data)
        print(f"{count} new records in {data}")
    if given.command == "bench":
        _show(report.load(given.records), given.out, given.records.stem)
    records.print_summary(rows, given.records)
    return records.exit_status(rows)


def _show(run: report.Run, folder: Path | None, stem: str) -> None:
    """The tables on the terminal and in a file, the plots in files."""
    text = report.markdown(run)
    print(text)
    if folder is None:
        return
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{stem}.md").write_text(text)
    if not plots.is_possible():
        print("matplotlib is not installed: no plots")
        return
    for path in plots.draw(run, folder, stem):
        print(f"plot: {path}")


def _report(given: argparse.Namespace) -> int:
    texts = []
    for path in given.records:
        run = report.load(path)
        _show(run, given.out, path.stem)
        texts.append(report.markdown(run))
    if given.write is not None:
        report.write_into(given.write, "\n".join(texts))
    return 0


def _one(given: argparse.Namespace) -> int:
    cupy = _cupy()
    if cupy is None:
        return NO_GPU
    # Each array from CUDA itself, so that what runs over its end is noticed.
    cupy.cuda.set_allocator(None)
    shape = check.parse_shape(given.shape)
    return check.run_one(pack.read(given.bundle), CudaDevice(cupy), given.kernel, shape)


def _records_file(given: argparse.Namespace) -> Path:
    """A new file for each run; collecting continues the existing one."""
    if given.command == "collect":
        return given.out / "collect.jsonl"
    now = datetime.now(timezone.utc).strftime("%Y%m%d-%H%M%S")
    return given.out / f"{given.command}-{now}.jsonl"


def _data(given: argparse.Namespace, target: str) -> Path:
    return given.data or collect.data_file(target)


def _cupy() -> Any:
    """CuPy, if it is installed and sees a GPU; else None, and prints the reason."""
    try:
        cupy = importlib.import_module("cupy")
    except ImportError as error:
        print(f"no GPU: CuPy is not installed ({error})", file=sys.stderr)
        return None
    if not cupy.cuda.is_available():
        print("no GPU: CuPy sees none", file=sys.stderr)
        return None
    return cupy


if __name__ == "__main__":
    sys.exit(main())
