"""The operators of a program: its contractions, equal ones once."""

from __future__ import annotations

from dataclasses import dataclass

from alcop_mlir.tuning.problem import Problem


@dataclass(frozen=True)
class Operator:
    """Contractions that one record is of.

    source: MLIR text of a program that computes one of them, and nothing else where the
        program that it is from has several
    count: how many there are
    """

    problem: Problem
    source: str
    count: int = 1


@dataclass(frozen=True)
class Program:
    """The operators to tune, in the order in which the program has them.

    left_out: a line for those that are not
    """

    name: str
    operators: tuple[Operator, ...]
    left_out: tuple[str, ...] = ()
