"""Builders of what warps do in their roles: `CopyingRole` and `ComputingRole`.

Both go through the iterations of one loop, and through the slots of one ring.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from alcop_mlir.analysis.ir.loops import (
    body,
    bounds,
    constant,
    init_args,
    terminator,
    trip_count,
    yielded,
)
from alcop_mlir.analysis.ir.slices import backward_slice, captured
from alcop_mlir.analysis.ir.synchronisation import SYNCHRONISATION
from alcop_mlir.bindings import arith, ir, nvvm
from alcop_mlir.errors import PassError
from alcop_mlir.frozen import frozen
from alcop_mlir.passes import build, edit
from alcop_mlir.transforms.roles.role_rings import (
    Ring,
    Signal,
    Turns,
    to_index,
    to_word,
)
from alcop_mlir.transforms.roles.tensor_loads import Cluster, TensorLoad

# Values of the program as it was, to those of a role.
Mapped = dict[Any, Any]


@frozen
class Frame:
    """A loop and what is around it.

    tiles:  a loop over tiles around it, or None
    before: ops before the loop that are built again for those who need them: all in the
            loop over tiles, else those that have effects
    behind: ops after the loop
    """

    loop: Any
    tiles: Any
    before: Sequence[Any]
    behind: Sequence[Any]

    @property
    def outermost(self) -> Any:
        """The op that the roles replace."""
        return self.loop if self.tiles is None else self.tiles

    def erase(self) -> None:
        """Erase what the roles do, users first."""
        if self.tiles is not None:
            self.tiles.erase()
            return
        for op in (*reversed(self.behind), self.loop, *reversed(self.before)):
            op.erase()

    def trips(self, mapped: Mapping[Any, Any]) -> Any:
        """How often the loop runs, in 32 bits."""
        known = trip_count(self.loop)
        if known is not None:
            return build.i32(known)
        lower, upper, step = (mapped.get(one, one) for one in bounds(self.loop))
        room = build.most(build.sub(upper, lower), 0)
        return to_word(arith.ceildivui(room, step))

    def index(self, number: ir.Value, mapped: Mapping[Any, Any]) -> Any:
        """The loop's index in the iteration of that number, of 32 bits."""
        lower, _, step = (mapped.get(one, one) for one in bounds(self.loop))
        return build.add(lower, build.mul(to_index(number), step))


@frozen
class CopyingRole:
    """One thread that fills slot after slot, as far as these are free."""

    ring: Ring
    frame: Frame
    loads: Sequence[TensorLoad]
    cluster: Cluster | None

    def build(self) -> None:
        """Build all tiles, from the first slot on; as if each had just been freed."""
        for load in self.loads:
            load.prefetch()
        slot, parity = build.i32(0), build.true()
        tiles = self.frame.tiles
        if tiles is None:
            self._tile({}, slot, parity)
            return

        def step(index: ir.Value, values: list[Any]) -> list[Any]:
            mapped = {body(tiles).arguments[0]: index}
            _clone_needed(self._known_before(), self.frame.before, body(tiles), mapped)
            slot, parity = values
            return self._tile(mapped, slot, parity)

        build.for_loop(bounds(tiles), [slot, parity], step)

    def _known_before(self) -> list[Any]:
        """What the copies of a tile need that is made before its loop.

        Not what accumulators start from: that may be read by warps that compute only.
        """
        loop, carried = self.frame.loop, self._carried()
        found = [one for load in self.loads for one in load.needed]
        found += [yielded(loop, number) for number in carried]
        ops, _ = backward_slice(found, body(loop))
        found += [one for op in ops for one in captured(op)]
        inits = init_args(loop)
        return [*found, *bounds(loop), *(inits[number] for number in carried)]

    def _tile(self, outer: Mapped, slot: ir.Value, parity: ir.Value) -> list[Any]:
        """Build the loop of a tile; the slot behind its last one, and its parity."""
        loop, inner = self.frame.loop, body(self.frame.loop)
        others = self._carried()
        inits = [outer.get(one, one) for one in init_args(loop)]

        def step(number: ir.Value, values: list[Any]) -> list[Any]:
            *state, slot, parity = values
            mapped = {**outer, inner.arguments[0]: self.frame.index(number, outer)}
            mapped |= {
                inner.arguments[one + 1]: value
                for one, value in zip(others, state, strict=True)
            }
            at = mapped[inner.arguments[self.ring.counter + 1]] = to_index(slot)
            self.ring.empty.wait(at, parity)
            self.ring.full.expect(at, sum(load.bytes for load in self.loads))
            ops = [one.operation for one in inner.operations]
            for load in self.loads:
                _clone_needed(load.needed, ops, inner, mapped)
                load.issue(mapped, at, self.ring.full, self.cluster)
            following = [yielded(loop, one) for one in others]
            _clone_needed(following, ops, inner, mapped)
            made = [mapped.get(value, value) for value in following]
            return [*made, *self.ring.next(slot, parity)]

        made = build.for_loop(
            (build.i32(0), self.frame.trips(outer), build.i32(1)),
            [*(inits[one] for one in others), slot, parity],
            step,
        )
        return list(made.results)[-2:]

    def _carried(self) -> list[int]:
        """Which carried values but the slot the copies need, now or later."""
        found = {self.ring.counter}
        pending = [value for load in self.loads for value in load.needed]
        while pending:
            _, arguments = backward_slice(pending, body(self.frame.loop))
            numbers = {a.arg_number - 1 for a in arguments if a.arg_number} - found
            found |= numbers
            pending = [yielded(self.frame.loop, number) for number in numbers]
        return sorted(found - {self.ring.counter})


