"""Builder of the pipelined form of a loop: prologue, steady state, tail.

alcop-expand-pipelines, the pass that uses it, describes that form.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from alcop_mlir.analysis.ir.loops import body, bounds, init_args, trip_count
from alcop_mlir.analysis.pipelining.pipeline_shape import Shape
from alcop_mlir.analysis.pipelining.streams import Streams, addresses, argument
from alcop_mlir.bindings import arith, ir
from alcop_mlir.passes import build
from alcop_mlir.transforms.pipelining import primitives
from alcop_mlir.transforms.pipelining.async_copies import issue_copy
from alcop_mlir.transforms.pipelining.plan_attributes import UNROLL
from alcop_mlir.transforms.pipelining.stream_state import (
    Carried,
    ValueTemplate,
    copy_node,
    index_around,
    prefetched_index,
)

# Whether the iteration so many tiles later exists: True, or the predicate for it.
_Guard = Callable[[int], Any]


class Expansion:
    """Builds the pipelined form of one loop before it."""

    def __init__(self, streams: Streams, shape: Shape):
        self.streams = streams
        self.shape = shape
        self.loop = streams.body.loop
        self.induction = body(self.loop).arguments[0]
        self.yielded = streams.body.yielded
        self.compute, self.reads = streams.compute, streams.reads
        template = partial(ValueTemplate, streams.body)
        # Steps often read by the same addresses: a view of the tile's slot.
        templates = {used: template(used) for used in set(streams.read_operands)}
        self.read_addresses = [templates[used] for used in streams.read_operands]
        self.copy_addresses = [template(addresses(form)) for form in streams.copies]
        # The carried values of a stream for the next iteration.
        self.next_load, self.next_copy = (
            template([self.yielded[number] for number in numbers])
            for numbers in (streams.load_arguments, streams.copy_arguments)
        )
        self.all_copies = range(len(streams.copies))
        self.issued = self._issued() if shape.in_place else {}
        self.lower, self.upper, self.step = bounds(self.loop)
        self.trips = trip_count(self.loop)
        # Values that are known in the part of the pipeline that is built.
        self.known: dict[Any, Any] = {}

    def build(self) -> dict[int, Any]:
        """Build the pipeline; the values that replace the loop's results, by number."""
        numbers = self.streams.compute_arguments
        if (self.shape.wraps or self.shape.load_lookahead) and not self.trips:
            # A stream that wraps around, or prefetches fragments, needs a first tile.
            results = self._if_it_runs()
        else:
            results = self._pipeline()
        return dict(zip(numbers, results, strict=True))

    def _pipeline(self) -> list[Any]:
        """Prologue, steady state and tail; what the loop's carried values become."""
        state = self._prologue()
        steady = self._steady_trips()
        middle = self._after(steady)
        static = steady if isinstance(steady, int) else None
        if static != 0:
            if not self.shape.wraps:
                self.known = self._known_in_steady_state()
            state = self._loop(self.lower, middle, state, in_tail=False)
            self.known = {}
        if static is None or static != self.trips:
            state = self._loop(middle, self.upper, state, in_tail=True)
        if self.shape.slots:
            primitives.release()
        if self.shape.wraps and state.groups:
            primitives.wait(state.groups[-1])
        return state.compute

    def _known_in_steady_state(self) -> dict[Any, Any]:
        """No stream has reached the end, and what is fetched is whole."""
        whole = dict.fromkeys(self.streams.fetched_extents, self.step)
        if not self.streams.exists:
            return whole
        holds = arith.constant(build.integer(1), 1)
        return whole | dict.fromkeys(self.streams.exists, holds)

    def _if_it_runs(self) -> list[Any]:
        start = [init_args(self.loop)[n] for n in self.streams.compute_arguments]
        runs = build.less(self.lower, self.upper)
        kinds = [value.type for value in start]
        otherwise = (lambda: start) if start else None
        return build.branch(runs, self._pipeline, otherwise, kinds)

    # -- trip counts -----------------------------------------------------------------

    def _steady_trips(self) -> Any:
        """Iterations of the steady state, whole slot periods; an int if known."""
        if self.trips is not None:
            return self.shape.steady_trips(self.trips)
        period, lookahead = self.shape.slot_period, self.shape.lookahead
        trips = arith.ceildivsi(build.sub(self.upper, self.lower), self.step)
        full = build.most(build.sub(trips, lookahead), 0)
        return build.mul(build.div(full, period), period)

    def _after(self, trips: ir.Value | int) -> Any:
        """The loop's index after so many iterations."""
        if isinstance(trips, int) and trips == 0:
            return self.lower
        return build.add(self.lower, build.mul(trips, self.step))

    def _runs(self, induction: ir.Value, tiles: int) -> Any:
        """Predicate: the iteration `tiles` after the one at `induction` exists."""
        return build.less(prefetched_index(induction, tiles, self.step), self.upper)

    def _issued(self) -> dict[int, list[range]]:
        """The copies that are issued before each op of the arithmetic, by number."""
        (step,), (nodes,) = self.streams.body.steps, self.compute
        issued: dict[int, list[range]] = {}
        for number, copy in enumerate(step.copies):
            place = sum(node.number < copy.number for node in nodes)
            issued.setdefault(place, []).append(range(number, number + 1))
        return issued

    # -- the three parts -------------------------------------------------------------

    def _prologue(self) -> Carried:
        shape = self.shape
        start = init_args(self.loop)
        state = Carried(
            compute=[start[n] for n in self.streams.compute_arguments],
            load=[start[n] for n in self.streams.load_arguments],
            copy=[start[n] for n in self.streams.copy_arguments],
        )
        if shape.wraps:
            state.copy_index = [self.lower]
            state.load_index = [self.lower]
        if shape.slots:
            # The previous iteration of an outer loop may have read the slots.
            primitives.acquire()
        for tile in range(shape.slots - 1):
            whole = self.trips is not None and tile + 1 < self.trips
            guard = self._prologue_guard(tile)
            self._copy_tile(state, self.lower, tile, guard, whole, self.all_copies)
        for number in range(shape.load_lookahead):
            tile, step = divmod(number, shape.steps)
            if step == 0:
                self._start_tile(
                    state, self.lower, tile, self._prologue_guard, first=tile == 0
                )
                if shape.slots:
                    later = tile + shape.slots - 1
                    guard = self._prologue_guard(later)
                    self._copy_tile(
                        state, self.lower, later, guard, False, self.all_copies
                    )
            self._load(state, self.lower, tile, step, self._prologue_guard)
        return state

    def _prologue_guard(self, tile: int) -> Any:
        """True where the tile surely exists, else its predicate."""
        if self.shape.wraps or (self.trips is not None and tile < self.trips):
            return True
        if self.shape.load_lookahead and tile == 0:
            return True  # see build: all of this is under that predicate
        return self._runs(self.lower, tile)

    def _loop(
        self, lower: ir.Value, upper: ir.Value, state: Carried, in_tail: bool
    ) -> Carried:
        def iteration(induction: ir.Value, values: list[ir.Value]) -> list[Any]:
            inner = state.like(values)
            self._iteration(inner, induction, in_tail)
            return inner.flat()

        loop = build.for_loop((lower, upper, self.step), state.flat(), iteration)
        factor = self.shape.unroll(self.trips, in_tail)
        if factor > 1:
            unroll = ir.IntegerAttr.get(build.integer(64), factor)
            loop.operation.attributes[UNROLL] = unroll
        return state.like(list(loop.results))

    # -- one iteration ---------------------------------------------------------------

    def _iteration(self, state: Carried, induction: ir.Value, in_tail: bool) -> None:
        """One iteration of all streams; `state` becomes that of the next."""

        def guard(tiles: int) -> Any:
            predicated = in_tail and tiles > 0 and not self.shape.wraps
            return self._runs(induction, tiles) if predicated else True

        def copy(tile: int, part: range) -> None:
            if self.shape.slots:
                later = tile + self.shape.slots - 1
                whole = not in_tail and not self.shape.wraps
                self._copy_tile(state, induction, later, guard(later), whole, part)

        numbers = self.streams.compute_arguments
        mapping = self._stream_values(numbers, state.compute, induction)
        started = 0
        for number, nodes in enumerate(self.compute):
            tile, step = divmod(number + self.shape.load_lookahead, self.shape.steps)
            if step == 0 and (self.shape.slots or self.shape.load_lookahead):
                self._start_tile(state, induction, tile, guard)
                started = tile
                if not (self.shape.copies_last or self.shape.in_place):
                    copy(tile, self.all_copies)
            if self.shape.load_lookahead:
                self._load(state, induction, tile, step, guard)
                loaded = zip(self.reads[number], state.fragments.pop(0), strict=True)
                mapping.update((read.results[0], one) for read, one in loaded)
            for place, node in enumerate(nodes):
                for part in self.issued.get(place, ()):
                    copy(started, part)
                if not (node.results and node.results[0] in self.known):
                    copy_node(node, mapping)
            for part in self.issued.get(len(nodes), ()):
                copy(started, part)
        if self.shape.copies_last:
            copy(started, self.all_copies)
        after = (self.yielded[number] for number in numbers)
        state.compute = [mapping.get(value, value) for value in after]

    def _start_tile(
        self,
        state: Carried,
        induction: ir.Value,
        tile: int,
        guard: _Guard,
        first: bool = False,
    ) -> None:
        """Advance the load stream to the tile that is `tile` after `induction`.

        Wait for that tile; the slot of the tile before it may be filled again.
        """
        if self.shape.load_lookahead and not first:
            before = self._index(state.load_index, induction, tile - 1)
            numbers = self.streams.load_arguments
            following = self.next_load.build(
                self._stream_values(numbers, state.load, before)
            )
            state.load = _chosen(guard(tile), following, state.load)
            state.load_index = self._next_index(state.load_index)
            state.loading = None
        if not self.shape.slots:
            return
        if not first:
            primitives.release()
        primitives.wait(state.groups.pop(0))
        primitives.acquire()

    def _copy_tile(
        self,
        state: Carried,
        induction: ir.Value,
        tile: int,
        guard: ir.Value,
        whole: bool,
        part: range,
    ) -> None:
        """Issue copies of one tile; the last ends their commit group.

        whole: whether the copied step of the loop is known to be whole
        part:  the copies, by number
        """
        numbers = self.streams.copy_arguments
        index = self._index(state.copy_index, induction, tile)
        before = state.copy

        def values() -> dict[Any, Any]:
            return self._stream_values(numbers, before, index)

        def issue() -> list[Any]:
            mapping = values()
            if whole:
                mapping.update(dict.fromkeys(self.streams.remaining_extents, self.step))
            for number in part:
                form = self.streams.copies[number]
                self.copy_addresses[number].build(mapping)
                with form.op.location:
                    issue_copy(form, mapping)
            return self.next_copy.build(mapping) if self.streams.copies_load else []

        # What is loaded for the next tile is so only where the original loop does.
        loaded = _guarded(guard, issue, before if self.streams.copies_load else [])
        if part.stop < len(self.streams.copies):
            return
        state.groups.append(primitives.commit())
        state.copy = loaded or self.next_copy.build(values())
        state.copy_index = self._next_index(state.copy_index)

    def _load(
        self, state: Carried, induction: ir.Value, tile: int, step: int, guard: _Guard
    ) -> None:
        """Load the fragments of one step of the load stream's tile."""
        if state.loading is None:
            state.loading = self._tile_values(state, induction, tile, guard(tile))
        self.read_addresses[step].build(state.loading)
        for read in self.reads[step]:
            copy_node(read, state.loading)
        loaded = [state.loading[read.results[0]] for read in self.reads[step]]
        state.fragments.append(loaded)

    def _tile_values(
        self, state: Carried, induction: ir.Value, tile: int, exists: ir.Value
    ) -> dict[Any, Any]:
        """The load stream's values at its tile.

        Where the tile does not exist, the stream stays at the last one, whose slot is
        filled: fragments loaded there are never used, and no branch is needed.
        """
        index = self._index(state.load_index, induction, tile)
        if exists is not True:
            (index,) = _chosen(exists, [index], [self._last_index()])
        return self._stream_values(self.streams.load_arguments, state.load, index)

    def _last_index(self) -> Any:
        """The loop's index in its last iteration."""
        span = build.sub(build.sub(self.upper, self.lower), 1)
        return build.add(self.lower, build.mul(build.div(span, self.step), self.step))

    def _index(self, own: list[ir.Value], induction: ir.Value, tile: int) -> Any:
        """The index of a stream's tile: its own where it wraps around."""
        return own[0] if own else prefetched_index(induction, tile, self.step)

    def _next_index(self, own: list[ir.Value]) -> list[Any]:
        return [index_around(one, self.lower, self.upper, self.step) for one in own]

    def _stream_values(
        self, numbers: tuple[int, ...], values: list[ir.Value], index: ir.Value
    ) -> dict[Any, Any]:
        """The loop's arguments for a stream at `index`."""
        keys = (argument(self.loop, number) for number in numbers)
        own = dict(zip(keys, values, strict=True))
        return {self.induction: index, **own, **self.known}


def _guarded(
    guard: ir.Value, make: Callable[[], list[Any]], otherwise: list[Any]
) -> list[Any]:
    """What `make` builds, under the predicate `guard` unless that is True.

    otherwise: the values where it is false
    """
    if guard is True:
        return make()
    kinds = [value.type for value in otherwise]
    return build.branch(guard, make, (lambda: otherwise) if kinds else None, kinds)


def _chosen(condition: ir.Value, those: list[Any], others: list[Any]) -> list[Any]:
    """`those` where `condition` holds or is True, else `others`."""
    if condition is True:
        return those
    pairs = zip(those, others, strict=True)
    return [arith.select(condition, one, other) for one, other in pairs]
