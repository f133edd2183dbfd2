"""Make planned loops run as pipelines: prologue, steady state, tail.

Before:  scf.for %k { copy(%k) ; barrier ; scf.for %kk { f = read ; use(f) } ; barrier }
After:   copies of the first S-1 tiles ; wait ; first R-1 reads          // prologue
         scf.for %k { use ; [release, wait, acquire, copies, commit]
                      read of a later step ; use } {alcop.unroll = S}    // steady state
         scf.for %k { the same, copies predicated }                      // tail

The body is separated into streams, each with its own copy of the loop's index and of
the carried values it needs (slots, addresses). With E fragment steps per iteration and
R register stages, the load stream runs D = R-1 steps ahead of the arithmetic, over the
boundaries of tiles too: an inner pipeline is filled once and carried by the outer loop.
Where the load stream enters tile t it waits for t, and the copy stream then fills the
slot that t-1 left with tile t+S-1. One wait and one barrier per tile; at most S-2
younger groups are in flight at the wait.

The steady state runs whole rounds of the S slots, and only iterations in which no
stream has reached the end, so it needs no predicate. Where copies ask how much of a
step the loop has left, `min(step, upper - %k)`, it leaves one iteration more to the
tail, so that all its steps are whole. The tail commits empty groups, so that wait
counts stay what they are; its loads stay at the last tile. Any trip count is right, 0
included.

With `tail = "wrap"` in the plan no iteration has a predicate: at its end a stream goes
on from the loop's first tile, and what it copies there nobody uses (ALCOP's own form).
The loop is then followed by a wait for these copies, and guarded against not running.

Reads and erases `alcop.pipeline`. Writes `alcop.unroll` on loops that
alcop-unroll-steady-state may unroll by that factor without a remainder.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from alcop_mlir.analysis import copies
from alcop_mlir.analysis.copies import REGISTER, SHARED
from alcop_mlir.analysis.counters import period
from alcop_mlir.analysis.loops import (
    body,
    bounds,
    inits,
    loops_in,
    rests_of_steps,
    trip_count,
)
from alcop_mlir.analysis.streams import (
    Streams,
    addresses,
    argument,
    separate,
    yielded,
)
from alcop_mlir.bindings import arith, gpu, ir, scf
from alcop_mlir.dialects import alcop
from alcop_mlir.errors import PassError
from alcop_mlir.transforms import build
from alcop_mlir.transforms.asynchronous import issue_copy
from alcop_mlir.transforms.base import Pass
from alcop_mlir.transforms.fragment_steps import flattened_steps, is_carried
from alcop_mlir.transforms.stream_state import (
    Carried,
    advanced,
    evaluated,
    index_ahead,
    index_around,
)

BARRIER = "gpu.barrier"
UNROLL = "alcop.unroll"


@dataclass(frozen=True)
class ExpandPipelines(Pass):
    name = "alcop-expand-pipelines"
    anchor = "any"

    def run(self, op: Any) -> None:
        # Inner loops first: an outer one copies them as they then are.
        for loop in reversed(loops_in(op)):
            plan = alcop.get(loop, alcop.PipelineAttr)
            if plan is None or is_carried(plan):
                continue
            with loop.location, ir.InsertionPoint(loop):
                _expand(loop, plan)


@dataclass(frozen=True)
class _Shape:
    """The arithmetic of one pipeline; tiles are iterations of the loop."""

    slots: int  # S, or 0 where no shared buffer is pipelined
    ahead: int  # D = R - 1: steps that the load stream is ahead
    steps: int  # E: fragment steps per iteration
    wraps: bool  # the streams start again at the end, instead of predicates
    ragged: bool  # the copies of the last iteration are smaller

    @property
    def entered(self) -> int:
        """Tiles that the load stream entered before the first iteration."""
        return -(-self.ahead // self.steps)

    @property
    def copies_ahead(self) -> int:
        """Iterations between a tile's copy and its use."""
        return self.entered + self.slots - 1

    @property
    def lookahead(self) -> int:
        """Iterations that need predicates at the end: how far streams are ahead."""
        if self.wraps:
            return 0
        return max(self.entered, self.copies_ahead + self.ragged)

    @property
    def round(self) -> int:
        """Iterations after which slots and fragments stand where they stood."""
        return self.slots or self.ahead + 1


