"""Finds what a checker asks for, and writes it into certificates.

A checker asks questions on its way; here they are answered by search, by the
elimination of Fourier and Motzkin with rounding to integers, and each answer is kept
with its proof, in the form that `checker/logic/facts.py` goes through.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Sequence
from math import inf
from typing import Any, TypeVar

from alcop_mlir.certificate.certificate import sealed
from alcop_mlir.certificate.search.columns import Recorded
from alcop_mlir.certificate.search.steps import Late, NoSteps, Row, steps
from alcop_mlir.certificate.search.turns import Turns, encoded
from alcop_mlir.certificate.search.witnesses import Search
from alcop_mlir.certificate.verdicts import OutOfTime
from alcop_mlir.checker.bounds.ways import Ways
from alcop_mlir.checker.check import check
from alcop_mlir.checker.form.certificate import read_certificate
from alcop_mlir.checker.form.statement import Statement
from alcop_mlir.checker.logic import terms
from alcop_mlir.checker.logic.facts import UNKNOWN, Answers, Facts, Replay
from alcop_mlir.checker.logic.terms import Clause, Term
from alcop_mlir.checker.ptx.text import read_kernel
from alcop_mlir.errors import CertificateError, NotPlacedError

_Shown = TypeVar("_Shown")
_MOST_RECENT = 6  # proofs that are tried before a search


class Found(Answers):
    """Answers that are searched for; each proof is kept once, and tried again: what is
    asked of one access is mostly proven as what was asked of the one before.

    known:   what was found before, by question
    windows: makes what all threads access of arrays that windows are moved over
    until:   the CPU time at which the search ends
    """

    def __init__(
        self,
        known: dict[Any, Any] | None = None,
        windows: Callable[[], Recorded] | None = None,
        until: float = inf,
    ) -> None:
        super().__init__([], [], [])
        self.until = until
        self._windows, self._recorded = windows, None
        self._known: dict[Any, Any] = {} if known is None else known
        self._numbers: dict[str, int] = {}
        self._vain: set[Any] = set()
        self._recent: deque[Any] = deque(maxlen=_MOST_RECENT)
        self._searched: Turns | None = None

    def proof(
        self, facts: Facts, query: list[Term], given: list[Term], clauses: list[Clause]
    ) -> Any:
        """A proof, or None."""
        key = (
            type(facts),
            tuple(map(terms.frozen, query)),
            tuple(map(terms.frozen, given)),
            tuple(map(terms.clause_text, clauses)),
        )
        found = self._known.get(key)
        if key not in self._known or not _proves(found, facts, query, given, clauses):
            found = self._known[key] = self._searched_for(facts, query, given, clauses)
        if found is None:
            self.asked.append(UNKNOWN)
            return None
        text = json.dumps(found)
        number = self._numbers.setdefault(text, len(self.proofs))
        if number == len(self.proofs):
            self.proofs.append(found)
        self.asked.append(number)
        return found

    def _searched_for(
        self, facts: Facts, query: list[Term], given: list[Term], clauses: list[Clause]
    ) -> Any:
        for proof in [*self._recent]:
            if _proves(proof, facts, query, given, clauses):
                self._recent.remove(proof)
                self._recent.appendleft(proof)
                return proof
        rows = list(map(Row, query))
        search = Search(facts, given, clauses, self._vain, self.until)
        try:
            tree = search.refuted(rows)
            found = None if tree is None else steps(tree, rows)
        except Late:
            raise OutOfTime from None
        except NoSteps:
            return None
        if found is not None:
            self._recent.appendleft(found)
        return found

    def place(self, count: int, fits: Callable[[int], bool]) -> int | None:
        """The first that fits; what was asked of others is not kept."""
        before = len(self.asked)
        for number in range(count):
            if fits(number):
                self.places.append(number)
                return number
            del self.asked[before:]
        return None

    def by(self, ways: Sequence[Callable[[], _Shown]]) -> _Shown:
        """By the first way that shows it; what was asked on others is not kept."""
        before = len(self.asked), len(self.places)
        first: CertificateError | None = None
        for self.way, one in enumerate(ways):
            try:
                return one()
            except CertificateError as error:
                if first is None and not isinstance(error, NotPlacedError):
                    raise
                first = first or error
            del self.asked[before[0] :], self.places[before[1] :]
        assert first is not None
        raise first

    def turn(self, head: int, ways: Ways) -> Any:
        """Searched for on ways of its own, whose questions are not kept."""
        if self._searched is None:
            self._searched = Turns(ways, Found(self._known, until=self.until))
        return self.turns.setdefault(head, encoded(self._searched.found[head]))

    def columns(self, pc: int) -> Any:
        """What the other operand's are in the same step of the kernel."""
        if self._recorded is None:
            assert self._windows is not None
            self._recorded = self._windows()
        return self.gathers.setdefault(pc, self._recorded.columns(pc))


def _listed(columns: list[Any]) -> list[Any]:
    *numbers, turns = columns
    return [*numbers, {str(head): step for head, step in turns.items()}]


def _proves(
    proof: Any,
    facts: Facts,
    query: list[Term],
    given: list[Term],
    clauses: list[Clause],
) -> bool:
    """Whether what was found before, maybe for another question, is a proof; ranges of
    names may be wider now.
    """
    try:
        if proof is not None:
            Replay(facts, given, clauses).refute(query, proof)
    except (CertificateError, LookupError, TypeError, ValueError):
        return False
    return True


def answered(
    ptx: str,
    certificate: dict[str, Any],
    known: dict[Any, Any] | None = None,
    until: float = inf,
) -> dict[str, Any]:
    """The certificate with answers, without states that a check does not meet, and
    without what it need not assume of counters.

    known: answers that were found of the same kernel, and what is found now
    until: the CPU time at which the search for them ends, by OutOfTime

    Raises CertificateError where the checker does not accept it.
    """

    def windows() -> Recorded:
        given = read_certificate(certificate, Answers([], [], []))
        assert isinstance(given.placed, Statement)
        return Recorded(read_kernel(ptx, given.entry), given, given.placed)

    found = Found(known, windows, until)
    checked = check(ptx, certificate, found, shares_stores=True)
    numbers = {number: place for place, number in enumerate(checked.met)}
    answers = {
        "proofs": found.proofs,
        "asked": found.asked,
        "places": [numbers[one] for one in found.places],
        "turns": {str(head): turn for head, turn in found.turns.items()},
        "way": found.way,
        "gathers": {str(pc): _listed(one) for pc, one in found.gathers.items()},
    }
    heads = [certificate["heads"][number] for number in checked.met]
    made = {"assumes": sorted(checked.assumed), "heads": heads, "answers": answers}
    return sealed({**certificate, **made})
