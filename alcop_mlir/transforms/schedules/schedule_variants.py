"""What decides the variants of a contraction with sizes known at run time only."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from alcop_mlir.analysis.linalg.contractions import Contraction
from alcop_mlir.errors import ConfigError
from alcop_mlir.schedule import MMA, Partial, Schedule
from alcop_mlir.target import CP_ASYNC_BYTES, Target
from alcop_mlir.transforms.schedules.default_schedule import default_schedule
from alcop_mlir.transforms.schedules.modelled import open_problem_of
from alcop_mlir.transforms.schedules.schedule_decision import (
    LAST,
    asked_for,
    by_mma_sync,
    completed,
    decide,
    in_part,
)
from alcop_mlir.transforms.schedules.warpgroup_variants import (
    missing_clusters,
    warpgroup_variants,
)
from alcop_mlir.variants import ScheduleVariant

if TYPE_CHECKING:
    from alcop_mlir.tuning.selection import Chooser

_WIDEST = max(CP_ASYNC_BYTES)


def decide_variants(
    contraction: Contraction,
    target: Target,
    asked: Partial | None,
    chooser: Callable[[], Chooser] | None,
    most: int,
) -> tuple[ScheduleVariant, ...]:
    """The variants of a contraction, `most` at most; one where its sizes are known.

    asked, chooser: see `decide`

    PassError where what is asked for does not fit.
    """
    wanted, source = asked_for(contraction, asked)
    if most == 1 or not contraction.has_variants or source != "given":
        one = decide(contraction, target, asked, chooser)
        return (ScheduleVariant(one.schedule, one.source),)
    if wanted is not None and wanted.is_whole:
        schedule = completed(contraction, target, wanted, [Schedule()])
        # Rows that no tensor map has are for mma.sync.
        is_for_all = schedule.engine == MMA
        other = schedule if is_for_all else default_schedule(contraction, target)
        found = _by_alignment(contraction, schedule, other, source)
        return _with_aligned_output(contraction, found)
    chosen = _chosen(contraction, target, chooser, most)
    chosen = _with_aligned_output(contraction, chosen)
    if wanted is None:
        return chosen
    every = [variant.schedule for variant in chosen]
    return _needed(
        replace(
            variant,
            schedule=_completed(contraction, target, wanted, variant.schedule, every),
            source=in_part(variant.source),
        )
        for variant in chosen
    )


def why_not_by_wgmma(
    contraction: Contraction, target: Target, asked: Partial | None
) -> str | None:
    """The text of a remark where the target has wgmma, and no variant that is chosen
    multiplies by it; None for others, and where somebody asks for a schedule.
    """
    if not target.has_wgmma or asked_for(contraction, asked)[0] is not None:
        return None
    found = warpgroup_variants(contraction, target)
    return by_mma_sync(contraction, found) if isinstance(found, str) else None


def why_no_clusters(
    contraction: Contraction, target: Target, asked: Partial | None
) -> str | None:
    """The text of a remark where sizes that may come keep blocks out of clusters; None
    for others, and where somebody asks for a schedule.
    """
    if not target.has_wgmma or asked_for(contraction, asked)[0] is not None:
        return None
    return missing_clusters(contraction, target) or None


def _chosen(
    contraction: Contraction,
    target: Target,
    chooser: Callable[[], Chooser] | None,
    most: int,
) -> tuple[ScheduleVariant, ...]:
    """For wgmma, if the target has it and others have room; then for mma.sync."""
    found = warpgroup_variants(contraction, target) if target.has_wgmma else ""
    by_wgmma = found[: most - 1] if isinstance(found, tuple) else ()
    others = _of_mma(contraction, target, chooser, most - len(by_wgmma))
    return (*by_wgmma, *others)


def _of_mma(
    contraction: Contraction,
    target: Target,
    chooser: Callable[[], Chooser] | None,
    most: int,
) -> tuple[ScheduleVariant, ...]:
    """By models, or of the default schedules where none covers the contraction."""
    problem = None if chooser is None else open_problem_of(contraction)
    one = default_schedule(contraction, target)
    if chooser is not None and problem is not None:
        try:
            return chooser().variants(problem, most, one)
        except ConfigError:
            pass
    if most == 1:
        return (ScheduleVariant(one, "default"),)
    aligned = default_schedule(replace(contraction, has_narrow_copies=False), target)
    return _by_alignment(contraction, aligned, one, "default")


def _by_alignment(
    contraction: Contraction, aligned: Schedule, other: Schedule, source: str
) -> tuple[ScheduleVariant, ...]:
    """A variant of aligned rows, where some may not be, and one for all."""
    if not contraction.has_narrow_copies:
        return (ScheduleVariant(aligned, source),)
    return ScheduleVariant(aligned, source, 16), ScheduleVariant(other, source)


def _with_aligned_output(
    contraction: Contraction, found: tuple[ScheduleVariant, ...]
) -> tuple[ScheduleVariant, ...]:
    """One more variant of a single one, where C alone may begin anywhere."""
    first, *others = found
    if contraction.open_beginnings != "C" or others:
        return found
    return replace(first, row_bytes=16), first


def _completed(
    contraction: Contraction,
    target: Target,
    asked: Partial,
    chosen: Schedule,
    every: Iterable[Schedule],
) -> Schedule:
    """`asked` over a chosen schedule, in parts of K if these fit, else over others.

    every: what is chosen for any sizes
    Of a K that is open the guard of the variant says that it has the parts.
    """
    whole = contraction
    if contraction.k is None and chosen.split_k > 1 and "split_k" not in asked.names:
        whole = replace(contraction, k=chosen.split_k * _WIDEST)
    others = [replace(one, split_k=1) for one in (chosen, *every)]
    others += [default_schedule(contraction, target), *LAST]
    return completed(whole, target, asked, [chosen, *others])


def _needed(variants: Iterable[ScheduleVariant]) -> tuple[ScheduleVariant, ...]:
    """Without those that the next one would replace."""
    every: Sequence[ScheduleVariant] = [*variants]
    kept = [
        one
        for one, after in pairwise(every)
        if (one.schedule, one.row_bytes) != (after.schedule, after.row_bytes)
        or not {*after.limits} <= {*one.limits}
    ]
    return (*kept, every[-1])