def _expand(loop: Any, plan: dict[str, Any]) -> None:
    steps = flattened_steps(loop)
    streams = separate(loop, steps)
    _check_slots(streams, plan.get(SHARED, 0))
    carried = any(streams.reads[0])
    register_stages = plan.get(REGISTER) or _inner_stages(streams)
    shape = _Shape(
        slots=plan.get(SHARED, 0),
        ahead=register_stages - 1 if carried else 0,
        steps=len(steps),
        wraps=plan.get("tail") == "wrap",
        ragged=bool(streams.copies and rests_of_steps(loop)),
    )
    results = _Expansion(streams, shape).build()
    for number, value in results.items():
        loop.results[number].replace_all_uses_with(value)
    loop.erase()


def _check_slots(streams: Streams, slots: int) -> None:
    """The copies must fill one slot after the other, or they would overwrite tiles."""
    counted = {period(streams.loop, number) for number in streams.copy_arguments}
    if slots and slots not in counted:
        raise PassError(
            streams.loop,
            f"its buffers have no {slots} slots, expected alcop-multi-buffer before "
            "this pass",
        )


def _inner_stages(streams: Streams) -> int:
    reads = streams.reads[0]
    if not reads:
        return 1
    plan = alcop.get(reads[0], alcop.PipelineAttr)
    return plan[REGISTER] if plan else 1


