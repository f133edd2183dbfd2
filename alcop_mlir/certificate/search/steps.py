"""Proofs as a search leaves them, and as the steps that a checker goes through."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from alcop_mlir.checker.logic.facts import rounded
from alcop_mlir.checker.logic.terms import Term, plus


class Late(Exception):
    """There is no time left for a search."""


class NoSteps(Exception):
    """No row is there that names a symbol, where something is said of it."""


class Row:
    """A fact, and what it is made of; the text of each way is the checker's."""

    def __init__(self, term: Term, made: tuple[Any, ...] = ()):
        self.term, self.made = rounded(term), made

    @cached_property
    def direction(self) -> frozenset[tuple[str, int]]:
        """The term without its constant."""
        return frozenset((s, c) for s, c in self.term.items() if s and c)

    @cached_property
    def against(self) -> frozenset[tuple[str, int]]:
        """The opposite direction."""
        return frozenset((s, -c) for s, c in self.direction)


def total(*parts: tuple[Row, int]) -> Row:
    """A sum of rows, each so many times."""
    term: Term = {"": 0}
    for row, many in parts:
        term = plus(term, row.term, many)
    return Row(term, ("sum", parts))


@dataclass(frozen=True, eq=False)
class Split:
    """Each side is refuted; `clause` is a number, or a choice and rows with it."""

    clause: int | tuple[str, list[Row]]
    sides: list[list[Row]]
    trees: list[Any]


Tree = Row | Split


def steps(tree: Tree, query: list[Row]) -> list[Any]:
    """The steps of a proof."""
    return _Writer([*query]).proof(tree)


class _Writer:
    """Writes steps after those that left these rows."""

    def __init__(self, rows: list[Row]):
        self.rows = rows
        self.numbers = {id(row): number for number, row in enumerate(rows)}
        self.steps: list[Any] = []

    def proof(self, tree: Tree) -> list[Any]:
        if isinstance(tree, Row):
            self.number(tree)
            return self.steps
        if isinstance(tree.clause, int):
            step: list[Any] = [5, tree.clause]
        else:
            step = [6, *self.place(*tree.clause)]
        for side, sub in zip(tree.sides, tree.trees, strict=True):
            step.append(_Writer([*self.rows, *side]).proof(sub))
        self.steps.append(step)
        return self.steps

    def number(self, row: Row) -> int:
        if id(row) not in self.numbers:
            step = self._step(row)
            self.steps.append(step)
            self.numbers[id(row)] = len(self.rows)
            self.rows.append(row)
        return self.numbers[id(row)]

    def can(self, row: Row, met: set[int]) -> bool:
        """Whether all that a row is made of is there or can be made."""
        if id(row) in self.numbers:
            return True
        if not row.made or id(row) in met:
            return False
        met.add(id(row))
        kind, *rest = row.made
        if kind == "axiom":
            named = any(rest[0] in one.term for one in self.rows)
            return named or any(self.can(one, met) for one in rest[2])
        if kind == "sum":
            return all(self.can(one, met) for one, _ in rest[0])
        return kind == "fact" or self.can(rest[0], met)

    def place(self, symbol: str, homes: list[Row]) -> tuple[int, int]:
        """A row that names a symbol, and where; one is made if there is none."""
        named = (n for n, row in enumerate(self.rows) if symbol in row.term)
        number = next(named, None)
        if number is None:
            found = next((r for r in homes if self.can(r, set())), None)
            if found is None:
                raise NoSteps(symbol)
            number = self.number(found)
        row = self.rows[number].term
        return number, sorted(s for s in row if s).index(symbol)

    def _step(self, row: Row) -> list[Any]:
        kind, *rest = row.made
        if kind == "fact":
            return [0, rest[0]]
        if kind == "axiom":
            symbol, number, homes = rest
            return [1, *self.place(symbol, homes), number]
        if kind == "sum":
            return [2, *(x for one, many in rest[0] for x in (self.number(one), many))]
        if kind == "times":
            return [3, self.number(rest[0]), rest[1]]
        if kind == "lemma":
            fact, names, most, against, tree = rest
            number = self.number(fact)
            proof = _Writer([*self.rows, against]).proof(tree)
            return [4, number, names, most, proof]
        return [7, self.number(rest[0]), *map(self.number, rest[1])]
