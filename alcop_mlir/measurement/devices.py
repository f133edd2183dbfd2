"""The devices of alcop-tune: a GPU, or the simulated SM. They are never mixed."""

from __future__ import annotations

import functools
import hashlib
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import alcop_mlir
from alcop_mlir.errors import check_known
from alcop_mlir.measurement.measuring import Outcome, Pool
from alcop_mlir.measurement.operators import Operator
from alcop_mlir.measurement.program_search import Trial
from alcop_mlir.measurement.work import (
    CompileTask,
    compile_candidate,
    measure_candidate,
)
from alcop_mlir.schedule import Schedule
from alcop_mlir.target import Target
from alcop_mlir.tuning import gpus, records
from alcop_mlir.tuning.problem import Problem
from alcop_mlir.tuning.records import Record, Setting, now

if TYPE_CHECKING:
    from alcop_mlir.runtime.measure import Timing

DEVICES = ("auto", *records.DEVICES)
SIMULATED_GPU = "simulated SM"
DRIFT = 0.05  # the baseline may take that much more or less than at first
# What affects the generated code, and what affects simulated times.
_COMPILER = ("analysis", "dialects", "transforms", "runtime/ptx.py", "schedule.py")
_SIMULATOR = (
    "measurement/chain_simulator.py",
    "measurement/events.py",
    "measurement/simulator.py",
    "hardware.py",
    "tuning/fused/chain_problem.py",
    "tuning/traffic.py",
    "tuning/warpgroup_model.py",
)


class Device(ExitStack):
    """Measures schedules for `problem` on `target`; its records name the setting."""

    def __init__(self, problem: Problem, target: Target, setting: Setting):
        super().__init__()
        self.problem, self.target, self.setting = problem, target, setting

    def turn_to(self, operator: Operator) -> None:
        """Measure this operator from now on."""
        self.problem = operator.problem

    def measure(self, schedules: Sequence[Schedule]) -> Iterator[Record]:
        """A record for each schedule as soon as it is made, in any order."""
        raise NotImplementedError


class Simulated(Device):
    """The discrete-event simulation. Compiles nothing."""

    def __init__(self, problem: Problem, target: Target):
        super().__init__(problem, target, simulated_setting(target))

    def measure(self, schedules: Sequence[Schedule]) -> Iterator[Record]:
        """Simulate them all at once."""
        from alcop_mlir.measurement.simulator import simulate
        from alcop_mlir.tuning.candidates import Candidates
        from alcop_mlir.tuning.space import check

        costs = [check(self.problem, s, self.target) for s in schedules]
        times = simulate(self.problem, Candidates(schedules, costs), self.target)
        for schedule, seconds in zip(schedules, times.tolist(), strict=True):
            yield Record(self.problem, schedule, self.setting, now(), seconds)


