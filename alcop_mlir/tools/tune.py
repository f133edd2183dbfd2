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
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from alcop_mlir.errors import ConfigError, MissingExtraError
from alcop_mlir.schedule import Schedule
from alcop_mlir.target import Target, find_target
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
    if command:
        return {"explain": _explain, "report": _report}[command](given)
    if given.to_import is not None:
        return _import(given)
    if given.to_measure is not None:
        return _measure(given)
    return _tune(given)


def _tune(given: Any) -> int:
    """Search, or export what a search would try first."""
    from alcop_mlir.tools import tune_devices
    from alcop_mlir.tuning.search import Budget, Task
    from alcop_mlir.tuning.space import enumerate_space, find_space

    budget = Budget.parse(given.budget)
    if not is_installed("sklearn"):
        raise MissingExtraError("tuning needs scikit-learn", "tuning")
    space = find_space(given.space)
    problem, source = _problem(given)
    name = "cuda" if given.to_export else tune_devices.pick(given.device)
    target = command_line.target(given, "" if given.to_export else name)
    task = Task(problem, target, enumerate_space(problem, target, space))
    recorded = _recorded(_records_path(given))
    strategy = _strategy(given, task, name, recorded)
    if given.to_export is not None:
        return _export(given, task, source, strategy, budget)
    print(
        f"{problem} on {target.name} ({name}): {space.name} space, "
        f"{len(task.candidates)} legal schedules"
    )
    with _device(given, name, problem, target, source=source) as device:
        return _search(_records_path(given), task, strategy, budget, device, recorded)


def _search(
    path: Path,
    task: Task,
    strategy: Strategy,
    budget: Budget,
    device: Device,
    recorded: Sequence[Record],
) -> int:
    """Each record is stored before the next is made."""
    from alcop_mlir.tools import tune_show
    from alcop_mlir.tuning import records, selection
    from alcop_mlir.tuning.search import search

    name = device.setting.device
    choice = selection.decide(task.problem, task.target, records_path=path, device=name)
    known = records.measured(recorded, task.problem, device.setting)
    with tune_show.Progress(budget, name) as progress:

        def measure(schedules: Sequence[Schedule]) -> dict[Schedule, float | None]:
            seconds: dict[Schedule, float | None] = {}
            for record in device.measure(schedules):
                records.append(path, [record])
                progress.add(record)
                seconds[record.schedule] = record.seconds
            return seconds

        try:
            for _ in search(task, strategy, measure, budget, known=known):
                progress.batch()
        except KeyboardInterrupt:
            _say(f"stopped: what was measured is in {path}, the same command goes on")
            raise
    done = records.read(path).records
    ranked = records.ranked(done, task.problem, task.target.name, name)
    best = ranked[0] if ranked else None
    tried = progress.tried
    rows = tune_show.result_rows(best, choice, str(path), tried)
    command_line.print_table(f"{tried} tried, {len(known)} known before", rows)
    return 0 if best else 1


def _explain(given: Any) -> int:
    from alcop_mlir.tools import tune_devices, tune_show
    from alcop_mlir.tuning import selection
    from alcop_mlir.tuning.space import find_space

    problem, _ = _problem(given)
    device = tune_devices.pick(given.device)
    choice = selection.decide(
        problem,
        command_line.target(given, device),
        records_path=_records_path(given),
        device=device,
        space=find_space(given.space),
    )
    _say(*choice.notes)
    title = f"{problem} on {choice.task.target.name}"
    command_line.print_table(title, tune_show.choice_rows(choice, device))
    return 0


def _report(given: Any) -> int:
    from alcop_mlir.tools import tune_report

    recorded = _recorded(_records_path(given))
    for path in tune_report.draw(recorded, Path(given.output)):
        print(path)
    return 0


