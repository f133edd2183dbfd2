"""Check the kernels on this GPU, and the emulator against it.

Rows: `probe` (one instruction, against the emulator), `kernel` (against float64 and
cuBLAS), `emulator` (the same inputs emulated: elements and hazards), `sanitizer`
(compute-sanitizer on a sample); and those of check_programs.py.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from alcop_mlir.errors import ConfigError, EmulationError
from alcop_mlir.runtime.launch import Program
from bench.gpu import check_programs, operations, pack, probes
from bench.gpu.device import Device, EmulatedDevice, Pool, to_f64
from bench.gpu.operations import check_memory, row_key, shape_name
from bench.gpu.pack import Entry, Kit
from bench.gpu.session import Session
from bench.gpu.spec import Shape, as_shape

SANITIZERS = ("memcheck", "racecheck")
SANITIZED = 6  # kernels of the sample
_SANITIZER_SECONDS = 60.0
_SANITIZER_SHARE = 0.5  # of the time left when the kernels are done
_EMULATOR_SECONDS = 90.0  # most to wait for one emulated kernel
_MOST_PROCESSES = 12
_SMALL_POOL = 2**16 + 1  # random numbers: every start of a process makes them
_ERROR_STATUS = 99  # what compute-sanitizer is asked to exit with

HostArrays = tuple[np.ndarray[Any, Any], ...]


@dataclass
class _Emulated:
    """A kernel that is being emulated, and the device's result."""

    entry: Entry
    shape: Shape
    hardware: np.ndarray[Any, Any]
    result: Future[tuple[np.ndarray[Any, Any], str]] = field(repr=False)


def run(session: Session) -> None:
    """All rows, while there is time."""
    pairs = session.pairs("check")
    with _emulators(session.jobs) as submit:
        _run_probes(session)
        emulated = []
        for entry, shape in pairs:
            if session.budget.left() == 0:
                break
            emulated += _run_kernel(session, entry, shape, submit)
        session.records.left_out(row_key("kernel", e.spec, s) for e, s in pairs)
        check_programs.run(session, submit)
        _run_sanitizers(session)
        for one in emulated:
            _compare_emulated(session, one)


def run_one(kit: Kit, device: Device, key: str, shape: Shape) -> int:
    """Launch one kernel of the bundle once: what compute-sanitizer looks at."""
    entry = next((e for e in kit.entries if e.spec.key == key), None)
    if entry is None:
        raise ConfigError(f"the bundle has no kernel '{key}'")
    loaded = operations.load(kit, entry.spec, device)
    arrays = Pool(device, size=_SMALL_POOL).operands(entry.spec.problem(shape))
    loaded.call(*arrays)
    device.host(arrays[2])
    return 0


def _run_probes(session: Session) -> None:
    results: dict[str, np.ndarray[Any, Any]] = {}
    device = session.device
    for probe in probes.all_probes():
        key = f"probe {probe.name}"
        if not probe.is_for(device.capability):
            continue
        if not session.wants(key) or not session.records.start("probe", key):
            continue
        with session.row("probe", key) as row:
            found = probe.run(device)
            results[probe.name] = found
            row["differences"] = probe.differences(found, probe.emulated())
            row["words"] = probe.words
            row["ok"] = not row["differences"]
    if results and device.name == "cuda":
        if session.golden.exists():  # of the process before, where that was lost
            results = probes.read_golden(session.golden.read_text())[1] | results
        session.golden.write_text(probes.golden(results, device.about()))
        print(f"golden vectors: {session.golden}")


def _run_kernel(
    session: Session, entry: Entry, shape: Shape, submit: Any
) -> list[_Emulated]:
    """Run one kernel at one shape; the emulator's task, if there is one."""
    device, key = session.device, row_key("kernel", entry.spec, shape)
    if not session.records.start("kernel", key):
        return []
    problem = entry.spec.problem(shape)
    started: list[_Emulated] = []
    about = {"group": entry.group, "problem": str(problem), "layout": problem.layout}
    with session.row("kernel", key, **about) as row:
        loaded = session.load(entry.spec)
        check_memory(device, problem, sets=2)  # cuBLAS has a C of its own
        arrays = session.pool.operands(problem)
        loaded.call(*arrays)
        library = device.empty(arrays[2].shape, problem.dtypes[3])
        device.library(problem)((arrays[0], arrays[1], library))
        ours, theirs = operations.errors(device, problem, arrays, (library,))
        row.update(
            schedule=loaded.schedule,
            registers=loaded.kernel.registers,
            spill_bytes=loaded.kernel.spill_bytes,
            error_float64=ours,
            cublas_error_float64=theirs,
            tolerance=operations.tolerance(problem),
        )
        row["ok"] = ours <= row["tolerance"]
        if not row["ok"]:
            row["error"] = f"off by {ours:.2e}, at most {row['tolerance']:.2e}"
        if entry.emulate and device.name != "emulator":
            host = tuple(device.host(array) for array in arrays[:2])
            blank = EmulatedDevice().empty(arrays[2].shape, problem.dtypes[3])
            task = (str(session.kit.path), entry.spec.to_json(), (*host, blank))
            hardware = device.host(arrays[2])
            started.append(_Emulated(entry, shape, hardware, submit(emulate, task)))
    return started


