"""Unroll the steady state by its slots, and loops over fragments completely.

Before:  scf.for %k = 0 to 864 step 32 iter_args(%slot = 0) {
           use slot %slot ; yield %slot + 1 == 3 ? 0 : %slot + 1 } {alcop.unroll = 3}
After:   scf.for %k = 0 to 864 step 96 {
           use slot 0 ; use slot 1 ; use slot 2 }

With constant slots every shared-memory address is a base register and an immediate
offset. A loop that is marked with its own trip count is unrolled completely, and so is
an unmarked innermost loop over fragments: neither LLVM nor ptxas unrolls those.
Upstream's `transform.loop.unroll` is not used, as it keeps the slots as carried values.

Runs after alcop-lower-mma and alcop-swizzle-shared, so that these work on one copy of
the body. Reads and erases `alcop.unroll`, which promises that the trip count is a
multiple of it.
"""

from __future__ import annotations

from typing import Any

from alcop_mlir.analysis.ir import loops
from alcop_mlir.analysis.pipelining.ring_counters import period
from alcop_mlir.bindings import ir
from alcop_mlir.errors import PassError
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import build, edit
from alcop_mlir.passes.base import Pass
from alcop_mlir.transforms.pipelining.plan_attributes import UNROLL

MAX_FRAGMENT_STEPS = 16  # as MAX_CARRIED_STEPS of the plan
_FRAGMENT_OPS = ("nvgpu.mma.sync", "nvgpu.ldmatrix")


@frozen
class UnrollSteadyState(Pass):
    name = "alcop-unroll-steady-state"
    anchor = "any"

    def run(self, op: ir.Operation) -> None:
        # Inner loops first: an outer loop is unrolled with its inner loops.
        for loop in reversed(loops.loops_in(op)):
            factor = _factor(loop)
            if factor is None:
                continue
            with loop.location, ir.InsertionPoint(loop):
                if loops.trip_count(loop) == factor:
                    _unroll_whole(loop, factor)
                else:
                    _unroll_by(loop, factor)


def _factor(loop: ir.Operation) -> int | None:
    """By how much `loop` is unrolled; None if it is not."""
    trips = loops.trip_count(loop)
    if UNROLL in loop.attributes:
        factor = loop.attributes[UNROLL].value
        if factor < 1 or (trips is not None and trips % factor):
            raise PassError(
                loop,
                f"{UNROLL} is {factor}, expected a divisor of the trip count {trips}",
            )
        return factor
    if trips is None or not 1 <= trips <= MAX_FRAGMENT_STEPS:
        return None
    return trips if _is_fragment_loop(loop) else None


def _is_fragment_loop(loop: ir.Operation) -> bool:
    # Those over tiles that warps have in roles count in 32 bits.
    if not isinstance(loops.bounds(loop)[0].type, ir.IndexType):
        return False
    ops = [op.operation for op in loops.body(loop).operations]
    return not any(loops.is_loop(op) for op in ops) and any(
        op.name in _FRAGMENT_OPS for op in ops
    )


def _unroll_whole(loop: ir.Operation, trips: int) -> None:
    lower, _, step = loops.bounds(loop)
    values = loops.init_args(loop)
    counters = _counters(loop)
    for trip in range(trips):
        induction = build.add(lower, build.mul(trip, step))
        values = _copy_body(loop, induction, _slots(counters, values, trip))
    for result, value in zip(loop.results, values, strict=True):
        result.replace_all_uses_with(value)
    loop.erase()


def _unroll_by(loop: ir.Operation, factor: int) -> None:
    lower, upper, step = loops.bounds(loop)
    start = loops.init_args(loop)
    # A counter whose period divides the unroll factor is constant in each copy.
    counters = {
        number: counter
        for number, counter in _counters(loop).items()
        if factor % counter.period == 0
    }

    def iteration(induction: ir.Value, values: list[ir.Value]) -> list[Any]:
        for number in range(factor):
            here = build.add(induction, build.mul(number, step))
            values = _copy_body(loop, here, _slots(counters, values, number))
        return [start[n] if n in counters else v for n, v in enumerate(values)]

    wide_step = build.mul(step, factor)
    wide = build.for_loop((lower, upper, wide_step), start, iteration)
    for number, result in enumerate(loop.results):
        value = start[number] if number in counters else wide.results[number]
        result.replace_all_uses_with(value)
    loop.erase()


@frozen
class _Counter:
    """A ring counter: a carried value that counts from `start` modulo `period`."""

    start: int
    period: int


def _counters(loop: ir.Operation) -> dict[int, _Counter]:
    found = {}
    for number, init in enumerate(loops.init_args(loop)):
        start, slots = loops.constant(init), period(loop, number)
        if start is not None and slots is not None and 0 <= start < slots:
            found[number] = _Counter(start, slots)
    return found


def _slots(
    counters: dict[int, _Counter], values: list[ir.Value], iteration: int
) -> list[Any]:
    """`values` with the counters as constants, their values in that iteration."""
    return [
        build.index((counters[n].start + iteration) % counters[n].period)
        if n in counters
        else value
        for n, value in enumerate(values)
    ]


def _copy_body(
    loop: ir.Operation, induction: ir.Value, values: list[ir.Value]
) -> list[Any]:
    """A copy of the body at the insertion point; what it yields."""
    arguments = loops.body(loop).arguments
    return edit.inline(
        loops.body(loop), dict(zip(arguments, [induction, *values], strict=True))
    )
