"""Runs ops of a loop iterations before the others, in the order of a plan.

Before:  scf.for %k { store(%k) ; load(%k) }          // the store with a lead of 1
After:   if 0 < n { store(0) }
         scf.for %k { barrier ; if %k + 1 < n { store(%k + 1) } ; load(%k) }

An op runs early as it is, with what it touches; only for iterations that there are.
What it makes for ops that run later is carried by the loop, one value for each
iteration in between. Ops without effects are computed where they are needed. An
iteration, also one before the loop, begins with a barrier where the loop had any; those
of the loop that the plan names are where that has them, and no others are left.
Buffers that an iteration allocates are allocated before the loop.

The copies of the plan stay asynchronous copies to be: they are put in the loop's order
where the plan has them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from typing import Any

from alcop_mlir.analysis.ir.loops import (
    body,
    bounds,
    init_args,
    trip_count,
    yielded,
)
from alcop_mlir.analysis.ir.memory import ALLOCATIONS
from alcop_mlir.analysis.ir.slices import captured, sources
from alcop_mlir.analysis.pipelining.plans.bound_plan import BoundPlan
from alcop_mlir.analysis.pipelining.plans.plan_dependences import Placed
from alcop_mlir.bindings import gpu, ir, scf
from alcop_mlir.passes import build, edit
from alcop_mlir.transforms.pipelining.stream_state import prefetched_index

_Values = dict[Any, Any]


def rearrange(
    bound: BoundPlan, order: Sequence[Placed], begins_with_barrier: bool
) -> tuple[BoundPlan, list[Any]]:
    """The loop of `bound` with an iteration like `order`; the old one is erased.

    Its plan, of the ops that do not run early yet: copies, barriers. And the
    conditions, whether there is an iteration that something runs early for.
    order: ops with effects, copies of the plan with a lead of 0
    """
    builder = _Builder(bound.loop, order, begins_with_barrier, bool(bound.copies()))
    loop = builder.build()
    kept = [
        (planned, builder.placed[place])
        for planned, op in zip(bound.plan.ops, bound.ops, strict=True)
        for place, one in enumerate(order)
        if one.op == op and not one.lead
    ]
    plan = replace(bound.plan, ops=tuple(planned for planned, _ in kept))
    left = replace(bound, loop=loop, plan=plan, ops=tuple(op for _, op in kept))
    for old, new in zip(bound.loop.results, loop.results, strict=False):
        old.replace_all_uses_with(new)
    bound.loop.erase()
    return left, builder.exists


@dataclass
class _State:
    """What the new loop carries.

    arguments: by lead, the carried values of the loop that ops of that lead need, by
               number, for their iteration
    waiting:   results of early ops that were not used yet, the oldest first
    """

    arguments: dict[int, dict[int, Any]] = field(default_factory=dict)
    waiting: dict[Any, list[Any]] = field(default_factory=dict)

    def flat(self) -> list[Any]:
        own = [value for one in self.arguments.values() for value in one.values()]
        return own + [value for one in self.waiting.values() for value in one]

    def like(self, values: Iterable[Any]) -> _State:
        """`values`, laid out as this state is."""
        left = iter(values)
        return _State(
            {
                lead: {n: next(left) for n in one}
                for lead, one in self.arguments.items()
            },
            {key: [next(left) for _ in one] for key, one in self.waiting.items()},
        )


class _Builder:
    """Builds the loop in its new order before it.

    begins: whether an iteration begins with a barrier; waits: whether those of the loop
            begin with a wait for copies instead, which is one too
    placed: by place in the order, the ops of the new loop that do not run early
    """

    def __init__(self, loop: Any, order: Sequence[Placed], begins: bool, waits: bool):
        self.loop, self.order = loop, order
        self.begins, self.waits = begins, waits
        self.block = body(loop)
        self.trips = trip_count(loop)
        self.leads = sorted({placed.lead for placed in order} | {0})
        self.made = {
            result: placed.lead
            for placed in order
            if placed.lead
            for result in placed.op.results
        }
        self.placed: dict[int, Any] = {}
        self.exists: list[Any] = []
        self._found: dict[int, tuple[set[Any], set[int]]] = {}

    def build(self) -> Any:
        """The new loop."""
        lower, upper, step = bounds(self.loop)
        _hoist_allocations(self.loop)
        if not self.trips and self.leads[-1]:
            _put_under_its_condition(self.loop)
        with self.loop.location, ir.InsertionPoint(self.loop):
            state = self._start()
            for time in range(-self.leads[-1], 0):
                state = self._iteration(time, lower, state)

            def iteration(induction: Any, values: list[Any]) -> list[Any]:
                return self._iteration(None, induction, state.like(values)).flat()

            new = build.for_loop((lower, upper, step), state.flat(), iteration)
        edit.keep_attributes(self.loop, new.operation)
        return new.operation

    # -- what is carried -------------------------------------------------------------

    def _start(self) -> _State:
        start = init_args(self.loop)
        waiting = {}
        for result, lead in self.made.items():
            depth = lead - min(self._uses(result), default=lead)
            waiting[result] = build.nothing([result.type] * depth)
        arguments = {0: dict(enumerate(start))}
        for lead in self.leads[1:]:
            arguments[lead] = {n: start[n] for n in self._numbers(lead)}
        return _State(arguments, waiting)

    def _uses(self, result: ir.Value) -> list[int]:
        """The leads of the ops, and of carried values, that need `result`."""
        return [lead for lead in self.leads if result in self._needed(lead)[0]]

    def _numbers(self, lead: int) -> list[int]:
        """The carried values that ops of that lead need, by number."""
        return sorted(self._needed(lead)[1])

    def _needed(self, lead: int) -> tuple[set[Any], set[int]]:
        """Results of early ops, and carried values, that ops of that lead need."""
        if lead not in self._found:
            self._found[lead] = self._find_needed(lead)
        return self._found[lead]

    def _find_needed(self, lead: int) -> tuple[set[Any], set[int]]:
        own = [placed.op for placed in self.order if placed.lead == lead]
        numbers = set(range(len(init_args(self.loop)))) if lead == 0 else set()
        pending = [value for op in own for value in captured(op)]
        pending += [yielded(self.loop, number) for number in numbers]
        results: set[Any] = set()
        while pending:
            ops, arguments = sources(pending, self.block, self.made)
            results |= {v for v in pending if v in self.made}
            for op in ops:
                results |= {v for v in captured(op) if v in self.made}
            fresh = {a.arg_number - 1 for a in arguments if a.arg_number} - numbers
            numbers |= fresh
            pending = [yielded(self.loop, number) for number in fresh]
        return results, numbers

    # -- an iteration ----------------------------------------------------------------

    def _iteration(self, time: int | None, induction: Any, state: _State) -> _State:
        """Build an iteration of the new loop; what is carried to the next one.

        time: its number before the first of the loop, counted from -1 down; else None
        """
        if self.begins and (time is not None or not self.waits):
            gpu.barrier()
        _, upper, step = bounds(self.loop)
        values: dict[int, _Values] = {}
        runs: dict[int, Any] = {}
        for lead in self.leads:
            ahead = lead if time is None else time + lead
            if ahead < 0:
                continue
            index = prefetched_index(induction, ahead, step)
            arguments = list(self.block.arguments)
            values[lead] = {arguments[0]: index}
            for number, value in state.arguments[lead].items():
                values[lead][arguments[number + 1]] = value
            if lead == 0:
                runs[lead] = True
            elif time is not None and self.trips is not None:
                runs[lead] = ahead < self.trips
            elif time is not None and ahead == 0:
                runs[lead] = True  # see build
            else:
                runs[lead] = build.less(index, upper)
                if time is None:
                    self.exists.append(runs[lead])
        self._take_waiting(state, values)
        for lead, group in groupby(enumerate(self.order), lambda one: one[1].lead):
            if lead in values:
                self._run(list(group), lead, values[lead], runs[lead])
        return self._following(state, values)

    def _take_waiting(self, state: _State, values: dict[int, _Values]) -> None:
        """What early ops made in iterations before, for the ops that need it now."""
        for result, waiting in state.waiting.items():
            first = self.made[result] - len(waiting)
            for lead, own in values.items():
                if first <= lead < self.made[result]:
                    own[result] = waiting[lead - first]

    def _run(
        self, group: list[tuple[int, Placed]], lead: int, values: _Values, runs: Any
    ) -> None:
        """Build ops of one lead that follow each other in the order."""
        if lead == 0:
            for place, placed in group:
                self.placed[place] = self._clone(placed.op, values)
            return
        results = [r for _, placed in group for r in placed.op.results]
        kinds = [result.type for result in results]

        def make() -> list[Any]:
            inner = dict(values)
            for _, placed in group:
                self._clone(placed.op, inner)
            return [inner[result] for result in results]

        nothing = partial(build.nothing, kinds)
        if runs is True:
            made = make()
        elif runs is False:
            made = nothing()
        else:
            made = build.branch(runs, make, nothing if kinds else None, kinds)
        values.update(zip(results, made, strict=True))

    def _clone(self, op: Any, values: _Values) -> Any:
        """Copy `op`, and before it what it needs that was not computed yet."""
        self._compute(captured(op), values)
        return edit.clone(op, values)

    def _compute(self, needed: Iterable[Any], values: _Values) -> None:
        """Copy the ops that `needed` values are computed from."""
        for value in needed:
            owner = value.owner
            if value in values or isinstance(owner, ir.Block):
                continue
            if owner.operation.block == self.block:
                self._clone(owner.operation, values)

    def _following(self, state: _State, values: dict[int, _Values]) -> _State:
        after = _State()
        for lead, arguments in state.arguments.items():
            after.arguments[lead] = dict(arguments)
            if lead not in values:
                continue  # its first iteration is still to come
            following = {n: yielded(self.loop, n) for n in arguments}
            self._compute(following.values(), values[lead])
            after.arguments[lead] = {
                n: values[lead].get(value, value) for n, value in following.items()
            }
        for result, waiting in state.waiting.items():
            own = values.get(self.made[result], {})
            made = [own[result]] if result in own else build.nothing([result.type])
            after.waiting[result] = [*waiting, *made][1:] if waiting else []
        return after


def _hoist_allocations(loop: Any) -> None:
    """Allocate before `loop` what its iterations do: streams must not have one each."""
    for op in [op.operation for op in body(loop).operations]:
        if op.name in ALLOCATIONS:
            op.move_before(loop)


def _put_under_its_condition(loop: Any) -> None:
    """Put `loop` into an scf.if, so that it runs at least once where it runs."""
    start = init_args(loop)
    lower, upper, _ = bounds(loop)
    with loop.location, ir.InsertionPoint(loop):
        runs = build.less(lower, upper)
        choice = scf.IfOp(runs, [v.type for v in start], has_else=bool(start))
        for region in choice.regions if start else [choice.regions[0]]:
            with ir.InsertionPoint(region.blocks[0]):
                scf.YieldOp(start)
    for old, new in zip(loop.results, choice.results, strict=True):
        old.replace_all_uses_with(new)
    end = choice.regions[0].blocks[0].operations[0].operation
    loop.move_before(end)
    for number, result in enumerate(loop.results):
        end.operands[number] = result