@frozen
class ComputingRole:
    """Warps that read slot after slot, as these are filled, and free them.

    copies, inner: ops of the loop that the other role does, and that are unrolled
    in_flight:     iterations whose groups of wgmma one leaves unfinished
    held:          whether A is in registers: each step of `inner` is a group then
    signal:        how a warp says that it has read a slot
    turns:         the groups of warps that take tiles in turn; None where all compute
                   each tile
    """

    ring: Ring
    frame: Frame
    copies: Collection[Any]
    inner: Collection[Any]
    in_flight: int
    signal: Signal
    turns: Turns | None = None
    held: bool = False

    def build(self) -> None:
        """Build all tiles, from the first slot on."""
        slot, parity = build.i32(0), build.false()
        tiles = self.frame.tiles
        if tiles is None:
            self._tile({}, slot, parity)
            return
        if self.turns is not None:
            self._tiles_in_turn(self.turns, slot, parity)
            return

        def step(index: ir.Value, values: list[Any]) -> list[Any]:
            mapped = {body(tiles).arguments[0]: index}
            slot, parity = values
            return self._tile(mapped, slot, parity)

        build.for_loop(bounds(tiles), [slot, parity], step)

    def _tiles_in_turn(self, turns: Turns, slot: ir.Value, parity: ir.Value) -> None:
        """Build every other tile; the slots of those between are the other group's."""
        tiles, trips = self.frame.tiles, trip_count(self.frame.loop)
        assert trips is not None, self.frame.loop
        lower, upper, distance = bounds(tiles)
        lower = arith.select(turns.second, arith.addi(lower, distance), lower)
        behind = self.ring.skip(slot, parity, trips)
        begin = [
            arith.select(turns.second, late, early)
            for late, early in zip(behind, (slot, parity), strict=True)
        ]

        def step(index: ir.Value, values: list[Any]) -> list[Any]:
            mapped = {body(tiles).arguments[0]: index}
            slot, parity, turn = values
            slot, parity = self._tile(mapped, slot, parity, turn)
            following = arith.xori(turn, build.true())
            return [*self.ring.skip(slot, parity, trips), following]

        between = arith.addi(distance, distance)
        state = [*begin, turns.first_parity]
        build.for_loop((lower, upper, between), state, step)

    def _tile(
        self,
        mapped: Mapped,
        slot: ir.Value,
        parity: ir.Value,
        turn: ir.Value | None = None,
    ) -> list[Any]:
        """Build a tile; the slot behind its last one, and its parity.

        turn: the parity of the phase after which it is this group's turn
        """
        for op in self.frame.before:
            edit.clone(op, mapped)
        if self.turns is not None and turn is not None:
            self.turns.wait(turn)
        *results, slot, parity = self._loop(mapped, slot, parity)
        mapped.update(zip(self.frame.loop.results, results, strict=True))
        for op in self.frame.behind:
            edit.clone(op, mapped)
        return [slot, parity]

    def _loop(self, mapped: Mapped, slot: ir.Value, parity: ir.Value) -> list[Any]:
        """Build the loop: its results, then the next slot and parity."""
        inits = [mapped.get(one, one) for one in init_args(self.frame.loop)]
        trips = trip_count(self.frame.loop)
        if trips == 0:
            return [*inits, slot, parity]

        def run() -> list[Any]:
            return self._iterations(mapped, inits, slot, parity)

        if trips is not None:
            return run()
        none = [*inits, slot, parity]
        some = arith.cmpi(
            arith.CmpIPredicate.ugt, self.frame.trips(mapped), build.i32(0)
        )
        return build.branch(some, run, lambda: none, [one.type for one in none])

    def _iterations(
        self, mapped: Mapped, inits: list[Any], slot: ir.Value, parity: ir.Value
    ) -> list[Any]:
        """The first iteration, then the others, of at least one."""
        lower = bounds(self.frame.loop)[0]
        first = self._iteration(mapped, mapped.get(lower, lower), inits, slot, parity)
        if not self.in_flight:
            self._finish(slot)
        olds = [slot] * self.in_flight
        slot, parity = self.ring.next(slot, parity)
        count = len(inits)

        def step(number: ir.Value, values: list[Any]) -> list[Any]:
            carried, (slot, parity, *olds) = values[:count], values[count:]
            index = self.frame.index(number, mapped)
            following = self._iteration(
                mapped, index, carried, slot, parity, self._free_registers
            )
            old, *olds = [*olds, slot]
            self._finish(old, number)
            return [*following, *self.ring.next(slot, parity), *olds]

        trips = self.frame.trips(mapped)
        loop = build.for_loop(
            (build.i32(1), trips, build.i32(1)), [*first, slot, parity, *olds], step
        )
        if self.turns is not None:
            # All slots of the tile have landed; its last wgmma is issued.
            self.turns.end()
        nvvm.WgmmaWaitGroupSyncOp(0)
        results = list(loop.results)
        if self.frame.tiles is not None:
            self._release(results[count + 2 :], trips)
            # Else ptxas takes the next slot for one of each lane, where it also comes
            # from a tile without iterations.
            nvvm.SyncWarpOp(build.i32(-1))
        return results[: count + 2]

    def _iteration(
        self,
        outer: Mapped,
        index: ir.Value,
        carried: list[Any],
        slot: ir.Value,
        parity: ir.Value,
        before_step: Callable[[], None] = lambda: None,
    ) -> list[Any]:
        """The arithmetic of one iteration; what it yields, but for the slot."""
        block = body(self.frame.loop)
        at, counter = to_index(slot), self.ring.counter
        self.ring.full.wait(at, parity)
        values = [*carried]
        values[counter] = at
        mapped = {**outer, **dict(zip(block.arguments, [index, *values], strict=True))}
        for op in (one.operation for one in list(block.operations)[:-1]):
            if op in self.inner:
                results = _unrolled(op, mapped, before_step)
                mapped.update(zip(op.results, results, strict=True))
            elif op not in self.copies and op.name not in SYNCHRONISATION:
                edit.clone(op, mapped)
        ends = terminator(self.frame.loop).operands
        made = [mapped.get(value, value) for value in ends]
        made[counter] = carried[counter]  # the ring counts
        return made

    def _free_registers(self) -> None:
        """Wait until the same step of the iteration before has read its fragments of A,
        which this one puts into the same registers.
        """
        if self.held and self.in_flight:
            steps = sum(trip_count(one) or 1 for one in self.inner)
            nvvm.WgmmaWaitGroupSyncOp(steps - 1)

    def _finish(self, old: ir.Value, number: ir.Value | None = None) -> None:
        """Wait for all but `in_flight` groups; free the slot that was read last.

        number: of the iteration; None of the first
        """
        if not (self.held and self.in_flight):  # else its steps have waited for that
            nvvm.WgmmaWaitGroupSyncOp(self.in_flight)
        late = None
        if self.in_flight > 1:
            # The first iterations free nothing.
            most = arith.CmpIPredicate.uge
            late = arith.cmpi(most, number, build.i32(self.in_flight))
        self.signal.free(old, late)

    def _release(self, olds: Sequence[Any], trips: ir.Value) -> None:
        """Free the slots that the last iterations have read, the oldest first."""
        for place, old in enumerate(olds):
            done = None
            if len(olds) > 1:
                least = build.i32(len(olds) - place)
                done = arith.cmpi(arith.CmpIPredicate.uge, trips, least)
            self.signal.free(old, done)


def _clone_needed(
    values: Sequence[Any], ops: Sequence[Any], block: ir.Block, mapped: Mapped
) -> None:
    """Clone those of `ops`, of `block`, that `values` are computed by."""
    needed, _ = backward_slice(list(values), block)
    for op in ops:
        if op in needed and not any(result in mapped for result in op.results):
            edit.clone(op, mapped)


def _unrolled(
    loop: ir.Operation, mapped: Mapping[Any, Any], before: Callable[[], None]
) -> list[Any]:
    """All iterations of a loop with constant bounds, one after the other.

    before: builds what comes before each
    """
    lower, _, step = (constant(bound) for bound in bounds(loop))
    trips = trip_count(loop)
    if trips is None or lower is None or step is None:
        raise PassError(loop, "is in a loop with roles, expected constant bounds")
    carried = [mapped.get(value, value) for value in init_args(loop)]
    for number in range(trips):
        before()
        values = [build.index(lower + number * step), *carried]
        own = {**mapped, **dict(zip(body(loop).arguments, values, strict=True))}
        carried = edit.inline(body(loop), own)
    return carried
