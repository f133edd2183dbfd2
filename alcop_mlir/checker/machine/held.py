"""The tags of one state, where results are followed: see `placed.tags`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from alcop_mlir.checker.logic.terms import Term
from alcop_mlir.checker.machine.arithmetic import Value

Frozen = tuple[tuple[str, int], ...]


class Tags(NamedTuple):
    """Of a register in all threads, or of shared memory: by thread and granule."""

    number: np.ndarray
    place: np.ndarray


NO_TAGS = Tags(np.zeros(0, np.int32), np.zeros(0, np.int64))


@dataclass
class Held:
    """Tags of one state.

    stored: of each array, the term and numbers of elements, in each case
    kept:   at a listed state, numbers in registers that it does not list, where they
            are the same in all turns: addresses of results
    turns:  behind loops, how many there were before the last one
    given:  facts with which the way began
    bounds: what the turn before says of how many there are, where it went on
    blocks: those that are here
    told:   numbers in each block, turn and thread, where registers do not say them
    is_own: whether no other state has these tags of shared memory
    via:    by block where ways meet, from which one this way has come
    """

    registers: dict[str, Tags] = field(default_factory=dict)
    shared: Tags = NO_TAGS
    stored: tuple[tuple[str, Frozen, tuple[np.ndarray, ...]], ...] = ()
    kept: dict[str, Value] = field(default_factory=dict)
    turns: dict[str, Term] = field(default_factory=dict)
    given: list[Term] = field(default_factory=list)
    bounds: list[Term] = field(default_factory=list)
    blocks: np.ndarray = field(default_factory=lambda: np.ones((1, 1, 1), bool))
    told: dict[str, np.ndarray] = field(default_factory=dict)
    via: dict[int, int] = field(default_factory=dict)
    is_own: bool = False

    def __copy__(self) -> Held:
        """One that changes apart."""
        self.is_own = False
        own = {"registers": dict(self.registers), "told": dict(self.told)}
        return replace(self, given=list(self.given), **own)
