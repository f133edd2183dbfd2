"""Where copied bytes come from, and whether each load reads its turn's.

A copy leaves its *source* with the bytes: a global address, as a sum of symbols, of
which the turn is one, plus a number. A load is *steady* if what it reads comes, in turn
n, from where the first turn's does plus n times a step: from the tile that belongs to
the turn, with the same distances between threads. Bytes that threads store have no
source, and are not asked for one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from alcop_mlir.certificate.linear import Linear
from alcop_mlir.certificate.values import Spread

UNKNOWN, STORED = 0, 1  # numbers of no source
MOST_APART = 4  # turns of an innermost loop that are told apart: what was copied before


@dataclass(frozen=True, eq=False)
class View:
    """What one load has read: source and place of each cell, in some turns."""

    turns: tuple[tuple[int, int], ...]
    sources: np.ndarray
    places: np.ndarray


class Sources:
    """All sources by number, and the views of each load.

    unsure: loads that read bytes of unknown source
    """

    def __init__(self) -> None:
        self.terms: list[Mapping[str, int]] = [{}, {}]
        self._numbers: dict[tuple[tuple[str, int], ...], int] = {}
        self.views: dict[int, dict[bytes, View]] = {}
        self.unsure: set[int] = set()

    def number(self, terms: Mapping[str, int]) -> int:
        """Of a sum of symbols."""
        key = tuple(sorted((s, c) for s, c in terms.items() if c))
        if key not in self._numbers:
            self._numbers[key] = len(self.terms)
            self.terms.append(dict(key))
        return self._numbers[key]

    def of_threads(self, value: Spread | None, count: int) -> np.ndarray:
        """The source of each thread's address."""
        if value is None:
            return np.full(count, UNKNOWN, np.int32)
        names = sorted(value.terms)
        if not names:
            return np.full(count, self.number({}), np.int32)
        rows = np.stack([value.terms[n] for n in names], axis=1)
        if (rows == rows[0]).all():
            first = dict(zip(names, rows[0].tolist(), strict=True))
            return np.full(count, self.number(first), np.int32)
        kinds, which = np.unique(rows, axis=0, return_inverse=True)
        numbers = [
            self.number(dict(zip(names, row.tolist(), strict=True))) for row in kinds
        ]
        return np.array(numbers, np.int32)[which.ravel()]

    def replaced(
        self,
        sources: np.ndarray,
        places: np.ndarray,
        change: Callable[[Linear], Linear | None],
    ) -> None:
        """Other sources for all that a change makes others of; None for unknown."""
        before = sources.copy()
        for number in np.unique(before):
            if number in (UNKNOWN, STORED):
                continue
            term = change(Linear(self.terms[number]))
            at = before == number
            sources[at] = UNKNOWN if term is None else self.number(term.terms)
            places[at] += 0 if term is None else term.constant
        places[sources == UNKNOWN] = 0

    def see(
        self,
        pc: int,
        sources: np.ndarray,
        places: np.ndarray,
        turns: Mapping[int, int],
    ) -> None:
        """A load has read cells with these sources."""
        is_copy = sources != STORED
        if (sources == UNKNOWN).any():
            self.unsure.add(pc)
        elif is_copy.any():
            view = View(tuple(sorted(turns.items())), sources[is_copy], places[is_copy])
            key = f"{view.turns}".encode() + b"".join(
                one.tobytes() for one in (view.sources, view.places)
            )
            self.views.setdefault(pc, {})[key] = view

    def steps(self) -> dict[int, dict[str, int]] | None:
        """By load, what a turn of each loop adds; None where one is not steady."""
        if self.unsure:
            return None
        found: dict[int, dict[str, int]] = {}
        for pc, views in self.views.items():
            steps = self._steps(views)
            if steps is None:
                return None
            found[pc] = steps
        return found

    def _steps(self, views: Mapping[bytes, View]) -> dict[str, int] | None:
        parts = [self._parted(view) for view in views.values()]
        found = [one for one in parts if one is not None]
        if len(found) < len(parts):
            return None
        steps: dict[str, int] = {}
        for own, _ in found:
            for name, step in own.items():
                if steps.setdefault(name, step) != step:
                    return None
        first: View | None = None
        for own, view in sorted(found, key=lambda one: one[1].turns):
            _add_steps(steps, own, first, view)
            moved = _at_start(steps, own, view)
            first = first or moved
            if moved is None or first is None or not _is_same(first, moved):
                return None
        return steps

    def _parted(self, view: View) -> tuple[dict[str, int], View] | None:
        """What turns add, if that is the same in all threads, and the rest."""
        rest = view.sources.copy()
        own: list[dict[str, int]] = []
        for number in np.unique(rest):
            terms = self.terms[number]
            own.append({s: c for s, c in terms.items() if _is_turn(s)})
            left = {s: c for s, c in terms.items() if not _is_turn(s)}
            rest[view.sources == number] = self.number(left)
        if any(one != own[0] for one in own):
            return None
        return own[0], View(view.turns, rest, view.places)


def _is_turn(symbol: str) -> bool:
    return symbol[0] == "n" and symbol[1:].isdigit()


def _add_steps(
    steps: dict[str, int], own: Mapping[str, int], first: View | None, view: View
) -> None:
    """A step that only known turns tell: from the first view to this one."""
    if first is None or len(first.places) != len(view.places):
        return
    for head, turn in view.turns:
        since = turn - dict(first.turns).get(head, 0)
        less = view.places - first.places
        name = f"n{head}"
        if name not in steps and since and not (less != less[0]).any():
            if not int(less[0]) % since:
                steps[name] = int(less[0]) // since


def _at_start(
    steps: Mapping[str, int], own: Mapping[str, int], view: View
) -> View | None:
    """The view as it would be in turn 0; None where its turn is not known."""
    places, turns = view.places, dict(view.turns)
    for name, step in steps.items():
        turn = turns.get(int(name[1:]))
        if name in own or not step:
            continue
        if turn is None:
            return None
        places = places - step * turn
    return View(view.turns, view.sources, places)


def _is_same(one: View, other: View) -> bool:
    if len(one.sources) != len(other.sources):
        return False
    return not (
        (one.sources != other.sources).any() or (one.places != other.places).any()
    )
