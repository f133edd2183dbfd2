"""The work of alcop-tune's worker processes: compile or measure one candidate.

Tasks and values travel as JSON. A process keeps what it needs for the next task.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from alcop_mlir import codec
from alcop_mlir.codec import Range
from alcop_mlir.errors import LaunchError
from alcop_mlir.schedule import Schedule
from alcop_mlir.target import find_target


@dataclass(frozen=True)
class CompileTask:
    """The text `source` is compiled with `schedule`, the bundle stored at `path`."""

    source: str
    target: str
    allow_tf32: bool
    schedule: Schedule
    path: str


@dataclass(frozen=True)
class MeasureTask:
    """The bundle at `path` is launched `repeat` times."""

    path: str
    repeat: int


@dataclass(frozen=True)
class Measured:
    """Median and spread of the times of `repeats` launches."""

    seconds: Annotated[float, Range(0, above=True)]
    spread: Annotated[float, Range(0)]
    repeats: Annotated[int, Range(1)]


def compile_candidate(value: Any) -> str:
    """Do a `CompileTask`, given as JSON; returns its path."""
    from alcop_mlir.compilation import compiler
    from alcop_mlir.runtime.bundle import save

    task = codec.decode(CompileTask, value, "task")
    options = compiler.Options(
        find_target(task.target), task.schedule, allow_tf32=task.allow_tf32
    )
    save(compiler.compile_source(_source(task.source), options), task.path)
    return task.path


def measure_candidate(value: Any) -> dict[str, float]:
    """Do a `MeasureTask`, given as JSON: check the result on the GPU, then time it.

    Returns `Measured` as JSON; raises LaunchError where the result is wrong.
    """
    from alcop_mlir.runtime import bundle, checking, launch, measure

    task = codec.decode(MeasureTask, value, "task")
    program = launch.Program(bundle.load(Path(task.path)), device="cuda")
    function = program.function
    before, expected = _expected(function)
    arrays = launch.to_device(before, "cuda")
    program(*arrays.values())
    after = launch.to_host(arrays)
    check = checking.compare(function, expected, after)
    if not check.ok:
        raise LaunchError(f"wrong result: its relative error is {check.error:.1e}")
    timing = measure.time_on_gpu(program, list(arrays.values()), task.repeat)
    return codec.encode(Measured(timing.median, timing.spread, len(timing.seconds)))


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
