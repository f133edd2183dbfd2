"""Choose tile sizes and stages for each contraction.

Before:  linalg.matmul {alcop.contraction = ...}
After:   linalg.matmul {alcop.contraction = ..., alcop.schedule = #alcop.schedule<{
             block = [128, 128, 32], stages = [4, 2], warp = [64, 64]}>}

The schedule is the first that there is of:

1. the option `schedule`, in the text form of `Schedule`; it must fit the target and the
   inputs' type, else the pass fails;
2. an `alcop.schedule` that the op has already; it must fit as well;
3. the fastest record of this contraction on this target (docs/tuning.md), else the best
   by the learned or the analytical model; not with `model=false`, nor where a size is
   known at run time only;
4. the default. Of a list of tiles, from 128x128 down to 32x64, those that exceed C by
   an eighth of M x N at most; where there is none, by a half; then also of small tiles,
   from 32x32 down to 16x16, those that exceed it by the least. Among them the first
   that gives every SM a block; if none does, the one with the most blocks. K steps of
   64 bytes, or 32 bytes where 32 divide K and 64 do not. Four shared stages, or three
   or two where an SM then runs more of the blocks that there are; two register stages,
   or one where registers cannot hold two, which happens where elements in memory are
   wider than those multiplied; never more stages than steps. Blocks in groups of eight
   rows where there are more than run at once. K in parts of 1024 or more, eight at
   most, where there are blocks for less than half of the SMs, and never more parts than
   give each SM one block. A size that is known at run time only counts as a large one.
   Where rows of A or B have such a size, and no promise of their alignment, no tile is
   larger than 64x64: each thread then holds the addresses of many narrow copies.

Runs after alcop-raise-contractions, which marks the contractions, and before
alcop-split-k and alcop-tile-to-blocks, which carry the schedule out. Reads
`alcop.contraction`. Writes `alcop.schedule`; alcop-plan-pipelines erases it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from alcop_mlir import diagnostics, resources
from alcop_mlir.analysis.ir.rejected import Rejected
from alcop_mlir.analysis.linalg import contractions
from alcop_mlir.analysis.linalg.contractions import Contraction
from alcop_mlir.bindings import ir
from alcop_mlir.dialects import alcop
from alcop_mlir.errors import ConfigError, PassError
from alcop_mlir.passes.base import Pass, option
from alcop_mlir.resources import Resources
from alcop_mlir.schedule import Schedule
from alcop_mlir.target import (
    DEFAULT_TARGET,
    Target,
    find_target,
    mma_shape,
)

if TYPE_CHECKING:
    from alcop_mlir.tuning.problem import Problem

# (block M, block N), (warp M, warp N), in order of preference. Each leaves every thread
# at least one copy of 16 bytes per operand and K step, also with a K step of 16.
_TILES = (
    ((128, 128), (64, 64)),
    ((128, 64), (64, 32)),
    ((64, 128), (32, 64)),
    ((64, 64), (32, 32)),
    ((64, 32), (32, 32)),
    ((32, 64), (32, 32)),
)
_SMALL_TILES = (
    ((32, 32), (32, 32)),
    ((64, 16), (64, 16)),
    ((16, 64), (16, 64)),
    ((32, 16), (32, 16)),
    ((16, 32), (16, 32)),
    ((16, 16), (16, 16)),
)
# Length of a K step, along a row of A; a Schedule has no step below 16 elements.
_K_STEP_BYTES = (64, 32)
_SMALLEST_K_STEP = 16
# Rows or columns of a tile whose copies are narrow: with 128 x 128, ptxas spills.
_LARGEST_NARROW = 64
# Share of its work that a large tile may do beyond the edges of C: a smaller tile loads
# more from memory per multiplication.
_OVERHANGS = (1 / 8, 1 / 2)
_UNKNOWN = 8192  # assumed for a size that is known at run time only
_SHARED_STAGES = (4, 3, 2)
_REGISTER_STAGES = 2
_RASTER = 8
_PARTS_OF_K = (8, 4, 2)
_LEAST_PART = 1024  # of K; adding up parts is a kernel more

_Tile = tuple[tuple[int, int], tuple[int, int]]


@dataclass(frozen=True)
class SelectSchedule(Pass):
    name = "alcop-select-schedule"
    anchor = "func.func"

    target: str = option(DEFAULT_TARGET, "GPU to choose for, such as sm_80")
    schedule: str = option("", "schedule for all contractions, instead of choosing")
    model: bool = option(True, "choose by records and models; else a fixed default")

    def __post_init__(self) -> None:
        find_target(self.target)
        if self.schedule:
            Schedule.parse(self.schedule)

    def run(self, op: ir.Operation) -> None:
        target = find_target(self.target)
        given = Schedule.parse(self.schedule) if self.schedule else None
        for contraction in marked_contractions(op):
            wanted = given or _carried(contraction)
            if wanted is not None:
                _check(contraction, wanted, target)
            if wanted is None and self.model:
                wanted = _tuned(contraction, target)
                # The tuner knows the type of multiplication, not those in memory.
                if wanted is not None and not _fits(contraction, wanted, target):
                    wanted = None
            schedule = wanted or default_schedule(contraction, target)
            alcop.put(contraction.op, alcop.ScheduleAttr, schedule.to_dict())


def _tuned(contraction: Contraction, target: Target) -> Schedule | None:
    """The fastest on record, else the best by the models.

    None where no model knows the contraction, or no candidate is legal.
    """
    from alcop_mlir.tuning import selection

    problem = problem_of(contraction)
    if problem is None:
        return None
    try:
        return selection.choose(
            problem, target, say=partial(diagnostics.remark, contraction.op)
        )
    except ConfigError:
        return None


def problem_of(contraction: Contraction) -> Problem | None:
    """The tuner's description of a contraction.

    None where a size is 0 or known at run time only, or where elements in memory have
    another size than those multiplied, which no model knows.
    """
    from alcop_mlir.tuning.problem import Problem, dtypes

    batched = "b" in contraction.lhs + contraction.rhs
    batch = contraction.batch if batched else 1
    if not (contraction.m and contraction.n and contraction.k and batch):
        return None
    if set(contraction.stored or ()) - {contraction.element_bytes}:
        return None
    return Problem(
        contraction.m,
        contraction.n,
        contraction.k,
        batch=batch,
        op="batch_matmul" if batched else "matmul",
        dtypes=dtypes(
            contraction.lhs_type, contraction.out_type, contraction.precision
        ),
        layout=f"{contraction.lhs},{contraction.rhs}",
    )


def default_schedule(contraction: Contraction, target: Target) -> Schedule:
    """The default schedule; the module docstring has the rules."""
    found = [
        schedule
        for tile in _tiles(contraction)
        if (schedule := _with_tile(contraction, target, *tile)) is not None
    ]
    for schedule in found:
        if _blocks(contraction, schedule) >= target.sms:
            return _rastered(contraction, schedule, target)
    schedule = max(found, key=lambda schedule: _blocks(contraction, schedule))
    return _with_parts(contraction, schedule, target)


def _rastered(contraction: Contraction, schedule: Schedule, target: Target) -> Schedule:
    """`schedule`, with a raster where there are more blocks than run at once."""
    cost = _cost(contraction, schedule, target)
    rows, columns = _grid(contraction, schedule)
    if _blocks(contraction, schedule) <= cost.blocks_per_sm * target.sms or columns < 2:
        return schedule
    return replace(schedule, raster=min(_RASTER, rows))


def _with_parts(
    contraction: Contraction, schedule: Schedule, target: Target
) -> Schedule:
    """`schedule`, with as many long parts of K as there are SMs for."""
    blocks = _blocks(contraction, schedule)
    if contraction.k is None or not 0 < blocks < target.sms / 2:
        return schedule
    for parts in _PARTS_OF_K:
        split = replace(schedule, split_k=parts)
        is_long = contraction.k >= parts * _LEAST_PART
        if is_long and blocks * parts <= target.sms and _splits(contraction, split):
            return split
    return schedule


def _splits(contraction: Contraction, schedule: Schedule) -> bool:
    try:
        _check_split(contraction, schedule)
    except ConfigError:
        return False
    return True


def _tiles(contraction: Contraction) -> list[_Tile]:
    """The tiles that exceed C the least, in order of preference."""
    large = _TILES
    if contraction.has_narrow_copies:
        large = tuple(tile for tile in _TILES if max(tile[0]) <= _LARGEST_NARROW)
    for most in _OVERHANGS:
        fitting = [tile for tile in large if _overhang(contraction, tile[0]) <= most]
        if fitting:
            return fitting
    tiles = (*large, *_SMALL_TILES)
    least = min(_overhang(contraction, tile[0]) for tile in tiles)
    return [tile for tile in tiles if _overhang(contraction, tile[0]) == least]


def _overhang(contraction: Contraction, block: tuple[int, int]) -> float:
    """Elements that tiles cover beyond C, per element of C."""
    m, n, _ = _sizes(contraction)
    if not m * n:
        return 0.0
    covered = -(-m // block[0]) * block[0] * -(-n // block[1]) * block[1]
    return covered / (m * n) - 1


def _sizes(contraction: Contraction) -> tuple[int, int, int]:
    """M, N, K."""
    given = (contraction.m, contraction.n, contraction.k)
    m, n, k = (_UNKNOWN if size is None else size for size in given)
    return m, n, k


def marked_contractions(func: ir.Operation) -> list[Contraction]:
    """The ops marked by alcop-raise-contractions; PassError if one is unsupported."""
    found = []
    for op in contractions.structured_ops(func):
        mark = alcop.get(op, alcop.ContractionAttr)
        if mark is None or "role" in mark:
            continue
        allow_tf32 = mark.get("precision") == "tf32"
        contraction = contractions.classify(op, allow_tf32)
        if isinstance(contraction, Rejected):
            raise PassError(op, f"'{op.name}' is marked but {contraction.reason}")
        found.append(contraction)
    return found


def _carried(contraction: Contraction) -> Schedule | None:
    parameters = alcop.get(contraction.op, alcop.ScheduleAttr)
    try:
        return None if parameters is None else Schedule.from_dict(parameters)
    except ConfigError as error:
        raise PassError(contraction.op, str(error)) from error


def _check(contraction: Contraction, schedule: Schedule, target: Target) -> None:
    """PassError where `schedule` does not fit the contraction's type or the target."""
    mma_k = mma_shape(contraction.element_bytes)[2]
    if schedule.block[2] % mma_k:
        raise PassError(
            contraction.op,
            f"schedule '{schedule}' has a K step of {schedule.block[2]}, expected a "
            f"multiple of {mma_k} for {contraction.lhs_type}",
        )
    try:
        _cost(contraction, schedule, target)
        _check_split(contraction, schedule)
    except ConfigError as error:
        raise PassError(contraction.op, str(error)) from error


