"""The kernels of a contraction with sizes that are known at run time only, as data.

A contraction has a list of variants. The first one runs whose conditions hold; the last
has none. Dictionary form, as in `alcop.variants = [...]` on a contraction:

    {schedule = {block = [64, 64, 32], ...}, source = "analytical model",
     row_bytes = 16, limits = [{loops = "m", most = 64}, {loops = "k", least = 2048}]}
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Annotated, Any, Literal

from alcop_mlir import codec
from alcop_mlir.codec_forms import OneOf, Range
from alcop_mlir.errors import ConfigError
from alcop_mlir.frozen import frozen
from alcop_mlir.schedule import Schedule

MAX_VARIANTS = 16
DEFAULT_VARIANTS = 4  # most of one contraction, where nothing else is asked for
NO_MOST = 2**62  # of a product of sizes
# All selections of a contraction's loops, in this order.
_LOOPS = ["".join(few) for n in range(1, 5) for few in combinations("bmnk", n)]


@frozen
class SizeLimit:
    """Bounds of the product of the sizes of some loops of a contraction.

    loops: letters of these, in the order b (its batch), m, n, k
    least, most: it may be
    """

    loops: Annotated[str, OneOf(_LOOPS)]
    most: Annotated[int, Range(0, NO_MOST)] = NO_MOST
    least: Annotated[int, Range(0, NO_MOST)] = 0


@frozen
class ScheduleVariant:
    """A schedule, and what it is for.

    source:    what has decided, as of a `Decision`
    row_bytes: divides the length and the stride of the rows of A, B and C, in bytes, as
        far as these are not known; 1 where nothing is asked of them
    limits:    all hold

    A schedule with split_k > 1 is also for those K only that have such parts.
    """

    schedule: Schedule
    source: str = ""
    row_bytes: Literal[1, 4, 16] = 1
    limits: tuple[SizeLimit, ...] = ()

    @property
    def is_for_all(self) -> bool:
        """Whether it is for all sizes."""
        return not self.limits and self.row_bytes == 1 and self.schedule.split_k == 1


def check_most(most: int) -> None:
    """ConfigError unless a contraction may have `most` variants."""
    if not isinstance(most, int) or not 1 <= most <= MAX_VARIANTS:
        raise ConfigError(f"variants={most}, expected 1 to {MAX_VARIANTS}")


def check_variants(variants: Sequence[ScheduleVariant]) -> None:
    """ConfigError where the last one is not for all sizes, or there are too many."""
    if not 1 <= len(variants) <= MAX_VARIANTS:
        raise ConfigError(f"{len(variants)} variants, expected 1 to {MAX_VARIANTS}")
    if not variants[-1].is_for_all:
        raise ConfigError("the last variant must be for all sizes")


def to_list(variants: Sequence[ScheduleVariant]) -> list[dict[str, Any]]:
    """The dictionary form of each."""
    return [codec.encode(variant) for variant in variants]


def from_list(values: Any) -> tuple[ScheduleVariant, ...]:
    """From the dictionary form; ConfigError where they are no variants."""
    found = codec.decode(tuple[ScheduleVariant, ...], values, "variants")
    check_variants(found)
    return found
