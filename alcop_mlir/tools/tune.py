"""alcop-tune: find the schedule with which a contraction runs fastest.

    alcop-tune FILE.mlir --budget 64         search, and record what was measured
    alcop-tune explain FILE.mlir             which schedule is taken, and why
    alcop-tune report -o DIR                 pictures of what is recorded
    alcop-tune FILE.mlir --export C.zip      compile candidates here, then
    alcop-tune --measure C.zip -o R.jsonl    measure them where the GPU is, then
    alcop-tune --import R.jsonl              keep the records here

Exit status 0; 1 with one line `error: ...` on stderr; 130 after Ctrl-C, which keeps
all measurements: the same command continues from there.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from alcop_mlir.errors import ConfigError, MissingExtraError
from alcop_mlir.target import DEFAULT_TARGET, Target, find_target
from alcop_mlir.tools import command_line
from alcop_mlir.tools.command_line import is_installed
from alcop_mlir.tools.tune_options import COMMANDS, TOOL, parser

if TYPE_CHECKING:
    from alcop_mlir.tools.tune_devices import Device
    from alcop_mlir.tuning.problem import Problem
    from alcop_mlir.tuning.records import Record
    from alcop_mlir.tuning.search import Budget, Strategy, Task


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns the exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    return command_line.run_command(lambda: _run(given))


def _run(arguments: list[str]) -> int:
    command = arguments[0] if arguments and arguments[0] in COMMANDS else ""
    given = parser(command).parse_args(arguments[bool(command) :])
    if given.version:
        return command_line.print_version(TOOL)
    steps: dict[str, Callable[[Any], int]] = {"explain": _explain, "report": _report}
    if command:
        return steps[command](given)
    if given.to_import is not None:
        return _import(given)
    if given.to_measure is not None:
        return _measure(given)
    return _tune(given)


def _tune(given: Any) -> int:
    from alcop_mlir.tools import tune_show
    from alcop_mlir.tuning import records, selection
    from alcop_mlir.tuning.search import Budget, search

    budget = Budget.parse(given.budget)
    if not is_installed("sklearn"):
        raise MissingExtraError("tuning needs scikit-learn", "tuning")
    task, source, device_name = _task(given)
    path = _records_path(given)
    log = records.read(path)
    for note in log.notes:
        _say(note)
    strategy = _strategy(given, task, device_name, log.records)
    if given.to_export is not None:
        return _export(given, task, source, strategy, budget)
    print(
        f"{task.problem} on {task.target.name} ({device_name}): {given.space} space, "
        f"{len(task.candidates)} legal schedules"
    )
    choice = selection.decide(
        task.problem, task.target, records_path=path, device=device_name
    )
    tried = 0
    with (
        _device(given, task, source, device_name) as device,
        tune_show.Progress(budget, device_name) as progress,
    ):
        known = records.measured(log.records, task.problem, device.setting)
        measure = _measurer(device, path, progress)
        try:
            for batch in search(task, strategy, measure, budget, known=known):
                tried += len(batch)
                progress.batch()
        except KeyboardInterrupt:
            _say(f"stopped: what was measured is in {path}, the same command goes on")
            raise
    done = records.read(path).records
    ranked = records.ranked(done, task.problem, task.target.name, device_name)
    best = ranked[0] if ranked else None
    rows = tune_show.result_rows(best, choice, str(path), tried)
    command_line.print_table(f"{tried} tried, {len(known)} known before", rows)
    return 0 if best else 1


def _measurer(device: Device, path: Path, progress: Any) -> Any:
    """A function that measures a batch and stores each record before the next."""
    from alcop_mlir.tuning import records
    from alcop_mlir.tuning.search import Trial

    def measure(schedules: Any) -> list[Trial]:
        trials: list[Trial] = []

        def sink(record: Record) -> None:
            records.append(path, [record])
            progress.add(record)
            trials.append(Trial(record.schedule, record.seconds, record.error))

        device.measure(schedules, sink)
        return trials

    return measure


def _explain(given: Any) -> int:
    from alcop_mlir.tools import tune_devices, tune_show
    from alcop_mlir.tuning import selection
    from alcop_mlir.tuning.space import find_space

    problem, _ = _problem(given)
    device = tune_devices.pick(given.device)
    choice = selection.decide(
        problem,
        _target(given, device),
        records_path=_records_path(given),
        device=device,
        space=find_space(given.space),
    )
    for note in choice.notes:
        _say(note)
    title = f"{problem} on {choice.task.target.name}"
    command_line.print_table(title, tune_show.choice_rows(choice, device))
    return 0


def _report(given: Any) -> int:
    from alcop_mlir.tools import tune_report
    from alcop_mlir.tuning import records

    log = records.read(_records_path(given))
    for note in log.notes:
        _say(note)
    for path in tune_report.draw(log.records, Path(given.output)):
        print(path)
    return 0


def _export(
    given: Any, task: Task, source: str, strategy: Strategy, budget: Budget
) -> int:
    from alcop_mlir.tools import tune_exchange
    from alcop_mlir.tuning.search import History

    if budget.trials is None:
        raise ConfigError("--export takes a number of candidates as its --budget")
    rows = strategy.propose(task, History(), budget.trials)
    count = tune_exchange.export(
        task.problem,
        task.target,
        source,
        [task.candidates.schedules[row] for row in rows],
        given.to_export,
        _workers(given),
        given.time_limit,
        _say,
    )
    print(f"wrote {given.to_export}: {count} candidates")
    return 0


def _measure(given: Any) -> int:
    from alcop_mlir.tools import tune_devices, tune_exchange
    from alcop_mlir.tuning import exchange

    package = exchange.load(given.to_measure)
    path = given.output or given.to_measure.with_suffix(".jsonl")
    device = tune_devices.pick(given.device)
    count = tune_exchange.measure(
        package, device, path, given.time_limit, given.repeat, _say
    )
    print(f"{count} candidates measured ({device}), records in {path}")
    return 0


def _import(given: Any) -> int:
    from alcop_mlir.tools import tune_exchange

    path = _records_path(given)
    count = tune_exchange.import_records(given.to_import, path, _say)
    print(f"{count} new records in {path}")
    return 0


def _task(given: Any) -> tuple[Task, str, str]:
    """The task to search, the MLIR text, and the device's name."""
    from alcop_mlir.tools import tune_devices
    from alcop_mlir.tuning.search import Task
    from alcop_mlir.tuning.space import enumerate_space, find_space

    space = find_space(given.space)
    problem, source = _problem(given)
    device = "cuda" if given.to_export else tune_devices.pick(given.device)
    target = _target(given, device if not given.to_export else "")
    return (
        Task(problem, target, enumerate_space(problem, target, space)),
        source,
        device,
    )


