"""What a search for a proof has shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from alcop_mlir.certificate.heads import HeadState
from alcop_mlir.certificate.machine import Machine


@dataclass(frozen=True)
class Proof:
    """What a search has shown.

    heads: the states at heads, which cover all others
    hints: branches around what is not needed, which were not taken apart, and
        selections that were computed both ways
    unending: heads of loops that are not shown to end
    """

    machine: Machine
    heads: tuple[HeadState, ...]
    steps: Mapping[tuple[int, str], int | None]
    instructions: int
    restarts: int
    hints: frozenset[int]
    unending: frozenset[int]

    @cached_property
    def steady(self) -> dict[int, dict[str, int]] | None:
        """By load, what a turn of each loop adds to where its bytes come from."""
        machine = self.machine
        return machine.sources.steps() if machine.follows_sources else None
