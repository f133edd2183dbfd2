"""The kernels that an open problem may have, and the seconds that each is predicted.

Kernels of aligned rows copy 16 bytes at once. Others copy as much as rows are multiples
of, 4 bytes or an element, and have tiles whose copies registers suffice for
(`resources.cost`). Only aligned kernels have parts of K,
which are whole numbers of 16 bytes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from alcop_mlir import resources, schedule_checks
from alcop_mlir.errors import ConfigError
from alcop_mlir.resources import Copies, Resources
from alcop_mlir.schedule import (
    CHOSEN_RASTER,
    CHOSEN_REGISTER_STAGES,
    CHOSEN_SHARED_STAGES,
    Schedule,
)
from alcop_mlir.taps import k_steps
from alcop_mlir.target import Target, mma_shape
from alcop_mlir.tuning.analytical import Prediction, predict
from alcop_mlir.tuning.candidates import BoolArray, Candidates, FloatArray
from alcop_mlir.tuning.open_problem import WIDEST, OpenProblem, Samples
from alcop_mlir.tuning.problem import word_loads
from alcop_mlir.tuning.space import SMALL

RowBytes = Literal[1, 4, 16]
_ROW_BYTES: tuple[RowBytes, ...] = (16, 4, 1)
# Of a row of A: the least that a K step is long. Shorter ones are slower on GPUs than
# the model says.
_LEAST_STEP_BYTES = 64
# Elements of C, where K is in parts: each part has as many, between the kernels. With
# more, blocks of 64 x 128 are enough for an A100 without parts.
MOST_OF_PARTS = 2**20


@dataclass(frozen=True, eq=False)
class Kernels:
    """Kernels that ask the same of rows.

    row_bytes: what divides the rows of A, B and C, as far as they are not known, in
        bytes; 1 where any may be
    copies: of the tiles of A and of B
    """

    problem: OpenProblem
    target: Target
    row_bytes: RowBytes
    copies: Copies
    candidates: Candidates

    @property
    def is_narrow(self) -> bool:
        """Whether a thread copies less at once than it could."""
        return self.copies.are_narrow

    def __len__(self) -> int:
        return len(self.candidates)

    def of(self, schedules: Iterable[Schedule]) -> Kernels:
        """Those of `schedules` that are legal."""
        known = dict.fromkeys(schedules)
        costs = {one: self._cost(one) for one in known}
        legal = {one: cost for one, cost in costs.items() if cost is not None}
        return self._with(Candidates([*legal], [*legal.values()]))

    def fits(self, samples: Samples) -> BoolArray:
        """Which samples have rows as are asked for."""
        return samples.row_bytes % self.row_bytes == 0

    def holds(self, samples: Samples) -> BoolArray:
        """Whether each kernel is for each sample; (samples, kernels)."""
        aligned = self.fits(samples)
        part = self.candidates.axis("split_k") * WIDEST // self.problem.element_bytes
        whole = samples.product("k")[:, None] % part == 0
        split = self.candidates.axis("split_k") > 1
        small = samples.product("mn")[:, None] <= MOST_OF_PARTS
        return aligned[:, None] & (whole & small | ~split)

    def prediction(self, samples: Samples) -> Prediction:
        """Of each sample and kernel, whether or not it is for the sample."""
        return predict(samples.problems, self.candidates, self.target, self.copies)

    def seconds(self, samples: Samples) -> FloatArray:
        """Predicted; infinite where a kernel is not for a sample."""
        predicted = self.prediction(samples).seconds
        return np.where(self.holds(samples), predicted, np.inf)

    def _cost(self, schedule: Schedule) -> Resources | None:
        size = self.problem.element_bytes
        if schedule.split_k > 1 and (self.is_narrow or self.problem.op != "matmul"):
            return None
        try:
            schedule_checks.check_k_step(schedule, size, self.problem.dtypes[0])
            if self.problem.taps is not None:
                k, taps = self.problem.k[1], self.problem.taps
                schedule_checks.check_split(schedule, k, size, False, taps)
            return resources.cost(schedule, self.target, size, copies=self.copies)
        except ConfigError:
            return None

    def _with(self, candidates: Candidates) -> Kernels:
        return Kernels(
            self.problem, self.target, self.row_bytes, self.copies, candidates
        )


_NONE = Candidates([], [])


def families(problem: OpenProblem, target: Target) -> list[Kernels]:
    """All kernels; those that ask most of rows first, those that ask nothing last.

    None asks for what is known of rows, or what holds for rows of all lengths.
    """
    schedules = [*_schedules(problem)]
    widths: dict[int, Copies] = {asked: copies(problem, asked) for asked in _ROW_BYTES}
    return [
        Kernels(problem, target, asked, widths[asked], _NONE).of(schedules)
        for asked, less in zip(_ROW_BYTES, (*_ROW_BYTES[1:], 0), strict=True)
        if widths[asked] != widths.get(less)
    ]


def copies(problem: OpenProblem, row_bytes: int) -> Copies:
    """How tiles are copied where rows have `row_bytes`."""
    a, b, _ = (
        max(
            min(WIDEST, rows.element_bytes),
            rows.known_bytes,
            math.gcd(row_bytes, problem.most_row_bytes(rows)),
        )
        for rows in problem.rows
    )
    words = word_loads(problem.layout, problem.element_bytes)
    return Copies((a, b), problem.gathered, words)


def _schedules(problem: OpenProblem) -> Iterator[Schedule]:
    """Those of the small space for the largest sizes, some of which are not legal."""
    step = mma_shape(problem.element_bytes)[2]
    blocks_k = [
        size
        for size in SMALL.block_k
        if size % step == 0 and size * problem.element_bytes >= _LEAST_STEP_BYTES
    ]
    for block in itertools.product(SMALL.block, SMALL.block, blocks_k):
        for warp in itertools.product(SMALL.warp, SMALL.warp):
            if block[0] % warp[0] or block[1] % warp[1]:
                continue
            if block[0] // warp[0] * (block[1] // warp[1]) <= SMALL.max_warps:
                yield from _staged(problem, block, warp)


def _staged(
    problem: OpenProblem, block: tuple[int, int, int], warp: tuple[int, int]
) -> Iterator[Schedule]:
    """With all stages that K's steps fill, and as many rows in a group as there are."""
    steps = k_steps(problem.k[1], block[2], problem.taps)
    rows = -(-problem.m[1] // block[0])
    columns = -(-problem.n[1] // block[1])
    raster = min(CHOSEN_RASTER, rows) if columns > 1 else 1
    for shared in [one for one in CHOSEN_SHARED_STAGES if one <= steps] or [1]:
        registers = CHOSEN_REGISTER_STAGES if shared > 1 else 1
        for parts in SMALL.split_k:
            grouped = raster if parts == 1 else 1
            yield Schedule(block, warp, (shared, registers), grouped, parts)
