"""Hazards: what a report holds, and the collector that makes each appear once."""

from __future__ import annotations

from dataclasses import dataclass, replace

from alcop_mlir.runtime.emulator.machine import warpgroups
from alcop_mlir.runtime.emulator.machine.warps import Dim3
from alcop_mlir.runtime.emulator.ptx.syntax import Instruction

READ_IN_FLIGHT = "read-in-flight"
WRITE_IN_FLIGHT = "write-in-flight"
UNINITIALISED = "uninitialised-read"
READ_AFTER_WRITE = "read-after-write"
WRITE_AFTER_READ = "write-after-read"
WRITE_AFTER_WRITE = "write-after-write"
NEVER_WAITED = "copy-in-flight-at-exit"
MBARRIER_OVERWRITTEN = "mbarrier-overwritten"
NO_PROXY_FENCE = "no-proxy-fence"
UNFINISHED = "unfinished-at-exit"
WRITE_WHILE_READ = "write-while-read"
BLOCK_CONFLICT = "block-conflict"
BLOCK_ENDED = "block-ended"
BLOCK_NOT_BEGUN = "block-not-begun"
EQUAL_WRITES = "equal-writes"
# What has no effect on any result: worth a note.
NOTES = (NEVER_WAITED, EQUAL_WRITES, warpgroups.NEVER_WAITED)


@dataclass(frozen=True)
class Hazard:
    """One kind of conflict between two PTX lines, first seen at `block`, `warp`.

    `line` is where it was noticed, `other_line` the earlier access (None if there is
    none); `address` a byte offset in shared memory or a global address; `count` how
    many warp instructions met it; `source` is "file:line" from `.loc`, or None.
    """

    kind: str
    message: str
    line: int
    other_line: int | None
    block: Dim3
    warp: int
    address: int
    space: str
    source: str | None
    count: int = 1

    def __str__(self) -> str:
        times = f" [{self.count} times]" if self.count > 1 else ""
        source = f" ({self.source})" if self.source else ""
        return f"{self.kind} at PTX line {self.line}{source}: {self.message}{times}"


class Reports:
    """Collects hazards; the same kind at the same pair of lines is kept once."""

    def __init__(self, limit: int, code: dict[int, Instruction]):
        self.limit = limit
        self.code = code
        self.found: dict[tuple[str, int, int | None], Hazard] = {}
        self.noted: dict[tuple[str, int, int | None], Hazard] = {}

    def add(self, hazard: Hazard) -> None:
        """Adds a hazard or a note, or counts it if it is known.

        Beyond the limit only the first of a kind not seen yet is kept.
        """
        kept = self.noted if hazard.kind in NOTES else self.found
        key = (hazard.kind, hazard.line, hazard.other_line)
        known = kept.get(key)
        if known is not None:
            kept[key] = replace(known, count=known.count + 1)
        elif len(kept) < self.limit or all(hazard.kind != k for k, *_ in kept):
            kept[key] = hazard

    def text(self, line: int | None) -> str:
        """The instruction at a PTX line, for messages."""
        ins = self.code.get(line) if line else None
        return ins.text if ins else "?"

    def all(self) -> tuple[Hazard, ...]:
        """Every hazard that was kept, in the order in which they were found."""
        return tuple(self.found.values())

    def notes(self) -> tuple[Hazard, ...]:
        """The same of the notes."""
        return tuple(self.noted.values())
