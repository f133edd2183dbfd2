"""The work of alcop-tune's worker processes: compile or measure one candidate.

Tasks and values are JSON. A process keeps what it needs for the next task.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from alcop_mlir.errors import LaunchError
from alcop_mlir.schedule import Schedule
from alcop_mlir.target import find_target


def compile_candidate(task: Any) -> str:
    """Compile the text `source` with `schedule`; store the bundle at `path`."""
    from alcop_mlir.compilation import compiler
    from alcop_mlir.runtime.bundle import save

    schedule = Schedule.from_dict(task["schedule"])
    options = compiler.Options(
        find_target(task["target"]), schedule, allow_tf32=task["allow_tf32"]
    )
    save(compiler.compile_source(_source(task["source"]), options), task["path"])
    return task["path"]


def measure_candidate(task: Any) -> dict[str, float]:
    """Check the bundle at `path` on the GPU, then time `repeat` launches of it.

    Raises LaunchError where the result is wrong.
    """
    from alcop_mlir.runtime import bundle, checking, launch, measure

    program = launch.Program(bundle.load(Path(task["path"])), device="cuda")
    function = program.function
    before, expected = _expected(function)
    arrays = launch.to_device(before, "cuda")
    program(*arrays.values())
    after = launch.to_host(arrays)
    check = checking.compare(function, expected, after)
    if not check.ok:
        raise LaunchError(f"wrong result: its relative error is {check.error:.1e}")
    timing = measure.time_on_gpu(program, list(arrays.values()), task["repeat"])
    return {
        "seconds": timing.median,
        "spread": timing.spread,
        "repeats": len(timing.seconds),
    }


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
