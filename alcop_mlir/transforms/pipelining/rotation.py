"""Runs loads of a loop iterations before their use, in values that the loop carries.

Before:  scf.for %k { %r = load %rows[%k] ; use(%r) }
After:   %first = scf.if 0 < n { load %rows[0] }
         scf.for %k iter_args(%r = %first) {
           %next = scf.if %k + 1 < n { load %rows[%k + 1] }
           use(%r) ; scf.yield %next }

A load runs only for iterations that there are, so that it stays in bounds; where there
is none, its value is zero, which nothing uses. What the address needs of carried
values is carried for the later iteration, too. A load that is the same in all
iterations is moved before the loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from alcop_mlir.analysis.ir.loops import (
    ancestor_in,
    body,
    bounds,
    init_args,
    trip_count,
    yielded,
)
from alcop_mlir.analysis.ir.slices import backward_slice, is_pure
from alcop_mlir.analysis.pipelining.fetches import use_ends
from alcop_mlir.bindings import ir
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import build, edit
from alcop_mlir.transforms.pipelining.stream_state import prefetched_index


# Ops are named by their first result: an op's hash changes with its operands.
@frozen
class Rotated:
    """A loop some of whose loads run early.

    loads:   the results of those in its block, which each stream runs that needs them
    guarded: of those of them that load for a later iteration, if there is one
    exists:  the conditions, whether there is one
    extents: what is left of an iteration for which something is loaded
    """

    loop: Any
    loads: frozenset[Any]
    guarded: frozenset[Any]
    exists: frozenset[Any]
    extents: frozenset[Any]


def rotate(
    loop: ir.Operation,
    leads: Iterable[tuple[Any, int]],
    remaining: Iterable[Any] = (),
) -> Rotated:
    """`loop` with each of these loads so many iterations before its use.

    Loads that one of them needs are among them, with a longer lead, or make the next
    value of a carried one.
    """
    varying = _hoist(loop, leads)
    loads = {op.results[0] for op, lead in varying if not lead}
    pending = {op.results[0]: lead for op, lead in varying if lead}
    guarded: set[Any] = set()
    exists: set[Any] = set()
    extents: set[Any] = set()
    while pending:
        lead = min(pending.values())
        now = [value for value in pending if pending[value] == lead]
        later = {value: own for value, own in pending.items() if own > lead}
        rotation = _Rotation(loop, now, lead, guarded)
        loop = rotation.build()
        # What the loads need was loaded with them, for their iteration.
        needed = {
            rotation.mapping[value]: own - lead
            for value, own in later.items()
            if value in rotation.mapping
        }
        unused = rotation.unused()
        gone = {result for op in unused for result in op.results}
        kept = {value: own for value, own in later.items() if value not in gone}
        pending = kept | needed
        guarded = (guarded | rotation.built) - gone
        exists |= {rotation.mapping.get(condition) for condition in exists}
        exists = (exists | {rotation.exists}) - {None, *gone}
        left = {rotation.mapping.get(extent) for extent in (*remaining, *extents)}
        extents = (extents | left) - {None, *gone}
        loads -= gone
        for op in unused:
            op.erase()
    return Rotated(
        loop,
        frozenset(loads | guarded),
        frozenset(guarded),
        frozenset(exists),
        frozenset(extents),
    )


def _hoist(loop: ir.Operation, leads: Iterable[tuple[Any, int]]) -> list[Any]:
    """Load before `loop` what is the same in all iterations; the other loads."""
    slices = [(pair, *backward_slice(pair[0].results, body(loop))) for pair in leads]
    varying = [pair for pair, _, arguments in slices if arguments]
    same = {op for _, needed, arguments in slices if not arguments for op in needed}
    lower, upper, _ = bounds(loop)
    ops = [op.operation for op in body(loop).operations]
    for op in [op for op in ops if op in same]:
        op.move_before(loop)
        if is_pure(op) or trip_count(loop):
            continue
        with op.location, ir.InsertionPoint(op):
            once = _guarded(op, {}, build.less(lower, upper))
        for old, new in zip(op.results, once, strict=True):
            old.replace_all_uses_with(new)
        op.erase()
    return varying


class _Rotation:
    """Rotates loads of a loop, which have one lead.

    loads, guarded: the first results of these loads; of ops that check themselves
             whether their iteration exists
    mapping: the values of the loop for the later iteration
    exists:  whether there is that iteration
    built:   the first results of the ops that load for it
    """

    def __init__(
        self, loop: ir.Operation, loads: Sequence[Any], lead: int, guarded: set[Any]
    ):
        self.loop, self.lead, self.guarded = loop, lead, guarded
        self.loaded = [result for load in loads for result in load.owner.results]
        self.numbers = _carried_numbers(loop, self.loaded)
        self.ops, _ = backward_slice(self.loaded, body(loop))
        following = [yielded(loop, number) for number in self.numbers]
        self.next_ops, _ = backward_slice(following, body(loop))
        self.mapping: dict[Any, Any] = {}
        self.exists: Any = None
        self.built: set[Any] = set()

    def build(self) -> Any:
        """The new loop; the old one is erased."""
        loop = self.loop
        lower, upper, step = bounds(loop)
        trips = trip_count(loop)
        state = [init_args(loop)[number] for number in self.numbers]
        early: list[Any] = []
        with loop.location, ir.InsertionPoint(loop):
            for number in range(self.lead):
                index = prefetched_index(lower, number, step)
                exists = build.less(index, upper) if trips is None else number < trips
                loaded, state, _ = self._iteration(loop, index, state, exists)
                early += loaded
        return edit.with_carried(loop, [*early, *state], self._following)

    def _following(self, values: list[Any]) -> list[Any]:
        """Load in the new loop for the later iteration, and use what was loaded early.

        values: what was loaded early, iteration by iteration, and the carried values of
                the later iteration
        """
        loop = values[0].owner.owner.operation
        _, upper, step = bounds(loop)
        width = len(self.loaded)
        early, state = values[: self.lead * width], values[self.lead * width :]
        with _place(loop, self.loaded):
            index = prefetched_index(body(loop).arguments[0], self.lead, step)
            self.exists = build.less(index, upper)
            loaded, state, self.mapping = self._iteration(
                loop, index, state, self.exists
            )
        for old, new in zip(self.loaded, early[:width], strict=True):
            old.replace_all_uses_with(new)
        return [*early[width:], *loaded, *state]

    def _iteration(
        self, loop: ir.Operation, index: ir.Value, state: list[Any], exists: Any
    ) -> tuple[list[Any], list[Any], dict[Any, Any]]:
        """Build an iteration of the loads, at `index`.

        What is loaded, the carried values after it, and what each value is there.
        exists: whether there is that iteration, a value where that is not known
        """
        arguments = body(loop).arguments
        keys = [arguments[0], *(arguments[number + 1] for number in self.numbers)]
        mapping = dict(zip(keys, [index, *state], strict=True))
        for op in (*self.ops, *self.next_ops):
            first = op.results[0]
            if first in mapping:
                continue
            if is_pure(op) or first in self.guarded or exists is True:
                edit.clone(op, mapping)
            else:
                _guarded(op, mapping, exists)
            if not is_pure(op):
                self.built.add(mapping[first])
        following = (yielded(loop, number) for number in self.numbers)
        return (
            [mapping[value] for value in self.loaded],
            [mapping.get(value, value) for value in following],
            mapping,
        )

    def unused(self) -> list[Any]:
        """The ops that only made what is loaded early now, users first."""
        unused: list[Any] = []
        for op in reversed(self.ops):
            users = [use.owner for result in op.results for use in result.uses]
            if all(ancestor_in(user, op.block) in unused for user in users):
                unused.append(op)
        return unused


def _place(loop: ir.Operation, values: Sequence[ir.Value]) -> ir.InsertionPoint:
    """Where the loads of a later iteration begin: after what needs earlier ones."""
    barrier = use_ends(loop, values)
    if barrier is None:
        return ir.InsertionPoint.at_block_begin(body(loop))
    return ir.InsertionPoint(barrier)


def _guarded(op: ir.Operation, mapping: dict[Any, Any], exists: Any) -> list[Any]:
    """The results of `op` where `exists`, else zeros; added to `mapping`."""
    kinds = [result.type for result in op.results]

    nothing = partial(build.nothing, kinds)
    if exists is False:
        values = nothing()
    else:
        copy = partial(edit.clone, op, dict(mapping))
        values = build.branch(exists, lambda: copy().results, nothing, kinds)
    mapping.update(zip(op.results, values, strict=True))
    return values


def _carried_numbers(loop: ir.Operation, values: Sequence[ir.Value]) -> list[int]:
    """The numbers of the carried values that `values` need, now or later."""
    block = body(loop)
    numbers: list[int] = []
    pending = list(values)
    while pending:
        _, arguments = backward_slice(pending, block)
        found = {one.arg_number - 1 for one in arguments if one.arg_number}
        fresh = sorted(found.difference(numbers))
        numbers += fresh
        pending = [yielded(loop, number) for number in fresh]
    return numbers
