"""What becomes of damaged input, by its class: a table of seeded mutants.

    python bench/bench_mutants.py --count 1000 --seed 0 --jobs 2

Each is a call of a tool; `wrong` counts tracebacks, second errors, files beside the
output, and runs of more than 30 s or 3 GiB. Exit status 1 if there is any.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "test" / "mutation"))

from mutants import COUNTS
from trying import run_all, table


def main() -> int:
    """Print the table, then what was wrong."""
    parser = argparse.ArgumentParser(description="damaged input, by its class")
    parser.add_argument("--count", type=int, help="of each class; default: the test's")
    parser.add_argument("--seed", type=int, default=0, help="of the first mutant")
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    counts = {kind: given.count or count for kind, count in COUNTS.items()}
    rows = run_all(counts, given.seed, given.jobs)
    print("\n".join(table(rows)))
    wrong = [line for row in rows for line in row.wrong]
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
