"""What is known on a way with open sizes: facts and clauses, once each."""

from __future__ import annotations

from typing import NamedTuple

from alcop_mlir.checker.logic import terms
from alcop_mlir.checker.logic.terms import Clause, Term
from alcop_mlir.checker.machine.held import Frozen


class Ready(NamedTuple):
    """A clause as facts, with their texts; as alternatives; or no number holds it."""

    facts: list[tuple[str, Frozen, Term]]
    clause: dict[str, Clause]
    is_void: bool


def ready(clause: Clause) -> Ready:
    """A clause in which symbols have values."""
    left = [
        [f for f in one if not terms.is_constant(f)]
        for one in clause
        if not any(terms.is_constant(f) and f.get("", 0) < 0 for f in one)
    ]
    if len(left) == 1:
        return Ready([(terms.text(f), _way(f), f) for f in left[0]], {}, False)
    is_open = bool(left) and all(left)
    return Ready([], {terms.clause_text(left): left} if is_open else {}, not left)


class Known:
    """Facts and clauses, with values for symbols, once each; is_void: no number makes
    them all true.
    """

    def __init__(self) -> None:
        self.facts: dict[str, Term] = {}
        self.clauses: dict[str, Clause] = {}
        self.is_void = False
        self._least: dict[Frozen, int] = {}

    def refutes(self, facts: list[Term]) -> bool:
        """Whether one of these is against another one or what is known, as it stands;
        or they are against each alternative of a clause.
        """
        least: dict[Frozen, int] = {}
        for fact in facts:
            if self._is_against(fact, least):
                return True
            way, number = _way(fact), fact.get("", 0)
            least[way] = min(number, least.get(way, number))
        return any(
            all(any(self._is_against(f, least) for f in one) for one in clause)
            for clause in self.clauses.values()
        )

    def _is_against(self, fact: Term, others: dict[Frozen, int]) -> bool:
        back = tuple((s, -c) for s, c in _way(fact))
        known = [o[back] for o in (others, self._least) if back in o]
        return bool(known) and min(known) + fact.get("", 0) < 0

    def add(self, known: Ready) -> None:
        """This holds."""
        for text, way, fact in known.facts:
            number = fact.get("", 0)
            self._least[way] = min(number, self._least.get(way, number))
            self.facts[text] = fact
        self.clauses.update(known.clause)
        self.is_void |= known.is_void


def _way(fact: Term) -> Frozen:
    """A fact without its number."""
    return terms.frozen({s: c for s, c in fact.items() if s})
