"""Guards: an `scf.if` around a block of a loop's body, with copies and barriers in it.

    scf.for %k { %m = load %mask[%k]
      scf.if %m { copy to %a ; gpu.barrier ; use of %a ; gpu.barrier } }

`guard_parts` divides what such an op holds, in its order: into copies, loads of what
their addresses need, barriers, and the rest. Each can be under the condition alone,
and a barrier under none, where all threads have the same condition. Nothing is changed
here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any

from alcop_mlir.analysis.ir.loops import ancestor_in, is_loop
from alcop_mlir.analysis.ir.slices import backward_slice, captured, is_pure
from alcop_mlir.analysis.ir.synchronisation import GROUP, WAIT
from alcop_mlir.analysis.ir.uniformity import may_diverge
from alcop_mlir.analysis.ir.walk import around
from alcop_mlir.analysis.pipelining.barriers import meets
from alcop_mlir.analysis.pipelining.copy_forms import copy_form
from alcop_mlir.analysis.pipelining.fetches import is_fetch
from alcop_mlir.bindings import ir
from alcop_mlir.frozen import frozen

COPY, FETCH, SYNC, REST = "copy", "fetch", "sync", "rest"
_ADDRESSES = (ir.IndexType, ir.IntegerType, ir.MemRefType)
_CARRIED = (ir.IndexType, ir.IntegerType, ir.FloatType, ir.VectorType)


@frozen
class Part:
    """Ops of a guard, in its order.

    kind:   COPY, FETCH (a load of what an address needs), SYNC (barriers, commit
            groups, waits: needed under no condition) or REST
    before: ops without effects that need no condition, and that several parts use
    results: what the ops make that is used outside of the part
    """

    kind: str
    ops: tuple[Any, ...]
    before: tuple[Any, ...] = ()
    results: tuple[Any, ...] = ()


def is_guard(op: ir.Operation) -> bool:
    """Whether `op` is an scf.if of a loop's body that holds copies, then a barrier.

    It may be in others. Of barriers those of its own block count.
    """
    if op.operation.name != "scf.if" or not _is_in_loop(op):
        return False
    ops = _ops(op)
    copies = [place for place, one in enumerate(ops) if copy_form(one) is not None]
    return bool(copies) and any(map(meets, ops[copies[0] :]))


def is_alike(guard: ir.Operation) -> bool:
    """Whether all threads of a block surely have the same condition, and reach it."""
    return not may_diverge(next(filter(meets, _ops(guard))))


def guard_parts(guard: ir.Operation) -> list[Part] | None:
    """The parts of a guard; None where one needs what cannot leave another one.

    The last of the kind REST may be empty: what the guard yields is yielded there.
    """
    division = _Division(guard)
    parts = division.parts()
    is_possible = not parts[division.end].results and all(
        isinstance(result.type, _CARRIED) for part in parts for result in part.results
    )
    return parts if is_possible else None


def _is_in_loop(op: ir.Operation) -> bool:
    holders = (one for one in around(op) if one.name != "scf.if")
    holder = next(holders, None)
    return holder is not None and is_loop(holder)


def _ops(guard: ir.Operation) -> list[Any]:
    """The ops under the condition, but the last, which yields."""
    block = guard.operation.regions[0].blocks[0]
    return [op.operation for op in block.operations][:-1]


class _Division:
    """The ops of a guard, each with the number of its part."""

    def __init__(self, guard: ir.Operation):
        self.guard = guard.operation
        self.block = self.guard.regions[0].blocks[0]
        self.ops = _ops(guard)
        self.kinds: list[str] = []
        self.numbers = self._numbered()
        self._give_end_a_part()
        self._sink()

    def parts(self) -> list[Part]:
        members: list[list[Any]] = [[] for _ in self.kinds]
        before: list[list[Any]] = [[] for _ in self.kinds]
        for op in self.ops:
            into = before if op in self._outside else members
            into[self.numbers[op]].append(op)
        return [
            Part(kind, tuple(ops), tuple(early), tuple(self._results(ops)))
            for kind, ops, early in zip(self.kinds, members, before, strict=True)
        ]

    # -- numbers ---------------------------------------------------------------------

    def _numbered(self) -> dict[Any, int]:
        """Parts in the order of the ops that have effects; the others go along."""
        kinds = self._kinds_of_effects()
        numbers: dict[Any, int] = {}
        for op in self.ops:
            kind = kinds.get(op)
            last = self.kinds[-1] if self.kinds else None
            # Each load of an address is a part of its own, as it may need another one.
            if kind is not None and (kind != last or kind in (FETCH, SYNC)):
                self.kinds.append(kind)
            is_next = kind is None and last in (None, SYNC)
            numbers[op] = len(self.kinds) - (not is_next)
        return numbers

    def _kinds_of_effects(self) -> dict[Any, str]:
        forms = [form for op in self.ops if (form := copy_form(op)) is not None]
        copying = {form.op for form in forms} | {form.producer for form in forms}
        moved = {value for form in forms for value in form.moved}
        used = [value for form in forms for value in form.used]
        needed, _ = backward_slice(used, self.block, moved)
        fetched = set(filter(is_fetch, needed)) - copying
        kinds: dict[Any, str] = {}
        for op in self.ops:
            if op in copying:
                kinds[op] = COPY
            elif op in fetched:
                kinds[op] = FETCH
            elif meets(op) or op.name in (GROUP, WAIT):
                kinds[op] = SYNC
            elif not is_pure(op):
                kinds[op] = REST
        return kinds

    def _give_end_a_part(self) -> None:
        """What yields goes with the last rest, if all is there that it needs."""
        rests = [number for number, kind in enumerate(self.kinds) if kind == REST]
        made = [self.numbers[op] for op in self._makers(self._end)]
        is_whole = len(self.kinds) not in self.numbers.values()
        self.end = rests[-1] if rests and is_whole else len(self.kinds)
        if self.end < max(made, default=0):
            self.end = len(self.kinds)
        if self.end == len(self.kinds):
            self.kinds.append(REST)

    def _sink(self) -> None:
        """Addresses, and what needs nothing from the guard, go where they are used."""
        for op in reversed(self.ops):
            if is_pure(op) and (_is_address(op) or self._is_independent(op)):
                users = [self._number(user) for user in self._users(op)]
                self.numbers[op] = min(users, default=self.end)

    @property
    def _end(self) -> Any:
        return self.block.operations[len(self.ops)].operation

    def _number(self, op: ir.Operation) -> int:
        return self.numbers.get(op, self.end)

    def _is_independent(self, op: ir.Operation) -> bool:
        needed, _ = backward_slice(op.results, self.block)
        return all(map(is_pure, needed))

    # -- what leaves a part ----------------------------------------------------------

    @cached_property
    def _outside(self) -> set[Any]:
        """Addresses that several parts use, and what these are computed from."""
        wanted: set[Any] = set()
        for op in reversed(self.ops):
            users = self._users(op)
            parts = {self._number(user) for user in users}
            if is_pure(op) and _is_address(op) and (len(parts) > 1 or wanted & users):
                wanted.add(op)
        outside: set[Any] = set()
        for op in (op for op in self.ops if op in wanted):
            if all(
                maker in outside or self.numbers[maker] < self.numbers[op]
                for maker in self._makers(op)
            ):
                outside.add(op)
        return outside

    def _results(self, ops: list[Any]) -> Iterator[Any]:
        """What the ops of a part make that others use; a group needs no tokens."""
        for op in (op for op in ops if self.kinds[self.numbers[op]] != SYNC):
            for result in op.results:
                users = (one for one in self._users_of([result]) if one.name != GROUP)
                if any(self._is_apart(user, op) for user in users):
                    yield result

    def _is_apart(self, user: ir.Operation, op: ir.Operation) -> bool:
        return user in self._outside or self._number(user) != self.numbers[op]

    def _users(self, op: ir.Operation) -> set[Any]:
        return self._users_of(op.results)

    def _users_of(self, values: Iterable[ir.Value]) -> set[Any]:
        """The ops of the guard's block that use values, themselves or in regions."""
        return {
            ancestor_in(use.owner, self.block) for value in values for use in value.uses
        }

    def _makers(self, op: ir.Operation) -> list[Any]:
        """The ops of the guard's block whose results `op` uses, in its regions too."""
        owners = (value.owner for value in captured(op))
        makers = (one.operation for one in owners if not isinstance(one, ir.Block))
        return [maker for maker in makers if maker.block == self.block]


def _is_address(op: ir.Operation) -> bool:
    """Whether all that `op` makes are numbers or memrefs."""
    return all(isinstance(result.type, _ADDRESSES) for result in op.results)
