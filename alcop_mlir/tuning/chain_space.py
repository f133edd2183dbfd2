"""The space of schedules of a chain, and their predicted times, by candidate."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from alcop_mlir.errors import ConfigError
from alcop_mlir.target import WARP_SIZE, Target
from alcop_mlir.tuning.candidates import Candidates, FloatArray
from alcop_mlir.tuning.chain_schedule import cost_of, schedule_of, sizes_of, tiles_of
from alcop_mlir.tuning.fused import chain_tiles
from alcop_mlir.tuning.fused.chain_model import ChainTime
from alcop_mlir.tuning.fused.chain_problem import block_count, mean_column_tiles
from alcop_mlir.tuning.problem import Problem

# Parts of a contraction's time that those of a chain's are shown as; see `PARTS`.
_AS_CONTRACTIONS = {
    "scores": "issue",
    "rescaling": "issue",
    "last blocks": "start",
    "merge": "adding up",
}


def candidates(problem: Problem, target: Target) -> Candidates:
    """All tiles that fit, in all numbers of parts; ConfigError where none do."""
    sizes = sizes_of(problem)
    tiles = [
        replace(one, parts=parts)
        for one in chain_tiles.possible_tiles(sizes, target)
        for parts in chain_tiles.possible_parts(sizes, one)
    ]
    costs = {
        schedule_of(sizes, one, target): cost_of(sizes, one, target) for one in tiles
    }
    legal = {one: cost for one, cost in costs.items() if cost.blocks_per_sm}
    if not legal:
        raise ConfigError(f"no legal schedule for {problem} on {target.name}")
    return Candidates([*legal], [*legal.values()])


def parts(times: Sequence[ChainTime], names: Iterable[str]) -> dict[str, FloatArray]:
    """Seconds of each part of a contraction's time, by candidate; see `ChainTime`."""
    found = {name: np.zeros(len(times)) for name in names}
    for row, time in enumerate(times):
        for name, seconds in time.parts.items():
            found[_AS_CONTRACTIONS.get(name, name)][row] += seconds
    return found


def quantities(
    problem: Problem, some: Candidates, target: Target, times: Sequence[ChainTime]
) -> dict[str, FloatArray]:
    """As `Prediction` has them."""
    sizes = sizes_of(problem)
    tiles = [tiles_of(one) for one in some.schedules]
    resident = np.array([one.resident for one in times], float)
    seconds = np.array([one.seconds for one in times])
    blocks = np.array([block_count(sizes, one) * one.parts for one in tiles], float)
    waves = np.ceil(blocks / (resident * target.sms))
    steps = [mean_column_tiles(sizes, one) / one.parts for one in tiles]
    loaded = [
        one.columns * (sizes.k + sizes.d) * problem.element_bytes for one in tiles
    ]
    costs = some.costs.astype(np.float64)
    return {
        "resident blocks": resident,
        "resident warps": resident * costs[:, 0] / WARP_SIZE,
        "waves": waves,
        "wave occupancy": blocks / (waves * resident * target.sms),
        "steps": np.array(steps),
        "missing": np.ones(len(some)),
        "flops per byte": problem.flops / (blocks * np.array(loaded)),
        "registers per thread": costs[:, 2],
        "shared bytes": costs[:, 1],
        "of peak": problem.flops / seconds / target.tensor_f16_flops,
    }


def predicted(problem: Problem, some: Candidates, target: Target) -> list[ChainTime]:
    """The time of each candidate, which fits."""
    sizes = sizes_of(problem)
    times = [chain_tiles.predicted(sizes, tiles_of(s), target) for s in some.schedules]
    assert None not in times
    return [one for one in times if one is not None]
