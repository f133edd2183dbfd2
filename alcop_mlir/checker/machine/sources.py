"""Where copied bytes come from: each load reads, turn after turn, what belongs to it.

A source is a sum of symbols, and bytes are at an offset from it. The certificate says
of each load what a turn of each loop adds. Without what the turns add, all that a load
ever reads has to be the same, cell by cell.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from alcop_mlir.checker.logic import terms
from alcop_mlir.checker.logic.terms import Term
from alcop_mlir.checker.machine.arithmetic import Mixed
from alcop_mlir.checker.machine.cells import Cells
from alcop_mlir.errors import CertificateError

UNKNOWN, STORED = 0, 1
_OLD = 12  # groups: what is as old has no source any more


class Sources:
    """Of one check; steps: by load and loop what a turn adds, or None."""

    def __init__(self, steps: dict[int, dict[int, int]] | None):
        self.steps = steps
        self.known: list[Term] = [{}, {}]
        self.numbers: dict[Any, int] = {}
        self.first: dict[int, tuple[np.ndarray, np.ndarray]] = {}

    def number(self, term: Term) -> int:
        """Of a sum, without its constant."""
        key = terms.frozen({s: c for s, c in term.items() if s != ""})
        if key not in self.numbers:
            self.numbers[key] = len(self.known)
            self.known.append(dict(key))
        return self.numbers[key]

    def copied(
        self, cells: Cells, at: np.ndarray, threads: np.ndarray, value: Mixed | None
    ) -> None:
        """Cells get the source that the threads' addresses have; places are set."""
        if value is None:
            cells.source[at] = UNKNOWN
            return
        names = list(value.parts)
        shape = len(names), len(value.constant)
        parts = np.array([value.parts[n] for n in names], np.int64).reshape(shape)
        if (parts == parts[:, :1]).all():  # as where all threads copy of one tile
            rows, which = parts[:, :1], np.zeros(shape[1], np.int64)
        else:
            rows, which = np.unique(parts, axis=1, return_inverse=True)
        numbers = np.array(
            [
                self.number(dict(zip(names, row, strict=True)))
                for row in rows.T.tolist()
            ],
            cells.source.dtype,
        )
        cells.source[at] = numbers[np.ravel(which)][threads]

    def renamed(self, cells: Cells, values: dict[Any, Term], lost: set[str]) -> None:
        """Other terms for symbols; what names a lost one has no source any more."""
        before = cells.source.copy()
        for number in set(before.tolist()) - {UNKNOWN, STORED}:
            old = self.known[number]
            at = before == number
            if terms.inside(old) & lost:
                cells.source[at] = UNKNOWN
                continue
            new = terms.replaced(old, values)
            cells.source[at] = self.number(new)
            cells.place[at] += new.get("", 0)
        cells.place[cells.source == UNKNOWN] = 0

    def age(self, cells: Cells) -> None:
        """What was copied many groups ago is not followed any more."""
        old = (cells.age >= _OLD) & (cells.source != STORED)
        cells.source[old] = UNKNOWN

    def read(
        self, pc: int, cells: Cells, at: np.ndarray, turns: dict[int, int]
    ) -> None:
        """CertificateError where a load reads what is not its turn's."""
        at = at[cells.source[at] != STORED]
        if self.steps is None or not len(at):
            return
        sources, places = cells.source[at].copy(), cells.place[at].copy()
        steps = self.steps.get(pc)
        if steps is None or (sources == UNKNOWN).any():
            raise CertificateError("it is not known where a load's bytes come from")
        for number in set(sources.tolist()):
            here = sources == number
            term = dict(self.known[number])
            for head, step in steps.items():
                added = term.pop(f"n{head}", 0)
                if not added and step and head in turns:
                    places[here] -= step * turns[head]
                elif added != step:
                    raise CertificateError("a load reads what is not of its turn")
            sources[here] = -self.number(term)
        if any(n[0] == "n" and n[1:].isdigit() for n in self._names(sources)):
            raise CertificateError("a load depends on turns that are not listed")
        first = self.first.setdefault(pc, (sources, places))
        if not all(map(np.array_equal, first, (sources, places))):
            raise CertificateError("a load reads what is not of its turn")

    def _names(self, sources: np.ndarray) -> set[str]:
        every = [terms.inside(self.known[-n]) for n in set(sources.tolist())]
        return set().union(*every)
