"""What the processes of a kernel have in common: its events, and what these need."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from alcop_mlir.bindings import ir
from alcop_mlir.verifier.accesses import inside
from alcop_mlir.verifier.rings.events import Event, Ops, is_wgmma
from alcop_mlir.verifier.rings.numbers import Atoms
from alcop_mlir.verifier.rings.products import (
    accumulators,
    is_undefined,
    takes_registers_apart,
)
from alcop_mlir.verifier.rings.threads import PerThread, Threads
from alcop_mlir.verifier.rings.unproven import Unproven
from alcop_mlir.verifier.values import origins

# Loops that run more often than that are taken to run any number of times above.
LONG = 16
FOR, IF, YIELD = "scf.for", "scf.if", "scf.yield"
_RUN_ONCE = ("gpu.launch", "gpu.func", "scf.execute_region")
_BOUNDS = 3  # operands of a loop, before what it carries


def _held(value: Any) -> list[Any]:
    """What holds the result of a loop while it runs."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.operation.name != FOR:
        return []
    op = owner.operation
    return [op.regions[0].blocks[0].arguments[list(op.results).index(value) + 1]]


@dataclass
class Kernel:
    """What all processes of a kernel have in common.

    needed:   values that are computed
    of_lanes: values that depend on the thread alone, where others need them
    accumulators: accumulators
    same:     of accumulators of lowered wgmma one that has the same registers
    """

    ops: Ops
    threads: Threads
    atoms: Atoms = field(default_factory=Atoms)
    events: dict[Any, Event] = field(default_factory=dict)
    eventful: set[Any] = field(default_factory=set)
    needed: set[Any] = field(default_factory=set)
    of_lanes: dict[Any, PerThread] = field(default_factory=dict)
    accumulators: set[Any] = field(default_factory=set)
    same: dict[Any, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.same = accumulators(self.ops.kernel)
        self.accumulators |= {*self.same}
        for op in inside(self.ops.kernel):
            if is_wgmma(op):
                self._add_sums(op.results[0])
        wanted: list[Any] = []
        self._find(self.ops.kernel, wanted)
        self._find_uses(self.ops.kernel)
        self._collect(wanted)

    def signatures(self) -> list[tuple[int, ...]]:
        """For each thread what it depends on."""
        columns = list(self.of_lanes.values())
        if not columns:
            return [()] * self.threads.count
        return list(zip(*columns, strict=True))

    def _find(self, op: Any, wanted: list[Any]) -> bool:
        """Whether `op` or an op inside is an event; collects what these need."""
        found = False
        for region in op.regions:
            if len(region.blocks) > 1:
                raise Unproven(op, "has a region of several blocks")
            for block in region.blocks:
                for inner in block.operations:
                    found |= self._find(inner.operation, wanted)
        if found:
            if op.name == FOR:
                wanted += list(op.operands)[:_BOUNDS]
            elif op.name == IF:
                wanted.append(op.operands[0])
            elif op.name not in _RUN_ONCE:
                raise Unproven(op, f"'{op.name}' around it is not known")
        elif not len(op.regions):
            event = self.ops.event(op)
            if event is not None:
                found = True
                self.events[op] = event
                wanted += [one for one in event.operands if isinstance(one, ir.Value)]
        if found:
            self.eventful.add(op)
        return found

    def _find_uses(self, op: Any) -> None:
        """Ops that read accumulators, themselves or inside."""
        for region in op.regions:
            for inner in region.blocks[0].operations if len(region.blocks) else ():
                one = inner.operation
                if one in self.eventful:
                    self._find_uses(one)
                elif takes_registers_apart(one):
                    self._find_writes(one)
                elif one.name != YIELD:
                    read = [v for o in (one, *inside(one)) for v in o.operands]
                    used = tuple(
                        dict.fromkeys(v for v in read if v in self.accumulators)
                    )
                    if used:
                        self.events[one] = Event("use_sums", accumulators=used)

    def _find_writes(self, op: Any) -> None:
        """An op that puts other values into registers of accumulators."""
        result = op.results[0]
        if result in self.same and not all(
            operand in self.same or is_undefined(operand) for operand in op.operands
        ):
            self.events[op] = Event("use_sums", accumulators=(result,))

    def _add_sums(self, value: Any) -> None:
        """Accumulators, and what they become as loops and branches pass them on."""
        pending = [value]
        while pending:
            one = pending.pop()
            if one in self.accumulators:
                continue
            self.accumulators.add(one)
            for use in one.uses:
                user = use.owner.operation
                if user.name == FOR and use.operand_number >= _BOUNDS:
                    number = use.operand_number - _BOUNDS
                    pending += [
                        user.regions[0].blocks[0].arguments[number + 1],
                        user.results[number],
                    ]
                elif user.name == YIELD:
                    holder = user.parent.operation
                    if holder.name == FOR:
                        inside = holder.regions[0].blocks[0].arguments
                        pending.append(inside[use.operand_number + 1])
                    pending.append(holder.results[use.operand_number])

    def _collect(self, wanted: Iterable[Any]) -> None:
        pending = list(wanted)
        while pending:
            value = pending.pop()
            if value in self.needed:
                continue
            self.needed.add(value)
            known = self.threads.values(value)
            if isinstance(known, tuple):
                self.of_lanes[value] = known
            elif known is None:
                pending += [*(origins(value) or ()), *_held(value)]
