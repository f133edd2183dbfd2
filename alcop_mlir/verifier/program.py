"""A kernel reduced to the ops that decide its slots: what `check` runs."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from alcop_mlir.bindings import ir
from alcop_mlir.verifier.accesses import COPY, SlotAccess
from alcop_mlir.verifier.values import COMMITS, Values

_SYNCHRONISATION = (
    *COMMITS,
    "gpu.barrier",
    "nvgpu.device_async_wait",
    "alcop.consumer_wait",
    "alcop.consumer_release",
    "alcop.producer_acquire",
)
_WAITS = ("nvgpu.device_async_wait", "alcop.consumer_wait")


@dataclass(frozen=True, eq=False)
class Node:
    """An op that matters for slots, with its parts; `regions` have one block each."""

    op: Any
    name: str
    operands: tuple[Any, ...]
    results: tuple[Any, ...]
    arguments: tuple[Any, ...]  # of its first block
    regions: tuple[tuple[Node, ...], ...]
    accesses: tuple[SlotAccess, ...]


class SlotProgram:
    """A kernel without the ops that do not matter for its slots."""

    def __init__(self, kernel: ir.Operation, accesses: list[SlotAccess]):
        self._accesses: dict[Any, list[SlotAccess]] = defaultdict(list)
        for access in accesses:
            self._accesses[access.op].append(access)
        self._eventful: set[Any] = set()
        self._find_eventful(kernel)
        wanted = [a.slot for a in accesses if not isinstance(a.slot, int)]
        wanted += [
            op.operands[0]
            for op in self._eventful
            if op.name in _WAITS or op.name == "scf.if"
        ]
        loops = [op for op in self._eventful if op.name == "scf.for"]
        self.values = Values(wanted, loops)
        self.root = self._node(kernel)
        last = {a.buffer: a for a in accesses if a.kind == COPY}
        buffers = dict.fromkeys(a.buffer for a in accesses)
        self.numbers = {buffer: number for number, buffer in enumerate(buffers)}
        self.last_copies = {self.numbers[b]: last[b] for b in buffers}

    def _find_eventful(self, op: ir.Operation) -> bool:
        """Whether `op` or an op inside accesses slots or synchronises."""
        found = op in self._accesses or op.name in _SYNCHRONISATION
        for region in op.regions:
            for block in region.blocks:
                for inner in block.operations:
                    found |= self._find_eventful(inner.operation)
        if found:
            self._eventful.add(op)
        return found

    def _matters(self, op: ir.Operation) -> bool:
        return (
            op in self._eventful
            or op.name == "scf.yield"
            or any(result in self.values.needed for result in op.results)
        )

    def _node(self, op: ir.Operation) -> Node:
        blocks = [list(region.blocks) for region in op.regions]
        return Node(
            op,
            op.name,
            tuple(op.operands),
            tuple(op.results),
            tuple(blocks[0][0].arguments) if blocks and blocks[0] else (),
            tuple(
                tuple(
                    self._node(inner.operation)
                    for block in region
                    for inner in block.operations
                    if self._matters(inner.operation)
                )
                for region in blocks
            ),
            tuple(self._accesses.get(op, ())),
        )
