"""Waits, barriers and commits of our kernels, and those that nothing needs.

    python bench/bench_superfluous.py [--case NAME]

Of each kernel of certificate_kernels.py: how many its PTX has, how many of them may go,
each by itself, and all together; and, where ptxas and nvdisasm are installed, the
barriers (BAR), waits (DEPBAR) and groups (LDGDEPBAR) of its machine code.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import sass
from certificate_kernels import CASES, Case

from alcop_mlir.certificate.superfluous import superfluous
from alcop_mlir.runtime import ptx
from alcop_mlir.target import find_target

_SYNCHRONIZES = re.compile(
    r"^\s*(?:@!?%p\d+ )?(?:bar\.sync|cp\.async\.(?:wait|commit))"
)
_IN_CODE = ("BAR", "DEPBAR", "LDGDEPBAR")


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--case", choices=[c.name for c in CASES], help="only this one")
    given = parser.parse_args()
    heads = "".join(f"{name:>10}" for name in _IN_CODE)
    print(f"{'kernel':<20}{'in PTX':>8}{'may go':>8}{'together':>9}{heads}")
    for case in CASES:
        if given.case in (None, case.name):
            show(case)


def show(case: Case) -> None:
    """One line of the table."""
    one = case.launched
    lines = case.entry_text(one.name).split("\n")
    here = sum(_SYNCHRONIZES.match(line) is not None for line in lines)
    needs = dict(one.requirements)
    found = superfluous(case.ptx, one.name, one.threads, one.shared_bytes, needs, 60)
    together = sum(line.together for line in found)
    counts = in_code(case)
    cells = "".join(f"{counts[name]:>10}" for name in _IN_CODE)
    print(f"{case.name:<20}{here:>8}{len(found):>8}{together:>9}{cells}", flush=True)


def in_code(case: Case) -> Counter[str]:
    """Instructions of the machine code, by opcode; none without ptxas."""
    cubin = ptx.assemble(case.ptx, find_target("sm_80"))
    if cubin is None:
        return Counter()
    code = sass.section(sass.disassemble(cubin.data), case.launched.name)
    return Counter(map(sass.opcode, sass.instructions(code)))


if __name__ == "__main__":
    main()