def _check_split(contraction: Contraction, schedule: Schedule) -> None:
    batched = "b" in contraction.lhs + contraction.rhs
    least = min(contraction.stored or [contraction.element_bytes])
    resources.check_split(schedule, contraction.k, least, batched)


def _with_tile(
    contraction: Contraction,
    target: Target,
    block: tuple[int, int],
    warp: tuple[int, int],
) -> Schedule | None:
    """The best schedule with that tile that fits the target, or None."""
    fitting: list[Schedule] = []
    for registers in range(_REGISTER_STAGES, 0, -1):
        fitting = fitting or [
            schedule
            for schedule in _staged(
                contraction, (*block, _k_step(contraction)), warp, registers
            )
            if _fits(contraction, schedule, target)
        ]

    def preference(schedule: Schedule) -> tuple[int, int]:
        cost = _cost(contraction, schedule, target)
        wanted = -(-_blocks(contraction, schedule) // target.sms)
        return min(cost.blocks_per_sm, wanted), schedule.stages[0]

    return max(fitting, key=preference, default=None)


def _k_step(contraction: Contraction) -> int:
    """The longest step that divides K, else the longest more than half filled."""
    *_, k = _sizes(contraction)
    steps = [size // contraction.element_bytes for size in _K_STEP_BYTES]
    steps = [step for step in steps if step >= _SMALLEST_K_STEP]
    dividing = [step for step in steps if k % step == 0]
    filled = [step for step in steps if k > step // 2]
    return [*dividing, *filled, steps[-1]][0]


def _staged(
    contraction: Contraction,
    block: tuple[int, int, int],
    warp: tuple[int, int],
    registers: int,
) -> Iterator[Schedule]:
    """Schedules with ever fewer shared stages; never more stages than steps."""
    *_, k = _sizes(contraction)
    steps, fragments = (
        max(1, -(-k // step))
        for step in (block[2], mma_shape(contraction.element_bytes)[2])
    )
    for shared_stages in _SHARED_STAGES:
        stages = (min(shared_stages, steps), min(registers, fragments))
        yield Schedule(block, warp, stages)


def _fits(contraction: Contraction, schedule: Schedule, target: Target) -> bool:
    try:
        _cost(contraction, schedule, target)
    except ConfigError:
        return False
    return True


def _cost(contraction: Contraction, schedule: Schedule, target: Target) -> Resources:
    return resources.cost(
        schedule, target, contraction.element_bytes, contraction.stored
    )


def _blocks(contraction: Contraction, schedule: Schedule) -> int:
    matrices = 1 if contraction.batch is None else contraction.batch
    return matrices * math.prod(_grid(contraction, schedule))


def _grid(contraction: Contraction, schedule: Schedule) -> tuple[int, int]:
    """Rows and columns of blocks."""
    m, n, _ = _sizes(contraction)
    return -(-m // schedule.block[0]), -(-n // schedule.block[1])
