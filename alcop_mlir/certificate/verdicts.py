"""How a proof ends: nothing found, an alarm, or a line that is outside of the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from alcop_mlir.errors import AlcopError

Status = Literal["proven", "not proven", "outside"]


@dataclass(frozen=True)
class Finding:
    """What could go wrong, where.

    rule:    which part of the claim fails
    line:    of the PTX, of the access that finds it
    other:   line of the access that it meets, or None
    threads: that of `line`, and that of `other`, where known
    address: byte of shared memory, or None
    turns:   of the loops around, by the line of their head, the turn or its range
    """

    rule: str
    what: str
    line: int
    text: str = ""
    other: int | None = None
    threads: tuple[int, ...] = ()
    address: int | None = None
    turns: tuple[tuple[int, str], ...] = ()

    def __str__(self) -> str:
        parts = [f"line {self.line}: {self.what}"]
        if self.address is not None:
            parts.append(f"shared byte {self.address}")
        if self.other is not None:
            parts.append(f"of line {self.other}")
        if self.threads:
            parts.append(f"threads {', '.join(map(str, self.threads))}")
        for line, turn in self.turns:
            parts.append(f"loop at line {line}: {turn}")
        return "; ".join(parts)


class Alarm(AlcopError):
    """The claim may be false: it is not proven."""

    def __init__(self, finding: Finding):
        super().__init__(str(finding))
        self.finding = finding


class Outside(AlcopError):
    """The model has nothing to say of an instruction, or of the kernel as a whole."""

    def __init__(self, why: str, line: int | None = None):
        super().__init__(why if line is None else f"line {line}: {why}")
        self.why, self.line = why, line


class OutOfTime(Outside):
    """There is no proof yet, and no alarm."""

    def __init__(self) -> None:
        super().__init__("no proof and no alarm in the time that was given")
