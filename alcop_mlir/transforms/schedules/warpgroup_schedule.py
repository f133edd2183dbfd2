"""The schedule of a contraction for wgmma, on targets that have it.

The best by the analytical model (`tuning/warpgroup_model.py`), of the tuner's space for
wgmma, for a contraction whose copies can be those of TMA: of types that wgmma
multiplies, as memory holds them, in rows that are multiples of 16 bytes apart.
`warpgroup_limits.py` says why a contraction is none.

Floats of eight bits are multiplied as they are, though by mma.sync this target
multiplies them as f16. Their accumulators are less exact so, see `warpgroups.py`.
"""

from __future__ import annotations

from collections.abc import Callable

from alcop_mlir.analysis.linalg.contractions import Contraction, as_in_memory
from alcop_mlir.schedule import Schedule
from alcop_mlir.target import Target
from alcop_mlir.transforms.schedules.modelled import plain_problem_of, unmodelled
from alcop_mlir.transforms.schedules.warpgroup_limits import unfit


def warpgroup_schedule(
    contraction: Contraction,
    target: Target,
    is_allowed: Callable[[Schedule], bool] | None = None,
) -> Schedule | str:
    """The schedule that is best by the model; why wgmma is not for it, if not.

    is_allowed: which schedules are asked about; None for all
    The target has wgmma.
    """
    contraction = as_in_memory(contraction)
    no = unfit(contraction)
    if no:
        return no
    problem = plain_problem_of(contraction)
    if problem is None:
        return unmodelled(contraction)
    from alcop_mlir.tuning import preference, warpgroup_space
    from alcop_mlir.tuning.analytical import predict
    from alcop_mlir.tuning.candidates import Candidates

    found = dict(warpgroup_space.schedules(problem, target))
    legal = Candidates([*found], [*found.values()])
    if is_allowed is not None:
        legal = legal.take([row for row, one in enumerate(found) if is_allowed(one)])
    if not len(legal):
        least = "x".join(str(extent) for extent in warpgroup_space.TILES[-1][0])
        return (
            f"C of {contraction.m} x {contraction.n} fills less than half of a tile of "
            f"{least}"
        )
    seconds = predict(problem, legal, target).seconds
    return legal.schedules[int(preference.order(legal, seconds)[0])]
