"""Plays a kernel with all threads of a block: what they write, and what races.

Integers are computed. Of other values is only kept from what they were computed, and by
which ops: numbers that are `made_up` stand for them, and for what a kernel is given.
Where nothing is made up, what depends on such a value is not known, and left out.

All threads do an op before one does the next, and loops are run as often as what is
given says. Who meets whom in memory is said by `block_memory`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from alcop_mlir.verifier.accesses import accessed, inside
from alcop_mlir.verifier.block_memory import BlockMemory
from alcop_mlir.verifier.thread_accesses import Accesses, Unknown
from alcop_mlir.verifier.thread_values import (
    COPY,
    LOADS,
    STORES,
    ThreadValues,
    is_computed,
)
from alcop_mlir.verifier.values import COMMITS
from alcop_mlir.verifier.views import Lanes, lane

_MOST_EVENTS = 60_000  # ops, and elements that threads access
_WAIT = "nvgpu.device_async_wait"
# Of threads; what is acquired has been released by all.
_BARRIERS = (
    "gpu.barrier", "nvvm.barrier", "nvvm.barrier0", "nvvm.bar.warp.sync",
    "alcop.producer_acquire",
)  # fmt: skip
# Beginnings of names: ops that may order what threads do, in ways not known here.
_ORDERING = (
    "nvvm.", "nvgpu.mbarrier.", "nvgpu.tma", "llvm.inline_asm", "llvm.call",
    "func.call", "gpu.all_reduce",
)  # fmt: skip
_SYNCHRONISATION = (
    *COMMITS, *_BARRIERS, _WAIT, "alcop.consumer_wait", *_ORDERING,
)  # fmt: skip
_WITHOUT_EFFECT = (
    "alcop.consumer_release", "memref.dealloc", "memref.prefetch", "gpu.return",
    "gpu.terminator", "scf.forall.in_parallel",
)  # fmt: skip


_FORALL = ("LowerBound", "UpperBound", "Step")


class _Ended(Exception):
    """Enough was played."""


@dataclass(frozen=True)
class Step:
    """An op, its parts taken from the bindings once."""

    op: Any
    name: str
    operands: tuple[Any, ...]
    results: tuple[Any, ...]
    is_computed: bool


@dataclass
class Player:
    """One run of a kernel, a gpu.func or a gpu.launch."""

    values: ThreadValues
    is_whole: bool = True  # else it was too long
    _steps: dict[Any, list[Step]] = field(default_factory=dict)
    _ops_run: int = 0

    def __post_init__(self) -> None:
        threads = self.values.threads
        self.memory = BlockMemory(threads)
        self.accesses = Accesses(self.values, self.memory, range(threads))

    def play(self) -> None:
        """Run the kernel; Unknown where an op is, and values are made up."""
        try:
            self._run(self.values.kernel.regions[0].blocks[0])
        except _Ended:
            self.is_whole = False

    # -- ops -------------------------------------------------------------------------

    def _run(self, block: Any) -> tuple[Any, ...]:
        """Run the ops of a block; returns what its terminator yields."""
        steps = self._steps.get(block)
        if steps is None:
            ops = [one.operation for one in block.operations]
            steps = self._steps[block] = list(map(_step, ops))
        for step in steps:
            if step.name == "scf.yield":
                return tuple(map(self.values.at, step.operands))
            self._ops_run += 1
            if self._ops_run + self.accesses.elements > _MOST_EVENTS:
                raise _Ended
            self._op(step)
        return ()

    def _op(self, step: Step) -> None:
        name = step.name
        if name in _HANDLERS:
            _HANDLERS[name](self, step)
        elif name in _ACCESSES:
            _ACCESSES[name](self.accesses, step.op)
        elif name in _BARRIERS:
            self._barrier()
        elif step.is_computed:
            self.values.compute(step.op, step.results)
        elif name not in _WITHOUT_EFFECT:
            self._skip(step)

    def _skip(self, step: Step) -> None:
        """Leave out an op of which it is not known what it does."""
        if self.values.made_up:
            raise Unknown(step.name)
        ops = (step.op, *inside(step.op))
        if any(map(_may_order, ops)):
            self.memory.synchronise()
        self.values.set(step.results, [None] * len(step.results))

    # -- synchronisation -------------------------------------------------------------

    def _barrier(self) -> None:
        if len(self.accesses.active) < self.values.threads and self.values.made_up:
            raise Unknown("gpu.barrier")
        self.memory.barrier()

    def _commit(self, step: Step) -> None:
        for thread in self.accesses.active:
            self.memory.commit(thread)
        self.values.set(step.results, [None] * len(step.results))

    def _wait(self, step: Step) -> None:
        attributes = step.op.attributes
        count = attributes["numGroups"].value if "numGroups" in attributes else 0
        for thread in self.accesses.active:
            self.memory.wait(thread, count)

    def _consume(self, _: Step) -> None:
        """alcop's wait is for a group; which are younger is not known here."""
        for thread in self.accesses.active:
            self.memory.wait(thread, 0)
        self.memory.barrier()

    # -- control flow ----------------------------------------------------------------

    def _if(self, step: Step) -> None:
        condition, every = self.values.at(step.operands[0]), self.accesses.active
        known = {thread: lane(condition, thread) for thread in every}
        if None in known.values():
            self._skip(step)
            return
        results = [[None] * self.values.threads for _ in step.results]
        for region, way in zip(step.op.regions, (True, False), strict=True):
            threads = [thread for thread in every if bool(known[thread]) is way]
            if not threads or not len(region.blocks):
                continue
            self.accesses.active = threads if len(threads) < len(every) else every
            yielded = self._run(region.blocks[0])
            self.accesses.active = every
            if len(threads) == len(every):
                self.values.set(step.results, yielded)
                return
            results = [
                _merged(*pair, threads, self.values.threads)
                for pair in zip(results, yielded, strict=True)
            ]
        self.values.set(step.results, results)

    def _for(self, step: Step) -> None:
        lower, upper, pace, *carried = [self.values.at(one) for one in step.operands]
        bounds = [lower, upper, pace]
        if any(lane(one, t) is None for one in bounds for t in self.accesses.active):
            self._skip(step)
            return
        if any(type(one) is list for one in bounds):
            self._apart_for(step, bounds, carried)
            return
        block = step.op.regions[0].blocks[0]
        for index in range(lower, upper, max(1, pace)):
            self._begin(block, index, carried)
            carried = list(self._run(block))
        self.values.set(step.results, carried)

    def _apart_for(self, step: Step, bounds: list[Lanes], carried: list[Lanes]) -> None:
        """A loop that threads run differently often."""
        if any(map(_may_order, inside(step.op))):
            self._skip(step)
            return
        block, every = step.op.regions[0].blocks[0], self.accesses.active
        lower, upper, pace = (
            [lane(one, t) for t in range(self.values.threads)] for one in bounds
        )
        number = 0
        while True:
            index = [
                None if low is None or step_ is None else low + number * max(1, step_)
                for low, step_ in zip(lower, pace, strict=True)
            ]
            self.accesses.active = [t for t in every if index[t] < upper[t]]
            if not self.accesses.active:
                break
            self._begin(block, index, carried)
            yielded = self._run(block)
            carried = [
                _merged(old, new, self.accesses.active, self.values.threads)
                for old, new in zip(carried, yielded, strict=True)
            ]
            number += 1
        self.accesses.active = every
        self.values.set(step.results, carried)

    def _begin(self, block: Any, index: Lanes, carried: list[Lanes]) -> None:
        self.values.set(block.arguments, [index, *carried])

    def _forall(self, step: Step) -> None:
        """Of one thread; iterations that are shared out are not known here."""
        attributes = step.op.attributes
        numbers = [attributes[f"static{name}"] for name in _FORALL]
        dynamic = [n for one in numbers for n in one if n < 0]
        if step.results or dynamic or "mapping" in attributes:
            self._skip(step)
            return
        block = step.op.regions[0].blocks[0]
        for indices in product(*map(range, *numbers)):
            self.values.set(block.arguments, indices)
            self._run(block)

    def _once(self, step: Step) -> None:
        self.values.set(step.results, self._run(step.op.regions[0].blocks[0]))


_ACCESSES: dict[str, Callable[[Accesses, Any], None]] = {
    **dict.fromkeys(LOADS, Accesses.load),
    **dict.fromkeys(STORES, Accesses.store),
    COPY: Accesses.copy,
}
_HANDLERS: dict[str, Callable[[Player, Step], None]] = {
    **dict.fromkeys(COMMITS, Player._commit),
    _WAIT: Player._wait,
    "alcop.consumer_wait": Player._consume,
    "scf.if": Player._if,
    "scf.for": Player._for,
    "scf.forall": Player._forall,
    "scf.execute_region": Player._once,
}


def _may_order(op: Any) -> bool:
    """Whether an op may wait for copies, or order what threads do."""
    return op.name.startswith(_SYNCHRONISATION) or accessed(op) is None


def _step(op: Any) -> Step:
    return Step(op, op.name, tuple(op.operands), tuple(op.results), is_computed(op))


def _merged(old: Lanes, new: Lanes, threads: Sequence[int], count: int) -> Lanes:
    found = [lane(old, t) for t in range(count)]
    for thread in threads:
        found[thread] = lane(new, thread)
    return found
