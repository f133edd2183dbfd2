"""What is found of a copy: it can be pipelined, or a rule forbids it.

The rules are those of docs/architecture.md, "Which copies are pipelined". A function
that checks one of them returns a `Refusal` where it is broken, and else None.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from alcop_mlir.analysis.pipelining.copy_forms import CopyForm
from alcop_mlir.frozen import frozen

SHARED = "shared"
REGISTER = "register"


class Refusal(NamedTuple):
    """The rule that a copy breaks, how, and what would help."""

    rule: int
    reason: str
    remedy: str


@frozen
class PipelinedCopy:
    """A copy that can be pipelined.

    buffers: the allocations that it fills; at the register level what it loads
    form:    None at the register level
    """

    op: Any
    buffers: tuple[Any, ...]
    form: CopyForm | None = None


@frozen
class RejectedCopy:
    """A copy that is not pipelined: see `Refusal`."""

    op: Any
    level: str
    rule: int
    reason: str
    remedy: str

    def __str__(self) -> str:
        return f"not pipelined (rule {self.rule}): {self.reason}; {self.remedy}"


def first_refusal(
    rule: Callable[[Any], Refusal | None], parts: Iterable[Any]
) -> Refusal | None:
    """The first refusal of any part; None where the rule holds for all."""
    return next((no for part in parts if (no := rule(part)) is not None), None)
