"""The work of alcop-tune's worker processes: compile or measure one candidate.

A process keeps what it needs for the next task.
"""

from __future__ import annotations

import functools
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from alcop_mlir import knobs
from alcop_mlir.errors import LaunchError
from alcop_mlir.schedule import Schedule
from alcop_mlir.target import Target, find_target
from alcop_mlir.tuning.problem import Problem

if TYPE_CHECKING:
    from alcop_mlir.runtime.measure import Timing


@dataclass(frozen=True)
class CompileTask:
    """The text `source` is compiled with `schedule`, the bundle stored at `path`.

    is_chain: whether the schedule is one of a chain
    """

    source: str
    target: Target
    allow_tf32: bool
    schedule: Schedule
    path: Path
    is_chain: bool = False


def compile_candidate(task: CompileTask) -> None:
    """Do the task; raises AlcopError where the compiler refuses."""
    from alcop_mlir.compilation import compiler
    from alcop_mlir.runtime.bundle import save
    from alcop_mlir.tuning import chain_schedule

    options = compiler.Options(task.target, task.schedule, allow_tf32=task.allow_tf32)
    if task.is_chain:
        tiles = chain_schedule.tiles_of(task.schedule)
        chosen = tiles.rows, tiles.warps, tiles.columns, tiles.parts
        options = compiler.Options(task.target, chain_tiles=chosen)
    save(compiler.compile_source(_source(task.source), options), task.path)


def measure_candidate(task: tuple[Path, int]) -> Timing:
    """Check the bundle at a path on the GPU, then time so many launches of it.

    Raises LaunchError where the result is wrong.
    """
    from alcop_mlir.runtime import bundle, checking, launch, measure

    path, repeat = task
    program = launch.Program(bundle.load(path), device="cuda")
    function = program.function
    before, expected = _expected(function)
    arrays = launch.to_device(before, "cuda")
    program(*arrays.values())
    check = checking.compare(function, expected, launch.to_host(arrays))
    if not check.ok:
        raise LaunchError(f"wrong result: its relative error is {check.error:.1e}")
    return measure.time_on_gpu(program, list(arrays.values()), repeat)


def simulate_candidate(task: tuple[Problem, Schedule, str]) -> float:
    """The seconds of a schedule on the simulated SM.

    Takes as long as `ALCOP_SIMULATED_SECONDS` says, as a GPU would.
    """
    from alcop_mlir.measurement.simulator import simulate
    from alcop_mlir.tuning.candidates import Candidates
    from alcop_mlir.tuning.space import check

    problem, schedule, name = task
    target = find_target(name)
    cost = check(problem, schedule, target)
    time.sleep(knobs.simulated_seconds())
    return float(simulate(problem, Candidates([schedule], [cost]), target)[0])


@functools.lru_cache(maxsize=1)
def _source(text: str) -> Any:
    from alcop_mlir.compilation import inputs

    return inputs.read_text(text)


_references: dict[Any, tuple[Any, Any]] = {}


def _expected(function: Any) -> tuple[Any, Any]:
    """Random inputs and their reference: seconds of work, once for all candidates."""
    from alcop_mlir.runtime import checking

    key = (function.parameters, function.reference)
    if key not in _references:
        if not function.reference:
            raise LaunchError(
                f"nothing to check '{function.name}' against: its bundle has no "
                "reference"
            )
        before = checking.random_arrays(function)
        _references.clear()
        _references[key] = before, checking.evaluate(function, before)
    return _references[key]
