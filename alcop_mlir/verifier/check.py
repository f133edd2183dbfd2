"""Checks pipelined programs by running them on slots: `check(op)`.

For the IR after alcop-expand-pipelines or any later pass that keeps scf loops and
memrefs. It shares no code with the passes that build pipelines. Each kernel is run, and
only the integers that decide slots, branches and commit groups are computed; numbers
that are not known at compile time (sizes, loaded values) take small values in turn, so
that loops run 0, 1, 2, ... times. What is checked:

- every read of a slot comes after a wait that covers its copies, and a barrier
- no slot is filled while threads may still read it
- slots are inside their buffers, and what is read is what was waited for last
- a wait covers the group that it names
- when the kernel ends no copy is in flight

Only buffers that asynchronous copies fill have slots. Shared memory that has none, or
whose slots are not known, is played element by element instead, with all threads of a
block (`effects.races`). A branch whose
condition is not known is taken both ways, and what follows must be right after each.
Unless the condition is surely one of all threads, and of the whole run, as that of two
versions of a loop: then there is a run for each way.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from typing import Any

from alcop_mlir.bindings import ir
from alcop_mlir.verifier.accesses import (
    ASYNC_COPIES,
    COPY,
    READ,
    STORE,
    SlotAccess,
    find_accesses,
    inside,
    touched,
)
from alcop_mlir.verifier.effects import races
from alcop_mlir.verifier.program import Node, NumberedAccess, Numbers, SlotProgram
from alcop_mlir.verifier.slot_state import State
from alcop_mlir.verifier.values import COMMITS
from alcop_mlir.verifier.versions import choices
from alcop_mlir.verifier.violations import Violation

KERNELS = ("gpu.func", "gpu.launch", "func.func")
MAX_VIOLATIONS = 8  # of a kernel: later ones mostly follow from the first few
MAX_ITERATIONS = 20_000  # of a run; later ones are not checked
_SHORT = 3  # iterations: as many are not worth being skipped
_NONE = -1  # instead of a buffer's number
_WHOLE = -1  # instead of a slot: a buffer whose slots are not known
# Regions that run at least once, and how often they are run here; a loop twice.
_RUN_SURELY = {
    "gpu.launch": 1,
    "scf.forall": 1,
    "scf.execute_region": 1,
    "scf.while": 2,
}


def check(op: ir.Operation) -> list[Violation]:
    """What is wrong with the pipelines in `op`; nothing is changed."""
    return [wrong for kernel in _kernels(op) for wrong in _check_kernel(kernel)]


def _kernels(op: ir.Operation) -> list[Any]:
    """The innermost kernels in `op` that have asynchronous copies."""
    found: dict[Any, None] = {}
    for copy in (one for one in inside(op.operation) if one.name in ASYNC_COPIES):
        around = copy
        while around is not None and around.operation.name not in KERNELS:
            around = around.operation.parent
        if around is not None:
            found[around.operation] = None
    return list(found)


def _check_kernel(kernel: ir.Operation) -> list[Violation]:
    accesses = find_accesses(kernel)
    found = _check_slots(kernel, accesses) if accesses else []
    numbered = {access.buffer for access in accesses if access.slot is not None}
    has_others = any(
        buffer not in numbered for op in inside(kernel) for buffer, _ in touched(op)
    )
    return found or (races(kernel)[:MAX_VIOLATIONS] if has_others else [])


def _check_slots(kernel: ir.Operation, accesses: list[SlotAccess]) -> list[Violation]:
    program = SlotProgram(kernel, accesses)
    found: dict[tuple[Any, str], Violation] = {}
    assignments = program.values.assignments(max(a.slots for a in accesses))
    for assignment, ways in product(assignments, choices(kernel)):
        for wrong in _Run(program, program.start(assignment), ways).violations():
            found.setdefault((wrong.op, wrong.message), wrong)
        if len(found) >= MAX_VIOLATIONS:
            break
    return list(found.values())[:MAX_VIOLATIONS]


class _Stopped(Exception):
    """The run is stopped early."""


@dataclass
class _Run:
    """One run of a kernel, with one assignment of the free numbers."""

    program: SlotProgram
    numbers: Numbers
    ways: dict[Any, bool]  # of conditions that are not computed
    state: State = field(default_factory=State)
    iterations: int = 0
    found: list[tuple[int, Violation]] = field(default_factory=list)
    ignored: set[int] = field(default_factory=set)  # buffers

    def violations(self) -> list[Violation]:
        """Run the kernel; returns what is wrong."""
        try:
            for region in self.program.root.regions:
                self._ops(region)
            self._at_end()
        except _Stopped:
            pass
        return [wrong for buffer, wrong in self.found if buffer not in self.ignored]

    def _ops(self, nodes: tuple[Node, ...]) -> Numbers:
        """Run the ops of a block; returns what its terminator yields."""
        yielded: Numbers = []
        numbers = self.numbers
        for node in nodes:
            if node.rule is not None:
                numbers[node.results[0]] = node.rule(*node.operands(numbers))
            elif node.name == "scf.yield":
                yielded = [*node.operands(numbers)]
            elif node.name in _HANDLERS:
                _HANDLERS[node.name](self, node)
            elif node.accesses:
                self._touch(node)
            elif node.name in _RUN_SURELY:
                for region in node.regions * _RUN_SURELY[node.name]:
                    self._ops(region)
            elif node.regions:
                self._may_run(node)
        return yielded

    def _set(self, values: tuple[int, ...], known: Numbers) -> None:
        for value, number in zip(values, known, strict=True):
            self.numbers[value] = number

    # -- memory ----------------------------------------------------------------------

    def _touch(self, node: Node) -> None:
        for one in node.accesses:
            slot = self._slot(one)
            if slot is None:
                self._touch_whole(node, one)
                continue
            act = _ACTS.get(one.access.kind, State.read)
            wrong = act(self.state, (one.buffer, slot))
            if wrong:
                message = f"slot {slot} of {one.access} {wrong}"
                self._say(one.buffer, node.op, message)

    def _touch_whole(self, node: Node, one: NumberedAccess) -> None:
        """Access a buffer whose slots are not known: what fills it is always right."""
        act = _ACTS.get(one.access.kind, State.read_part)
        wrong = act(self.state, (one.buffer, _WHOLE))
        if wrong and one.access.kind == READ:
            self._say(_NONE, node.op, f"{one.access} {wrong}")

    def _slot(self, one: NumberedAccess) -> int | None:
        """The slot; None where it is not known, from then on."""
        if one.buffer in self.ignored:
            return None
        slot = one.slot_in(self.numbers)
        if slot is None:
            self.ignored.add(one.buffer)
            self.state.forget([p for p in self.state.slots if p[0] == one.buffer])
            return None
        if not 0 <= slot < one.slots:
            message = f"slot {slot} of {one.access} does not exist"
            self._say(one.buffer, one.access.op, message)
        return slot

    def _at_end(self) -> None:
        for number, slot in sorted(self.state.in_flight()):
            if slot == _WHOLE:
                continue
            access = self.program.last_copies[number]
            what = f"a copy into slot {slot} of {access}"
            message = f"{what} is in flight when the kernel ends"
            self._say(number, access.op, message)

    def _say(self, buffer: int, op: ir.Operation, message: str) -> None:
        self.found.append((buffer, Violation(op, message)))
        if len(self.found) >= MAX_VIOLATIONS:
            raise _Stopped

    # -- synchronisation -------------------------------------------------------------

    def _commit(self, node: Node) -> None:
        self.numbers[node.results[0]] = self.state.commit()

    def _device_wait(self, node: Node) -> None:
        attributes = node.op.attributes
        count = attributes["numGroups"].value if "numGroups" in attributes else 0
        group = node.operands(self.numbers)[0]
        younger = count if group is None else self.state.younger_than(group)
        if count < 0:
            self._say(_NONE, node.op, f"lets {count} groups fly, expected 0 or more")
        elif count > younger:
            self._say(
                _NONE,
                node.op,
                f"lets {count} groups fly, but only {younger} are younger than the one "
                "waited for",
            )
        self.state.wait(max(0, count))
        self.state.name_awaited(group)

    def _consumer_wait(self, node: Node) -> None:
        group = node.operands(self.numbers)[0]
        if group is not None:
            self.state.wait(self.state.younger_than(group))
        self.state.name_awaited(group)
        self.state.barrier()

    def _change_state(self, node: Node) -> None:
        _CHANGES[node.name](self.state)

    # -- control flow ----------------------------------------------------------------

    def _loop(self, node: Node) -> None:
        lower, upper, step, *carried = node.operands(self.numbers)
        if lower is None or upper is None or step is None or step <= 0:
            self._may_run(node)
            return
        index, seen = lower, dict[Any, tuple[int, int]]()
        first_group = self.state.groups_made
        # Where nothing depends on the index, equal states lead to equal states.
        may_skip = node.arguments[0] not in self.program.needed
        while index < upper:
            is_long = upper - index > _SHORT * step
            if may_skip and is_long:
                here = (self.state.signature(), self._relative(node, carried))
                now = (index, self.state.groups_made)
                before, made_before = seen.setdefault(here, now)
                if before < index:
                    rounds = (upper - 1 - index) // (index - before)
                    groups = rounds * (self.state.groups_made - made_before)
                    index += rounds * (index - before)
                    self.state.repeat(groups, first_group)
                    carried = self._later(node, carried, groups)
                    may_skip = False
            self._count_iteration()
            self._set(node.arguments, [index, *carried])
            carried = self._ops(node.regions[0]) or carried
            index += step
        self._set(node.results, carried)

    def _relative(self, node: Node, carried: Numbers) -> tuple[Any, ...]:
        """Needed carried values; for groups the number of later ones."""
        needed, groups = self.program.needed, self.program.groups
        return tuple(
            self.state.groups_made - value
            if value is not None and argument in groups
            else value
            for argument, value in zip(node.arguments[1:], carried, strict=True)
            if argument in needed
        )

    def _later(self, node: Node, carried: Numbers, groups: int) -> Numbers:
        """Carried values after so many more groups, if they are groups."""
        return [
            value + groups
            if value is not None and argument in self.program.groups
            else value
            for argument, value in zip(node.arguments[1:], carried, strict=True)
        ]

    def _count_iteration(self) -> None:
        self.iterations += 1
        if self.iterations > MAX_ITERATIONS:
            raise _Stopped

    def _branch(self, node: Node) -> None:
        condition = node.operands(self.numbers)[0]
        if condition is None:
            condition = self.ways.get(node.op)
        if condition is None:
            self._may_run(node)
            return
        yielded = self._ops(node.regions[0 if condition else 1])
        if node.results:
            self._set(node.results, yielded)

    def _may_run(self, node: Node) -> None:
        """An op that runs one of its regions, or none."""
        if not node.results and node.fills_only():
            # A fill is wrong or right whatever other ways fill.
            for region in node.regions:
                self._ops(region)
            return
        before = self.state
        ways, given = [], []
        for region in node.regions:
            self.state = before.clone()
            given.append(self._ops(region))
            ways.append(self.state)
        is_complete = node.name == "scf.if" and all(node.regions)
        self.state, *others = ways if is_complete else [before, *ways]
        for other in others:
            self.state.join(other)
        for number, result in enumerate(node.results):
            known = {values[number] for values in given} if is_complete else {None}
            self.numbers[result] = known.pop() if len(known) == 1 else None


_ACTS = {COPY: State.copy_into, STORE: State.store_into}
_CHANGES = {
    "gpu.barrier": State.barrier,
    "alcop.consumer_release": State.release,
    "alcop.producer_acquire": State.acquire,
}
_HANDLERS = {
    "scf.for": _Run._loop,
    "scf.if": _Run._branch,
    "nvgpu.device_async_wait": _Run._device_wait,
    "alcop.consumer_wait": _Run._consumer_wait,
    **dict.fromkeys(_CHANGES, _Run._change_state),
    **dict.fromkeys(COMMITS, _Run._commit),
}
