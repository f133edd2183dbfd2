"""Choose tile sizes and stages for each contraction.

Before:  linalg.matmul {alcop.contraction = ...}
After:   linalg.matmul {alcop.contraction = ..., alcop.schedule = #alcop.schedule<{
             block = [128, 128, 32], stages = [4, 2], warp = [64, 64]}>,
             alcop.schedule_source = "default"}

The schedule is the first that there is of:

1. the option `schedule`, in the text form of `Schedule`; it must fit the target and the
   inputs' type, else the pass fails. What it leaves out of tiles and stages is as in
   the first that fits of what 3 and 4 choose, best first;
2. an `alcop.schedule` that the op has already; as the option;
3. the fastest record of this contraction on the GPU that is compiled for
   (docs/tuning.md), else the best by the learned or the analytical model; not with
   `model=false`, nor where a size is known at run time only;
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
`alcop.contraction`. Writes `alcop.schedule`, and in `alcop.schedule_source` what has
decided; alcop-outline-kernels erases both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
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
from alcop_mlir.schedule import Decision, Partial, Schedule
from alcop_mlir.target import (
    DEFAULT_TARGET,
    Target,
    find_target,
    mma_shape,
)

if TYPE_CHECKING:
    from alcop_mlir.tuning.problem import Problem
    from alcop_mlir.tuning.selection import Chooser

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

_warned: set[str] = set()  # of records: once, however many functions ask for them


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
            Partial.parse(self.schedule)

    def run(self, op: ir.Operation) -> None:
        target = find_target(self.target)
        asked = Partial.parse(self.schedule) if self.schedule else None
        chooser = cache(partial(_chooser, op, target)) if self.model else None
        for contraction in marked_contractions(op):
            decision = decide(contraction, target, asked, chooser)
            for note in decision.notes:
                diagnostics.remark(contraction.op, note)
            schedule = decision.schedule.to_dict()
            alcop.put_schedule(contraction.op, schedule, decision.source)


def _chooser(func: ir.Operation, target: Target) -> Chooser:
    """The compiler's; warns of what is wrong in the user's records."""
    from alcop_mlir.tuning.selection import Chooser

    chooser = Chooser(target)
    for note in chooser.counted.notes:
        if note not in _warned:
            diagnostics.warning(func, note)
        _warned.add(note)
    return chooser


def decide(
    contraction: Contraction,
    target: Target,
    asked: Partial | None,
    chooser: Callable[[], Chooser] | None,
) -> Decision:
    """The schedule of a contraction, and where it is from; all that decide do it here.

    asked: of all contractions; None is what the op asks for
    chooser: called where it is needed; None leaves the default only

    PassError where what is asked for does not fit.
    """
    carried = _carried(contraction)
    source = alcop.schedule_source(contraction.op)
    if asked is None and carried is not None and carried.is_whole and source:
        asked, given = carried, source  # this pass has run before
    else:
        asked, given = asked or carried, "given"
    if asked is not None and asked.is_whole:
        return Decision(_completed(contraction, target, asked, [Schedule()]), given)
    chosen = _chosen(contraction, chooser)
    if chosen is None:
        chosen = Decision(default_schedule(contraction, target), "default")
    if asked is None:
        return chosen
    others = _others(contraction, target, chosen, chooser)
    schedule = _completed(contraction, target, asked, others)
    source = f"given in part, else {chosen.source}"
    return Decision(schedule, source, chosen.notes)


def _chosen(
    contraction: Contraction, chooser: Callable[[], Chooser] | None
) -> Decision | None:
    """By records or models; None where none knows the contraction, or none is legal."""
    problem = None if chooser is None else problem_of(contraction)
    if chooser is None or problem is None:
        return None
    try:
        return chooser().choose(problem)
    except ConfigError:
        return None


def _others(
    contraction: Contraction,
    target: Target,
    chosen: Decision,
    chooser: Callable[[], Chooser] | None,
) -> Iterator[Schedule]:
    """The chosen schedule, then those that would be taken instead of it."""
    yield chosen.schedule
    problem = problem_of(contraction)
    if chooser is not None and problem is not None and chosen.source != "default":
        yield from chooser().ranking(problem).schedules
    yield default_schedule(contraction, target)
    yield Schedule()


def _completed(
    contraction: Contraction,
    target: Target,
    asked: Partial,
    chosen: Iterable[Schedule],
) -> Schedule:
    """`asked` over the first of `chosen` with which it fits."""
    refusal: ConfigError | None = None
    for one in chosen:
        try:
            schedule = asked.over(one)
            _Choice(contraction, target).check(schedule)
        except ConfigError as error:
            refusal = refusal or error
        else:
            return schedule
    raise PassError(contraction.op, str(refusal)) from refusal


def problem_of(contraction: Contraction) -> Problem | None:
    """The tuner's description of a contraction; None where it is `unmodelled`."""
    from alcop_mlir.tuning.problem import Problem, dtypes

    sizes = contraction.m, contraction.n, contraction.k, contraction.batch
    if unmodelled(contraction) or None in sizes:
        return None
    m, n, k, batch = (size or 1 for size in sizes)
    batched = _is_batched(contraction)
    return Problem(
        m,
        n,
        k,
        batch=batch if batched else 1,
        op="batch_matmul" if batched else "matmul",
        dtypes=dtypes(
            contraction.lhs_type, contraction.out_type, contraction.precision
        ),
        layout=f"{contraction.lhs},{contraction.rhs}",
    )


