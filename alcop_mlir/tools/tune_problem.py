"""The contraction of an MLIR file, as a `Problem` of the tuner.

It is found by the passes that find it when a file is compiled, so that records have the
key by which alcop-select-schedule looks them up, and its schedule is decided as there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from alcop_mlir import diagnostics
from alcop_mlir.analysis.host.host_function import host_functions
from alcop_mlir.analysis.linalg.contractions import Contraction
from alcop_mlir.compilation.inputs import Input
from alcop_mlir.errors import ConfigError
from alcop_mlir.pipelines.driver import run_pipeline
from alcop_mlir.pipelines.named import steps_to_contractions
from alcop_mlir.schedule import Decision
from alcop_mlir.target import DEFAULT_TARGET, Target, find_target
from alcop_mlir.transforms.schedules.modelled import (
    open_problem_of,
    problem_of,
    unmodelled,
)
from alcop_mlir.transforms.schedules.schedule_decision import (
    decide,
    marked_contractions,
)
from alcop_mlir.transforms.schedules.schedule_variants import decide_variants
from alcop_mlir.tuning.open_problem import OpenProblem
from alcop_mlir.tuning.problem import Problem
from alcop_mlir.tuning.selection import Chooser
from alcop_mlir.variants import ScheduleVariant


@dataclass(frozen=True)
class Tunable:
    """The contraction of a file; `module` is what it is in, `name` the file's."""

    name: str
    module: Any
    contraction: Contraction
    target: Target

    @property
    def unmodelled(self) -> str:
        """Why there is no problem; "" where there is."""
        problem = problem_of(self.contraction, self.target)
        return unmodelled(self.contraction) if problem is None else ""

    @property
    def problem(self) -> Problem:
        """What is searched for; ConfigError says why no model covers it."""
        problem = problem_of(self.contraction, self.target)
        if problem is None:
            raise ConfigError(f"'{self.name}': {self.unmodelled}; no model covers that")
        return problem

    @property
    def element_bytes(self) -> int:
        """Of the narrower of A and B in memory."""
        return min(self.contraction.stored or [self.contraction.element_bytes])

    @property
    def open_problem(self) -> OpenProblem | None:
        """What variants are chosen for; None where no model covers it."""
        return open_problem_of(self.contraction)

    def variants(self, chooser: Chooser, most: int) -> tuple[ScheduleVariant, ...]:
        """The variants that are compiled, where records are those of `chooser`."""
        target = chooser.target
        return decide_variants(self.contraction, target, None, lambda: chooser, most)

    def decide(self, chooser: Chooser) -> Decision:
        """The schedule that is compiled with, where records are those of `chooser`."""
        return decide(self.contraction, chooser.target, None, lambda: chooser)


def find_tunable(
    source: Input,
    name: str,
    allow_tf32: bool = False,
    target: str = DEFAULT_TARGET,
) -> Tunable:
    """The only contraction in `source`; ConfigError where there is none, or several.

    name: of the file, for messages
    allow_tf32: whether f32 is rounded to tf32; else contractions of it have no schedule
    target: GPU to tune for, which decides what floats of eight bits are multiplied as
    """
    module = source.module.operation.clone()
    with diagnostics.collect() as remarks:
        steps = steps_to_contractions(allow_tf32, target)
        run_pipeline(module, f"builtin.module({','.join(steps)})")
    found = [
        contraction
        for func in host_functions(module)
        for contraction in marked_contractions(func)
    ]
    if len(found) != 1:
        why = f": {remarks[0].message}" if remarks and not found else ""
        raise ConfigError(
            f"'{name}' computes {len(found) or 'no'} contractions that can be tuned, "
            f"expected one{why}"
        )
    return Tunable(name, module, found[0], find_target(target))
