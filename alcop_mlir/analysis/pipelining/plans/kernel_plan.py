"""What is decided about a kernel: `KernelPlan`, and the `Limits` that it keeps to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from alcop_mlir.analysis.ir import promises
from alcop_mlir.analysis.pipelining.copy_forms import CopyForm, Forms
from alcop_mlir.analysis.pipelining.fetches import Fetch
from alcop_mlir.analysis.pipelining.verdicts import PipelinedCopy, Refusal, RejectedCopy
from alcop_mlir.bindings import ir
from alcop_mlir.frozen import frozen


@frozen
class Limits:
    """The requested stages, and the limits of the target.

    stages:       shared, register; 1 means not pipelined, None lets the model choose
    shared_bytes: shared memory that a block may use
    fetch_stages: register stages of loads from global memory; 1 means not fetched early
    vector_registers: of a thread, for the vectors of warps; None for any number
    fetch_all:    also where the assembler runs them early by itself
    roles:        groups of wgmma in flight, where copies are a role of warps of their
                  own; None where all warps do all
    turns:        groups of warps that shall take tiles in turn, where there are roles
    """

    stages: tuple[int | None, int]
    shared_bytes: int
    noalias_arguments: bool = False
    wrap_tails: bool = False
    fetch_stages: int = 1
    fetch_all: bool = False
    vector_registers: int | None = None
    roles: int | None = None
    turns: int = 1

    def noalias_in(self, loop: ir.Operation) -> bool:
        """Whether arguments do not alias in `loop`."""
        return self.noalias_arguments or promises.noalias(loop) is True


# The copies of each loop's own block.
LoopForms = Mapping[Any, Forms]


@frozen
class PipelinedLoop:
    """One pipelined loop at one level.

    fetches: loads that run before the copies, which need them for their addresses
    carried: the pipeline of an inner loop that is filled once, and carried across the
             iterations of the pipelined loop around it
    wraps:   the copies of the tail start again at the first tile, instead of being
             predicated
    """

    loop: Any
    level: str
    stages: int
    copies: tuple[PipelinedCopy, ...]
    fetches: tuple[Fetch, ...] = ()
    carried: bool = False
    wraps: bool = False

    @property
    def ops(self) -> list[Any]:
        """The copies, as ops."""
        return [copy.op for copy in self.copies]

    @property
    def forms(self) -> dict[Any, CopyForm]:
        """The forms of its copies; none at the register level."""
        return {copy.op: copy.form for copy in self.copies if copy.form is not None}


@dataclass
class KernelPlan:
    """The pipelines of a kernel, and the copies that are not pipelined.

    clamped: loops that get less than was requested, each with a remark
    given:   loops that had a plan before, and the slots of the buffers in it
    fetched: the loads of loops that run before the arithmetic
    roles:   the plans of loops whose copies are a role of warps of their own
    staged:  of the copies that are not pipelined those whose loads are: what is loaded
             waits in registers
    """

    given: Mapping[Any, Mapping[Any, int]] = field(default_factory=dict)
    pipelines: list[PipelinedLoop] = field(default_factory=list)
    rejected: list[RejectedCopy] = field(default_factory=list)
    clamped: list[tuple[Any, str]] = field(default_factory=list)
    fetched: list[tuple[Any, tuple[Fetch, ...]]] = field(default_factory=list)
    staged: list[RejectedCopy] = field(default_factory=list)
    roles: dict[Any, Any] = field(default_factory=dict)

    def accept(
        self, judged: Iterable[PipelinedCopy | RejectedCopy]
    ) -> list[PipelinedCopy]:
        """Those that can be pipelined; the others are added to the rejected ones."""
        every = list(judged)
        self.rejected += [one for one in every if isinstance(one, RejectedCopy)]
        return [one for one in every if isinstance(one, PipelinedCopy)]

    def refuse(self, refused: list[PipelinedCopy], level: str, why: Refusal) -> None:
        """Reject copies that could be pipelined, but for the others of their loop."""
        self.rejected += [RejectedCopy(copy.op, level, *why) for copy in refused]

    def clamp(self, loop: ir.Operation, level: str, asked: int, trips: Any) -> int:
        """The stages that `trips` iterations can use, None for any; with a remark."""
        stages = at_most(asked, trips)
        if stages < asked:
            message = f"{stages} {level} stages instead of {asked}"
            self.clamped.append((loop, f"{message}: the loop runs {trips} times"))
        return stages


def buffers_of(accepted: Iterable[PipelinedCopy]) -> set[Any]:
    """What these copies fill."""
    return {buffer for copy in accepted for buffer in copy.buffers}


def at_most(asked: int, trips: int | None) -> int:
    """The stages, as far as so many iterations can use them; None for any."""
    return asked if trips is None else min(asked, max(1, trips))
