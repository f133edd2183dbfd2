"""A kernel reduced to the ops that decide its slots: what `check` runs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from alcop_mlir.bindings import ir
from alcop_mlir.verifier.accesses import COPY, STORE, SlotAccess
from alcop_mlir.verifier.values import (
    COMMITS,
    Assignment,
    Rule,
    Values,
    is_computable,
    rule_of,
)

SYNCHRONISATION = (
    *COMMITS,
    "gpu.barrier",
    "nvgpu.device_async_wait",
    "alcop.consumer_wait",
    "alcop.consumer_release",
    "alcop.producer_acquire",
)
_WAITS = ("nvgpu.device_async_wait", "alcop.consumer_wait")
Numbers = list[int | None]  # of a run: what each value is, None if not known


@dataclass(frozen=True)
class NumberedAccess:
    """An access, its buffer's number and slots, and how its slot is found.

    slot: the slot itself, if `value` is negative; else `value` numbers a value; None
          where the buffer has no slots that are known
    """

    access: SlotAccess
    buffer: int
    slots: int
    slot: int | None
    value: int

    def slot_in(self, numbers: Numbers) -> int | None:
        """The slot, None if it is not known."""
        return self.slot if self.value < 0 else numbers[self.value]


@dataclass(frozen=True, eq=False)
class Node:
    """An op that matters for slots, with its parts; `regions` have one block each.

    Values are given by their numbers; `operands` picks those of the op from the numbers
    of a run. `rule` computes the result of arithmetic.
    """

    op: Any
    name: str
    operands: Callable[[Numbers], Sequence[int | None]]
    results: tuple[int, ...]
    arguments: tuple[int, ...]  # of its first block
    regions: tuple[tuple[Node, ...], ...]
    accesses: tuple[NumberedAccess, ...]
    rule: Rule | None

    def fills_only(self) -> bool:
        """Whether all that the regions hold is accesses that fill slots."""
        return all(
            one.accesses and not one.regions and one.is_fill()
            for region in self.regions
            for one in region
            if one.name != "scf.yield"
        )

    def is_fill(self) -> bool:
        """Whether all accesses fill slots."""
        return all(one.access.kind in (COPY, STORE) for one in self.accesses)


class SlotProgram:
    """A kernel without the ops that do not matter for its slots.

    needed: numbers of the values that slots, branches, trip counts and groups need
    groups: numbers of the values that are commit groups
    """

    def __init__(self, kernel: ir.Operation, accesses: list[SlotAccess]):
        self._accesses: dict[Any, list[SlotAccess]] = defaultdict(list)
        for access in accesses:
            self._accesses[access.op].append(access)
        buffers = dict.fromkeys(a.buffer for a in accesses)
        self._buffers = {buffer: number for number, buffer in enumerate(buffers)}
        self._eventful: set[Any] = set()
        self._find_eventful(kernel)
        wanted = [a.slot for a in accesses if not isinstance(a.slot, int | None)]
        wanted += [
            op.operands[0]
            for op in self._eventful
            if op.name in _WAITS or op.name == "scf.if"
        ]
        loops = [op for op in self._eventful if op.name == "scf.for"]
        self.values = Values(wanted, loops)
        self._numbers: dict[Any, int] = {}
        self.groups: set[int] = set()
        self.root = self._node(kernel)
        self.needed = frozenset(self._of(self.values.needed))
        self._outside = self._nodes_outside()
        last = {a.buffer: a for a in accesses if a.kind == COPY}
        self.last_copies = {self._buffers[b]: last[b] for b in buffers}

    def start(self, assignment: Assignment) -> Numbers:
        """The numbers that are known before a run."""
        numbers: Numbers = [None] * len(self._numbers)
        for value, known in assignment.items():
            numbers[self._numbers[value]] = known
        for node in self._outside:
            assert node.rule is not None
            if numbers[node.results[0]] is None:
                numbers[node.results[0]] = node.rule(*node.operands(numbers))
        return numbers

    def _find_eventful(self, op: ir.Operation) -> bool:
        """Whether `op` or an op inside accesses slots or synchronises."""
        found = op in self._accesses or op.name in SYNCHRONISATION
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

    def _of(self, values: Iterable[Any]) -> tuple[int, ...]:
        """The numbers of values; groups are noted."""
        found = []
        for value in values:
            number = self._numbers.get(value)
            if number is None:
                number = self._numbers[value] = len(self._numbers)
                if "token" in str(value.type):
                    self.groups.add(number)
            found.append(number)
        return tuple(found)

    def _node(self, op: ir.Operation) -> Node:
        blocks = [list(region.blocks) for region in op.regions]
        return Node(
            op,
            op.name,
            _picker(self._of(op.operands)),
            self._of(op.results),
            self._of(blocks[0][0].arguments) if blocks and blocks[0] else (),
            tuple(
                _without_repetitions(
                    self._node(inner.operation)
                    for block in region
                    for inner in block.operations
                    if self._matters(inner.operation)
                )
                for region in blocks
            ),
            tuple(map(self._numbered, self._accesses.get(op, ()))),
            rule_of(op) if is_computable(op) else None,
        )

    def _numbered(self, access: SlotAccess) -> NumberedAccess:
        is_known = isinstance(access.slot, int | None)
        return NumberedAccess(
            access,
            self._buffers[access.buffer],
            access.slots,
            access.slot if is_known else None,
            -1 if is_known else self._of([access.slot])[0],
        )

    def _nodes_outside(self) -> tuple[Node, ...]:
        """What computes needed values from outside of the kernel, in order."""
        found: dict[Any, Node] = {}

        def add(value: Any) -> None:
            owner = value.owner
            if isinstance(owner, ir.Block) or owner.operation in found:
                return
            op = owner.operation
            if is_computable(op):
                for operand in op.operands:
                    add(operand)
                found[op] = self._node(op)

        for value in self.values.needed:
            if not self._is_inside(value):
                add(value)
        return tuple(found.values())

    def _is_inside(self, value: Any) -> bool:
        owner = value.owner
        op = (owner.owner if isinstance(owner, ir.Block) else owner).operation
        while op is not None and op != self.root.op:
            op = op.parent.operation if op.parent is not None else None
        return op is not None


def _picker(places: tuple[int, ...]) -> Callable[[Numbers], Sequence[int | None]]:
    """What takes the numbers of some values, as fast as Python can."""
    if len(places) > 1:
        return itemgetter(*places)
    part = slice(places[0], places[0] + 1) if places else slice(0)
    return itemgetter(part)


def _without_repetitions(nodes: Iterable[Node]) -> tuple[Node, ...]:
    """Nodes of a block; of neighbours that access the same in the same way, one.

    An unrolled copy, or a row that is read element by element, is many of them.
    """
    kept: list[Node] = []
    # Of each buffer, since it changed.
    last: dict[int, set[tuple[str, int | None, int]]] = {}
    for node in nodes:
        if node.rule is None and not node.accesses:
            last.clear()
        keys = [(a.buffer, (a.access.kind, a.slot, a.value)) for a in node.accesses]
        if keys and all(key in last.get(buffer, ()) for buffer, key in keys):
            continue
        for buffer, key in keys:
            known = last.setdefault(buffer, set())
            if any(other[0] != key[0] for other in known):
                known.clear()
            known.add(key)
        kept.append(node)
    return tuple(kept)
