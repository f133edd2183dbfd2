"""Check multi-kernel functions on this GPU, and the emulator against it.

Rows: `program` (against the float64 reference of its bundle), `emulated program` (the
same inputs emulated: elements and hazards). The functions are in `programs/`.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from alcop_mlir.errors import EmulationError
from alcop_mlir.manifest.functions import Function
from alcop_mlir.reference.evaluation import Bounded
from alcop_mlir.runtime import checking
from alcop_mlir.runtime.constants import reference_constants
from alcop_mlir.runtime.launch import Program
from bench.gpu import pack
from bench.gpu.device import to_f64
from bench.gpu.pack import Entry
from bench.gpu.session import Session
from bench.gpu.spec import Spec

EMULATOR_SECONDS = 60.0  # most to wait for one emulated program

Arrays = dict[str, np.ndarray[Any, Any]]
Submit = Callable[[Callable[[Any], Any], Any], Future[Any]]


@dataclass
class _Emulated:
    """A program that is being emulated, and the device's results."""

    entry: Entry
    function: Function
    hardware: Arrays
    tolerances: dict[str, float]  # of each array, by its largest element
    result: Future[tuple[Arrays, str]] = field(repr=False)


def run(session: Session, submit: Submit) -> None:
    """All programs, while there is time."""
    entries = [e for e in session.kit.of("program") if session.wants(_key(e.spec))]
    started = []
    for entry in entries:
        if session.budget.left() == 0:
            break
        started += _run_program(session, entry, submit)
    session.records.left_out(_key(entry.spec) for entry in entries)
    for one in started:
        _compare_emulated(session, one)


def emulate(task: tuple[str, dict[str, Any], Arrays]) -> tuple[Arrays, str]:
    """The arrays as the emulator leaves them, and hazards; in a process of its own."""
    path, spec, arrays = task
    bundle = pack.read(Path(path)).load(Spec.from_json(spec))
    try:
        Program(bundle, None, "emulator")(*arrays.values())
    except EmulationError as error:
        return arrays, str(error)
    return arrays, ""


def _run_program(session: Session, entry: Entry, submit: Submit) -> list[_Emulated]:
    device, key = session.device, _key(entry.spec)
    if not session.records.start("program", key):
        return []
    started: list[_Emulated] = []
    with session.row("program", key, group=entry.group) as row:
        program = Program(session.kit.load(entry.spec), None, "auto")
        function = program.function
        before = checking.random_arrays(function, values="plain")
        arrays = {name: device.array(array) for name, array in before.items()}
        device.program(program)(*arrays.values())
        after = {name: device.host(array) for name, array in arrays.items()}
        read = reference_constants(program.bundle, function)
        expected = checking.evaluate(function, before, read)
        found = checking.compare(function, expected, after)
        row.update(
            kernels=[kernel.name for kernel in function.kernels],
            error_float64=found.error,
            tolerance=found.tolerance,
            ok=found.ok,
        )
        if not found.ok:
            row["error"] = f"off by {found.error:.2e}, at most {found.tolerance:.2e}"
        if device.name != "emulator":
            task = (str(session.kit.path), entry.spec.to_json(), before)
            result = submit(emulate, task)
            tolerances = {name: _relative(one) for name, one in expected.items()}
            started.append(_Emulated(entry, function, after, tolerances, result))
    return started


def _compare_emulated(session: Session, one: _Emulated) -> None:
    key = f"emulated {_key(one.entry.spec)}"
    if not session.records.start("emulated program", key):
        return
    with session.row("emulated program", key, group=one.entry.group) as row:
        found = session.emulated(one.result, EMULATOR_SECONDS, row)
        if found is None:
            return
        emulated, hazards = found
        row["hazards"] = hazards
        row["differences"] = _differences(one, emulated)
        # Each may differ from the exact result by the tolerance.
        excess = [
            name
            for name, difference in row["differences"].items()
            if not difference <= 2 * one.tolerances[name]
        ]
        row["ok"] = not hazards and not excess
        if not row["ok"]:
            row["error"] = hazards or f"differs: {row['differences']}"


def _relative(expected: Bounded) -> float:
    """The largest allowed error of an element, relative to the largest element."""
    values = np.abs(expected.values[np.isfinite(expected.values)])
    largest = float(values.max(initial=0.0)) or 1.0
    return float(np.nan_to_num(expected.error).max(initial=0.0)) / largest


def _differences(one: _Emulated, emulated: Arrays) -> dict[str, float]:
    """The largest difference in each written array, relative to its largest element."""
    found = {}
    for parameter in one.function.parameters:
        if parameter.role == "in":
            continue
        ours, theirs = (
            to_f64(arrays[parameter.name], parameter.dtype)
            for arrays in (one.hardware, emulated)
        )
        scale = float(np.abs(theirs).max(initial=0.0)) or 1.0
        found[parameter.name] = float(np.abs(ours - theirs).max(initial=0.0)) / scale
    return found


def _key(spec: Spec) -> str:
    return f"program {spec.key}"
