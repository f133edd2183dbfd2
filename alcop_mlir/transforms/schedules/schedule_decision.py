"""What decides the schedule of a contraction: the user, records, models, or a rule."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from alcop_mlir.analysis.ir.rejected import Rejected
from alcop_mlir.analysis.linalg import contractions
from alcop_mlir.analysis.linalg.contractions import Contraction
from alcop_mlir.analysis.linalg.interleaved_columns import columns_together
from alcop_mlir.bindings import ir
from alcop_mlir.dialects import alcop
from alcop_mlir.element_types import EIGHT_BIT_FLOATS
from alcop_mlir.errors import ConfigError, PassError
from alcop_mlir.resources import no_wgmma
from alcop_mlir.schedule import WGMMA, Decision, Partial, Schedule
from alcop_mlir.target import Target
from alcop_mlir.transforms.schedules.default_schedule import (
    check_fits,
    default_schedule,
)
from alcop_mlir.transforms.schedules.modelled import check_ranges, problem_of
from alcop_mlir.transforms.schedules.warpgroup_schedule import warpgroup_schedule
from alcop_mlir.transforms.schedules.warpgroup_variants import warpgroup_variants

if TYPE_CHECKING:
    from alcop_mlir.tuning.selection import Chooser


# What completes a block that is asked for where no chosen warps fit it.
LAST = (
    Schedule(),
    *(
        Schedule((64, 64, 32), warp)
        for warp in ((64, 32), (32, 32), (16, 32), (16, 16))
    ),
)


def marked_contractions(func: ir.Operation) -> list[Contraction]:
    """The ops marked by alcop-raise-contractions.

    PassError if one is unsupported, or its operands expect different sizes.
    """
    found = []
    for op in contractions.structured_ops(func):
        mark = alcop.get(op, alcop.ContractionAttr)
        if mark is None or "role" in mark:
            continue
        allow_tf32 = mark.get("precision") == "tf32"
        # What was widened stays so: no type is multiplied that needs certain targets.
        types = () if "multiplied" in mark else EIGHT_BIT_FLOATS
        contraction = contractions.classify(op, allow_tf32, types)
        if isinstance(contraction, Rejected):
            raise PassError(op, f"'{op.name}' is marked but {contraction.reason}")
        check_ranges(contraction)
        found.append(contraction)
    return found


def decide(
    contraction: Contraction,
    target: Target,
    asked: Partial | None,
    chooser: Callable[[], Chooser] | None,
) -> Decision:
    """The schedule of a contraction, and where it is from; all decide one here.

    asked: of all contractions; None is what the op asks for
    chooser: called where it is needed; None leaves the default only

    PassError where what is asked for does not fit.
    """
    asked, given = asked_for(contraction, asked)
    if asked is not None and asked.is_whole:
        return Decision(completed(contraction, target, asked, [Schedule()]), given)
    chosen = _chosen(contraction, target, chooser) or _default(contraction, target)
    chosen = _with_note(contraction, target, chosen)
    chosen = _with_columns(contraction, target, chosen, chooser)
    if asked is None:
        return chosen
    others = _others(contraction, target, chosen, chooser)
    schedule = completed(contraction, target, asked, others)
    return Decision(schedule, in_part(chosen.source), chosen.notes)


def _default(contraction: Contraction, target: Target) -> Decision:
    """Without records and models; for wgmma where that multiplies it.

    Where one kernel is for all sizes, these count as large ones.
    """
    if target.has_wgmma:
        found = _by_wgmma(contraction, target)
        if isinstance(found, Schedule):
            return Decision(found, "default")
    return Decision(default_schedule(contraction, target), "default")


def _by_wgmma(contraction: Contraction, target: Target) -> Schedule | str:
    """A schedule for wgmma, or why there is none."""
    if contraction.has_variants and not contraction.has_narrow_copies:
        several = warpgroup_variants(contraction, target)
        return several if isinstance(several, str) else several[0].schedule
    return warpgroup_schedule(contraction, target)


def _with_note(contraction: Contraction, target: Target, chosen: Decision) -> Decision:
    """With why a target that has wgmma does not multiply by it."""
    if not target.has_wgmma or chosen.schedule.engine == WGMMA:
        return chosen
    found = _by_wgmma(contraction, target)
    why = found
    if isinstance(found, Schedule):
        why = f"so says the {chosen.source}"
    return replace(chosen, notes=(*chosen.notes, by_mma_sync(contraction, str(why))))


def by_mma_sync(contraction: Contraction, why: str) -> str:
    """The text of a remark, on a target that has wgmma."""
    wide = f", as {contraction.lhs_type}," if contraction.narrow else ""
    return f"multiplied by mma.sync{wide} instead of wgmma: {why}"


def asked_for(
    contraction: Contraction, asked: Partial | None
) -> tuple[Partial | None, str]:
    """What is asked of a contraction, by `asked` or by itself, and where it is from."""
    carried = _carried(contraction)
    source = alcop.schedule_source(contraction.op)
    if asked is None and carried is not None and carried.is_whole and source:
        return carried, source  # it has been decided before
    return asked or carried, "given"


def in_part(source: str) -> str:
    """The source of what was given in part, and is completed by `source`."""
    return f"given in part, else {source}"


def _chosen(
    contraction: Contraction,
    target: Target,
    chooser: Callable[[], Chooser] | None,
) -> Decision | None:
    """By records or models; None where none knows the contraction, or none is legal."""
    problem = None if chooser is None else problem_of(contraction, target)
    if chooser is None or problem is None:
        return None
    try:
        return chooser().choose(problem)
    except ConfigError:
        return None


def _with_columns(
    contraction: Contraction,
    target: Target,
    chosen: Decision,
    chooser: Callable[[], Chooser] | None,
) -> Decision:
    """The best decision with which a warp has all interleaved columns that an op reads.

    K is in no parts then: adding them up is an op in between. The chosen one if there
    is none.
    """
    columns = columns_together(contraction.out)
    others = [] if columns == 1 else _others(contraction, target, chosen, chooser)
    fitting = (o for o in others if o.warp[1] % columns == 0 and o.split_k == 1)
    found = next(fitting, chosen.schedule)
    if found == chosen.schedule:
        return chosen
    note = (
        f"an op reads interleaved columns, {columns} of which a warp must have in one "
        f"part of K: the {chosen.source} preferred another schedule"
    )
    return Decision(found, chosen.source, (*chosen.notes, note))


def _others(
    contraction: Contraction,
    target: Target,
    chosen: Decision,
    chooser: Callable[[], Chooser] | None,
) -> Iterator[Schedule]:
    """The chosen schedule, then those that would be taken instead of it."""
    yield chosen.schedule
    problem = problem_of(contraction, target)
    if chooser is not None and problem is not None and chosen.source != "default":
        yield from chooser().ranking(problem).schedules
    yield default_schedule(contraction, target)
    yield from LAST


def completed(
    contraction: Contraction,
    target: Target,
    asked: Partial,
    chosen: Iterable[Schedule],
) -> Schedule:
    """`asked` over the first of `chosen` with which it fits; PassError without one."""
    refusal: ConfigError | None = None
    for one in chosen:
        try:
            schedule = asked.over(one)
            check_fits(contraction, target, schedule)
        except ConfigError as error:
            refusal = refusal or error
        else:
            return schedule
    why = _why_not_as_asked(contraction, target, asked) or str(refusal)
    raise PassError(contraction.op, why) from refusal


def _why_not_as_asked(
    contraction: Contraction, target: Target, asked: Partial
) -> str | None:
    """Why no schedule for wgmma has what is asked for, where that is for wgmma.

    Else the message would be of the tiles of another engine, which nobody asked for.
    """
    if asked.values.engine != WGMMA or "warp" in asked.names:
        return None
    if not target.has_wgmma:
        return no_wgmma(f"schedule '{asked}'", target)
    found = _by_wgmma(contraction, target)
    if isinstance(found, Schedule):
        return None
    return f"schedule '{asked}' asks for wgmma, but {found}: leave the engine out"


def _carried(contraction: Contraction) -> Partial | None:
    parameters = alcop.get(contraction.op, alcop.ScheduleAttr)
    try:
        return None if parameters is None else Partial.from_dict(parameters)
    except ConfigError as error:
        raise PassError(contraction.op, str(error)) from error