def _export(
    given: Any, task: Task, source: str, strategy: Strategy, budget: Budget
) -> int:
    """Compile candidates, and store those that compile."""
    from alcop_mlir.tuning import exchange
    from alcop_mlir.tuning.search import History

    if budget.trials is None:
        raise ConfigError("--export takes a number of candidates as its --budget")
    rows = strategy.propose(task, History(), budget.trials)
    proposed = [task.candidates.schedules[row] for row in rows]
    bundles: dict[Schedule, bytes] = {}
    problem, target = task.problem, task.target
    with _device(given, "cuda", problem, target, source=source) as device:
        for schedule, path, error in device.compile(proposed):
            if error:
                _say(f"'{schedule}' is left out: {error}")
            else:
                bundles[schedule] = path.read_bytes()
    if not bundles:
        raise ConfigError("no candidate compiles, nothing is exported")
    compiler = device.setting.compiler, device.setting.compiler_hash
    compiled = [(one, bundles[one]) for one in proposed if one in bundles]
    package = exchange.Package(problem, target, compiler, compiled)
    exchange.save(package, given.to_export)
    print(f"wrote {given.to_export}: {len(compiled)} candidates")
    return 0


def _measure(given: Any) -> int:
    """Measure what was exported elsewhere and is not in the output yet."""
    from alcop_mlir.tools import tune_devices
    from alcop_mlir.tuning import exchange, records

    package = exchange.load(given.to_measure)
    path = given.output or given.to_measure.with_suffix(".jsonl")
    problem, target, bundles = package.problem, package.target, dict(package.candidates)
    name = tune_devices.pick(given.device)
    compiler = package.compiler
    with _device(given, name, problem, target, compiler, bundles=bundles) as device:
        known = records.measured(records.read(path).records, problem, device.setting)
        left = [schedule for schedule in bundles if schedule not in known]
        for record in device.measure(left):
            records.append(path, [record])
            if record.error:
                _say(f"'{record.schedule}': {record.error}")
    print(f"{len(left)} candidates measured ({name}), records in {path}")
    return 0


def _import(given: Any) -> int:
    """Add the records that are new."""
    from alcop_mlir.tuning import records

    source, path = given.to_import, _records_path(given)
    if not os.path.exists(source):  # not Path.exists, which fails on long names
        raise ConfigError(f"no such file: '{source}'")
    found = _recorded(source)
    if not found:
        raise ConfigError(f"'{source}' holds no records")
    known = set(records.read(path).records)
    new = [record for record in dict.fromkeys(found) if record not in known]
    if new:
        records.append(path, new)
    print(f"{len(new)} new records in {path}")
    return 0


def _problem(given: Any) -> tuple[Problem, str]:
    """The problem to tune, and the text of its file."""
    if given.file is None:
        raise ConfigError(f"no file given; see {TOOL} --help")
    if given.target is not None:
        find_target(given.target)  # before MLIR is loaded
    from alcop_mlir.compilation import inputs
    from alcop_mlir.tools.tune_problem import file_problem

    source = inputs.read_file(given.file)
    return file_problem(source, given.file, given.allow_tf32), source.text.decode()


def _strategy(given: Any, task: Task, device: str, known: Sequence[Record]) -> Strategy:
    """The strategy asked for, with a model trained on records of other problems."""
    from alcop_mlir.tuning import models, strategies

    recorded = (*known, *models.shipped(device, task.target))
    pretrained, notes = models.load_or_train(recorded, device, task.target)
    _say(*notes)
    others = models.samples(recorded, device, task.target)
    others.pop(task.problem, None)
    return strategies.make(
        given.strategy, models.train, list(others.values()), given.seed, pretrained
    )


def _device(
    given: Any,
    name: str,
    problem: Problem,
    target: Target,
    compiler: tuple[str, str] | None = None,
    **what: Any,
) -> Any:
    """The device called `name`; a GPU takes `what` it measures.

    compiler: see `cuda_setting`
    """
    from alcop_mlir.tools import tune_devices

    if name == "simulated":
        return tune_devices.Simulated(problem, target)
    setting = tune_devices.cuda_setting(target, compiler)
    limits = given.workers, given.time_limit, given.repeat
    return tune_devices.Cuda(problem, target, setting, *limits, _say, **what)


def _records_path(given: Any) -> Path:
    from alcop_mlir.tuning import models

    return given.records or models.records_path()


def _recorded(path: Path) -> Sequence[Record]:
    """The records at `path`; says what was skipped there."""
    from alcop_mlir.tuning import records

    log = records.read(path)
    _say(*log.notes)
    return log.records


def _say(*lines: str) -> None:
    for line in lines:
        print(f"note: {line}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
