"""The arithmetic of one pipeline: how far its streams run ahead, and for how long."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Shape:
    """How the streams of one loop stand to each other; tiles are its iterations."""

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
    def copies_prefetched(self) -> int:
        """Iterations between a tile's copy and its use."""
        return self.entered + self.slots - 1

    @property
    def lookahead(self) -> int:
        """Iterations that need predicates at the end: how far streams are ahead."""
        if self.wraps:
            return 0
        return max(self.entered, self.copies_prefetched + self.ragged)

    @property
    def round(self) -> int:
        """Iterations after which slots and fragments stand where they stood."""
        return self.slots or self.ahead + 1

    def steady_trips(self, trips: int) -> int:
        """Of `trips` iterations, those without an end in sight, in whole rounds."""
        return max(0, trips - self.lookahead) // self.round * self.round

    def unroll(self, trips: int | None, in_tail: bool) -> int:
        """By what the steady state, or the tail, of `trips` iterations is unrolled.

        A short loop is all tail; unrolled, its predicates fold away.
        """
        if not in_tail:
            return self.round
        return trips if trips and not self.steady_trips(trips) else 1
