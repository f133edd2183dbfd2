"""The schedule of a contraction for wgmma, on targets that have it.

Chosen of a list of tiles by an estimate of cycles, for a contraction whose copies can
be those of TMA: of types that wgmma multiplies, as memory holds them, in rows that are
multiples of 16 bytes apart. `unfit` says why a contraction is none.

`warpgroup_estimate.py` says what is estimated. Blocks along M are in clusters of two
where L2 limits a step else, and two warpgroups take tiles in turn where stores are long
against K.

Parts of K as in the default schedule: where blocks are for less than half of the SMs.

Floats of eight bits are multiplied as they are, though by mma.sync this target
multiplies them as f16. Their accumulators are less exact so, see `warpgroups.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from alcop_mlir import resources
from alcop_mlir.analysis.linalg.contractions import Contraction, as_in_memory
from alcop_mlir.element_types import (
    EIGHT_BIT_FLOATS,
    ROUNDED_INPUTS,
)
from alcop_mlir.errors import ConfigError
from alcop_mlir.schedule import CHOSEN_RASTER, PINGPONG, WGMMA, Schedule
from alcop_mlir.target import CP_ASYNC_BYTES, WARPGROUP, WGMMA_M, Target
from alcop_mlir.transforms.schedules.warpgroup_estimate import (
    blocks_of,
    estimate,
    is_persistent,
)

# (block M, block N), rows of a warp; in order of preference.
_TILES = (
    ((128, 256), 16),
    ((256, 128), 32),
    ((128, 192), 16),
    ((192, 128), 16),
    ((128, 128), 16),
    ((64, 256), 16),
    ((128, 64), 16),
    ((64, 128), 16),
    ((64, 64), 16),
)
_STEP_BYTES = 128  # of a row along K: the widest swizzle
_STAGES = (8, 7, 6, 5, 4, 3)
_IN_FLIGHT = 2  # register stages: a group of wgmma stays in flight
_ACROSS_K = ("f16", "bf16")  # that wgmma transposes: PTX ISA, wgmma.mma_async
LEAST_STEPS = 3  # of K: fewer fill no ring
_LARGEST_RANK = 5  # of a tensor map
_IN_TURN = 128 * 128  # elements of C: 128 registers of each thread
_PARTS_OF_K = (8, 4, 2)
_LEAST_PART = 1024


def warpgroup_schedule(
    contraction: Contraction, target: Target, in_parts: bool = True
) -> Schedule | str:
    """The schedule that is best by the estimate; why wgmma is not for it, if not.

    in_parts: whether K may be split, blocks be in clusters and take tiles in turn: all
        of which takes sizes that are known
    The target has wgmma.
    """
    contraction = as_in_memory(contraction)
    no = unfit(contraction)
    if no:
        return no
    found = [
        schedule
        for tile, rows in _TILES
        if _covers(contraction, tile)
        if (schedule := _with_tile(contraction, target, tile, rows)) is not None
    ]
    if not found:
        least = "x".join(str(extent) for extent in _TILES[-1][0])
        return (
            f"C of {contraction.m} x {contraction.n} fills less than half of a tile of "
            f"{least}"
        )
    if in_parts:
        found = [one for best in found for one in _variants(contraction, target, best)]

    def cost(schedule: Schedule) -> tuple[float, float]:
        """What is not the limit tells apart what is equally long."""
        estimated = estimate(contraction, target, schedule)
        return estimated.total, estimated.shared_memory

    return min(found, key=cost)


def unfit(contraction: Contraction) -> str:
    """Why TMA does not copy its tiles, or wgmma does not multiply them as they are; ""
    where both do.
    """
    return unfit_types(contraction) or _unfit_arrays(contraction)


def unfit_types(contraction: Contraction) -> str:
    """Why wgmma does not multiply its operands as they are; "" where it does."""
    given = contraction.lhs_type, contraction.rhs_type
    kinds = {ROUNDED_INPUTS.get(one, one) for one in given}
    if contraction.taps is not None:
        return "A or B consists of windows, whose rows no tensor map has"
    if contraction.packed or contraction.is_computed:
        return "A or B is computed of what memory holds"
    if len(kinds) > 1 and not kinds <= {*EIGHT_BIT_FLOATS}:
        return f"A and B are of two types, {' and '.join(sorted(kinds))}"
    across = [
        name
        for name, loops in (("A", contraction.lhs), ("B", contraction.rhs))
        if loops[-1] != "k"
    ]
    if across and not kinds <= {*_ACROSS_K}:
        return (
            f"{' and '.join(across)} of {' and '.join(sorted(kinds))} "
            f"{'is' if len(across) == 1 else 'are'} stored across K, expected along K, "
            f"or {' or '.join(_ACROSS_K)}"
        )
    return ""


def _unfit_arrays(contraction: Contraction) -> str:
    widest = max(CP_ASYNC_BYTES)
    rank = 2 + len(contraction.batches)
    if contraction.has_variants or contraction.has_narrow_copies:
        return (
            "rows of A or B have lengths or distances that are known at run time only, "
            "and are not known to begin at multiples of 16 bytes"
        )
    for name, divisor in zip("AB", contraction.row_bytes, strict=True):
        if divisor != widest:
            return (
                f"rows of {name} are known to begin at multiples of {divisor} bytes, "
                f"expected {widest}"
            )
    if rank > _LARGEST_RANK:
        return f"it has {rank} dimensions, a tensor map has at most {_LARGEST_RANK}"
    if "m" not in contraction.lhs:
        return "A is a vector"
    if any(letter not in contraction.out_loops for letter, _ in contraction.batches):
        return "C is reduced over a batch"
    least = LEAST_STEPS * _step(contraction)
    if contraction.k is not None and contraction.k < least:
        return f"K is {contraction.k}, expected {least} at least to fill a ring"
    return ""


def _step(contraction: Contraction) -> int:
    """Elements of a K step."""
    return _STEP_BYTES // contraction.element_bytes


def _covers(contraction: Contraction, tile: tuple[int, int]) -> bool:
    """Whether at most half of a tile lies beyond C."""
    return all(
        size is not None and 2 * size >= extent
        for size, extent in zip((contraction.m, contraction.n), tile, strict=True)
    )


def _with_tile(
    contraction: Contraction, target: Target, tile: tuple[int, int], rows: int
) -> Schedule | None:
    """With as many stages as fit; None where none do, or A cannot be read so."""
    if rows * WARPGROUP > WGMMA_M and not _has_rows_along_k(contraction):
        return None
    k, step = contraction.k or 0, _step(contraction)
    for stages in _STAGES:
        schedule = Schedule(
            (*tile, step),
            (rows, tile[1]),
            (min(stages, -(-k // step)), _IN_FLIGHT),
            engine=WGMMA,
        )
        try:
            resources.cost(schedule, target, contraction.element_bytes)
        except ConfigError:
            continue
        many = -(-(contraction.m or 0) // tile[0])
        return (
            replace(schedule, raster=min(CHOSEN_RASTER, many)) if many > 1 else schedule
        )
    return None


def _variants(
    contraction: Contraction, target: Target, schedule: Schedule
) -> Iterator[Schedule]:
    """The schedule, in parts, in turn and in clusters, as far as that is possible."""
    for one in _in_parts(contraction, target, schedule):
        yield one
        if one.split_k == 1:
            yield from _in_clusters(contraction, one)
    turns = _in_turn(contraction, target, schedule)
    if turns is not None:
        yield turns
        yield from _in_clusters(contraction, turns)


def _in_clusters(contraction: Contraction, schedule: Schedule) -> Iterator[Schedule]:
    """In clusters of two blocks along M, where these make whole clusters."""
    clusters = replace(schedule, cluster=2)
    try:
        resources.check_cluster(clusters, contraction.m)
    except ConfigError:
        return
    yield clusters


def _in_turn(
    contraction: Contraction, target: Target, schedule: Schedule
) -> Schedule | None:
    """A tile of one warpgroup by two in turn; None where it is none, or blocks are few.

    An accumulator has as many registers as in a tile of two warpgroups twice as large.
    """
    rows, columns, _ = schedule.block
    repeats = rows // WGMMA_M
    if rows * columns != _IN_TURN or (
        repeats > 1 and not _has_rows_along_k(contraction)
    ):
        return None
    warp = (repeats * WGMMA_M // WARPGROUP, columns)
    turns = replace(schedule, warp=warp, mode=PINGPONG)
    blocks = blocks_of(contraction, turns)
    return turns if is_persistent(turns, blocks, target) else None


def _has_rows_along_k(contraction: Contraction) -> bool:
    """Whether warps may have more than 16 rows: groups of 8 are apart only there."""
    return contraction.lhs.index("k") > contraction.lhs.index("m")


def _in_parts(
    contraction: Contraction, target: Target, schedule: Schedule
) -> Iterator[Schedule]:
    """The schedule, and with K in parts where many SMs have no block."""
    yield schedule
    blocks, k = blocks_of(contraction, schedule), contraction.k or 0
    if contraction.is_batched or not 0 < blocks < target.sms / 2:
        return
    for parts in _PARTS_OF_K:
        is_whole = k % (parts * schedule.block[2]) == 0 and k >= parts * _LEAST_PART
        if is_whole and blocks * parts <= target.sms:
            yield replace(schedule, split_k=parts)
            return
