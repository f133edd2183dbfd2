"""Waits, barriers and commits without which a kernel is proven all the same.

Each is left out by itself, and the kernel proven again: of two that are found only one
may be left out, as the other may be needed then. So those that may go together are
told apart: from the first line on, each that may go where those before it have gone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from alcop_mlir.certificate.api import Turns, certify, find_entry
from alcop_mlir.certificate.program import is_barrier
from alcop_mlir.certificate.state import Requirement
from alcop_mlir.runtime.emulator.ptx.parser import parse_ptx


@dataclass(frozen=True)
class Superfluous:
    """line:     of the PTX
    together: it may go with all those before it that may go together
    """

    line: int
    text: str
    together: bool = False

    def __str__(self) -> str:
        end = "" if self.together else ", where those above stay"
        return f"line {self.line}: {self.text}{end}"


def superfluous(
    ptx: str,
    entry: str,
    threads: int | None,
    dynamic_shared: int | None,
    requirements: Mapping[str, Requirement],
    seconds: float,
    shares_stores: bool = False,
) -> list[Superfluous]:
    """Each by its line; none where the kernel itself is not proven.

    What is read has to be as fresh without it. The arguments are those of `certify`.
    """
    alike: Turns = "alike"  # which tile is read no barrier decides
    given = (threads, dynamic_shared, requirements, seconds, alike, shares_stores)
    whole = certify(ptx, entry, *given)
    if whole.status != "proven":
        return []
    lines = ptx.split("\n")

    def is_proven_without(numbers: set[int]) -> bool:
        rest = ["" if n in numbers else one for n, one in enumerate(lines, 1)]
        report = certify("\n".join(rest), entry, *given)
        return report.status == "proven" and report.is_fresh >= whole.is_fresh

    found = [
        Superfluous(ins.line, ins.text)
        for ins in find_entry(parse_ptx(ptx), entry).instructions
        if is_barrier(ins)
        and lines[ins.line - 1].count(";") == 1
        and is_proven_without({ins.line})
    ]
    gone: set[int] = set()
    for number, one in enumerate(found):
        if not gone or is_proven_without({*gone, one.line}):
            gone.add(one.line)
            found[number] = replace(one, together=True)
    return found
