"""Choose tile sizes and stages for each matrix product.

Before:  linalg.matmul {alcop.contraction = ...}
After:   linalg.matmul {alcop.contraction = ..., alcop.schedule = #alcop.schedule<{
             block = [128, 128, 32], stages = [4, 2], warp = [64, 64]}>}

Where the schedule comes from, the first that there is:

1. the option `schedule`, in the text form of `Schedule`; it must divide the product's
   shape and fit the target, else the pass fails;
2. an `alcop.schedule` that the op carries already; the same holds;
3. the default. Of a list of tiles, from 128x128 down to 32x64, the first that divides
   M and N and gives every SM a block; if none does, the one with the most blocks. Small
   tiles, from 32x32 down to 16x16, only when none of these divides. K steps of 32, else
   16. Four shared stages, or three or two where that lets an SM hold more of the blocks
   that there are; two register stages; never more stages than steps.

A product that no tile divides is left alone, with a remark: its mark is erased, and
what alcop-raise-contractions folded into the mark is put back.

Reads `alcop.contraction`. Writes `alcop.schedule`; alcop-plan-pipelines erases it.
Stands after raising, which says what a product is, and before tiling, which does as it
is told.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from alcop_mlir import diagnostics, resources
from alcop_mlir.analysis import contractions
from alcop_mlir.analysis.contractions import Contraction, Rejected
from alcop_mlir.bindings import arith, ir, linalg
from alcop_mlir.dialects import alcop
from alcop_mlir.errors import ConfigError, PassError
from alcop_mlir.schedule import Schedule
from alcop_mlir.target import DEFAULT_TARGET, MMA_F16_SHAPE, Target, find_target
from alcop_mlir.transforms.base import Pass, option

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
_K_STEPS = (32, 16)
_SHARED_STAGES = (4, 3, 2)
_REGISTER_STAGES = 2


@dataclass(frozen=True)
class SelectSchedule(Pass):
    name = "alcop-select-schedule"
    anchor = "func.func"

    target: str = option(DEFAULT_TARGET, "GPU to choose for, such as sm_80")
    schedule: str = option("", "schedule for every product, instead of choosing")

    def __post_init__(self) -> None:
        find_target(self.target)
        if self.schedule:
            Schedule.parse(self.schedule)

    def run(self, op: Any) -> None:
        target = find_target(self.target)
        given = Schedule.parse(self.schedule) if self.schedule else None
        for product in _marked_products(op):
            wanted = given or _carried(product)
            if wanted is not None:
                _check(product, wanted, target)
            schedule = wanted or default_schedule(product, target)
            if schedule is None:
                _give_up(product)
            else:
                alcop.put(product.op, alcop.ScheduleAttr, schedule.to_dict())


def default_schedule(product: Contraction, target: Target) -> Schedule | None:
    """The default that the contract describes; None if no tile divides the product."""
    for tiles in (_TILES, _SMALL_TILES):
        fitting = [
            schedule
            for tile in tiles
            if (schedule := _with_tile(product, target, *tile)) is not None
        ]
        for schedule in fitting:
            if _blocks(product, schedule) >= target.sms:
                return schedule
        if fitting:
            return max(fitting, key=lambda schedule: _blocks(product, schedule))
    return None


def _marked_products(func: Any) -> list[Contraction]:
    products = []
    for op in contractions.structured_ops(func):
        mark = alcop.get(op, alcop.ContractionAttr)
        if mark is None:
            continue
        product = contractions.classify(op)
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
    """PassError where `schedule` does not divide the product or fit the target."""
    sizes = (product.m, product.n, product.k)
    for loop, size, tile in zip("MNK", sizes, schedule.block, strict=True):
        if size % tile:
            raise PassError(
                product.op,
                f"schedule '{schedule}' does not divide the product: {loop} is {size}, "
                f"expected a multiple of {tile}",
            )
    try:
        resources.cost(schedule, target)
    except ConfigError as error:
        raise PassError(product.op, str(error)) from error


def _with_tile(
    product: Contraction, target: Target, block: tuple[int, int], warp: tuple[int, int]
) -> Schedule | None:
    """The best schedule with that tile that divides the product and fits, or None."""
    if product.m % block[0] or product.n % block[1]:
        return None
    step = next((step for step in _K_STEPS if product.k % step == 0), None)
    if step is None:
        return None
    fitting = [
        schedule
        for schedule in _staged(product.k, (*block, step), warp)
        if _fits(schedule, target)
    ]

    def preference(schedule: Schedule) -> tuple[int, int]:
        at_once = resources.cost(schedule, target).blocks_per_sm
        wanted = -(-_blocks(product, schedule) // target.sms)
        return min(at_once, wanted), schedule.stages[0]

    return max(fitting, key=preference, default=None)


def _staged(
    k: int, block: tuple[int, int, int], warp: tuple[int, int]
) -> Iterator[Schedule]:
    register_stages = min(_REGISTER_STAGES, k // MMA_F16_SHAPE[2])
    for shared_stages in _SHARED_STAGES:
        stages = (min(shared_stages, k // block[2]), register_stages)
        yield Schedule(block, warp, stages)


def _fits(schedule: Schedule, target: Target) -> bool:
    try:
        resources.cost(schedule, target)
    except ConfigError:
        return False
    return True


def _blocks(product: Contraction, schedule: Schedule) -> int:
    return (product.m // schedule.block[0]) * (product.n // schedule.block[1])


def _give_up(product: Contraction) -> None:
    shape = f"{product.m}x{product.n}x{product.k}"
    diagnostics.remark(
        product.op,
        f"'{product.op.name}' is left alone: no tile divides M, N, K = {shape}, "
        "expected multiples of 16",
    )
    mark = alcop.take(product.op, alcop.ContractionAttr)
    assert mark is not None
    if mark["init"] == "zero":
        _fill_with_zero(product)
    if mark["init"] == "copy":
        alcop.take(contractions.init_copy(product), alcop.ContractionAttr)


def _fill_with_zero(product: Contraction) -> None:
    """The fill that alcop-raise-contractions erased."""
    with product.op.location, ir.InsertionPoint(product.op):
        zero = arith.constant(product.out.type.element_type, 0.0)
        linalg.fill(zero, outs=[product.out])
