"""Waits, barriers and commits without which a kernel is proven all the same.

Each is left out by itself, and the kernel proven again: of two that are listed only one
may be left out, as the other may be needed then.
"""

from __future__ import annotations

from collections.abc import Mapping

from alcop_mlir.certificate.api import certify, find_entry
from alcop_mlir.certificate.program import is_barrier
from alcop_mlir.certificate.state import Requirement
from alcop_mlir.runtime.emulator.ptx.parser import parse_ptx


def superfluous(
    ptx: str,
    entry: str,
    threads: int | None,
    dynamic_shared: int | None,
    requirements: Mapping[str, Requirement],
    seconds: float,
) -> list[tuple[int, str]]:
    """Line and text of each; none where the kernel itself is not proven.

    What is read has to be as fresh without it. The arguments are those of `certify`.
    """
    given = (threads, dynamic_shared, requirements, seconds)
    whole = certify(ptx, entry, *given)
    if whole.status != "proven":
        return []
    lines = ptx.split("\n")
    found: list[tuple[int, str]] = []
    for ins in find_entry(parse_ptx(ptx), entry).instructions:
        line = lines[ins.line - 1]
        if not is_barrier(ins) or line.count(";") != 1:
            continue
        rest = [*lines[: ins.line - 1], "", *lines[ins.line :]]
        report = certify("\n".join(rest), entry, *given)
        if report.status == "proven" and report.is_fresh >= whole.is_fresh:
            found.append((ins.line, ins.text))
    return found
