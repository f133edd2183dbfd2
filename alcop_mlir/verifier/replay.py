"""Replays a plan that changes the order of a loop, iteration by iteration.

What the loop does in its first iterations is written down in its own order, and in that
of the plan: which op, of which iteration, after how many barriers.

    loop   store 0 | load 0 | store 1 | load 1 |
    plan   store 0 | store 1 load 0 | store 2 load 1 |       // the store is one early

Of two that touch the same memory, in the same slot, and of which one writes, the first
must still be the first, and a barrier still between them, if there was one. `plans.py`
asks this where an op runs early that is no copy and no load, or where the arithmetic is
in another order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any

from alcop_mlir.bindings import ir
from alcop_mlir.verifier.accesses import inside
from alcop_mlir.verifier.loop_order import Touch, all_touched_by, are_apart, is_private
from alcop_mlir.verifier.violations import Violation

_BARRIER = "gpu.barrier"
# Ops that order what threads do, or print: they stay in order with everything.
_FENCES = (
    "gpu.printf",
    "cf.assert",
    "nvvm.bar.warp.",
    "memref.pref",
    "nvgpu.mbarrier.",
)
# What a plan drops where it does not name it.
_SYNCHRONISATION = (
    _BARRIER,
    "nvgpu.device_async_create_group",
    "nvgpu.device_async_wait",
)


@dataclass(frozen=True)
class Step:
    """An op of the loop's block, and how many iterations early the plan runs it."""

    op: Any
    lead: int


@dataclass(frozen=True)
class _Moment:
    """When an op ran: its number in the sequence, and the barriers before it."""

    number: int
    barriers: int


# Of an op and an iteration.
_Sequence = dict[tuple[Any, int], _Moment]


def with_unnamed(loop: ir.Operation, named: Sequence[Step]) -> list[Step]:
    """An iteration of the plan: `named`, and what has effects and is left out."""
    steps = list(named)
    known = {step.op for step in named}
    for op in _ops(loop):
        if op in known or op.name in _SYNCHRONISATION or not _touches(op):
            continue
        users = {use.owner.operation for result in op.results for use in result.uses}
        place = next((n for n, step in enumerate(steps) if step.op in users), None)
        if place is not None and steps[place].lead and len(users) == 1:
            steps.insert(place, Step(op, steps[place].lead))  # a part of a copy
            continue
        later = (
            n
            for n, step in enumerate(steps)
            if not step.lead and op.is_before_in_block(step.op)
        )
        steps.insert(next(later, len(steps)), Step(op, 0))
    return steps


def is_reordered(steps: Sequence[Step]) -> bool:
    """Whether the arithmetic is in another order than the loop has it."""
    ops = [step.op for step in steps if not step.lead]
    return any(
        one.block == other.block and not one.is_before_in_block(other)
        for one, other in pairwise(ops)
    )


def replayed(
    loop: ir.Operation, steps: Sequence[Step], slots: Mapping[Any, int]
) -> Iterator[Violation]:
    """What comes in another order than in the loop, and what lacks a barrier.

    steps: an iteration of the plan
    slots: of the buffers that have some
    """
    most = max((step.lead for step in steps), default=0)
    iterations = 2 * most + max(slots.values(), default=1) + 2
    before = _of_loop(loop, iterations)
    after = _of_plan(loop, steps, iterations)
    found: set[Any] = set()
    places: dict[Any, list[tuple[tuple[Any, int], Touch]]] = {}
    for one in before:
        for touch in _touches(one[0]):
            slot = one[1] % slots.get(touch.root, 1)
            places.setdefault((touch.root, slot), []).append((one, touch))
    unknown = places.pop((None, 0), [])
    for touched in places.values():
        for why in _in_place([*touched, *unknown], before, after):
            if why.op not in found:
                found.add(why.op)
                yield why
    if not places:
        yield from _in_place(unknown, before, after)


def _in_place(
    touched: list[tuple[tuple[Any, int], Touch]], before: _Sequence, after: _Sequence
) -> Iterator[Violation]:
    """Of one place in memory."""
    ordered = sorted(touched, key=lambda pair: before[pair[0]].number)
    for (one, first), (other, second) in combinations(ordered, 2):
        is_apart = are_apart(first.box, second.box)
        if one == other or is_apart or not (first.writes or second.writes):
            continue
        then, now = (before[one], before[other]), (after[one], after[other])
        what = f"of iteration {other[1]} and '{one[0].name}' of {one[1]}"
        if now[0].number > now[1].number:
            yield Violation(
                other[0], f"{what} come in the other order than in the loop"
            )
            continue
        root = first.root or second.root
        is_own = root is not None and not isinstance(root, str) and is_private(root)
        was_apart = then[0].barriers != then[1].barriers
        if was_apart and now[0].barriers == now[1].barriers and not is_own:
            yield Violation(other[0], f"{what} have no barrier between them any more")


def _of_loop(loop: ir.Operation, iterations: int) -> _Sequence:
    found: _Sequence = {}
    barriers = 0
    for tile in range(iterations):
        for op in _ops(loop):
            held = _holds_barrier(op)
            barriers += held
            found[op, tile] = _Moment(len(found), barriers)
            barriers += held and op.name != _BARRIER
    return found


def _of_plan(loop: ir.Operation, steps: Sequence[Step], iterations: int) -> _Sequence:
    found: _Sequence = {}
    most = max((step.lead for step in steps), default=0)
    begins = any(map(_holds_barrier, _ops(loop)))
    barriers = 0
    for now in range(-most, iterations):
        barriers += begins
        for step in steps:
            tile = now + step.lead
            if 0 <= tile < iterations:
                barriers += _is_full(step.op)
                found[step.op, tile] = _Moment(len(found), barriers)
    return {
        (op, tile): found.get((op, tile), _Moment(-1, -1))
        for op in _ops(loop)
        for tile in range(iterations)
    }


def _ops(loop: ir.Operation) -> list[Any]:
    return [op.operation for op in loop.regions[0].blocks[0].operations][:-1]


def _holds_barrier(op: Any) -> bool:
    return any(one.name == _BARRIER for one in (op, *inside(op)))


def _is_full(op: Any) -> bool:
    if op.name != _BARRIER:
        return False
    scope = str(op.attributes["scope"]) if "scope" in op.attributes else ""
    return "subgroup" not in scope and "address_spaces" not in op.attributes


def _touches(op: Any) -> list[Touch]:
    if any(one.name.startswith(_FENCES) for one in (op, *inside(op))):
        return [Touch(op, None, None, True)]
    return [] if op.name in _SYNCHRONISATION else all_touched_by(op)
