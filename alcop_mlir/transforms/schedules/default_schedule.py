"""The schedule of a contraction that no model covers, or that none is asked for.

Of a list of tiles, from 128x128 down to 32x64, those count that exceed C by an eighth
of M x N at most; where there is none, by a half; then also of small tiles, from 32x32
down to 16x16, those that exceed it by the least. Among them the first that gives every
SM a block; if none does, the one with the most blocks. K steps of 64 bytes, or 32 bytes
where 32 divide K and 64 do not. Four shared stages, or three or two where an SM then
runs more of the blocks that there are; two register stages, or one where registers
cannot hold two, which happens where elements in memory are wider than those multiplied,
and for weights of four bits, whose unpacking needs registers and hides loads;
never more stages than steps. Where K consists of taps, the step is that with which the
fewest zeros fill up those of one, and stages tell where one ends, if some do.
Blocks in groups of eight rows where there are more than run at once. K in parts of 1024
or more, eight at most, where there are blocks for less than half of the SMs, and never
more parts than give each SM one block.

A size that is known at run time only counts as a large one. Where rows of A or B have
such a size, and no promise of their alignment, or are gathered and not aligned to 16
bytes, no tile is larger than 64x64: each thread then holds the addresses of many narrow
copies.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from alcop_mlir import resources, schedule_checks
from alcop_mlir.analysis.linalg.contractions import Contraction, as_in_memory
from alcop_mlir.errors import ConfigError
from alcop_mlir.frozen import frozen
from alcop_mlir.resources import LARGEST_NARROW, Resources
from alcop_mlir.schedule import (
    CHOSEN_RASTER,
    CHOSEN_REGISTER_STAGES,
    CHOSEN_SHARED_STAGES,
    WGMMA,
    Schedule,
)
from alcop_mlir.taps import k_steps
from alcop_mlir.target import Target, mma_shape

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
# Share of its work that a large tile may do beyond the edges of C: a smaller tile loads
# more from memory per multiplication.
_OVERHANGS = (1 / 8, 1 / 2)
_UNKNOWN = 8192  # assumed for a size that is known at run time only
_PARTS_OF_K = (8, 4, 2)
_LEAST_PART = 1024  # of K; adding up parts is a kernel more

_Tile = tuple[tuple[int, int], tuple[int, int]]


def default_schedule(contraction: Contraction, target: Target) -> Schedule:
    """The schedule of a contraction of which nothing else is known."""
    return _Choice(contraction, target).default()


def check_fits(contraction: Contraction, target: Target, schedule: Schedule) -> None:
    """ConfigError where `schedule` does not fit the inputs' types or the target."""
    if schedule.engine == WGMMA:
        contraction = as_in_memory(contraction)
    _Choice(contraction, target).check(schedule)


@frozen
class _Choice:
    """The choice of a schedule for one contraction on one target."""

    contraction: Contraction
    target: Target

    def default(self) -> Schedule:
        """The default schedule; the module docstring says how."""
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
        return replace(schedule, raster=min(CHOSEN_RASTER, rows))

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
            large = tuple(tile for tile in _TILES if max(tile[0]) <= LARGEST_NARROW)
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
        most = 1 if self.contraction.packed else CHOSEN_REGISTER_STAGES
        for registers in range(most, 0, -1):
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
        """The longest step that divides K, else the longest more than half filled.

        Of taps, the longest with which the fewest zeros fill up the steps of one.
        """
        k = self._run()
        steps = [size // self.contraction.element_bytes for size in _K_STEP_BYTES]
        steps = [step for step in steps if step >= _SMALLEST_K_STEP]
        steps = [step for step in steps if self._fits_groups(step)]
        if self.contraction.taps is not None:
            return min(steps, key=lambda step: -(-k // step) * step)
        dividing = [step for step in steps if k % step == 0]
        filled = [step for step in steps if k > step // 2]
        return [*dividing, *filled, steps[-1]][0]

    def _staged(
        self, block: tuple[int, int, int], warp: tuple[int, int], registers: int
    ) -> Iterator[Schedule]:
        """Schedules with ever fewer shared stages; never more stages than steps."""
        *_, k = self._sizes()
        steps, fragments = (
            max(1, k_steps(k, step, self.contraction.taps))
            for step in (block[2], mma_shape(self.contraction.element_bytes)[2])
        )
        for shared_stages in self._shared_stages(block[2]):
            stages = (min(shared_stages, steps), min(registers, fragments))
            yield Schedule(block, warp, stages)

    def _run(self) -> int:
        """K, or the channels of a tap."""
        *_, k = self._sizes()
        taps = self.contraction.taps
        return k if taps is None else k // taps.count

    def _shared_stages(self, step: int) -> tuple[int, ...]:
        """Where K has taps, those alone with which slots tell where a tap ends, if any.

        Unrolled by such slots, the loop needs no counter of the steps of a tap.
        """
        if self.contraction.taps is None:
            return CHOSEN_SHARED_STAGES
        steps = -(-self._run() // step)
        tells = [n for n in CHOSEN_SHARED_STAGES if n % steps == 0]
        if (steps * step).bit_count() == 1:
            tells = [n for n in CHOSEN_SHARED_STAGES if n in tells or steps % n == 0]
        return tuple(tells) or CHOSEN_SHARED_STAGES

    def check(self, schedule: Schedule) -> None:
        """ConfigError where `schedule` does not fit the inputs' type or the target."""
        size, dtype = self.contraction.element_bytes, self.contraction.lhs_type
        schedule_checks.check_k_step(schedule, size, dtype)
        self._cost(schedule)
        self._check_split(schedule)
        contraction = self.contraction
        if not self._fits_groups(schedule.block[2]):
            lengths = " and ".join(map(str, sorted({*contraction.groups})))
            raise ConfigError(
                f"K step of {schedule.block[2]}, and scales of groups of {lengths} "
                "along K: expected a step that divides the length, or a multiple of it"
            )
        schedule_checks.check_sweeps(schedule, contraction.k, contraction.taps)
        schedule_checks.check_rectangle(schedule, contraction.places)
        schedule_checks.check_cluster(schedule, contraction.m)

    def _fits_groups(self, step: int) -> bool:
        """Whether a K step is a part of one group, or several whole ones."""
        lengths = self.contraction.groups
        return all(step % one == 0 or one % step == 0 for one in lengths)

    def _check_split(self, schedule: Schedule) -> None:
        if self.contraction.packed and schedule.split_k > 1:
            raise ConfigError(
                f"split_k is {schedule.split_k}, expected 1: K of weights of four "
                "bits, two in a byte, is not split"
            )
        batched = self.contraction.is_batched
        least = min(self.contraction.stored or [self.contraction.element_bytes])
        k, taps = self.contraction.k, self.contraction.taps
        schedule_checks.check_split(schedule, k, least, batched, taps)

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
