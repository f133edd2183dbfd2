"""Choose tile sizes and stages for each matrix product.

Before:  linalg.matmul {alcop.contraction = ...}
After:   linalg.matmul {alcop.contraction = ..., alcop.schedule = #alcop.schedule<{
             block = [128, 128, 32], stages = [4, 2], warp = [64, 64]}>}

Where the schedule comes from, the first that there is:

1. the option `schedule`, in the text form of `Schedule`; it must fit the target and the
   inputs' type, else the pass fails;
2. an `alcop.schedule` that the op carries already; the same holds;
3. the fastest record of this product on this target (docs/tuning.md), else what the
   learned or the analytical model likes best; not with `model=false`, nor where a size
   is known at run time only;
4. the default. Of a list of tiles, from 128x128 down to 32x64, those that go over the
   edge by an eighth of M x N at most; where there is none, by a half; then also of
   small tiles, from 32x32 down to 16x16, those that go over by the least. Among them
   the first that gives every SM a block; if none does, the one with the most blocks. K
   steps of 64 bytes, or 32 bytes where that divides K and 64 do not. Four shared
   stages, or three or two where that lets an SM hold more of the blocks that there are;
   two register stages, or one where registers hold no two, of elements that memory has
   wider than they are multiplied; never more stages than steps. Blocks in groups of
   eight rows where there are more than run at once. K in parts of 1024 or more, eight
   at most, where there is a block for less than half of the SMs, and never more than
   one for each. A size that is known at run time only counts as a large one.

Reads `alcop.contraction`. Writes `alcop.schedule`; alcop-plan-pipelines erases it.
Stands after raising, which says what a product is, and before tiling, which does as it
is told.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from alcop_mlir import diagnostics, resources
from alcop_mlir.analysis.ir.rejected import Rejected
from alcop_mlir.analysis.linalg import contractions
from alcop_mlir.analysis.linalg.contractions import Contraction
from alcop_mlir.dialects import alcop
from alcop_mlir.errors import ConfigError, PassError
from alcop_mlir.passes.base import Pass, option
from alcop_mlir.resources import Resources
from alcop_mlir.schedule import Schedule
from alcop_mlir.target import DEFAULT_TARGET, Target, find_target, mma_shape

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
# Of what a step takes of a row of A or column of B; a Schedule has no step below 16.
_K_STEP_BYTES = (64, 32)
_SMALLEST_K_STEP = 16
# Work beyond the edges of C, per work, that a large tile may do; a smaller tile loads
# more from memory for each product.
_OVERHANGS = (1 / 8, 1 / 2)
_UNKNOWN = 8192  # what a size that is known at run time only is taken for
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
    schedule: str = option("", "schedule for every product, instead of choosing")
    model: bool = option(True, "choose by records and models; else a fixed default")

    def __post_init__(self) -> None:
        find_target(self.target)
        if self.schedule:
            Schedule.parse(self.schedule)

    def run(self, op: Any) -> None:
        target = find_target(self.target)
        given = Schedule.parse(self.schedule) if self.schedule else None
        for product in marked_contractions(op):
            wanted = given or _carried(product)
            if wanted is not None:
                _check(product, wanted, target)
            if wanted is None and self.model:
                wanted = _tuned(product, target)
                # The tuner knows only what is multiplied, not what memory holds.
                if wanted is not None and not _fits(product, wanted, target):
                    wanted = None
            schedule = wanted or default_schedule(product, target)
            alcop.put(product.op, alcop.ScheduleAttr, schedule.to_dict())


def _tuned(product: Contraction, target: Target) -> Schedule | None:
    """The fastest on record, else what the models like best.

    None where no model knows the product, or no candidate is legal.
    """
    from alcop_mlir.tuning import selection

    problem = problem_of(product)
    if problem is None:
        return None
    try:
        return selection.choose(
            problem, target, say=partial(diagnostics.remark, product.op)
        )
    except ConfigError:
        return None


def problem_of(product: Contraction) -> Problem | None:
    """As the tuner sees it.

    None where a size is 0 or known at run time only, or where memory holds elements of
    another size than are multiplied: that is in no model.
    """
    from alcop_mlir.tuning.problem import Problem, dtypes

    batched = "b" in product.lhs + product.rhs
    batch = product.batch if batched else 1
    if not (product.m and product.n and product.k and batch):
        return None
    if set(product.stored or ()) - {product.element_bytes}:
        return None
    return Problem(
        product.m,
        product.n,
        product.k,
        batch=batch,
        op="batch_matmul" if batched else "matmul",
        dtypes=dtypes(product.lhs_type, product.out_type, product.precision),
        layout=f"{product.lhs},{product.rhs}",
    )


def default_schedule(product: Contraction, target: Target) -> Schedule:
    """The default that the contract describes."""
    found = [
        schedule
        for tile in _tiles(product)
        if (schedule := _with_tile(product, target, *tile)) is not None
    ]
    for schedule in found:
        if _blocks(product, schedule) >= target.sms:
            return _rastered(product, schedule, target)
    schedule = max(found, key=lambda schedule: _blocks(product, schedule))
    return _with_parts(product, schedule, target)


def _rastered(product: Contraction, schedule: Schedule, target: Target) -> Schedule:
    """With blocks in groups of rows where there are more than run at once."""
    cost = _cost(product, schedule, target)
    rows, columns = _grid(product, schedule)
    if _blocks(product, schedule) <= cost.blocks_per_sm * target.sms or columns < 2:
        return schedule
    return replace(schedule, raster=min(_RASTER, rows))


def _with_parts(product: Contraction, schedule: Schedule, target: Target) -> Schedule:
    """With K in as many parts as fill the SMs, of those that are long enough."""
    blocks = _blocks(product, schedule)
    if product.k is None or not 0 < blocks < target.sms / 2:
        return schedule
    for parts in _PARTS_OF_K:
        split = replace(schedule, split_k=parts)
        is_long = product.k >= parts * _LEAST_PART
        if is_long and blocks * parts <= target.sms and _splits(product, split):
            return split
    return schedule


def _splits(product: Contraction, schedule: Schedule) -> bool:
    try:
        _check_split(product, schedule)
    except ConfigError:
        return False
    return True


def _tiles(product: Contraction) -> list[_Tile]:
    """Those that go over the edges of C least, in order of preference."""
    for most in _OVERHANGS:
        fitting = [tile for tile in _TILES if _overhang(product, tile[0]) <= most]
        if fitting:
            return fitting
    tiles = (*_TILES, *_SMALL_TILES)
    least = min(_overhang(product, tile[0]) for tile in tiles)
    return [tile for tile in tiles if _overhang(product, tile[0]) == least]


def _overhang(product: Contraction, block: tuple[int, int]) -> float:
    """Elements that tiles cover beyond C, for each of C's."""
    m, n, _ = _sizes(product)
    if not m * n:
        return 0.0
    covered = -(-m // block[0]) * block[0] * -(-n // block[1]) * block[1]
    return covered / (m * n) - 1


def _sizes(product: Contraction) -> tuple[int, int, int]:
    """M, N, K."""
    given = (product.m, product.n, product.k)
    m, n, k = (_UNKNOWN if size is None else size for size in given)
    return m, n, k


def marked_contractions(func: Any) -> list[Contraction]:
    """The ops that alcop-raise-contractions marked; PassError where one is none."""
    products = []
    for op in contractions.structured_ops(func):
        mark = alcop.get(op, alcop.ContractionAttr)
        if mark is None or "role" in mark:
            continue
        allow_tf32 = mark.get("precision") == "tf32"
        product = contractions.classify(op, allow_tf32)
        if isinstance(product, Rejected):
            raise PassError(op, f"'{op.name}' is marked but {product.reason}")
        products.append(product)
    return products


def _carried(product: Contraction) -> Schedule | None:
    parameters = alcop.get(product.op, alcop.ScheduleAttr)
    try:
        return None if parameters is None else Schedule.from_dict(parameters)
    except ConfigError as error:
        raise PassError(product.op, str(error)) from error


def _check(product: Contraction, schedule: Schedule, target: Target) -> None:
    """PassError where `schedule` does not fit the product's type or the target."""
    k_of_one = mma_shape(product.element_bytes)[2]
    if schedule.block[2] % k_of_one:
        raise PassError(
            product.op,
            f"schedule '{schedule}' has a K step of {schedule.block[2]}, expected a "
            f"multiple of {k_of_one} for {product.lhs_type}",
        )
    try:
        _cost(product, schedule, target)
        _check_split(product, schedule)
    except ConfigError as error:
        raise PassError(product.op, str(error)) from error


def _check_split(product: Contraction, schedule: Schedule) -> None:
    batched = "b" in product.lhs + product.rhs
    least = min(product.stored or [product.element_bytes])
    resources.check_split(schedule, product.k, least, batched)


def _with_tile(
    product: Contraction, target: Target, block: tuple[int, int], warp: tuple[int, int]
) -> Schedule | None:
    """The best schedule with that tile that fits the target, or None."""
    fitting: list[Schedule] = []
    for registers in range(_REGISTER_STAGES, 0, -1):
        fitting = fitting or [
            schedule
            for schedule in _staged(
                product, (*block, _k_step(product)), warp, registers
            )
            if _fits(product, schedule, target)
        ]

    def preference(schedule: Schedule) -> tuple[int, int]:
        cost = _cost(product, schedule, target)
        wanted = -(-_blocks(product, schedule) // target.sms)
        return min(cost.blocks_per_sm, wanted), schedule.stages[0]

    return max(fitting, key=preference, default=None)


def _k_step(product: Contraction) -> int:
    """The longest that divides K, else the longest that K fills by more than half."""
    *_, k = _sizes(product)
    steps = [size // product.element_bytes for size in _K_STEP_BYTES]
    steps = [step for step in steps if step >= _SMALLEST_K_STEP]
    dividing = [step for step in steps if k % step == 0]
    filled = [step for step in steps if k > step // 2]
    return [*dividing, *filled, steps[-1]][0]


def _staged(
    product: Contraction,
    block: tuple[int, int, int],
    warp: tuple[int, int],
    registers: int,
) -> Iterator[Schedule]:
    """With fewer and fewer shared stages; never more than steps."""
    *_, k = _sizes(product)
    steps, fragments = (
        max(1, -(-k // step))
        for step in (block[2], mma_shape(product.element_bytes)[2])
    )
    for shared_stages in _SHARED_STAGES:
        stages = (min(shared_stages, steps), min(registers, fragments))
        yield Schedule(block, warp, stages)


def _fits(product: Contraction, schedule: Schedule, target: Target) -> bool:
    try:
        _cost(product, schedule, target)
    except ConfigError:
        return False
    return True


def _cost(product: Contraction, schedule: Schedule, target: Target) -> Resources:
    return resources.cost(schedule, target, product.element_bytes, product.stored)


def _blocks(product: Contraction, schedule: Schedule) -> int:
    matrices = 1 if product.batch is None else product.batch
    return matrices * math.prod(_grid(product, schedule))


def _grid(product: Contraction, schedule: Schedule) -> tuple[int, int]:
    """Rows and columns of blocks."""
    m, n, _ = _sizes(product)
    return -(-m // schedule.block[0]), -(-n // schedule.block[1])