def emulate(
    task: tuple[str, dict[str, Any], HostArrays],
) -> tuple[np.ndarray[Any, Any], str]:
    """C as the emulator computes it, and hazards; runs in a process of its own."""
    path, spec, arrays = task
    kit = pack.read(Path(path))
    bundle = kit.load(pack.Spec.from_json(spec))
    try:
        Program(bundle, None, "emulator")(*arrays)
    except EmulationError as error:
        return arrays[2], str(error)
    return arrays[2], ""


def _compare_emulated(session: Session, one: _Emulated) -> None:
    key = row_key("emulator", one.entry.spec, one.shape)
    if not session.records.start("emulator", key):
        return
    problem = one.entry.spec.problem(one.shape)
    about = {"group": one.entry.group, "problem": str(problem)}
    with session.row("emulator", key, **about) as row:
        found = session.emulated(one.result, _EMULATOR_SECONDS, row)
        if found is None:
            return
        emulated, hazards = found
        ours, theirs = (
            to_f64(array, problem.dtypes[3]) for array in (one.hardware, emulated)
        )
        distance = np.abs(ours - theirs)
        row["differing"] = int(np.count_nonzero(distance))
        row["elements"] = distance.size
        row["difference"] = float(distance.max() / np.abs(theirs).max())
        # Each may differ from the exact result by the tolerance.
        row["tolerance"] = 2 * operations.tolerance(problem)
        row["hazards"] = hazards
        row["ok"] = not hazards and row["difference"] <= row["tolerance"]
        if not row["ok"]:
            row["error"] = hazards or f"differs by {row['difference']:.2e}"


def _run_sanitizers(session: Session) -> None:
    tool = session.sanitizer()
    if tool is None:
        if not session.records.start("state", "sanitizer"):
            return
        session.records.add("state", "sanitizer", text="no compute-sanitizer here")
        print("compute-sanitizer is not installed: not run", flush=True)
        return
    budget = session.budget.part(_SANITIZER_SHARE)
    small = [pair for pair in session.pairs("check") if pair[0].emulate]
    sample = small[:: max(1, len(small) // SANITIZED)][:SANITIZED]
    keys = [
        (f"{name} {entry.spec.key} at {shape_name(shape)}", name, entry, shape)
        for entry, shape in sample
        for name in SANITIZERS
    ]
    for key, name, entry, shape in keys:
        if budget.left() == 0:
            break
        if session.records.start("sanitizer", key):
            with session.row("sanitizer", key, tool=name, group=entry.group) as row:
                _sanitize(session, tool, name, entry, shape, row)
    session.records.left_out(key for key, *_ in keys)


def _sanitize(
    session: Session,
    tool: str,
    name: str,
    entry: Entry,
    shape: Shape,
    row: dict[str, Any],
) -> None:
    command = [tool, "--tool", name, "--error-exitcode", str(_ERROR_STATUS)]
    command += [sys.executable, "-m", "bench.gpu", "one", str(session.kit.path)]
    command += [entry.spec.key, shape_name(shape)]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            timeout=_SANITIZER_SECONDS,
        )
    except subprocess.TimeoutExpired:
        row.update(ok=False, error=f"no result in {_SANITIZER_SECONDS:.0f} s")
        return
    said = [line for line in done.stdout.splitlines() if "SUMMARY" in line]
    row["summary"] = said[-1].strip("= ") if said else ""
    row["ok"] = done.returncode == 0
    if not row["ok"]:
        lines = (done.stdout + done.stderr).strip().splitlines()
        text = row["summary"] or (lines[-1] if lines else "said nothing")
        row["error"] = f"exit status {done.returncode}: {text}"


def find_sanitizer() -> str | None:
    """compute-sanitizer on PATH, or where CUDA puts it."""
    return shutil.which("compute-sanitizer") or shutil.which(
        "compute-sanitizer", path="/usr/local/cuda/bin"
    )


def parse_shape(text: str) -> Shape:
    """The shape that `shape_name` wrote; ValueError for any other text."""
    return as_shape([int(size) for size in text.split("x")])


@contextmanager
def _emulators(jobs: int | None) -> Iterator[Any]:
    """A function like `Executor.submit`; 0 jobs: it runs the work in this process."""
    if jobs == 0:
        yield _submit_here
        return
    count = jobs or max(1, min(_MOST_PROCESSES, (os.cpu_count() or 2) - 1))
    # "spawn": a process with CUDA in it must not be forked.
    pool = ProcessPoolExecutor(count, mp_context=get_context("spawn"))
    try:
        yield pool.submit
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _submit_here(function: Any, task: Any) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_result(function(task))
    return future
