"""K of a contraction whose A or B consists of windows: their taps, channels in each."""

from __future__ import annotations

from typing import Annotated

from alcop_mlir import codec
from alcop_mlir.codec_forms import OneOf, Range
from alcop_mlir.frozen import frozen


@frozen
class Taps:
    """The taps of the windows that are the rows of A, or the columns of B.

    fresh: how many of them the window before does not have, on average
    """

    operand: Annotated[str, OneOf(("A", "B"))]
    count: Annotated[int, Range(1)]
    fresh: Annotated[int, Range(1)]

    def __post_init__(self) -> None:
        codec.check(self, "taps")


def k_steps(k: int, step: int, taps: Taps | None) -> int:
    """How many steps of `step` elements lead through K; each is of one tap."""
    count = 1 if taps is None else taps.count
    return count * -(-(k // count) // step)
