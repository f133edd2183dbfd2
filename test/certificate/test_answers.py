"""Answers of certificates: what they prove holds, and nothing else is accepted."""

from __future__ import annotations

import copy
import itertools
import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ring_kernels import Ring

from alcop_mlir.certificate.api import certify
from alcop_mlir.certificate.certificate import sealed
from alcop_mlir.certificate.search.answers import Found, answered
from alcop_mlir.certificate.state import Requirement
from alcop_mlir.checker.bounds.products import ProductFacts
from alcop_mlir.checker.check import check
from alcop_mlir.checker.logic import terms
from alcop_mlir.checker.logic.facts import Answers, Facts
from alcop_mlir.checker.logic.terms import Clause, Term
from alcop_mlir.errors import CertificateError

COUNT = int(os.environ.get("ALCOP_CERTIFICATE_QUESTIONS", "100"))
NAMES: tuple[str, ...] = ".a", ".b", "u1"
MOST = 3  # each name is in -MOST .. MOST, but .a from 0


def limited(facts: Facts) -> Facts:
    for name in NAMES:
        facts.limit(name, 0 if name == ".a" else -MOST, MOST)
    return facts


def drawn(rng: random.Random) -> tuple[list[Term], list[Clause]]:
    """Facts and clauses about the names, quotients, choices, and one times another."""
    half = terms.quotient({"u1": 1, ".b": 1, "": 0}, 2)
    least: Term = {".a": 1, "u1": -1, "": 0}
    side = [[least]], [[terms.opposite(least)]]
    smaller = terms.choice(*side, {"u1": 1}, {".a": 1})
    parts = [
        *({n: 1} for n in NAMES),
        half,
        smaller,
        terms.product({".a": 1}, {".b": 1}),
    ]

    def fact() -> Term:
        found = terms.number(rng.randrange(-6, 3))
        for part in rng.sample(parts, 2):
            found = terms.plus(found, part, rng.choice((-2, -1, 1, 2)))
        return found

    clauses = [[[fact()], [fact(), fact()]] for _ in range(rng.randrange(2))]
    return [fact() for _ in range(rng.randrange(1, 4))], clauses


def value(term: Term, at: dict[str, int]) -> int:
    found = terms.replaced(term, {n: terms.number(x) for n, x in at.items()})
    for symbol in [s for s in found if isinstance(s, terms.Choice)]:
        holds = all(value(f, at) >= 0 for f in symbol.true[0])
        side = symbol.first if holds else symbol.second
        rest = {s: c for s, c in found.items() if s != symbol}
        found = terms.plus(rest, side, found[symbol])
    return found[""]


def has_solution(facts: list[Term], clauses: list[Clause]) -> bool:
    spans = (range(0 if n == ".a" else -MOST, MOST + 1) for n in NAMES)
    for numbers in itertools.product(*spans):
        at: dict[str, int] = dict(zip(NAMES, numbers, strict=True))
        if all(value(f, at) >= 0 for f in facts) and all(
            any(all(value(f, at) >= 0 for f in one) for one in c) for c in clauses
        ):
            return True
    return False


@pytest.mark.parametrize("multiplies", [False, True])
def test_what_has_a_solution_is_not_refuted(multiplies: bool) -> None:
    """And much of what has none is; tampered proofs prove nothing that is wrong."""
    refuted = solved = 0
    for seed in range(COUNT):
        rng = random.Random(seed)
        facts, clauses = drawn(rng)
        found = Found()
        asked = limited(ProductFacts(found, 4) if multiplies else Facts(found))
        is_refuted = asked.excludes([facts[:1]], facts[1:], clauses)
        is_solved = has_solution(facts, clauses)
        assert not (is_refuted and is_solved), (seed, facts, clauses)
        refuted, solved = refuted + is_refuted, solved + is_solved
        other, others = facts[:-1] or drawn(rng)[0], clauses
        for proof in tampered(found.proofs, rng):
            given = Answers([proof], [0], [])
            again = limited(ProductFacts(given, 4) if multiplies else Facts(given))
            try:
                again.excludes([other[:1]], other[1:], others)
            except CertificateError:
                continue
            assert not has_solution(other, others), (seed, proof)
    assert refuted > (COUNT - solved) / 2


def tampered(proofs: list[Any], rng: random.Random) -> Iterator[Any]:
    """Each as it is, and with one number changed."""
    for proof in proofs:
        yield proof
        for _ in range(6):
            changed = copy.deepcopy(proof)
            place = changed
            while any(isinstance(one, list) for one in place):
                place = rng.choice([one for one in place if isinstance(one, list)])
            at = rng.randrange(len(place))
            if isinstance(place[at], int):
                place[at] += rng.choice((-1, 1))
                yield changed


LEAST = [[0, 0], [1, 0, 0, 0]]


