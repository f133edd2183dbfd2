"""Lookaheads of the streams of one pipeline, and what they make of its trip count."""

from __future__ import annotations

from alcop_mlir.frozen import frozen


@frozen
class Shape:
    """Slots and lookaheads of one pipelined loop, each iteration of which is a tile."""

    slots: int  # S, or 0 where no shared buffer is pipelined
    load_lookahead: int  # D = R - 1: of the load stream, in fragment steps
    steps: int  # E: fragment steps per iteration
    wraps: bool  # the streams start again at the end, instead of predicates
    ragged: bool  # the copies of the last iteration are smaller
    fetched: int = 0  # the largest lead of what is no copy, in iterations
    stored: int = 0  # slots that ordinary stores fill
    copies_last: bool = False  # an iteration issues its copies after its arithmetic
    in_place: bool = False  # ... where they are in its body
    reuses: bool = False  # fetches follow the use of earlier ones

    @property
    def tiles_prefetched(self) -> int:
        """Tiles whose first fragments are loaded before the first iteration."""
        return -(-self.load_lookahead // self.steps)

    @property
    def copies_prefetched(self) -> int:
        """Iterations between a tile's copy and its use."""
        return self.tiles_prefetched + self.slots - 1

    @property
    def lookahead(self) -> int:
        """The least iterations of the tail: the largest lookahead of a stream."""
        if self.wraps:
            return 0
        copied = self.copies_prefetched + self.ragged
        fetched = self.fetched and self.fetched + self.ragged
        return max(self.tiles_prefetched, copied, fetched)

    @property
    def slot_period(self) -> int:
        """Iterations after which slots and fragment registers repeat."""
        fetched = self.fetched - (self.reuses and self.fetched > 0)
        ahead = max(self.load_lookahead, fetched) + 1
        return self.slots or self.stored or ahead

    def steady_trips(self, trips: int) -> int:
        """The iterations before the tail, a multiple of the slot period."""
        return max(0, trips - self.lookahead) // self.slot_period * self.slot_period

    def unroll(self, trips: int | None, in_tail: bool) -> int:
        """The unroll factor of the steady state, or tail, of `trips` iterations.

        A short loop has a tail only; unrolled, its predicates fold away.
        """
        if not in_tail:
            return self.slot_period
        return trips if trips and not self.steady_trips(trips) else 1
