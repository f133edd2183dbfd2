"""A latency model of schedules from Target and Problem alone; ALCOP's third part.

A kernel is a launch and some waves of blocks. A wave is a start, a K loop and an
epilogue; where K is split, a kernel that adds up the parts follows. The K loop is a
pipeline of two levels, each modelled by `pipe`: copies from memory overlap with the use
of a tile, and inside it the loads of fragments with `mma`.
Bandwidths of shared memory, L2 and DRAM bound each level from below; cache lines that
L1 looks up for copies take time of their own: short rows are many lines. All is
arithmetic on columns: ten thousand candidates take some milliseconds. Schedules for
wgmma have a model of their own for their waves (`warpgroup_model.py`). With `Problems`
it is on tables, a row for each size. Every time is in seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from alcop_mlir import hardware
from alcop_mlir.hardware import SUB_CORES, Rates
from alcop_mlir.resources import WIDE, Copies
from alcop_mlir.target import (
    CP_ASYNC_BYTES,
    MMA_F16_SHAPE,
    MMA_K_BYTES,
    WARP_SIZE,
    Target,
    mma_shape,
)
from alcop_mlir.tuning import chain_space, traffic, warpgroup_model
from alcop_mlir.tuning.candidates import Candidates, FloatArray
from alcop_mlir.tuning.open_problem import Problems
from alcop_mlir.tuning.problem import Problem

# The parts of a kernel's time; they add up to the whole.
PARTS = (
    "launch",
    "start",  # of the blocks, until the first tile is there
    "tensor cores",
    "register loads",  # fragments that come too late for mma
    "shared memory",  # its bandwidth
    "issue",  # of instructions, of wgmma
    "synchronisation",  # one barrier per K tile, or a wait for wgmma
    "narrow copies",  # of less than 16 bytes: the units that load and store
    "cache lines",  # of copies, which L1 looks up one by one
    "copies",  # tiles that come too late: latency, or L2 bandwidth
    "dram",  # its bandwidth
    "epilogue",  # C to memory
    "adding up",  # the parts of a split K, by a kernel of its own
    "power",  # what wgmma and what it reads take of it
)

_WIDEST = max(CP_ASYNC_BYTES)  # bytes of a copy

# An estimate. It also ranks schedules that all hide the mean latency.
JITTER = 0.25


@dataclass(frozen=True, eq=False)
class Prediction:
    """By candidate, or by size and candidate: seconds, their parts, other quantities.

    quantities: dimensionless numbers that characterise a schedule, by name
    """

    seconds: FloatArray
    parts: Mapping[str, FloatArray]
    quantities: Mapping[str, FloatArray]

    def limit(self, row: int) -> str:
        """The part that a better schedule could reduce most.

        That is the arithmetic once all other parts are small, and the launch only where
        it takes most of the time.
        """
        if self.parts["launch"][row] > self.seconds[row] / 2:
            return "launch"
        others = [name for name in PARTS if name not in ("tensor cores", "launch")]
        worst = max(others, key=lambda name: self.parts[name][row])
        arithmetic = self.parts["tensor cores"][row]
        return worst if self.parts[worst][row] > arithmetic / 8 else "tensor cores"


def pipe(
    load: Any, use: Any, steps: Any, stages: Any, multiplexed: Any = 1.0
) -> FloatArray:
    """Seconds of a loop that loads and uses `steps` times, with `stages` slots.

    load, use: seconds of one load (any number at a time) and one use (one at a time)
    multiplexed: loops that share the unit which does the using
    """
    load, use = np.asarray(load, np.float64), np.asarray(use, np.float64)
    hidden = load <= (stages * multiplexed - 1) * use
    exposed = (load + use) * steps / stages
    covered = load + steps * multiplexed * use
    return np.where(hidden, np.asarray(covered), np.asarray(exposed))


def predict(
    problem: Problem | Problems,
    candidates: Candidates,
    target: Target,
    copies: Copies | None = None,
) -> Prediction:
    """The latency of each candidate, and what it is made of.

    copies: of tiles; None is as `problem` has them, or wide ones
    """
    if isinstance(problem, Problem) and problem.chain is not None:
        return _of_chain(problem, candidates, target)
    if copies is None:
        copies = problem.copies if isinstance(problem, Problem) else WIDE
    grid = traffic.grid(problem, candidates, target)
    rates = hardware.rates(target)
    full, tail = (
        _wave(problem, candidates, rates, grid, resident, copies)
        for resident in (grid.resident, grid.tail_resident)
    )
    parts = {name: grid.full_waves * full[name] + tail[name] for name in full}
    by_wgmma = warpgroup_model.is_by_wgmma(candidates)
    if by_wgmma.any():
        own = warpgroup_model.parts(problem, candidates, target, grid)
        parts = {name: np.where(by_wgmma, own[name], parts[name]) for name in parts}
    spent = sum(parts.values(), np.zeros(grid.shape))
    reached = hardware.DRAM_REACHED * target.dram_bytes_per_second
    least = (grid.read_bytes + grid.written_bytes) / reached
    parts["dram"] = np.maximum(least - spent, 0.0)
    parts["launch"] = np.full(grid.shape, hardware.LAUNCH * rates.cycle)
    parts["adding up"] = _adding_up(problem, rates, grid, target)
    parts["power"] = np.zeros(grid.shape)
    if by_wgmma.any():
        least = warpgroup_model.power(problem, candidates, target, grid)
        short = np.maximum(least - spent - parts["dram"], 0.0)
        parts["power"] = np.where(by_wgmma, short, 0.0)
    seconds = sum(parts.values(), np.zeros(grid.shape))
    return Prediction(
        seconds, parts, _quantities(problem, candidates, target, grid, seconds)
    )


def _wave(
    problem: Problem | Problems,
    candidates: Candidates,
    rates: Rates,
    grid: traffic.Grid,
    resident: FloatArray,
    copies: Copies,
) -> dict[str, FloatArray]:
    """Parts of a wave with `resident` blocks on each SM; zeros where there are none."""
    steps = grid.steps
    # Elements wait in registers for the one slot that there is.
    slots = "register_stages" if copies.are_by_elements else "shared_stages"
    stages = np.minimum(candidates.axis(slots), steps)
    tile = _tile(problem, candidates, rates, resident, copies)
    tile["narrow"] = _narrow_copies(problem, candidates, rates, resident, copies)
    lines = _cache_lines(problem, candidates, rates, resident, copies)
    tile["lines"] = np.maximum(lines - tile["narrow"], 0.0)  # both at once
    compute = sum(tile.values(), np.zeros(grid.shape))
    service = resident * grid.tile_bytes / grid.l2_share
    load = hardware.LOADED * rates.latency(grid.missing) + service
    blocks = np.maximum(resident, 1.0)
    loop = pipe(load, compute / blocks, steps, stages, blocks)
    loop = np.maximum(loop, load + steps * service)
    slack = (stages * blocks - 1) * compute / blocks
    loop = loop + steps * _late(load, slack) / stages
    stored = hardware.STORED * resident * grid.out_bytes / grid.l2_share
    parts = {
        "start": hardware.BLOCK_START * rates.cycle + np.minimum(load, loop),
        "tensor cores": steps * tile["tensor"],
        "register loads": steps * tile["register"],
        "shared memory": steps * tile["shared"],
        "issue": np.zeros(grid.shape),
        "synchronisation": steps * tile["barrier"],
        "narrow copies": steps * tile["narrow"],
        "cache lines": steps * tile["lines"],
        "copies": np.maximum(loop - load - steps * compute, 0.0),
        "epilogue": stored + rates.l2_latency,
    }
    return {name: np.where(resident > 0, part, 0.0) for name, part in parts.items()}


def _adding_up(
    problem: Problem | Problems, rates: Rates, grid: traffic.Grid, target: Target
) -> FloatArray:
    """Seconds of the kernel that adds up the parts of C; zeros where there are none.

    One thread for each element, so that it waits for memory, or for its bandwidth.
    """
    elements = problem.batch * problem.m * problem.n
    waves = np.maximum(1.0, elements / (target.threads_per_sm * target.sms))
    waiting = waves * (hardware.BLOCK_START * rates.cycle + 2 * rates.l2_latency)
    written = 1.0 * elements * problem.out_bytes
    moving = (grid.parts_bytes + written) / target.l2_bytes_per_second
    least = (grid.parts_missing + written) / target.dram_bytes_per_second
    spent = np.maximum(waiting + moving, least)
    return np.where(
        grid.parts_bytes > 0, hardware.NEXT_LAUNCH * rates.cycle + spent, 0.0
    )


def _tile(
    problem: Problem | Problems,
    candidates: Candidates,
    rates: Rates,
    resident: FloatArray,
    copies: Copies,
) -> dict[str, FloatArray]:
    """Seconds that all blocks of an SM use one K tile each, in four parts."""
    axis = candidates.axis
    warp_m, warp_n = axis("warp_m"), axis("warp_n")
    fragments = axis("block_k") / mma_shape(problem.element_bytes)[2]
    warps = resident * axis("block_m") / warp_m * axis("block_n") / warp_n
    on_sub_core = np.ceil(warps / SUB_CORES)
    # One mma takes as long whatever its operands' type: its k is as many bytes.
    mma = 2.0 * warp_m * warp_n * MMA_F16_SHAPE[2] / rates.flops
    fragment_bytes = (warp_m + warp_n) * MMA_K_BYTES
    at_once = np.minimum(warps, SUB_CORES)
    load = hardware.SHARED_LATENCY * rates.cycle
    load = load + at_once * fragment_bytes / rates.shared
    stages = axis("register_stages")
    tensor = fragments * on_sub_core * mma
    hidden = load <= (stages * on_sub_core - 1) * mma
    use = np.where(hidden, tensor, (load + mma) * fragments / stages)
    slack = (stages * on_sub_core - 1) * mma
    use = use + fragments * _late(load, slack) / stages
    # One warp's mma of a step wait for those of the step before.
    use = np.maximum(use, fragments * hardware.MMA_LATENCY * rates.cycle)
    tile_rows = axis("block_m") + axis("block_n")
    moved = warps * fragment_bytes * fragments
    moved = moved + resident * tile_rows * axis("block_k") * problem.element_bytes
    use = np.maximum(use, tensor)
    has_one_slot = (axis("shared_stages") == 1) | copies.are_by_elements
    barriers = np.where(has_one_slot, 2.0, 1.0)
    return {
        "tensor": tensor,
        "register": use - tensor,
        "shared": np.maximum(moved / rates.shared - use, 0.0),
        "barrier": barriers * hardware.BARRIER * rates.cycle / np.maximum(resident, 1),
    }


def _late(load: FloatArray, slack: FloatArray) -> FloatArray:
    """Seconds by which a hidden load is late, on average, beyond what `pipe` gives.

    Contention makes a load take anything from `load` to (1 + JITTER) * load.
    """
    longest = (1 + JITTER) * load
    shortage = np.maximum(longest - np.maximum(slack, load), 0.0)
    return np.where(slack < load, 0.0, shortage**2 / (2 * JITTER * load))


def _narrow_copies(
    problem: Problem | Problems,
    candidates: Candidates,
    rates: Rates,
    resident: FloatArray,
    copies: Copies,
) -> FloatArray:
    """Seconds that the copies of a K tile take the load and store units.

    A warp has those of its sub-core only, as it has its tensor core. Wide copies are
    few: none. Without cp.async a copy is a load and a store.
    """
    axis = candidates.axis
    lanes = np.zeros(len(candidates))  # of a block
    for rows, width in zip(("block_m", "block_n"), copies.at_once, strict=True):
        if width < _WIDEST:
            accesses = 1 if width in CP_ASYNC_BYTES else 2
            tile_bytes = axis(rows) * axis("block_k") * problem.element_bytes
            lanes = lanes + accesses * tile_bytes / width
    warps = axis("block_m") / axis("warp_m") * axis("block_n") / axis("warp_n")
    on_sub_core = np.ceil(resident * warps / SUB_CORES)
    cycles = on_sub_core * lanes / warps / hardware.LOAD_STORE_LANES
    return cycles * rates.cycle


def _cache_lines(
    problem: Problem | Problems,
    candidates: Candidates,
    rates: Rates,
    resident: FloatArray,
    copies: Copies,
) -> FloatArray:
    """Seconds in which L1 looks up the lines of all blocks' copies of a K tile.

    Short rows have a line each, as K steps of 16 elements have where rows are along K;
    rows that may begin anywhere lie in one more, as far as they are as long.
    """
    axis, size = candidates.axis, problem.element_bytes
    lines = np.zeros(len(candidates))
    operands = zip(
        ("block_m", "block_n"), problem.layout.split(","), copies.at_once, strict=True
    )
    for side, loops, width in operands:
        rows, length = axis(side), axis("block_k") * size
        if not loops.endswith("k"):
            rows, length = axis("block_k"), axis(side) * size
        full = length / hardware.LINE_BYTES
        crossed = 0.0 if width >= _WIDEST else np.minimum(1.0, full)
        lines = lines + rows * (np.maximum(1.0, full) + crossed)
    return resident * lines * hardware.LINE * rates.cycle


def _of_chain(problem: Problem, candidates: Candidates, target: Target) -> Prediction:
    times = chain_space.predicted(problem, candidates, target)
    parts = chain_space.parts(times, PARTS)
    seconds = sum(parts.values(), np.zeros(len(candidates)))
    own = chain_space.quantities(problem, candidates, target, times)
    return Prediction(seconds, parts, own)


def _quantities(
    problem: Problem | Problems,
    candidates: Candidates,
    target: Target,
    grid: traffic.Grid,
    seconds: FloatArray,
) -> dict[str, FloatArray]:
    costs = candidates.costs.astype(np.float64)
    waves = grid.full_waves + (grid.tail_resident > 0)
    capacity = waves * target.sms * grid.resident  # blocks that the waves could hold
    return {
        "resident blocks": grid.resident,
        "resident warps": grid.resident * costs[:, 0] / WARP_SIZE,
        "waves": waves,
        "wave occupancy": grid.blocks / np.maximum(capacity, 1),
        "steps": grid.steps,
        "missing": grid.missing,
        "flops per byte": problem.flops / (grid.blocks * grid.tile_bytes),
        "registers per thread": costs[:, 2],
        "shared bytes": costs[:, 1],
        "of peak": problem.flops / seconds / target.tensor_f16_flops,
    }