class _Expansion:
    """Builds the pipelined form of one loop before it."""

    def __init__(self, streams: Streams, shape: _Shape):
        self.streams = streams
        self.shape = shape
        self.loop = streams.loop
        self.lower, self.upper, self.step = bounds(self.loop)
        self.trips = trip_count(self.loop)

    def build(self) -> dict[int, Any]:
        """Build all; the values that replace the loop's results, by number."""
        numbers = self.streams.compute_arguments
        if (self.shape.wraps or self.shape.ahead) and not self.trips:
            # A stream that wraps around, or loads ahead, needs a first tile.
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
            state = self._loop(self.lower, middle, state, in_tail=False)
        if static is None or static != self.trips:
            state = self._loop(middle, self.upper, state, in_tail=True)
        if self.shape.slots:
            alcop.ConsumerReleaseOp()
        if self.shape.wraps and state.groups:
            alcop.ConsumerWaitOp(state.groups[-1])
        if copies.writes_globally(self.loop) and copies.ops_inside(self.loop, BARRIER):
            # The last of the barriers that are dropped ordered these writes, too.
            gpu.barrier()
        return state.compute

    def _if_it_runs(self) -> list[Any]:
        start = [inits(self.loop)[n] for n in self.streams.compute_arguments]
        runs = build.less(self.lower, self.upper)
        kinds = [value.type for value in start]
        choice = scf.IfOp(runs, kinds, has_else=bool(kinds))
        with ir.InsertionPoint(choice.then_block):
            scf.YieldOp(self._pipeline())
        if kinds:
            with ir.InsertionPoint(choice.else_block):
                scf.YieldOp(start)
        return list(choice.results)

    # -- trip counts -----------------------------------------------------------------

    def _steady_trips(self) -> Any:
        """Iterations without an end in sight, in whole rounds; int where constant."""
        rounds, lookahead = self.shape.round, self.shape.lookahead
        if self.trips is not None:
            return max(0, self.trips - lookahead) // rounds * rounds
        trips = arith.ceildivsi(arith.subi(self.upper, self.lower), self.step)
        full = arith.maxsi(arith.subi(trips, build.index(lookahead)), build.index(0))
        return build.mul(arith.divui(full, build.index(rounds)), build.index(rounds))

    def _after(self, trips: Any) -> Any:
        """The loop's index after so many iterations."""
        if isinstance(trips, int):
            if trips == 0:
                return self.lower
            trips = build.index(trips)
        return build.add(self.lower, build.mul(trips, self.step))

    def _runs(self, induction: Any, tiles: int) -> Any:
        """Predicate: the iteration `tiles` after the one at `induction` exists."""
        return build.less(index_ahead(induction, tiles, self.step), self.upper)

    # -- the three parts -------------------------------------------------------------

    def _prologue(self) -> Carried:
        shape = self.shape
        start = inits(self.loop)
        state = Carried(
            compute=[start[n] for n in self.streams.compute_arguments],
            load=[start[n] for n in self.streams.load_arguments],
            copy=[start[n] for n in self.streams.copy_arguments],
        )
        if shape.wraps:
            state.copy_index = [self.lower]
            state.load_index = [self.lower]
        if shape.slots:
            # An outer loop may have read the slots the last time round.
            alcop.ProducerAcquireOp()
        for tile in range(shape.slots - 1):
            whole = self.trips is not None and tile + 1 < self.trips
            guard = self._prologue_guard(tile)
            self._copy_tile(state, self.lower, tile, guard, whole)
        for number in range(shape.ahead):
            tile, step = divmod(number, shape.steps)
            if step == 0:
                self._enter_tile(
                    state, self.lower, tile, self._prologue_guard, first=tile == 0
                )
            exists = self._prologue_guard(tile)
            state.fragments.append(self._load(state, self.lower, tile, step, exists))
        return state

    def _prologue_guard(self, tile: int) -> Any:
        """True where the tile surely exists, else its predicate."""
        if self.shape.wraps or (self.trips is not None and tile < self.trips):
            return True
        if self.shape.ahead and tile == 0:
            return True  # see build: all of this stands under that predicate
        return self._runs(self.lower, tile)

    def _loop(self, lower: Any, upper: Any, state: Carried, in_tail: bool) -> Carried:
        def iteration(induction: Any, values: list[Any]) -> list[Any]:
            inner = state.like(values)
            self._iteration(inner, induction, in_tail)
            return inner.flat()

        loop = build.for_loop((lower, upper, self.step), state.flat(), iteration)
        # A short loop is all tail; unrolled, its predicates fold away.
        factor = self.shape.round
        if in_tail:
            factor = self.trips if self.trips and not self._steady_static() else 1
        if factor > 1:
            loop.operation.attributes[UNROLL] = ir.IntegerAttr.get(
                ir.IntegerType.get_signless(64), factor
            )
        return state.like(list(loop.results))

    def _steady_static(self) -> bool:
        return self.trips is not None and (
            self.trips - self.shape.lookahead >= self.shape.round
        )

    # -- one iteration ---------------------------------------------------------------

    def _iteration(self, state: Carried, induction: Any, in_tail: bool) -> None:
        """One iteration of all streams; `state` becomes that of the next."""

        def guard(tiles: int) -> Any:
            predicated = in_tail and tiles > 0 and not self.shape.wraps
            return self._runs(induction, tiles) if predicated else True

        mapping = self._arguments(self.streams.compute_arguments, state.compute)
        mapping[body(self.loop).arguments[0]] = induction
        for number, ops in enumerate(self.streams.compute):
            tile, step = divmod(number + self.shape.ahead, self.shape.steps)
            if step == 0 and (self.shape.slots or self.shape.ahead):
                whole = not in_tail and not self.shape.wraps
                self._enter_tile(state, induction, tile, guard, whole=whole)
            if self.shape.ahead:
                fragments = self._load(state, induction, tile, step, guard(tile))
                state.fragments.append(fragments)
                self._use(state.fragments.pop(0), number, mapping)
            for op in ops:
                build.clone(op, mapping)
        after = (yielded(self.loop, n) for n in self.streams.compute_arguments)
        state.compute = [mapping.get(value, value) for value in after]

    def _use(self, fragments: list[Any], step: int, mapping: dict[Any, Any]) -> None:
        for read, fragment in zip(self.streams.reads[step], fragments, strict=True):
            mapping[read.results[0]] = fragment

    def _enter_tile(
        self,
        state: Carried,
        induction: Any,
        tile: int,
        guard: Any,
        first: bool = False,
        whole: bool = False,
    ) -> None:
        """The load stream goes on to the tile that is `tile` after `induction`.

        It waits for it, and its predecessor's slot is filled again; by a `whole` step
        of the loop where that is known.
        """
        if self.shape.ahead and not first:
            before = self._index(state.load_index, induction, tile - 1)
            numbers = self.streams.load_arguments
            following = advanced(self.loop, numbers, state.load, before)
            state.load = _chosen(guard(tile), following, state.load)
            state.load_index = self._next_index(state.load_index)
        if not self.shape.slots:
            return
        if not first:
            alcop.ConsumerReleaseOp()
        alcop.ConsumerWaitOp(state.groups.pop(0))
        alcop.ProducerAcquireOp()
        next_tile = tile + self.shape.slots - 1
        self._copy_tile(state, induction, next_tile, guard(next_tile), whole)

    def _copy_tile(
        self, state: Carried, induction: Any, tile: int, guard: Any, whole: bool
    ) -> None:
        """Issue the copies of one tile and commit them as a group."""

        numbers = self.streams.copy_arguments
        index = self._index(state.copy_index, induction, tile)

        def issue() -> None:
            for form in self.streams.copies:
                mapping = self._stream_values(numbers, state.copy, index)
                if whole:
                    rests = rests_of_steps(self.loop)
                    mapping.update(dict.fromkeys(rests, self.step))
                evaluated(self.loop, addresses(form), mapping)
                with form.op.location:
                    issue_copy(form, mapping)

        _guarded(guard, issue)
        state.groups.append(alcop.ProducerCommitOp(alcop.group_type()).results[0])
        state.copy = advanced(self.loop, numbers, state.copy, index)
        state.copy_index = self._next_index(state.copy_index)

    def _load(
        self, state: Carried, induction: Any, tile: int, step: int, exists: Any
    ) -> list[Any]:
        """The fragments of one step of the load stream's tile.

        Where the tile does not exist the stream stays at the last one, whose slot is
        whole: what is loaded there nobody uses, and no branch is needed.
        """
        reads = self.streams.reads[step]
        index = self._index(state.load_index, induction, tile)
        if exists is not True:
            (index,) = _chosen(exists, [index], [self._last_index()])
        mapping = self._stream_values(self.streams.load_arguments, state.load, index)
        evaluated(self.loop, [v for read in reads for v in read.operands], mapping)
        return [self._read(read, mapping) for read in reads]

    def _last_index(self) -> Any:
        """The loop's index in its last iteration."""
        span = arith.subi(arith.subi(self.upper, self.lower), build.index(1))
        return build.add(self.lower, build.mul(arith.divui(span, self.step), self.step))

    @staticmethod
    def _read(read: Any, mapping: dict[Any, Any]) -> Any:
        copy = build.clone(read, mapping)
        alcop.drop(copy, alcop.PipelineAttr)
        return copy.results[0]

    def _index(self, own: list[Any], induction: Any, tile: int) -> Any:
        """The index of a stream's tile: its own where it wraps around."""
        return own[0] if own else index_ahead(induction, tile, self.step)

    def _next_index(self, own: list[Any]) -> list[Any]:
        return [index_around(one, self.lower, self.upper, self.step) for one in own]

    def _stream_values(
        self, numbers: tuple[int, ...], values: list[Any], index: Any
    ) -> dict[Any, Any]:
        mapping = self._arguments(numbers, values)
        mapping[body(self.loop).arguments[0]] = index
        return mapping

    def _arguments(self, numbers: tuple[int, ...], values: list[Any]) -> dict[Any, Any]:
        keys = (argument(self.loop, number) for number in numbers)
        return dict(zip(keys, values, strict=True))


def _guarded(guard: Any, make: Callable[[], None]) -> None:
    """What `make()` builds, under the predicate `guard` unless that is True."""
    if guard is True:
        make()
        return
    choice = scf.IfOp(guard)
    with ir.InsertionPoint(choice.then_block):
        make()
        scf.YieldOp([])


def _chosen(condition: Any, those: list[Any], others: list[Any]) -> list[Any]:
    """`those` where `condition` holds or is True, else `others`."""
    if condition is True:
        return those
    pairs = zip(those, others, strict=True)
    return [arith.select(condition, one, other) for one, other in pairs]
