"""alcop-tune --export, --measure, --import: compile here, measure elsewhere."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import alcop_mlir
from alcop_mlir.errors import ConfigError
from alcop_mlir.schedule import Schedule
from alcop_mlir.target import Target
from alcop_mlir.tools import tune_devices
from alcop_mlir.tools.tune_work import compile_candidate, measure_candidate
from alcop_mlir.tuning import exchange, records
from alcop_mlir.tuning.exchange import Package
from alcop_mlir.tuning.measuring import Pool
from alcop_mlir.tuning.problem import Problem
from alcop_mlir.tuning.records import Record

Say = Callable[[str], None]


def export(
    problem: Problem,
    target: Target,
    source: str,
    schedules: Sequence[Schedule],
    path: Path,
    workers: int,
    limit: float,
    say: Say,
) -> int:
    """Compile `schedules` and store them at `path`; returns how many compiled."""
    bundles: dict[int, bytes] = {}
    with tempfile.TemporaryDirectory(prefix="alcop-tune-") as folder:
        tasks = tune_devices.compile_tasks(problem, schedules, target, source, folder)
        with Pool(compile_candidate, workers, limit) as pool:
            for outcome in pool.run(tasks):
                if outcome.error:
                    say(f"'{schedules[outcome.number]}' is left out: {outcome.error}")
                else:
                    bundles[outcome.number] = Path(outcome.value).read_bytes()
    if not bundles:
        raise ConfigError("no candidate compiles, nothing is exported")
    compiler = alcop_mlir.__version__, tune_devices.compiler_hash()
    compiled = [(schedules[number], bundles[number]) for number in sorted(bundles)]
    exchange.save(Package(problem, target, compiler, compiled), path)
    return len(compiled)


def measure(
    package: Package, device: str, path: Path, limit: float, repeat: int, say: Say
) -> int:
    """Measure what is not at `path` yet, and record it there; returns how many."""
    if device == "simulated":
        return _simulate(package, path)
    setting = tune_devices.cuda_setting(package.target, package.compiler)
    known = records.measured(records.read(path).records, package.problem, setting)
    todo = [item for item in package.candidates if item[0] not in known]
    with tempfile.TemporaryDirectory(prefix="alcop-tune-") as folder:
        tasks = []
        for number, (_, bundle) in enumerate(todo):
            file = Path(folder) / f"{number:06}.zip"
            file.write_bytes(bundle)
            tasks.append(tune_devices.measure_task(str(file), repeat))
        with Pool(measure_candidate, 1, limit) as pool:
            for outcome in pool.run(tasks):
                schedule = todo[outcome.number][0]
                record = tune_devices.cuda_record(
                    package.problem, setting, schedule, outcome.value, outcome.error
                )
                records.append(path, [record])
                if outcome.error:
                    say(f"'{schedule}': {outcome.error}")
    return len(todo)


def import_records(source: Path, path: Path, say: Say) -> int:
    """Add the records at `source` to those at `path`; returns how many are new."""
    if not source.exists():
        raise ConfigError(f"no such file: '{source}'")
    log = records.read(source)
    for note in log.notes:
        say(note)
    if not log.records:
        raise ConfigError(f"'{source}' holds no records")
    known = set(records.read(path).records)
    new = [record for record in dict.fromkeys(log.records) if record not in known]
    if new:
        records.append(path, new)
    return len(new)


def _simulate(package: Package, path: Path) -> int:
    found: list[Record] = []
    with tune_devices.Simulated(package.problem, package.target) as device:
        schedules = [schedule for schedule, _ in package.candidates]
        device.measure(schedules, found.append)
    records.append(path, found)
    return len(found)