@pytest.mark.parametrize(
    ("proof", "says"),
    [
        ([[2, 0, 1, 1, 1]], None),
        ([[2, 0, 1, 1, 2]], "does not prove"),
        ([[2, 0, -1, 1, 1]], "less than once"),
        ([[2, 0, 0.5, 1, 1]], "less than once"),
        ([[2, 0, 1]], "does not prove"),
        ([[2, 0]], "is none"),
        ([[0, 5]], "is none"),
        ([[1, 0, 0, 9]], "is none"),
        ([[3, 0, [".b"]]], "what may be negative"),
        ([[4, 0, [".a"], -9, []]], "does not prove"),
        ([[5, 0]], "is none"),
        ([[6, 0, 0]], "no choice"),
        ([[8, 0]], "unknown step"),
        ([[7, 0, 0]], "is none"),
        ([], "does not prove"),
        ("x", "is none"),
        (7, "is none"),
    ],
)
def test_steps(proof: Any, says: str | None) -> None:
    """Of the question whether .b is above 0 and below it."""
    facts = limited(Facts(Answers([proof], [0], [])))
    query: list[Term] = [{".b": 1, "": -1}, {".b": -1, "": -1}]
    if says is None:
        assert facts.excludes([query], [], [])
        return
    with pytest.raises(CertificateError, match=says):
        facts.excludes([query], [], [])


def test_numbers_of_threads() -> None:
    """Only where what is known of threads holds."""
    found = Found()
    facts = ProductFacts(found, 4)
    (name, _), _ = facts.of_threads(np.array([0, 1, 5, 9])).items()
    facts.limit("u1", 0, 6)
    below: Term = {name: -1, "": 5}
    asked: list[Term] = [{name: 1, "u1": -1, "": 0}, {"u1": 1, "": -6}]
    assert facts.excludes([[*asked, below]], [], [])
    assert not facts.excludes([asked], [], [])
    above: list[Term] = [asked[0], {"u1": 1, "": -4}]  # of the third, 4 or 5
    assert not facts.excludes([[*above, below]], [], [])


def test_a_side_holds_in_some_threads() -> None:
    """A copy of no bytes where the column is not there: the others' are below 3."""
    facts = ProductFacts(Found(), 4)
    (column, _), _ = facts.of_threads(np.array([0, 1, 2, 9])).items()
    (there, _), _ = facts.of_threads(np.array([1, 1, 1, 0])).items()
    test: Term = {there: 1, "": -1}
    bytes_ = terms.choice([[test]], [[terms.opposite(test)]], {"": 4}, terms.number(0))
    some = terms.plus(bytes_, terms.number(-1))
    assert facts.excludes([[{column: 1, "": -3}, some]], [], [])
    assert not facts.excludes([[{column: 1, "": -2}, some]], [], [])
    assert not facts.excludes([[{column: 1, "": -3}]], [], [])


@pytest.mark.parametrize("proofs", [[[], []], [[]], [], [[], [], []]])
def test_each_alternative_is_refuted(proofs: list[Any]) -> None:
    """Of a clause with two: a number that is not there refutes none."""
    never: list[Term] = [{"": -1}]
    facts = limited(Facts(Answers([[[5, 0, *proofs]]], [0], [])))
    question: tuple[Clause, list[Term], list[Clause]] = ([[]], [], [[never, never]])
    if len(proofs) == 2:
        assert facts.excludes(*question)
        return
    with pytest.raises(CertificateError, match="is none"):
        facts.excludes(*question)


def test_a_stored_certificate_is_checked_in_another_process() -> None:
    """Where texts have other hashes: questions come in the same order."""
    ring = Ring(4, 2)
    found = certify(ring.text(), requirements={"n": Requirement(0, 2**31 - 1)})
    assert found.certificate is not None
    whole = answered(ring.text(), found.certificate)
    assert whole["answers"]["asked"]
    code = (
        "import json, sys; from alcop_mlir.checker.check import check;"
        "check(*json.load(sys.stdin))"
    )
    for seed in "1", "2":
        subprocess.run(
            [sys.executable, "-c", code],
            input=json.dumps([ring.text(), whole]),
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=Path(__file__).parents[2],
            text=True,
            check=True,
        )


def test_answers_of_another_kernel_are_refused() -> None:
    """As all that is changed in them, but for other proofs of the same."""
    ring = Ring(3, 1)
    found = certify(ring.text(), requirements={"n": Requirement(0, 2**31 - 1)})
    assert found.certificate is not None
    whole = answered(ring.text(), found.certificate)
    less = {"proofs": [], "asked": [], "places": [], "turns": {}}
    for name in ("proofs", "asked", "places"):
        changed = {**whole["answers"], name: less[name]}
        with pytest.raises(CertificateError):
            check(ring.text(), sealed({**whole, "answers": changed}))
    with pytest.raises(CertificateError):
        check(ring.text(), sealed({**found.certificate, "answers": less}))
