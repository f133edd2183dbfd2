"""Damaged input of every kind: one line and status 1, or a right run; nothing else.

`bench/bench_mutants.py` prints the same table, of as many mutants as wanted.
"""

from __future__ import annotations

import os
import sys

import pytest
from mutants import COUNTS
from trying import run_all, table

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="limits of memory are Linux's"
)


def test_damaged_input_is_refused_in_one_line() -> None:
    """No traceback, no second error, no file but the output, no time, no memory.

    The seed is fixed; `ALCOP_MUTANT_SEED` gives another. `make test-all` tries all
    3,000, `make test` a sixth.
    """
    part = 1 if os.environ.get("ALCOP_ALL_TESTS") else 6
    counts = {kind: -(-count // part) for kind, count in COUNTS.items()}
    first = int(os.environ.get("ALCOP_MUTANT_SEED", "0"))
    rows = run_all(counts, first, jobs=2)
    print("\n".join(table(rows)))
    assert sum(row.count for row in rows) >= 3000 // part
    wrong = [line for row in rows for line in row.wrong]
    assert not wrong, "\n".join(wrong)
    for row in rows if part == 1 else ():  # of options one of some hundred is accepted
        # A mutation that nothing survives tests the first check only.
        assert row.accepted >= 1, f"no mutant of {row.kind} was accepted"


@pytest.mark.parametrize("kind", COUNTS)
def test_the_same_seed_gives_the_same_mutant(kind: str) -> None:
    """So that a failure can be looked at again."""
    from mutants import mutant

    assert mutant(kind, 7) == mutant(kind, 7)
    assert mutant(kind, 7) != mutant(kind, 8)
