"""The devices of alcop-tune: a GPU, or the simulated SM. They are never mixed."""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import alcop_mlir
from alcop_mlir import codec
from alcop_mlir.errors import ConfigError
from alcop_mlir.schedule import Schedule
from alcop_mlir.target import Target
from alcop_mlir.tools.tune_work import (
    CompileTask,
    Measured,
    MeasureTask,
    compile_candidate,
    measure_candidate,
)
from alcop_mlir.tuning.measuring import Pool
from alcop_mlir.tuning.problem import Problem
from alcop_mlir.tuning.records import Record, Setting, now

DEVICES = ("auto", "cuda", "simulated")
DRIFT = 0.05  # the baseline may take that much more or less than at first
_COMPILER = ("analysis", "dialects", "transforms", "runtime/ptx.py", "schedule.py")
_SIMULATOR = tuple(
    f"tuning/{name}.py" for name in ("events", "hardware", "simulator", "traffic")
)

Sink = Callable[[Record], None]


class Device(Protocol):
    """Measures schedules, and passes on each record as soon as it is made."""

    @property
    def setting(self) -> Setting:
        """The device, target and compiler that its records name."""
        ...

    def measure(self, schedules: Sequence[Schedule], sink: Sink) -> None:
        """Measure `schedules`, in any order; `sink` takes one record for each."""
        ...

    def __enter__(self) -> Device: ...

    def __exit__(self, *exception: Any) -> None: ...


class Simulated:
    """The discrete-event simulation. Compiles nothing."""

    def __init__(self, problem: Problem, target: Target):
        self._problem, self._target = problem, target
        self.setting = Setting(
            target.name,
            "simulated",
            "simulated SM",
            compiler=alcop_mlir.__version__,
            compiler_hash=source_hash(_SIMULATOR),
        )

    def __enter__(self) -> Simulated:
        return self

    def __exit__(self, *exception: Any) -> None:
        return None

    def measure(self, schedules: Sequence[Schedule], sink: Sink) -> None:
        """Simulate them all at once."""
        from alcop_mlir.tuning.simulator import simulate
        from alcop_mlir.tuning.space import Candidates, check

        costs = [check(self._problem, s, self._target) for s in schedules]
        candidates = Candidates(schedules, costs)
        times = simulate(self._problem, candidates, self._target)
        for schedule, seconds in zip(schedules, times.tolist(), strict=True):
            sink(Record(self._problem, schedule, self.setting, now(), seconds))


class Cuda:
    """The GPU of this machine: candidates compiled in parallel, measured one by one.

    warn: takes a line when the GPU has become slower or faster
    """

    def __init__(
        self,
        problem: Problem,
        target: Target,
        source: str,
        workers: int,
        limit: float,
        repeat: int,
        warn: Callable[[str], None],
    ):
        self._problem, self._target, self._source = problem, target, source
        self._repeat, self._warn = repeat, warn
        self._compilers = Pool(compile_candidate, workers, limit)
        self._gpu = Pool(measure_candidate, 1, limit)
        self._folder = tempfile.TemporaryDirectory(prefix="alcop-tune-")
        self._baseline: tuple[str, float] | None = None
        self.setting = cuda_setting(target)

    def __enter__(self) -> Cuda:
        return self

    def __exit__(
        self,
        *exception: Any,
    ) -> None:
        self._compilers.close()
        self._gpu.close()
        self._folder.cleanup()

    def measure(self, schedules: Sequence[Schedule], sink: Sink) -> None:
        """Compile all, then check and time each that compiled."""
        tasks = compile_tasks(
            self._problem, schedules, self._target, self._source, self._folder.name
        )
        compiled: list[tuple[Schedule, str]] = []
        for outcome in self._compilers.run(tasks):
            schedule = schedules[outcome.number]
            if outcome.error:
                sink(self._record(schedule, None, outcome.error))
            else:
                compiled.append((schedule, outcome.value))
        self._watch_drift()
        jobs = [measure_task(path, self._repeat) for _, path in compiled]
        for outcome in self._gpu.run(jobs):
            schedule, path = compiled[outcome.number]
            sink(self._record(schedule, outcome.value, outcome.error))
            if outcome.value and self._baseline is None:
                self._baseline = path, outcome.value["seconds"]

    def _record(self, schedule: Schedule, value: Any, error: str) -> Record:
        return cuda_record(self._problem, self.setting, schedule, value, error)

    def _watch_drift(self) -> None:
        """Time the first candidate again, and warn if the GPU's speed has changed."""
        if self._baseline is None:
            return
        path, before = self._baseline
        for outcome in self._gpu.run([measure_task(path, self._repeat)]):
            if outcome.value and abs(outcome.value["seconds"] / before - 1) > DRIFT:
                change = outcome.value["seconds"] / before - 1
                self._warn(
                    f"the GPU drifts: the first schedule now takes {change:+.0%}"
                )


def cuda_record(
    problem: Problem, setting: Setting, schedule: Schedule, value: Any, error: str
) -> Record:
    """The record of what `measure_candidate` returned, or of its error."""
    if not value:
        return Record(problem, schedule, setting, now(), None, error)
    measured = codec.decode(Measured, value, "the measurement")
    return Record(problem, schedule, setting, now(), **vars(measured))


def compile_tasks(
    problem: Problem,
    schedules: Sequence[Schedule],
    target: Target,
    source: str,
    folder: str,
) -> list[Any]:
    """Tasks for `compile_candidate`, each with a file of its own."""
    taken = len(os.listdir(folder))
    allow_tf32 = problem.dtypes[0] == "tf32"
    paths = (str(Path(folder) / f"{taken + n:06}.zip") for n in range(len(schedules)))
    return [
        codec.encode(CompileTask(source, target.name, allow_tf32, schedule, path))
        for schedule, path in zip(schedules, paths, strict=True)
    ]


def measure_task(path: str, repeat: int) -> Any:
    """The task for `measure_candidate`."""
    return codec.encode(MeasureTask(path, repeat))


def pick(device: str) -> str:
    """The device for `device`: "auto" is "cuda" where there is a GPU, else "simulated".

    ConfigError for an unknown one, LaunchError where "cuda" is wanted and missing.
    """
    if device not in DEVICES:
        raise ConfigError(
            f"unknown device '{device}', expected one of {', '.join(DEVICES)}"
        )
    if device == "simulated":
        return device
    from alcop_mlir.runtime import launch

    if device == "auto" and not launch.cuda_is_available():
        return "simulated"
    return launch.pick_device("cuda")


def cuda_setting(target: Target, compiler: tuple[str, str] | None = None) -> Setting:
    """The setting of records of this GPU; `compiler`: version, hash, if not ours."""
    model, driver = _gpu()
    version, digest = compiler or (alcop_mlir.__version__, compiler_hash())
    return Setting(target.name, "cuda", model, driver, version, digest)


def compiler_hash() -> str:
    """The hash of the sources that affect the generated code."""
    return source_hash(_COMPILER)


@functools.cache
def source_hash(names: tuple[str, ...]) -> str:
    """The hash of the package's files, or folders of files, called `names`."""
    root = Path(alcop_mlir.__file__).parent
    digest = hashlib.sha256()
    for name in names:
        path = root / name
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            digest.update(file.relative_to(root).as_posix().encode())
            digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def _gpu() -> tuple[str, str]:
    """Name of the first GPU and version of its driver; empty where unknown."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return "", ""
    command = [tool, "--query-gpu=name,driver_version", "--format=csv,noheader"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    name, _, driver = answer.stdout.partition("\n")[0].partition(",")
    return name.strip(), driver.strip()
