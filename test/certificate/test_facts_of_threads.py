"""Facts about numbers that each thread has for itself: what no thread can meet."""

from __future__ import annotations

import itertools
import os
import random
from typing import Any

import numpy as np

from alcop_mlir.certificate.search.answers import Found
from alcop_mlir.checker.bounds.products import ProductFacts
from alcop_mlir.checker.logic import terms
from alcop_mlir.checker.logic.facts import Answers
from alcop_mlir.checker.logic.terms import Term

COUNT = int(os.environ.get("ALCOP_CERTIFICATE_QUESTIONS", "100"))
THREADS, MOST = 8, 3
LANES = np.arange(THREADS)
NUMBERS = "0", "1", "2"
A, B = "%ctaid.x", "%ctaid.y"


def asked(answers: Answers, *own: np.ndarray) -> tuple[ProductFacts, list[Term]]:
    """What is known of the names, and the numbers of threads as terms."""
    facts = ProductFacts(answers, THREADS)
    for name in (A, B):
        facts.limit(name, 0, MOST)
    return facts, [facts.of_threads(one) for one in own]


def test_a_sum_of_facts_says_in_which_threads_they_hold() -> None:
    """In the last block there is row 0 alone, and threads of columns 0 and 1 run."""
    lanes = LANES // 4 * 4, LANES % 4, LANES % 4 // 2
    found = Found()
    facts, (row, column, is_late) = asked(found, *lanes)
    given = [terms.minus({B: -3, "": 9}, row), terms.negative(is_late)]
    place = terms.plus(terms.plus({B: 10, "": -32}, row), column)
    assert facts.excludes([[place]], given, [])
    assert not facts.excludes([[terms.plus(place, terms.number(1))]], given, [])
    again, _ = asked(Answers(found.proofs, found.asked, []), *lanes)
    assert again.excludes([[place]], given, [])


def drawn(rng: random.Random) -> tuple[list[np.ndarray], list[dict[str, int]]]:
    """Numbers of threads, and facts of them and of blocks."""
    every = LANES % 2, LANES // 2, LANES % 4 // 2, LANES ^ 1, LANES
    own = rng.sample(every, 3)
    facts = []
    for _ in range(rng.randrange(3, 6)):
        names = rng.sample((A, B, *NUMBERS), rng.randrange(1, 4))
        fact = {name: rng.choice((-2, -1, 1, 2)) for name in names}
        facts.append({**fact, "": rng.randrange(-5, 3)})
    return own, facts


def as_terms(facts: list[dict[str, int]], own: list[Term]) -> list[Term]:
    found = []
    for fact in facts:
        term = {s: c for s, c in fact.items() if s not in NUMBERS}
        for number, value in enumerate(own):
            term = terms.plus(term, value, fact.get(str(number), 0))
        found.append(term)
    return found


def has_solution(facts: list[dict[str, int]], own: list[np.ndarray]) -> bool:
    for lane, a, b in itertools.product(range(THREADS), *[range(MOST + 1)] * 2):
        at = {n: int(one[lane]) for n, one in zip(NUMBERS, own, strict=True)}
        at |= {A: a, B: b, "": 1}
        if all(sum(c * at[s] for s, c in fact.items()) >= 0 for fact in facts):
            return True
    return False


def test_what_some_thread_can_meet_is_not_refuted() -> None:
    """And almost all of what none can is, by proofs that a checker accepts."""
    refuted = unsolved = 0
    for seed in range(COUNT):
        own, facts = drawn(random.Random(seed))
        found = Found()
        known, numbers = asked(found, *own)
        query, *given = as_terms(facts, numbers)
        is_refuted = known.excludes([[query]], given, [])
        is_solved = has_solution(facts, own)
        assert not (is_refuted and is_solved), (seed, facts)
        refuted, unsolved = refuted + is_refuted, unsolved + (not is_solved)
        again, _ = asked(Answers(found.proofs, found.asked, []), *own)
        assert again.excludes([[query]], given, []) == is_refuted
    assert refuted >= 0.9 * unsolved


def test_ways_that_met_do_not_hide_what_a_choice_says() -> None:
    """Each of 13 guards was passed or not: all that is fewer than are taken apart. Of
    the last tile `rest` rows are left, and a thread's row is below that.
    """
    found = Found()
    facts, (row,) = asked(found, LANES)
    for name in ("n1", ".rows"):
        facts.limit(name, 0, 1 << 62)
    rest = {".rows": 1, "n1": -8, "": 0}
    short = terms.minus(terms.number(8), rest)
    least = terms.choice([[short]], [[terms.opposite(short)]], rest, terms.number(8))
    below = terms.minus(terms.plus(least, terms.number(-1)), row)
    place = terms.minus(row, rest)
    guards = []
    for number in range(2, 15):
        passed = terms.minus(terms.plus(least, terms.number(-number)), row)
        met = [[terms.opposite(passed)], [passed, {B: 1}], [passed, {B: -1, "": 3}]]
        guards.append(met)
    assert facts.excludes([[place]], [below], guards)
    assert not facts.excludes([[terms.plus(place, terms.number(1))]], [below], guards)


def test_a_fact_of_the_same_names_is_found_among_many() -> None:
    """Of each of 60 stores it is known that its column is one: too many at once."""
    found = Found()
    facts, (column,) = asked(found, LANES)
    facts.limit(".n", 0, 1 << 62)
    known = []
    for name in (f"u{n}" for n in range(60)):
        facts.limit(name, 0, 1 << 62)
        known.append(terms.minus({".n": 1, name: -1, "": -1}, column))
    query = terms.plus(column, {"u7": 1, ".n": -1})
    assert facts.excludes([[query]], known, [])
    assert not facts.excludes([[terms.plus(query, terms.number(1))]], known, [])


def test_what_was_found_before_is_asked_again_where_ranges_are_wider() -> None:
    """A proof that has become none is no answer; what still is one is found once."""
    known: dict[Any, Any] = {}
    for most, is_below in ((MOST, True), (MOST, True), (9, False), (9, False)):
        facts, _ = asked(Found(known))
        facts.limit(A, 0, most)
        above, last = {A: 1, B: -1, "": -1}, {B: 1, "": -MOST}
        assert facts.excludes([[above]], [last], []) == is_below
    assert list(known.values()) == [None]


def test_cases_of_all_threads_are_known_side_by_side() -> None:
    """Numbers that are the same in both cases are those of the threads."""
    both = np.concatenate([LANES % 4, LANES % 4 + 2])
    facts, (lane, again, apart) = asked(Found(), LANES, np.tile(LANES, 2), both)
    assert again == lane
    assert apart != facts.of_threads(both[:THREADS])
    total = facts.in_threads(terms.plus(lane, apart))
    assert total is not None
    assert (total == np.tile(LANES, 2) + both).all()
    # Where a thread's number is 2 at most, the most is that of the second case.
    few = terms.minus(terms.number(2), lane)
    most = terms.plus(facts.at_most(apart, [few]), {**apart, "": 0})
    assert most == terms.number(4)
    assert facts.at_most(lane, [terms.minus(apart, terms.number(5))])[""] == 7