def _problem(given: Any) -> tuple[Problem, str]:
    if given.file is None:
        raise ConfigError(f"no file given; see {TOOL} --help")
    if given.target is not None:
        find_target(given.target)  # before MLIR is loaded
    from alcop_mlir.compilation import inputs
    from alcop_mlir.tools.tune_problem import file_problem

    source = inputs.read_file(given.file)
    return file_problem(source, given.file, given.allow_tf32), source.text.decode()


def _target(given: Any, device: str) -> Target:
    """The one asked for, else the GPU's, else the default."""
    if given.target is not None:
        return find_target(given.target)
    if device == "cuda":
        from alcop_mlir.runtime.launch import gpu_target

        return gpu_target()
    return find_target(DEFAULT_TARGET)


def _strategy(given: Any, task: Task, device: str, known: Sequence[Record]) -> Strategy:
    """The strategy asked for, with a model trained on records of other problems."""
    from alcop_mlir.tuning import models, strategies

    recorded = (*known, *models.shipped(device, task.target))
    pretrained, notes = models.load_or_train(recorded, device, task.target)
    for note in notes:
        _say(note)
    others = models.samples(recorded, device, task.target)
    others.pop(task.problem, None)
    return strategies.make(
        given.strategy, models.train, list(others.values()), given.seed, pretrained
    )


def _device(given: Any, task: Task, source: str, name: str) -> Device:
    from alcop_mlir.tools import tune_devices

    if name == "simulated":
        return tune_devices.Simulated(task.problem, task.target)
    return tune_devices.Cuda(
        task.problem,
        task.target,
        source,
        _workers(given),
        given.time_limit,
        given.repeat,
        _say,
    )


def _records_path(given: Any) -> Path:
    from alcop_mlir.tuning import models

    return given.records or models.records_path()


def _workers(given: Any) -> int:
    return given.workers or os.cpu_count() or 1


def _say(line: str) -> None:
    print(f"note: {line}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
