"""What alcop-tune does once its command line is read."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from alcop_mlir.errors import (
    ConfigError,
    MissingExtraError,
    NoContractionError,
    check_known,
)
from alcop_mlir.measurement import devices, exchange
from alcop_mlir.measurement.devices import Cuda, Device
from alcop_mlir.measurement.journal import Journal
from alcop_mlir.measurement.operators import Program
from alcop_mlir.schedule import Schedule
from alcop_mlir.target import Target, target_names
from alcop_mlir.tools import (
    command_line,
    tune_explain,
    tune_pool,
    tune_program,
    tune_report,
    tune_show,
)
from alcop_mlir.tools.command_line import is_installed
from alcop_mlir.tools.tune_options import TOOL
from alcop_mlir.tuning import models, records, strategies
from alcop_mlir.tuning.problem import Problem
from alcop_mlir.tuning.records import Record
from alcop_mlir.tuning.search import Budget, History, Strategy, Task, search
from alcop_mlir.tuning.selection import COMPILED_FOR, Chooser
from alcop_mlir.tuning.space import Space, enumerate_space, find_space
from alcop_mlir.variants import DEFAULT_VARIANTS

if TYPE_CHECKING:
    from alcop_mlir.measurement.tunables import Tunable


def run(command: str, given: Any) -> int:
    """Do what is asked for; returns the exit status. Raises AlcopError."""
    if command:
        return _COMMANDS[command](given)
    if given.to_import is not None:
        return _import(given)
    if given.to_measure is not None:
        return _measure(given)
    return _tune(given)


def _tune(given: Any) -> int:
    """Search, or export what a search would try first."""
    budget = Budget.parse(given.budget)
    if not is_installed("sklearn"):
        raise MissingExtraError("tuning needs scikit-learn", "tuning")
    space = find_space(given.space)
    _check_file(given)
    if given.pool is not None:
        if given.to_export is not None:
            raise ConfigError("--export and --pool are not for one call")
        return tune_pool.tune(
            given, lambda target: _program(given, target), space, budget, _say
        )
    name = "cuda" if given.to_export else devices.pick(given.device)
    target = command_line.target(given, "" if given.to_export else name)
    program = _program(given, target)
    is_chain = program.operators[0].problem.chain is not None
    if len(program.operators) > 1 or is_chain:
        return _tune_program(given, program, name, target, space, budget)
    tunable, source = _tunable(given, target)
    problem = tunable.problem
    task = Task(problem, target, enumerate_space(problem, target, space))
    with _device(given, name, problem, target, source=source) as device:
        # Candidates to export are for the GPU that is compiled for.
        gpu = None if given.to_export else device.setting.gpu
        path = _records_path(given)
        chooser = Chooser(target, path=path, device=name, gpu=gpu)
        _say(*chooser.counted.notes, *chooser.counted.left_out)
        strategy = _strategy(given, task, chooser)
        if given.to_export is not None:
            return _export(given, task, device, strategy, budget)
        print(
            f"{problem} on {target.name} ({name}): {space.name} space, "
            f"{len(task.candidates)} legal schedules"
        )
        if chooser.unused():
            print(f"no compile uses what is found: {chooser.unused()}")
        return _search(tunable, task, chooser, strategy, budget, device)


def _tune_program(
    given: Any,
    program: Program,
    name: str,
    target: Target,
    space: Space,
    budget: Budget,
) -> int:
    """Search for the schedules of all contractions of a program."""
    if given.to_export is not None:
        several, first = len(program.operators), program.operators[0].problem
        why = f"'{program.name}' has {several} operators, --export takes one"
        if several == 1:
            why = f"'{program.name}' is a {first}, --export takes a contraction"
        raise ConfigError(why)
    _say(*program.left_out)
    operators = program.operators
    with _device(given, name, operators[0].problem, target) as device:
        setting, path = device.setting, _records_path(given)
        chooser = Chooser(target, path=path, device=name, gpu=setting.gpu)
        _say(*chooser.counted.notes, *chooser.counted.left_out, *chooser.learned[1])
        read = records.read(path).records
        found = tune_program.make_searches(
            given,
            program,
            chooser,
            space,
            lambda problem: records.measured(read, problem, setting),
        )
        print(tune_program.title(found, program.name, chooser, space))
        if chooser.unused():
            print(f"no compile uses what is found: {chooser.unused()}")
        measurer = devices.InTurn(device, operators)
        journal = Journal(path)
        rows = tune_program.run(found, measurer, budget, journal, name)
        command_line.print_table(program.name, rows)
    return 0 if any(one.best < math.inf for one in found) else 1


def _search(
    tunable: Tunable,
    task: Task,
    before: Chooser,
    strategy: Strategy,
    budget: Budget,
    device: Device,
) -> int:
    """Each record is stored before the next is made."""
    name, path = device.setting.device, before.path
    decision = before.choose(task.problem)
    known = records.measured(records.read(path).records, task.problem, device.setting)
    with tune_show.Progress(budget, name, known) as progress:

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
    gpu = device.setting.gpu
    after = Chooser(task.target, path=path, device=name, gpu=gpu)
    best, _ = after.best_record(task.problem)
    tried = progress.tried
    compiled = tunable.decide(Chooser(task.target))
    rows = [
        *tune_show.result_rows(task.problem, best, decision, str(path), tried),
        *tune_show.compile_rows(after, compiled),
    ]
    command_line.print_table(f"{tried} tried, {len(known)} known before", rows)
    return 0 if best else 1


def _explain(given: Any) -> int:
    check_known("device", given.device, devices.DEVICES)
    space = find_space(given.space)
    _check_file(given)
    device = "simulated" if given.device == "simulated" else COMPILED_FOR
    most = given.variants or DEFAULT_VARIANTS
    # Nothing is measured: without a GPU, too, the choice is the compiler's.
    target = command_line.target(given, "" if given.target else devices.pick("auto"))
    try:
        tunable, _ = _tunable(given, target)
    except NoContractionError:
        if not _explain_chains(given, target, device):
            raise
        return 0
    path = _records_path(given)
    chooser = Chooser(target, path=path, device=device, space=space)
    if tunable.contraction.has_variants and most > 1:
        return _explain_variants(given, tunable, chooser, most)
    if given.sizes is not None:
        raise ConfigError(f"'{tunable.name}' has a single schedule, whatever sizes are")
    decision = tunable.decide(chooser)
    compiled = decision if not chooser.unused() else tunable.decide(Chooser(target))
    _say(*chooser.counted.notes, *chooser.counted.left_out, *decision.notes)
    rows = [*tune_show.decision_rows(decision)]
    if tunable.unmodelled:
        rows += [("models", [f"none: {tunable.unmodelled}"])]
        title = f"{tunable.name}"
    else:
        title = str(tunable.problem)
        ranking = chooser.ranking(tunable.problem)
        rows += tune_show.choice_rows(decision, ranking, device)
    rows += tune_show.compile_rows(chooser, compiled)
    where = chooser.gpu or device
    command_line.print_table(f"{title} on {target.name} ({where})", rows)
    return 0


def _explain_chains(given: Any, target: Target, device: str) -> bool:
    """The tiles of each chain, and why; whether there are any."""
    from alcop_mlir.compilation import inputs
    from alcop_mlir.measurement.chains_of import find_chains

    chooser = Chooser(target, path=_records_path(given), device=device)
    _say(*chooser.counted.notes, *chooser.counted.left_out)
    found = find_chains(inputs.read_file(given.file), target, chooser)
    for one in found:
        title = f"{tune_explain.chain_title(one.sizes)} on {target.name}"
        problem = one.problem
        record = None if problem is None else chooser.best_record(problem)[0]
        rows = tune_explain.chain_rows(one.sizes, one.tiles, target, record)
        command_line.print_table(title, rows)
    if found and chooser.unused():
        _say(f"no compile uses these records: {chooser.unused()}")
    return bool(found)


def _explain_variants(given: Any, tunable: Tunable, chooser: Chooser, most: int) -> int:
    """The variants; with `--sizes` which of them runs, and why."""
    problem, variants = tunable.open_problem, tunable.variants(chooser, most)
    rows = [*tune_explain.variant_rows(variants, tunable.element_bytes)]
    if given.sizes is not None:
        if problem is None:
            raise ConfigError(f"'{tunable.name}': no model covers its types")
        target, sizes = chooser.target, given.sizes
        rows += tune_explain.choice_rows(problem, target, variants, sizes)
    where = f"{chooser.target.name} ({chooser.gpu or chooser.device})"
    title = tunable.name if problem is None else str(problem)
    command_line.print_table(f"{title} on {where}", rows)
    return 0


def _report(given: Any) -> int:
    """Pictures, and what compiles take for the problems in the records."""
    path = _records_path(given)
    recorded = _recorded(path)
    known = [one for one in recorded if one.setting.target in target_names()]
    if len(known) < len(recorded):
        _say(f"{len(recorded) - len(known)} record(s) of unknown targets left out")
    recorded = known
    for title, rows in tune_show.report_tables(recorded, path):
        command_line.print_table(title, rows)
    for drawn in tune_report.draw(recorded, Path(given.output)):
        print(drawn)
    return 0


def _export(
    given: Any, task: Task, device: Cuda, strategy: Strategy, budget: Budget
) -> int:
    """Compile candidates, and store those that compile."""
    if budget.trials is None:
        raise ConfigError("--export takes a number of candidates as its --budget")
    rows = strategy.propose(task, History(), budget.trials)
    proposed = [task.candidates.schedules[row] for row in rows]
    bundles: dict[Schedule, bytes] = {}
    for schedule, path, error in device.compile(proposed):
        if error:
            _say(f"'{schedule}' is left out: {error}")
        else:
            bundles[schedule] = path.read_bytes()
    if not bundles:
        raise ConfigError("no candidate compiles, nothing is exported")
    compiler = device.setting.compiler, device.setting.compiler_hash
    compiled = [(one, bundles[one]) for one in proposed if one in bundles]
    package = exchange.Package(task.problem, task.target, compiler, compiled)
    exchange.save(package, given.to_export)
    print(f"wrote {given.to_export}: {len(compiled)} candidates")
    return 0


def _measure(given: Any) -> int:
    """Measure what was exported elsewhere and is not in the output yet."""
    package = exchange.load(given.to_measure)
    path = given.output or given.to_measure.with_suffix(".jsonl")
    problem, target, bundles = package.problem, package.target, dict(package.candidates)
    name = devices.pick(given.device)
    if name != given.device and name == "simulated":
        raise ConfigError(
            "no GPU is found to measure on; --device simulated makes simulated "
            "records, which no compile uses"
        )
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
    for line in tune_show.unused_lines(new, path):
        print(line)
    return 0


def _check_file(given: Any) -> None:
    if given.file is None:
        raise ConfigError(f"no file given; see {TOOL} --help")


def _program(given: Any, target: Target) -> Program:
    """The operators of the file."""
    from alcop_mlir.compilation import inputs
    from alcop_mlir.measurement.program_operators import find_program

    source = inputs.read_file(given.file)
    return find_program(source, given.file, given.allow_tf32, target.name)


def _tunable(given: Any, target: Target) -> tuple[Tunable, str]:
    """The contraction to tune, and the text of its file."""
    from alcop_mlir.compilation import inputs
    from alcop_mlir.measurement.tunables import find_tunable

    source = inputs.read_file(given.file)
    tunable = find_tunable(source, given.file, given.allow_tf32, target.name)
    return tunable, source.text.decode()


def _strategy(given: Any, task: Task, chooser: Chooser) -> Strategy:
    """The strategy asked for, with a model trained on records of other problems."""
    forest, notes = chooser.learned
    _say(*notes)
    others = chooser.samples()
    others.pop(task.problem, None)
    elsewhere, notes = chooser.elsewhere if given.strategy == "hybrid" else (None, ())
    _say(*notes)
    return strategies.make(
        given.strategy, [*others.values()], given.seed, forest, elsewhere
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
    if name == "simulated":
        return devices.Simulated(problem, target)
    setting = devices.cuda_setting(target, compiler)
    limits = given.workers, given.time_limit, given.repeat
    return devices.Cuda(problem, target, setting, *limits, _say, **what)


def _records_path(given: Any) -> Path:
    return given.records or models.records_path()


def _recorded(path: Path) -> Sequence[Record]:
    """The records at `path`; says what was skipped there."""
    log = records.read(path)
    _say(*log.notes)
    return log.records


def _say(*lines: str) -> None:
    for line in lines:
        print(f"note: {line}", file=sys.stderr)


_COMMANDS = {"explain": _explain, "report": _report, "worker": tune_pool.serve}
