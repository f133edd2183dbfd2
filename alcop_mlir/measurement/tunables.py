"""The contractions of an MLIR file, as `Problem`s of the tuner.

They are found by the passes that find them when a file is compiled, so that records
have the key by which alcop-select-schedule looks them up, and schedules are decided as
there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from alcop_mlir import diagnostics
from alcop_mlir.analysis.host.host_function import host_functions
from alcop_mlir.analysis.host.preparations import preparation
from alcop_mlir.analysis.ir.symbols import name_of
from alcop_mlir.analysis.linalg.contractions import Contraction
from alcop_mlir.compilation.inputs import Input
from alcop_mlir.dialects import alcop
from alcop_mlir.errors import ConfigError, NoContractionError
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
    """A contraction of a file; `module` is what it is in, `name` the file's.

    runs_once: whether it only prepares weights, once for all calls
    """

    name: str
    module: Any
    contraction: Contraction
    target: Target
    runs_once: bool = False

    @property
    def unmodelled(self) -> str:
        """Why there is no problem; "" where there is."""
        problem = problem_of(self.contraction, self.target)
        return unmodelled(self.contraction) if problem is None else ""

    @property
    def uncovered(self) -> str:
        """Why it is not tuned as a part of a program; "" where it is."""
        if self.runs_once:
            return "it prepares weights, once for all calls"
        if alcop.get(self.contraction.op, alcop.ScheduleAttr) is not None:
            return "its schedule is given"
        return self.unmodelled

    @property
    def covered(self) -> bool:
        """Whether it is tuned as a part of a program."""
        return not self.uncovered

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
    """The only contraction in `source`; ConfigError where there are several.

    See `find_tunables`.
    """
    found = find_tunables(source, name, allow_tf32, target)
    if len(found) != 1:
        count = f"{len(found)} contractions that can be tuned"
        raise ConfigError(f"'{name}' computes {count}, expected one")
    return found[0]


def find_tunables(
    source: Input,
    name: str,
    allow_tf32: bool = False,
    target: str = DEFAULT_TARGET,
) -> list[Tunable]:
    """The contractions in `source`; NoContractionError where there are none.

    name: of the file, for messages
    allow_tf32: whether f32 is rounded to tf32; else contractions of it have no schedule
    target: GPU to tune for, which decides what floats of eight bits are multiplied as
    """
    module = source.module.operation.clone()
    with diagnostics.collect() as remarks:
        steps = steps_to_contractions(allow_tf32, target)
        run_pipeline(module, f"builtin.module({','.join(steps)})")
    functions = host_functions(module)
    prepare = [one.function for one in map(preparation, functions) if one is not None]
    found = [
        Tunable(
            name, module, contraction, find_target(target), name_of(func) in prepare
        )
        for func in functions
        for contraction in marked_contractions(func)
    ]
    if not found:
        why = f": {remarks[0].message}" if remarks else ""
        raise NoContractionError(
            f"'{name}' computes no contractions that can be tuned, expected one{why}"
        )
    return found