class Cuda(Device):
    """The GPU of this machine: candidates compiled in parallel, measured one by one.

    workers, limit: compiling processes, and the seconds that each step may take
    repeat: launches to time
    warn: takes a line when the GPU has become slower or faster
    source: MLIR text to compile; not needed for schedules in `bundles`
    bundles: what was compiled elsewhere, by the compiler that `setting` names
    """

    def __init__(
        self,
        problem: Problem,
        target: Target,
        setting: Setting,
        workers: int,
        limit: float,
        repeat: int,
        warn: Callable[[str], None],
        source: str = "",
        bundles: Mapping[Schedule, bytes] | None = None,
    ):
        super().__init__(problem, target, setting)
        self._repeat, self._warn, self._source = repeat, warn, source
        self._bundles = bundles or {}
        self._compilers = self.enter_context(Pool(compile_candidate, workers, limit))
        self._gpu = self.enter_context(Pool(measure_candidate, 1, limit))
        folder = tempfile.TemporaryDirectory(prefix="alcop-tune-")
        self._folder = Path(self.enter_context(folder))
        self._taken = 0
        self._baseline: tuple[Path, float] | None = None

    def turn_to(self, operator: Operator) -> None:
        """Compile and measure this operator from now on."""
        super().turn_to(operator)
        self._source = operator.source

    def measure(self, schedules: Sequence[Schedule]) -> Iterator[Record]:
        """Compile all, then check and time each that compiled."""
        compiled: list[tuple[Schedule, Path]] = []
        for schedule, path, error in self.compile(schedules):
            if error:
                yield self.record(schedule, None, error)
            else:
                compiled.append((schedule, path))
        self._watch_drift()
        for outcome in self._time([path for _, path in compiled]):
            schedule, path = compiled[outcome.number]
            yield self.record(schedule, outcome.value, outcome.error)
            if not outcome.error and self._baseline is None:
                self._baseline = path, outcome.value.median

    def compile(
        self, schedules: Sequence[Schedule]
    ) -> Iterator[tuple[Schedule, Path, str]]:
        """Each schedule with the path of its bundle, and why there is none, or ""."""
        tasks: list[CompileTask] = []
        for schedule in schedules:
            path = self._folder / f"{self._taken:06}.zip"
            self._taken += 1
            if schedule in self._bundles:
                path.write_bytes(self._bundles[schedule])
                yield schedule, path, ""
                continue
            tf32 = self.problem.dtypes[0] == "tf32"
            chain = self.problem.chain is not None
            task = CompileTask(self._source, self.target, tf32, schedule, path, chain)
            tasks.append(task)
        for outcome in self._compilers.run(tasks):
            task = tasks[outcome.number]
            yield task.schedule, task.path, outcome.error

    def _time(self, paths: Sequence[Path]) -> Iterator[Outcome]:
        return self._gpu.run([(path, self._repeat) for path in paths])

    def record(self, schedule: Schedule, timing: Timing | None, error: str) -> Record:
        """The record of a time, or of why there is none."""
        made = Record(self.problem, schedule, self.setting, now(), None)
        return with_timing(made, timing, error)

    def _watch_drift(self) -> None:
        """Time the first candidate again, and warn if the GPU's speed has changed."""
        if self._baseline is None:
            return
        path, before = self._baseline
        for outcome in self._time([path]):
            change = 0 if outcome.error else outcome.value.median / before - 1
            if abs(change) > DRIFT:
                self._warn(
                    f"the GPU drifts: the first schedule now takes {change:+.0%}"
                )


class InTurn:
    """Measures batches of operators one after the other, on one device."""

    def __init__(self, device: Device, operators: Sequence[Operator]):
        self._device, self._operators = device, operators
        self._waiting: list[tuple[int, Sequence[Schedule]]] = []

    def wants_more(self) -> bool:
        """What is measured next depends on all that was measured before."""
        return not self._waiting

    def start(self, number: int, schedules: Sequence[Schedule]) -> None:
        """Measure the schedules of an operator after those that wait."""
        self._waiting.append((number, schedules))

    def finished(self) -> Iterator[Trial]:
        """The batch that has waited longest, one record after the other."""
        number, schedules = self._waiting.pop(0)
        self._device.turn_to(self._operators[number])
        for record in self._device.measure(schedules):
            yield Trial(number, record.schedule, record)


def pick(device: str) -> str:
    """The device for `device`: "auto" is "cuda" where there is a GPU, else "simulated".

    ConfigError for an unknown one, LaunchError where "cuda" is wanted and missing.
    """
    check_known("device", device, DEVICES)
    if device == "simulated":
        return device
    from alcop_mlir.runtime import launch

    if device == "auto" and not launch.cuda_is_available():
        return "simulated"
    return launch.pick_device("cuda")


def cuda_setting(target: Target, compiler: tuple[str, str] | None = None) -> Setting:
    """The setting of records of this GPU; `compiler`: version, hash, if not ours."""
    gpu = gpus.local()
    model, driver = (gpu.name, gpu.driver) if gpu else ("", "")
    version, digest = compiler or (alcop_mlir.__version__, compiler_hash())
    return Setting(target.name, "cuda", model, driver, version, digest)


def simulated_setting(target: Target) -> Setting:
    """The setting of records of the simulated SM."""
    return Setting(
        target.name,
        "simulated",
        SIMULATED_GPU,
        compiler=alcop_mlir.__version__,
        compiler_hash=source_hash(_SIMULATOR),
    )


def with_timing(made: Record, timing: Timing | None, error: str) -> Record:
    """The record with a time, or with why there is none."""
    if timing is None:
        return replace(made, error=error)
    repeats = len(timing.seconds)
    return replace(made, seconds=timing.median, spread=timing.spread, repeats=repeats)


def compiler_hash() -> str:
    """Of what affects the code that is made here."""
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