def unmodelled(contraction: Contraction) -> str:
    """Why no model knows the contraction; "" where they do."""
    sizes = {"M": contraction.m, "N": contraction.n, "K": contraction.k}
    if _is_batched(contraction):
        sizes["the batch"] = contraction.batch
    for name, size in sizes.items():
        if size is None:
            return f"{name} is known at run time only"
        if size == 0:
            return f"{name} is 0"
    if set(contraction.stored or ()) - {contraction.element_bytes}:
        return f"memory holds other types than the {contraction.lhs_type} multiplied"
    return ""


def _is_batched(contraction: Contraction) -> bool:
    return "b" in contraction.lhs + contraction.rhs


def default_schedule(contraction: Contraction, target: Target) -> Schedule:
    """The schedule of a contraction without option, attribute or record."""
    return _Choice(contraction, target).default()


@dataclass(frozen=True)
class _Choice:
    """The choice of a schedule for one contraction on one target."""

    contraction: Contraction
    target: Target

    def default(self) -> Schedule:
        """The default schedule; the module docstring has the rules."""
        found = [
            schedule
            for tile in self._tiles()
            if (schedule := self._with_tile(*tile)) is not None
        ]
        for schedule in found:
            if self._blocks(schedule) >= self.target.sms:
                return self._rastered(schedule)
        return self._with_parts(max(found, key=self._blocks))

    def _rastered(self, schedule: Schedule) -> Schedule:
        """`schedule`, with a raster where there are more blocks than run at once."""
        cost = self._cost(schedule)
        rows, columns = self._grid(schedule)
        if (
            self._blocks(schedule) <= cost.blocks_per_sm * self.target.sms
            or columns < 2
        ):
            return schedule
        return replace(schedule, raster=min(_RASTER, rows))

    def _with_parts(self, schedule: Schedule) -> Schedule:
        """`schedule`, with as many long parts of K as there are SMs for."""
        blocks = self._blocks(schedule)
        if self.contraction.k is None or not 0 < blocks < self.target.sms / 2:
            return schedule
        for parts in _PARTS_OF_K:
            split = replace(schedule, split_k=parts)
            is_long = self.contraction.k >= parts * _LEAST_PART
            if is_long and blocks * parts <= self.target.sms and self._splits(split):
                return split
        return schedule

    def _tiles(self) -> list[_Tile]:
        """The tiles that exceed C the least, in order of preference."""
        large = _TILES
        if self.contraction.has_narrow_copies:
            large = tuple(tile for tile in _TILES if max(tile[0]) <= _LARGEST_NARROW)
        for most in _OVERHANGS:
            fitting = [tile for tile in large if self._overhang(tile[0]) <= most]
            if fitting:
                return fitting
        tiles = (*large, *_SMALL_TILES)
        least = min(self._overhang(tile[0]) for tile in tiles)
        return [tile for tile in tiles if self._overhang(tile[0]) == least]

    def _overhang(self, block: tuple[int, int]) -> float:
        """Elements that tiles cover beyond C, per element of C."""
        m, n, _ = self._sizes()
        if not m * n:
            return 0.0
        covered = -(-m // block[0]) * block[0] * -(-n // block[1]) * block[1]
        return covered / (m * n) - 1

    def _sizes(self) -> tuple[int, int, int]:
        """M, N, K."""
        given = (self.contraction.m, self.contraction.n, self.contraction.k)
        m, n, k = (_UNKNOWN if size is None else size for size in given)
        return m, n, k

    def _with_tile(
        self, block: tuple[int, int], warp: tuple[int, int]
    ) -> Schedule | None:
        """The best schedule with that tile that fits the target, or None."""
        fitting: list[Schedule] = []
        for registers in range(_REGISTER_STAGES, 0, -1):
            fitting = fitting or [
                schedule
                for schedule in self._staged((*block, self._k_step()), warp, registers)
                if self.fits(schedule)
            ]

        def preference(schedule: Schedule) -> tuple[int, int]:
            cost = self._cost(schedule)
            wanted = -(-self._blocks(schedule) // self.target.sms)
            return min(cost.blocks_per_sm, wanted), schedule.stages[0]

        return max(fitting, key=preference, default=None)

    def _k_step(self) -> int:
        """The longest step that divides K, else the longest more than half filled."""
        *_, k = self._sizes()
        steps = [size // self.contraction.element_bytes for size in _K_STEP_BYTES]
        steps = [step for step in steps if step >= _SMALLEST_K_STEP]
        dividing = [step for step in steps if k % step == 0]
        filled = [step for step in steps if k > step // 2]
        return [*dividing, *filled, steps[-1]][0]

    def _staged(
        self, block: tuple[int, int, int], warp: tuple[int, int], registers: int
    ) -> Iterator[Schedule]:
        """Schedules with ever fewer shared stages; never more stages than steps."""
        *_, k = self._sizes()
        steps, fragments = (
            max(1, -(-k // step))
            for step in (block[2], mma_shape(self.contraction.element_bytes)[2])
        )
        for shared_stages in _SHARED_STAGES:
            stages = (min(shared_stages, steps), min(registers, fragments))
            yield Schedule(block, warp, stages)

    def check(self, schedule: Schedule) -> None:
        """ConfigError where `schedule` does not fit the inputs' type or the target."""
        size, dtype = self.contraction.element_bytes, self.contraction.lhs_type
        resources.check_k_step(schedule, size, dtype)
        self._cost(schedule)
        self._check_split(schedule)

    def _check_split(self, schedule: Schedule) -> None:
        batched = _is_batched(self.contraction)
        least = min(self.contraction.stored or [self.contraction.element_bytes])
        resources.check_split(schedule, self.contraction.k, least, batched)

    def _splits(self, schedule: Schedule) -> bool:
        try:
            self._check_split(schedule)
        except ConfigError:
            return False
        return True

    def fits(self, schedule: Schedule) -> bool:
        """Whether the target has the resources for `schedule`."""
        try:
            self._cost(schedule)
        except ConfigError:
            return False
        return True

    def _cost(self, schedule: Schedule) -> Resources:
        return resources.cost(
            schedule,
            self.target,
            self.contraction.element_bytes,
            self.contraction.stored,
        )

    def _blocks(self, schedule: Schedule) -> int:
        matrices = 1 if self.contraction.batch is None else self.contraction.batch
        return matrices * math.prod(self._grid(schedule))

    def _grid(self, schedule: Schedule) -> tuple[int, int]:
        """Rows and columns of blocks."""
        m, n, _ = self._sizes()
        return -(-m // schedule.block[0]), -(-n // schedule.block[1])


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


def _carried(contraction: Contraction) -> Partial | None:
    parameters = alcop.get(contraction.op, alcop.ScheduleAttr)
    try:
        return None if parameters is None else Partial.from_dict(parameters)
    except ConfigError as error:
        raise PassError(contraction.op, str(error)) from error
