"""Chains on the simulated SM: the loop over tiles of keys and values, as events.

Warps wait at a barrier for each tile, load its fragments through the port of shared
memory, and then multiply twice and compute on scores; tiles come through the SM's share
of L2. As `simulator.py` it shares the hardware's numbers with the model, not its
formulas. All blocks are of mean length: where a mask makes some shorter, those of a
wave end together here.
"""

from __future__ import annotations

import numpy as np

from alcop_mlir import hardware
from alcop_mlir.hardware import SUB_CORES
from alcop_mlir.measurement.events import COPY_BYTES, COPY_ISSUE, Loops, run
from alcop_mlir.target import WARP_SIZE, Target
from alcop_mlir.tuning.candidates import AXES, Candidates, FloatArray
from alcop_mlir.tuning.chain_schedule import sizes_of, tiles_of
from alcop_mlir.tuning.fused.chain_problem import (
    ELEMENT_BYTES,
    ChainSizes,
    block_count,
    mean_column_tiles,
    merge_bytes,
)
from alcop_mlir.tuning.problem import Problem


def simulate(problem: Problem, candidates: Candidates, target: Target) -> FloatArray:
    """Seconds of each candidate's kernels."""
    sizes, rates = sizes_of(problem), hardware.rates(target)
    tiles = [tiles_of(one) for one in candidates.schedules]
    blocks = np.array([block_count(sizes, one) * one.parts for one in tiles], float)
    most = np.minimum(candidates.costs[:, 3], np.ceil(blocks / target.sms))
    full, rest = np.divmod(blocks, most * target.sms)
    last = np.ceil(rest / target.sms)
    total = np.full(len(candidates), hardware.LAUNCH)
    stored = candidates.axis("block_m") * sizes.d * problem.out_bytes
    for resident, count in ((most, full), (last, (last > 0).astype(float))):
        rows = np.flatnonzero(count)
        if len(rows):
            loops = _loops(sizes, candidates, target, resident)
            store = resident * stored / hardware.l2_share(target)
            store = store + rates.l2_latency / rates.cycle
            wave = hardware.BLOCK_START + run(loops.take(rows)) + store[rows]
            total[rows] += count[rows] * wave
    merged = [_merge(sizes, one.parts, target) for one in tiles]
    return total * rates.cycle + np.array(merged)


def _loops(
    sizes: ChainSizes, candidates: Candidates, target: Target, resident: FloatArray
) -> Loops:
    """The loop of one wave with `resident` blocks on each SM."""
    rates, axis = hardware.rates(target), candidates.axis
    tiles = [tiles_of(one) for one in candidates.schedules]
    lengths = [mean_column_tiles(sizes, one) / one.parts for one in tiles]
    resident = np.maximum(resident, 1.0)
    threads = candidates.costs[:, 0]
    block_warps = threads / WARP_SIZE
    warps = np.ceil(block_warps / SUB_CORES)
    blocks = np.ceil(resident * block_warps / SUB_CORES / warps)
    # The shares that blocks and warps outside of the simulation take.
    others, other_blocks = resident * block_warps / (blocks * warps), resident / blocks
    elements = axis("block_n") * (sizes.k + sizes.d)
    computed = 2 * axis("warp_m") * elements / rates.flops / rates.cycle
    computed = computed + _lanes(sizes, candidates, target)
    copies = elements * ELEMENT_BYTES / COPY_BYTES / threads
    loaded = elements * ELEMENT_BYTES * others
    return Loops(
        blocks=blocks.astype(np.int64),
        warps=warps.astype(np.int64),
        stages=candidates.table[:, AXES.index("shared_stages")],
        registers=np.ones(len(candidates), np.int64),
        tiles=np.maximum(np.round(lengths), 1).astype(np.int64),
        fragments=np.ones(len(candidates), np.int64),
        mma=computed,
        fragment=loaded / hardware.SHARED_BYTES_PER_CYCLE,
        copy=elements * ELEMENT_BYTES * other_blocks / hardware.l2_share(target),
        latency=np.full(len(candidates), rates.l2_latency / rates.cycle),
        issue=np.ceil(copies) * COPY_ISSUE * warps,
    )


def _lanes(sizes: ChainSizes, candidates: Candidates, target: Target) -> FloatArray:
    """Cycles in which a warp scales, compares and adds its scores of a tile."""
    rows, columns = candidates.axis("warp_m"), candidates.axis("block_n")
    if not sizes.of_rows:
        return np.zeros(len(candidates))
    # `float_lanes` and EXPONENTIALS are of an SM: a sub-core has a quarter.
    lanes = target.float_lanes / SUB_CORES
    scores = (hardware.SCORE_INSTRUCTIONS + sizes.extra) / lanes
    scores += SUB_CORES / hardware.EXPONENTIALS
    rescaled = hardware.RESCALED_INSTRUCTIONS * sizes.d / lanes
    return rows * (columns * scores + rescaled)


def _merge(sizes: ChainSizes, parts: int, target: Target) -> float:
    """Seconds of the kernel that merges parts; 0 where there is one."""
    if parts == 1:
        return 0.0
    cycles = hardware.NEXT_LAUNCH + hardware.BLOCK_START + 2 * target.l2_latency
    moved = merge_bytes(sizes, parts) / target.l2_bytes_per_second
    return cycles / target.clock_hz + moved
