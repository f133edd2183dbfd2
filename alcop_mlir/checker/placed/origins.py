"""Where elements are: what differs between blocks, told apart by their numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from alcop_mlir.checker.logic import terms
from alcop_mlir.checker.logic.terms import Term
from alcop_mlir.checker.machine.held import Frozen
from alcop_mlir.errors import NotPlacedError

_MOST_BLOCKS = 1 << 20


class Misplaced(Exception):
    """Something is not where the statement has it; or it is not known to be."""


class Origins:
    """Numbers that differ between blocks: a symbol `@3` stands for all of some.

    here: the blocks of the way that is gone; others do not matter
    key:  the same for the same blocks
    """

    def __init__(self, grid: tuple[int, int, int]):
        self.grid, self.blocks = grid, math.prod(grid)
        if self.blocks > _MOST_BLOCKS:
            raise NotPlacedError("too many blocks")
        axes = np.meshgrid(*map(np.arange, grid), indexing="ij")
        names = ("%ctaid.x", "%ctaid.y", "%ctaid.z")
        self._known = {n: a.ravel() for n, a in zip(names, axes, strict=True)}
        self._names: dict[bytes, str] = {}
        self._terms: dict[Frozen, np.ndarray] = {}
        self._keys: dict[bytes, int] = {}
        self._blocks = np.ones(grid, bool)
        self.here, self.key = self._blocks.ravel(), 0

    def go(self, blocks: np.ndarray) -> None:
        """To a way of these blocks."""
        if blocks is not self._blocks:
            self._blocks, self.here = blocks, blocks.ravel()
            self.key = self._keys.setdefault(blocks.tobytes(), len(self._keys) + 1)

    def is_same(self, one: Frozen, other: Frozen) -> bool:
        """Whether two terms are the same here."""
        if one == other:
            return True
        less = terms.minus(dict(one), dict(other))
        turns = {s: c for s, c in less.items() if is_turn(s)}
        rest = {s: c for s, c in less.items() if s not in turns}
        return not any(turns.values()) and not self.values(rest)[self.here].any()

    def shift(self, one: Frozen, other: Frozen) -> int | None:
        """By how much one term is more than another, where that is a number here."""
        found = {s: c for s, c in terms.minus(dict(one), dict(other)).items() if c}
        if any(map(is_turn, found)):
            return None
        less = self.values(found)[self.here]
        return int(less[0]) if less.size and (less == less[0]).all() else None

    def is_zero(self, term: Term) -> bool:
        """Whether a term, as of turns along the sum, is 0 here."""
        return self.is_same(terms.frozen(term), ())

    def values(self, term: Mapping[str, int]) -> np.ndarray:
        """What a term is in each block."""
        key = terms.frozen(dict(term))
        if key not in self._terms:
            found = np.full(self.blocks, term.get("", 0), np.int64)
            for symbol, factor in term.items():
                if symbol:
                    found = found + factor * self._of(symbol)
            self._terms[key] = found
        return self._terms[key]

    def _of(self, symbol: str) -> np.ndarray:
        if symbol not in self._known:
            raise Misplaced("a block's place depends on more than its number")
        return self._known[symbol]

    def term(self, values: np.ndarray) -> Term:
        """The term that is these numbers here: nothing where all are 0."""
        return self._named(np.where(self.here, values, 0))

    def spread(self, numbers: np.ndarray) -> Term:
        """The term that is these numbers along axes of the grid, in all threads."""
        assert numbers.shape[3:] == (1, 1)
        return self._named(np.broadcast_to(numbers[..., 0, 0], self.grid).ravel())

    def _named(self, values: np.ndarray) -> Term:
        if not values.any():
            return {}
        name = self._names.setdefault(values.tobytes(), f"@{len(self._names)}")
        self._known[name] = values
        return {name: 1}


def is_turn(symbol: str) -> bool:
    """Whether it is the turn of a loop."""
    return symbol[:1] == "n" and symbol[1:].isdigit()
